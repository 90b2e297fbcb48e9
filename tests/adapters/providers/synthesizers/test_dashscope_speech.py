"""DashScope's voices: what their traps must come to, and what goes out to them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import anyio
import pytest
from pydantic import JsonValue

from voicechart.adapters.providers import Secrets
from voicechart.adapters.providers.synthesizers.dashscope_speech import DashScopeVoice, make
from voicechart.adapters.testing import ScriptedSocketServer, SocketPeer
from voicechart.adapters.testing.speech_peers import cosyvoice_voice, qwen_voice, task_event
from voicechart.engines.ports import SpeechUnit, SynthesisRequest, Synthesizer
from voicechart.engines.reports import (
    PortError,
    SynthesisEnded,
    SynthesisErrored,
    SynthesisReport,
    SynthesisStopped,
    Synthesized,
)

pytestmark = pytest.mark.anyio

Golden = Callable[[str, JsonValue], None]
Make = Callable[..., Synthesizer]
Speak = Callable[..., Awaitable[list[SynthesisReport]]]
QWEN = "qwen3-tts-flash-realtime"


@pytest.fixture
def voice(secrets: Secrets, numbered: Callable[[], str]) -> Make:
    def voice(url: str, **settings: object) -> Synthesizer:
        chosen: dict[str, object] = {"kind": "dashscope-speech", "voice": "v", "api_key_env": "VOICE_KEY", **settings}
        return make(DashScopeVoice.model_validate({**chosen, "base_url": url}), secrets, new_id=numbered)

    return voice


def sent_by(peer: SocketPeer) -> JsonValue:
    assert peer.headers["authorization"] == "Bearer sk-planted-0123456789"
    return {"path": peer.path, "query": {**peer.query}, "frames": [message.json() for message in peer.received]}


async def test_what_is_sent_for_a_reply_of_tasks(voice: Make, speak: Speak, golden: Golden) -> None:
    server = ScriptedSocketServer(cosyvoice_voice())
    async with server.running() as url:
        synthesizer = voice(url, language="en", word_times=True)
        assert isinstance((await speak(synthesizer, "Hello there.", "Bye."))[-1], SynthesisEnded)
        await synthesizer.aclose()
    golden("dashscope-speech/tasks", sent_by(server.peers[0]))


async def test_what_is_sent_for_a_reply_in_a_session(voice: Make, speak: Speak, golden: Golden) -> None:
    server = ScriptedSocketServer(qwen_voice())
    async with server.running() as url:
        synthesizer = voice(url, model=QWEN, language="English", rate=1.2)
        assert isinstance((await speak(synthesizer, "Hello there.", "Bye."))[-1], SynthesisEnded)
        await synthesizer.aclose()
    golden("dashscope-speech/session", sent_by(server.peers[0]))


async def test_trap_57_no_text_goes_out_before_the_task_has_started(voice: Make, speak: Speak) -> None:
    async def script(peer: SocketPeer) -> None:
        task_id = (await peer.expect(str)).json()["header"]
        with anyio.move_on_after(0.05):
            await peer.expect()
            raise AssertionError("something was sent before the start")
        assert isinstance(task_id, dict)
        await peer.send_json(task_event("task-started", str(task_id["task_id"])))
        text, end = (await peer.expect()).json(), (await peer.expect()).json()
        assert (text["payload"], end["payload"]) == ({"input": {"text": "Hi."}}, {"input": {}})
        await peer.send_bytes(b"\x01\x00" * 480)
        await peer.send_json(task_event("task-finished", str(task_id["task_id"])))

    server = ScriptedSocketServer(script)
    async with server.running() as url:
        synthesizer = voice(url)
        assert isinstance((await speak(synthesizer, "Hi."))[-1], SynthesisEnded)
        await synthesizer.aclose()
    assert server.completed == 1


async def test_trap_58_a_socket_that_closes_before_the_task_has_finished_is_a_failure(
    voice: Make, speak: Speak
) -> None:
    async def script(peer: SocketPeer) -> None:
        await peer.expect(str)
        await peer.send_json(task_event("task-started", "id-1"))
        await peer.expect()
        await peer.expect()
        await peer.send_bytes(b"\x01\x00" * 480)
        await peer.close(1000)

    async with ScriptedSocketServer(script).running() as url:
        synthesizer = voice(url)
        reports = await speak(synthesizer, "Hi.")
        await synthesizer.aclose()
    assert isinstance(reports[-1], SynthesisErrored)
    assert (reports[-1].error.code, reports[-1].error.partial_output) == ("closed_by_provider", True)


async def test_trap_60_a_failed_task_poisons_its_socket_and_the_next_reply_has_another(
    voice: Make, speak: Speak
) -> None:
    async def failing(peer: SocketPeer) -> None:
        await peer.expect(str)
        failed = task_event("task-failed", "id-1")
        assert isinstance(failed["header"], dict)
        failed["header"] |= {"error_code": "InternalError", "error_message": "x"}
        await peer.send_json(failed)
        assert await peer.hung_up() == 1000

    server = ScriptedSocketServer(failing, cosyvoice_voice())
    async with server.running() as url:
        synthesizer = voice(url)
        assert isinstance((await speak(synthesizer, "Hi."))[-1], SynthesisErrored)
        assert isinstance((await speak(synthesizer, "Hi."))[-1], SynthesisEnded)
        await synthesizer.aclose()
    assert len(server.peers) == 2


async def test_trap_61_events_of_an_earlier_task_on_the_socket_are_passed_over(voice: Make, speak: Speak) -> None:
    async def script(peer: SocketPeer) -> None:
        for number in range(2):
            await peer.skip_to(str)
            if number:
                await peer.send_json(task_event("task-finished", "id-1"))
                await peer.send_json(task_event("task-failed", "id-1"))
                await peer.send_bytes(b"\x09\x00" * 480)
            await peer.send_json(task_event("task-started", f"id-{number + 1}"))
            await peer.expect()
            await peer.expect()
            await peer.send_json(task_event("task-failed", "id-0"))
            await peer.send_bytes(b"\x01\x00" * 480)
            await peer.send_json(task_event("task-finished", f"id-{number + 1}"))

    server = ScriptedSocketServer(script)
    async with server.running() as url:
        synthesizer = voice(url)
        first, second = await speak(synthesizer, "Hi."), await speak(synthesizer, "Bye.")
        await synthesizer.aclose()
    assert first[-1] == second[-1] == SynthesisEnded(480)
    assert len(server.peers) == 1
    assert b"\x09" not in b"".join(report.frame.data for report in second if isinstance(report, Synthesized))


async def test_trap_64_a_session_is_configured_once_and_before_anything_else(voice: Make, speak: Speak) -> None:
    server = ScriptedSocketServer(qwen_voice(), qwen_voice())
    async with server.running() as url:
        synthesizer = voice(url, model=QWEN)
        for text in ("Hi.", "Bye."):
            await speak(synthesizer, text)
        await speak(synthesizer, "Hi.", voice="Ethan")
        await synthesizer.aclose()
    types = [[message.json()["type"] for message in peer.received] for peer in server.peers]
    assert [(kinds[0], kinds.count("session.update")) for kinds in types] == [("session.update", 1)] * 2


async def test_trap_64_a_refused_configuration_is_an_error_that_is_not_tried_again(voice: Make) -> None:
    async def script(peer: SocketPeer) -> None:
        await peer.send_json({"event_id": "e", "type": "session.created", "session": {"id": "s"}})
        await peer.expect({"type": "session.update"})
        message = "Session update error: session already started or finished or failed."
        await peer.send_json({"event_id": "e", "type": "error", "error": {"code": "invalid_value", "message": message}})
        assert await peer.hung_up() == 1000

    server = ScriptedSocketServer(script)
    async with server.running() as url:
        synthesizer = voice(url, model=QWEN)
        with pytest.raises(PortError, match="request_refused") as refused:
            await synthesizer.prepare()
        await synthesizer.aclose()
    assert not refused.value.error.retryable


async def test_trap_65_nobody_waits_for_a_session_to_finish(voice: Make, speak: Speak) -> None:
    server = ScriptedSocketServer(qwen_voice())
    async with server.running() as url:
        synthesizer = voice(url, model=QWEN)
        await speak(synthesizer, "Hi.")
        with anyio.fail_after(5):
            await synthesizer.aclose()
            assert await server.peers[0].hung_up() == 1000


async def test_trap_65_a_session_that_finishes_in_the_middle_has_failed(voice: Make, speak: Speak) -> None:
    async def script(peer: SocketPeer) -> None:
        await peer.send_json({"event_id": "e", "type": "session.created", "session": {"id": "s"}})
        await peer.skip_to({"type": "session.update"})
        await peer.send_json({"event_id": "e", "type": "session.updated", "session": {"id": "s"}})
        await peer.skip_to({"type": "input_text_buffer.commit"})
        await peer.send_json({"event_id": "e", "type": "session.finished"})

    async with ScriptedSocketServer(script).running() as url:
        synthesizer = voice(url, model=QWEN)
        (ended,) = await speak(synthesizer, "Hi.")
        await synthesizer.aclose()
    assert isinstance(ended, SynthesisErrored)
    assert ended.error.code == "closed_by_provider"


@pytest.mark.parametrize(
    ("model", "goodbye"),
    [
        ("cosyvoice-v3-flash", {"header": {"action": "finish-task", "task_id": "id-1", "streaming": "duplex"}}),
        (QWEN, {"type": "response.cancel"}),
    ],
)
async def test_a_cancel_is_said_and_the_socket_closed(voice: Make, model: str, goodbye: dict[str, JsonValue]) -> None:
    async def tasks(peer: SocketPeer) -> None:
        await peer.expect(str)
        await peer.send_json(task_event("task-started", "id-1"))
        await peer.send_bytes(b"\x01\x00" * 480)
        await peer.skip_to({"payload": {"input": {"directive": "cancel"}}, **goodbye})
        assert await peer.hung_up() == 1000

    async def session(peer: SocketPeer) -> None:
        await peer.send_json({"event_id": "e", "type": "session.created", "session": {"id": "s"}})
        await peer.send_json({"event_id": "e", "type": "session.updated", "session": {"id": "s"}})
        await peer.skip_to({"type": "input_text_buffer.commit"})
        await peer.send_json({"event_id": "e", "type": "response.created", "response": {"id": "r1"}})
        await peer.send_json(
            {"event_id": "e", "type": "response.audio.delta", "response_id": "r1", "delta": "AQABAAEAAQA="}
        )
        await peer.skip_to(goodbye)
        assert await peer.hung_up() == 1000

    server = ScriptedSocketServer(session if model == QWEN else tasks)
    async with server.running() as url:
        synthesizer = voice(url, model=model)
        stream = await synthesizer.open(SynthesisRequest("r", 1))
        await stream.write(SpeechUnit(0, "A long story."))
        reports = stream.reports()
        with anyio.fail_after(10):
            assert isinstance(await anext(reports), Synthesized)
            stream.cancel("barge-in")
            assert [report async for report in reports] == [SynthesisStopped()]
            await stream.aclose()
            await server.has_completed()
        await synthesizer.aclose()
