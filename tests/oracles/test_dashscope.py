"""DashScope's recognition, judged by dashscope, whose types say little: so what its own client sends is the measure."""

from __future__ import annotations

from dataclasses import dataclass

import anyio.to_thread
import dashscope
import pytest
from dashscope.audio.asr import Recognition, RecognitionCallback
from dashscope.v2.resources.audio.asr import RecognitionResult
from material import each_fixture, each_golden, json_of, judge
from strict import Json, Refused

from voicechart.adapters.testing import ScriptedSocketServer, SocketPeer, WireEvent, WireFixture
from voicechart.adapters.testing.recognition_servers import dashscope_hears

pytestmark = pytest.mark.anyio

EVENTS = {"task-started", "result-generated", "task-finished", "task-failed"}
SENTENCE = {"sentence_id", "begin_time", "end_time", "text", "words", "sentence_end", "heartbeat"}
"""alibabacloud.com/help/en/model-studio/paraformer-server-events; dashscope 2.0.2 has no type for it."""
WORD = {"begin_time", "end_time", "text", "punctuation"}


def is_of_the_protocol(event: WireEvent) -> None:
    message = json_of(event)
    try:
        header, payload = message["header"], message["payload"]
    except (KeyError, TypeError) as missing:
        raise Refused(f"no {missing}") from missing
    if header["event"] not in EVENTS or not isinstance(header["task_id"], str):
        raise Refused(f"no such event: {header}")
    if header["event"] == "task-failed" and not (header.keys() >= {"error_code", "error_message"}):
        raise Refused("a failed task says why")
    if header["event"] == "result-generated":
        sentence = RecognitionResult.model_validate(payload).get_sentence()
        if sentence is None:
            raise Refused("no sentence")
        if unknown := sentence.keys() - SENTENCE:
            raise Refused(f"no such keys in a sentence: {unknown}")
        for word in sentence.get("words") or ():
            if unknown := word.keys() - WORD:
                raise Refused(f"no such keys in a word: {unknown}")


@each_fixture("dashscope")
def test_what_the_scripted_server_says_is_what_the_vendor_documents(fixture: WireFixture) -> None:
    judge(fixture, is_of_the_protocol)


class Callback(RecognitionCallback):
    def __init__(self) -> None:
        self.seen: list[str] = []

    def on_event(self, result: Json) -> None:
        self.seen.append(result.get_sentence()["text"])

    def on_complete(self) -> None:
        self.seen.append("complete")


@dataclass(frozen=True)
class Session:
    seen: list[str]
    """What the vendor's client got out of it."""
    peer: SocketPeer


@pytest.fixture(scope="module")
async def session() -> Session:
    """A scripted session with the vendor's client. One for all tests: its threads and globals bear no second one."""
    server = ScriptedSocketServer(dashscope_hears("Turn on"))
    callback = Callback()

    def talk() -> None:
        recognition = Recognition(model="paraformer-realtime-v2", format="pcm", sample_rate=16_000, callback=callback)
        recognition.start()
        for _ in range(10):
            recognition.send_audio_frame(bytes(3_200))
        recognition.stop()

    async with server.running() as base_url:
        dashscope.api_key = "k"
        dashscope.base_websocket_api_url = f"{base_url}/api-ws/v1/inference"
        await anyio.to_thread.run_sync(talk)
    return Session(callback.seen, server.peers[0])


async def test_the_vendors_client_understands_the_scripted_server(session: Session) -> None:
    assert session.seen == ["Turn", "Turn on", "Turn on", "complete"]
    assert session.peer.path == "/api-ws/v1/inference"
    assert session.peer.headers["authorization"] == "Bearer k"


@each_golden("dashscope")
async def test_our_messages_have_the_form_of_the_vendors_client(golden: dict[str, Json], session: Session) -> None:
    messages = [message.json() for message in session.peer.received if message.is_text]
    theirs = {message["header"]["action"]: message for message in messages}
    for frame in golden["frames"]:
        if isinstance(frame, dict):
            other = theirs[frame["header"]["action"]]
            assert frame["header"].keys() == other["header"].keys()
            assert frame["payload"].keys() == other["payload"].keys()
            for key in ("task_group", "task", "function", "input"):
                assert frame["payload"].get(key) == other["payload"].get(key)
            assert frame["payload"].get("parameters", {}).keys() >= other["payload"].get("parameters", {}).keys()
