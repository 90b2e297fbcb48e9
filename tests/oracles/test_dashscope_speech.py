"""DashScope's voices, judged by dashscope. It declares no types: its own client says what it sends and understands."""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Callable

import anyio.to_thread
import dashscope
import pytest
from dashscope.audio.qwen_tts_realtime import AudioFormat as QwenFormat
from dashscope.audio.qwen_tts_realtime import QwenTtsRealtime, QwenTtsRealtimeCallback
from dashscope.audio.tts_v2 import AudioFormat, ResultCallback, SpeechSynthesizer
from material import GOLDEN, each_fixture
from strict import Json

from voicechart.adapters.testing import ScriptedSocketServer, WireFixture
from voicechart.adapters.testing.speech_peers import cosyvoice_voice, pcm_of, qwen_voice

pytestmark = pytest.mark.anyio


@each_fixture("dashscope-speech")
def test_what_the_scripted_server_says_has_the_form_that_the_client_reads(fixture: WireFixture) -> None:
    """A JSON event has the keys that the client looks for, unless the fixture is about that."""
    for event in fixture.events:
        if event.binary is None and event.raw is None and "wrong-type" not in fixture_name(fixture):
            assert isinstance(event.data, dict)
            assert "type" in event.data or {"event", "task_id"} <= event.data["header"].keys()


def fixture_name(fixture: WireFixture) -> str:
    return "wrong-type" if fixture.about.startswith("An event without") else ""


def golden(name: str) -> list[Json]:
    return json.loads(GOLDEN[f"dashscope-speech/{name}.json"].read_text(encoding="utf-8"))["frames"]


async def in_a_thread(work: Callable[[], None]) -> None:
    with anyio.fail_after(20):
        await anyio.to_thread.run_sync(work, abandon_on_cancel=True)


async def test_the_vendors_client_speaks_tasks_as_we_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dashscope, "api_key", "k")
    heard: list[bytes] = []

    class Callback(ResultCallback):
        def on_data(self, data: bytes) -> None:
            heard.append(data)

    server = ScriptedSocketServer(cosyvoice_voice())
    async with server.running() as url:

        def speak() -> None:
            synthesizer = SpeechSynthesizer(
                model="cosyvoice-v3-flash",
                voice="v",
                format=AudioFormat.PCM_24000HZ_MONO_16BIT,
                callback=Callback(),
                url=f"{url}/api-ws/v1/inference",
            )
            synthesizer.streaming_call("Hello there.")
            synthesizer.streaming_complete()

        await in_a_thread(speak)
    assert b"".join(heard) == pcm_of("Hello there.", 0)
    theirs = [message.json() for message in server.peers[0].received]
    ours = golden("tasks")[:3]
    assert [shape(one) for one in ours] == [shape(one) for one in theirs]


def shape(command: Json) -> Json:
    """What a command must have in common with the client's: not the voice's settings, and not what only repeats."""
    payload = command["payload"]
    fixed = {key: payload.get(key) for key in ("task_group", "task", "function", "model")}
    is_run = command["header"]["action"] == "run-task"
    parameters = sorted({"voice", "format", "sample_rate", "text_type"} & payload.get("parameters", {}).keys())
    return (
        command["header"]["action"],
        command["header"]["streaming"],
        fixed if is_run else None,
        payload["input"],
        parameters,
    )


async def test_the_vendors_client_speaks_in_a_session_as_we_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dashscope, "api_key", "k")
    heard: list[bytes] = []
    done = threading.Event()

    class Callback(QwenTtsRealtimeCallback):
        def on_event(self, message: Json) -> None:
            if message["type"] == "response.audio.delta":
                heard.append(base64.b64decode(message["delta"]))
            if message["type"] == "response.done":
                done.set()

    server = ScriptedSocketServer(qwen_voice())
    async with server.running() as url:

        def speak() -> None:
            client = QwenTtsRealtime(
                model="qwen3-tts-flash-realtime", callback=Callback(), url=f"{url}/api-ws/v1/realtime"
            )
            client.connect()
            client.update_session(
                voice="v", response_format=QwenFormat.PCM_24000HZ_MONO_16BIT, mode="commit", language_type="English"
            )
            client.append_text("Hello there.")
            client.commit()
            assert done.wait(10)
            client.close()

        await in_a_thread(speak)
    assert b"".join(heard) == pcm_of("Hello there.", 0)
    theirs = [message.json() for message in server.peers[0].received]
    ours = golden("session")[:3]
    assert [one["type"] for one in ours] == [one["type"] for one in theirs]
    assert ours[1]["text"] == theirs[1]["text"]
    session = theirs[0]["session"]
    assert isinstance(session, dict)
    assert {key: ours[0]["session"][key] for key in session} == session
