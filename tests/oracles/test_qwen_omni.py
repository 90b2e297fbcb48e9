"""Qwen-Omni's realtime model, judged by what is documented and by dashscope's client: it has no types."""

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
from voicechart.adapters.testing.realtime_servers import RealtimeVoice, Says

pytestmark = pytest.mark.anyio

HEARD = "conversation.item.input_audio_transcription"
PLACE = {"response_id", "item_id", "output_index", "content_index"}
NEEDED = {
    "error": {"error"},
    "session.created": {"session"},
    "session.updated": {"session"},
    "session.finished": set[str](),
    "input_audio_buffer.committed": {"item_id"},
    "conversation.item.created": {"item"},
    f"{HEARD}.text": {"item_id", "text", "stash"},
    f"{HEARD}.completed": {"item_id", "transcript"},
    "response.created": {"response"},
    "response.done": {"response"},
    "response.output_item.added": {"response_id", "output_index", "item"},
    "response.output_item.done": {"response_id", "output_index", "item"},
    "response.content_part.added": {*PLACE, "part"},
    "response.text.delta": {*PLACE, "delta"},
    "response.text.done": {*PLACE, "text"},
    "response.audio.delta": {*PLACE, "delta"},
    "response.audio.done": PLACE,
    "response.audio_transcript.delta": {*PLACE, "delta"},
    "response.audio_transcript.done": {*PLACE, "transcript"},
    "response.function_call_arguments.delta": {"response_id", "item_id", "output_index", "call_id", "delta"},
    "response.function_call_arguments.done": {"response_id", "item_id", "output_index", "call_id", "arguments"},
}
"""alibabacloud.com/help/en/model-studio/server-events, of October 2026."""
SESSION = {
    "modalities",
    "voice",
    "input_audio_format",
    "output_audio_format",
    "instructions",
    "input_audio_transcription",
    "turn_detection",
    "tools",
}
"""…/client-events."""
SENT = {
    "session.update": {"session"},
    "input_audio_buffer.append": {"audio"},
    "input_audio_buffer.commit": set[str](),
    "input_audio_buffer.clear": set[str](),
    "conversation.item.create": {"item"},
    "response.create": set[str](),
    "response.cancel": set[str](),
    "session.finish": set[str](),
}
"""…/client-events, and dashscope.v2.resources.audio.realtime for items and the end of a session."""


def is_documented(event: WireEvent) -> None:
    message = json_of(event)
    needed = NEEDED.get(message.get("type"))
    if needed is None or not message.keys() >= needed | {"event_id"}:
        raise Refused(f"not as documented: {message}")


@each_fixture("qwen-omni")
def test_what_the_scripted_server_says_is_what_the_vendor_documents(fixture: WireFixture) -> None:
    judge(fixture, is_documented)


@each_golden("qwen-omni")
def test_what_we_send_is_what_the_vendor_documents(golden: dict[str, Json]) -> None:
    for frame in golden["frames"]:
        kind = frame["type"]
        # The end of an utterance without its audio, and so on: nothing but what the kind needs.
        expected = SENT[kind] | {"type"} | ({"event_id"} if kind != "input_audio_buffer.append" else set())
        assert frame.keys() == expected
        if kind == "session.update":
            session = frame["session"]
            assert session.keys() <= SESSION
            assert session["modalities"] == ["text", "audio"]
            assert session["turn_detection"] is None
            assert all(tool.keys() == {"type", "function"} for tool in session.get("tools", []))


class Callback(OmniRealtimeCallback):
    def __init__(self) -> None:
        self.seen: list[Json] = []
        self.changed = threading.Condition()

    def on_event(self, message: Json) -> None:
        with self.changed:
            self.seen.append(message)
            self.changed.notify_all()

    def has_seen(self, kind: str) -> None:
        with self.changed:
            assert self.changed.wait_for(lambda: kind in [message["type"] for message in self.seen], 10)


async def test_the_vendors_client_talks_to_the_scripted_server() -> None:
    voice = RealtimeVoice(Says("It is noon.", 400, goes_on=True), hears=("what time is it",), beta=True)
    server = ScriptedSocketServer(voice)
    callback = Callback()
    async with server.running() as base_url:
        dashscope.api_key = "k"

        def talk() -> None:
            conversation = OmniRealtimeConversation(
                model="qwen3-omni-flash-realtime", callback=callback, url=f"{base_url}/api-ws/v1/realtime"
            )
            conversation.connect()
            conversation.update_session(
                output_modalities=[MultiModality.AUDIO, MultiModality.TEXT], voice="Cherry", enable_turn_detection=False
            )
            conversation.append_audio(base64.b64encode(bytes(32_000)).decode())
            conversation.commit()
            callback.has_seen(f"{HEARD}.completed")
            conversation.create_response()
            callback.has_seen("response.audio.delta")
            conversation.cancel_response()
            callback.has_seen("response.done")
            conversation.end_session()
            callback.has_seen("session.finished")
            conversation.close()

        await anyio.to_thread.run_sync(talk)
    said = [message["delta"] for message in callback.seen if message["type"] == "response.audio_transcript.delta"]
    assert "".join(said) == "It is noon."
    assert voice.refused == []
    for message in callback.seen:
        assert message.keys() >= NEEDED[message["type"]]
    peer = server.peers[0]
    assert (peer.path, peer.query) == ("/api-ws/v1/realtime", {"model": "qwen3-omni-flash-realtime"})
