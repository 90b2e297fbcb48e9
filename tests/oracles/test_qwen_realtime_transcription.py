"""Qwen-ASR's realtime recognition, judged by what is documented and by dashscope's client: it has no types."""

from __future__ import annotations

import base64
import threading

import anyio.to_thread
import dashscope
import pytest
from dashscope.audio.qwen_omni import MultiModality, OmniRealtimeCallback, OmniRealtimeConversation
from material import each_fixture, each_golden, json_of, judge
from strict import Json, Refused

from voicechart.adapters.testing import ScriptedSocketServer, WireEvent, WireFixture
from voicechart.adapters.testing.recognition_servers import qwen_realtime_hears

pytestmark = pytest.mark.anyio

PREFIX = "conversation.item.input_audio_transcription"
NEEDED = {
    "error": {"error"},
    "session.created": {"session"},
    "session.updated": {"session"},
    "session.finished": set[str](),
    "input_audio_buffer.speech_started": {"audio_start_ms", "item_id"},
    "input_audio_buffer.speech_stopped": {"audio_end_ms", "item_id"},
    "input_audio_buffer.committed": {"item_id"},
    f"{PREFIX}.text": {"item_id", "text", "stash"},
    f"{PREFIX}.completed": {"item_id", "transcript"},
    f"{PREFIX}.failed": {"item_id", "error"},
}
"""alibabacloud.com/help/en/model-studio/qwen-asr-realtime-server-events."""
SESSION = {"modalities", "input_audio_format", "sample_rate", "input_audio_transcription", "turn_detection"}
"""…/qwen-asr-realtime-client-events."""


def is_documented(event: WireEvent) -> None:
    message = json_of(event)
    needed = NEEDED.get(message.get("type"))
    if needed is None or not message.keys() >= needed | {"event_id"}:
        raise Refused(f"not as documented: {message}")


@each_fixture("qwen-realtime-transcription")
def test_what_the_scripted_server_says_is_what_the_vendor_documents(fixture: WireFixture) -> None:
    judge(fixture, is_documented)


@each_golden("qwen-realtime-transcription")
def test_what_we_send_is_what_the_vendor_documents(golden: dict[str, Json]) -> None:
    for frame in golden["frames"]:
        assert frame["event_id"]
        match frame["type"]:
            case "session.update":
                assert frame["session"].keys() == SESSION
            case "input_audio_buffer.append":
                assert frame.keys() == {"event_id", "type", "audio"}
            case kind:
                assert kind == "session.finish"


class Callback(OmniRealtimeCallback):
    def __init__(self) -> None:
        self.seen: list[Json] = []
        self.finished = threading.Event()

    def on_event(self, message: Json) -> None:
        self.seen.append(message)
        if message["type"] == "session.finished":
            self.finished.set()


async def test_the_vendors_client_understands_the_scripted_server() -> None:
    server = ScriptedSocketServer(qwen_realtime_hears("Turn on"))
    callback = Callback()
    async with server.running() as base_url:
        dashscope.api_key = "k"

        def talk() -> None:
            conversation = OmniRealtimeConversation(
                model="qwen3-asr-flash-realtime", callback=callback, url=f"{base_url}/api-ws/v1/realtime"
            )
            conversation.connect()
            conversation.update_session(output_modalities=[MultiModality.TEXT])
            conversation.append_audio(base64.b64encode(bytes(32_000)).decode())
            conversation.end_session()
            callback.finished.wait(10)
            conversation.close()

        await anyio.to_thread.run_sync(talk)
    told = [message for message in callback.seen if message["type"].startswith(PREFIX)]
    assert [message.get("text", "") + message.get("stash", "") for message in told[:-1]] == ["Turn", "Turn on"]
    assert told[-1]["transcript"] == "Turn on"
    peer = server.peers[0]
    assert (peer.path, peer.query) == ("/api-ws/v1/realtime", {"model": "qwen3-asr-flash-realtime"})
    assert peer.headers["authorization"].lower() == "bearer k"
    sent = [message.json()["type"] for message in peer.received]
    assert sent == ["session.update", "input_audio_buffer.append", "session.finish"]
