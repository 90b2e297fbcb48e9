"""The bounds of a session over a socket: sizes, waits, the longest time, and who may listen."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace

import anyio
import pytest
from pydantic import JsonValue, ValidationError

from voicechart.adapters.providers.declaration import SecretMissing, Secrets
from voicechart.adapters.providers.realtime import openai_realtime, qwen_omni
from voicechart.adapters.providers.realtime_protocol import RealtimeLimits, SocketRealtimeModel
from voicechart.adapters.providers.websocket import SocketLimits
from voicechart.adapters.testing import ScriptedSocketServer, SocketPeer
from voicechart.adapters.testing.realtime_servers import RealtimeVoice, Says
from voicechart.audio.formats import AudioFrame
from voicechart.engines.realtime import RealtimeRequest, RealtimeSession
from voicechart.engines.realtime.reports import (
    AnswerAudio,
    AnswerFailed,
    AnswerStopped,
    RealtimeReport,
    SessionEnded,
    SessionExpires,
)
from voicechart.engines.reports import PortError

pytestmark = pytest.mark.anyio

KEY = "sk-very-secret-0123456789"
Script = Callable[[SocketPeer], Awaitable[None]]
SHORT = RealtimeLimits(ready_s=0.2, respond_s=0.1, utterance_s=0.1)


def model_at(base_url: str, limits: RealtimeLimits | None = None) -> SocketRealtimeModel:
    return openai_realtime.make_model(openai_realtime.OpenAIRealtimeSettings(base_url=base_url), KEY, limits)


class Reader:
    def __init__(self) -> None:
        self.reports: list[RealtimeReport] = []
        self._changed = anyio.Event()

    async def read(self, session: RealtimeSession) -> None:
        async for report in session.reports():
            self.reports.append(report)
            self._changed.set()
            self._changed = anyio.Event()

    async def has_told(self, kind: type[RealtimeReport]) -> RealtimeReport:
        while not (found := [report for report in self.reports if isinstance(report, kind)]):
            await self._changed.wait()
        return found[0]


@asynccontextmanager
async def session_with(
    script: Script, limits: RealtimeLimits | None = None, *, longest_minutes: float | None = None
) -> AsyncGenerator[tuple[RealtimeSession, Reader], None]:
    server = ScriptedSocketServer(script)
    with anyio.fail_after(10):
        async with server.running() as base_url:
            settings = openai_realtime.OpenAIRealtimeSettings(base_url=base_url)
            dialect = openai_realtime.OpenAIRealtimeDialect(settings, KEY)
            if longest_minutes is not None:
                dialect.max_session_minutes = longest_minutes
            model = SocketRealtimeModel(dialect, openai_realtime.OFFERS, limits=limits)
            session, reader = await model.open(RealtimeRequest()), Reader()
            async with anyio.create_task_group() as group:
                group.start_soon(reader.read, session)
                yield session, reader
                await model.aclose()


async def becomes_ready(peer: SocketPeer) -> None:
    await peer.send_json({"type": "session.created", "event_id": "e1", "session": {"type": "realtime"}})
    await peer.expect({"type": "session.update"})
    await peer.send_json({"type": "session.updated", "event_id": "e2", "session": {"type": "realtime"}})


def created(response_id: str) -> dict[str, JsonValue]:
    return {"type": "response.created", "response": {"id": response_id, "status": "in_progress"}}


async def test_a_service_that_never_takes_the_configuration_is_not_ready() -> None:
    async def script(peer: SocketPeer) -> None:
        await peer.send_json({"type": "session.created", "event_id": "e1", "session": {"type": "realtime"}})
        await peer.hung_up()

    async with ScriptedSocketServer(script).running() as base_url:
        with pytest.raises(PortError) as late:
            await model_at(base_url, SHORT).open(RealtimeRequest())
    assert (late.value.error.code, late.value.error.retryable) == ("provider_silent", True)


async def test_an_oversized_message_ends_the_session() -> None:
    async def script(peer: SocketPeer) -> None:
        await becomes_ready(peer)
        await peer.send_text('{"type":"response.output_audio.delta","delta":"' + "A" * 5_000 + '"}')
        await peer.hung_up()

    limits = RealtimeLimits(socket=SocketLimits(max_message_bytes=4_000))
    async with session_with(script, limits) as (_, reader):
        ended = await reader.has_told(SessionEnded)
    assert isinstance(ended, SessionEnded)
    assert ended.error is not None
    assert ended.error.code == "message_too_large"


async def test_the_longest_message_is_taken() -> None:
    async def script(peer: SocketPeer) -> None:
        await becomes_ready(peer)
        await peer.send_text('{"type":"unknown","padding":"' + "A" * (4_000 - 31) + '"}')
        await peer.expect({"type": "response.create"})
        await peer.send_json(created("r1"))
        body: JsonValue = {"id": "r1", "status": "failed"}
        await peer.send_json({"type": "response.done", "response": body})

    limits = RealtimeLimits(socket=SocketLimits(max_message_bytes=4_000))
    async with session_with(script, limits) as (session, reader):
        await session.respond("a1")
        await reader.has_told(AnswerFailed)


async def test_an_answer_whose_predecessor_does_not_end_is_not_asked_for() -> None:
    async with session_with(RealtimeVoice(Says("On and on.", 400, goes_on=True)), SHORT) as (session, reader):
        await session.respond("a1")
        await reader.has_told(AnswerAudio)
        with pytest.raises(PortError) as late:
            await session.respond("a2")
        assert (late.value.error.code, late.value.error.retryable) == ("answer_goes_on", True)
        session.cancel("a1", "interrupted")
        await reader.has_told(AnswerStopped)
        await session.respond("a3")


async def test_one_answer_at_most_waits_for_another() -> None:
    async with session_with(RealtimeVoice(Says("On and on.", 400, goes_on=True))) as (session, reader):
        await session.respond("a1")
        await reader.has_told(AnswerAudio)
        async with anyio.create_task_group() as group:
            group.start_soon(session.respond, "a2")
            await anyio.lowlevel.checkpoint()
            with pytest.raises(PortError, match="answer_goes_on"):
                await session.respond("a3")
            session.cancel("a1", "interrupted")


async def test_a_response_of_the_service_that_does_not_end_fails_the_answer_that_waits_for_it() -> None:
    async def script(peer: SocketPeer) -> None:
        await becomes_ready(peer)
        await peer.expect({"type": "response.create"})
        error: JsonValue = {"type": "invalid_request_error", "code": "conversation_already_has_active_response"}
        await peer.send_json({"type": "error", "error": error})
        await peer.hung_up()

    async with session_with(script, SHORT) as (session, reader):
        await session.respond("a1")
        failed = await reader.has_told(AnswerFailed)
    assert isinstance(failed, AnswerFailed)
    assert (failed.error.code, failed.error.retryable) == ("provider_busy", True)


async def test_the_end_of_the_longest_session_is_told_in_time() -> None:
    """The service has no message for it: 0.3 s here, and a twelfth of it is left when it is told."""
    async with session_with(RealtimeVoice(), longest_minutes=0.005) as (_, reader):
        told = await reader.has_told(SessionExpires)
    assert isinstance(told, SessionExpires)
    assert 0 <= told.within_ms <= 25
    assert len([report for report in reader.reports if isinstance(report, SessionExpires)]) == 1


def test_by_default_it_is_told_five_minutes_before_the_hour() -> None:
    assert openai_realtime.OpenAIRealtimeSettings().max_session_minutes == 60
    assert qwen_omni.QwenOmniSettings().max_session_minutes == 120


async def test_an_utterance_that_is_neither_committed_nor_discarded_is_in_the_way() -> None:
    async with session_with(RealtimeVoice(), SHORT) as (session, _):
        await session.begin_utterance("u1")
        with pytest.raises(PortError, match="utterance_open"):
            await session.begin_utterance("u2")
        with pytest.raises(PortError, match="no_utterance"):
            await session.commit_utterance("u2")
        await session.discard_utterance("u1")
        await session.begin_utterance("u2")


async def test_audio_of_no_utterance_is_refused() -> None:
    async with session_with(RealtimeVoice()) as (session, _):
        with pytest.raises(PortError, match="no_utterance"):
            await session.write(AudioFrame(bytes(960), openai_realtime.FORMAT))


async def test_a_long_frame_is_cut_into_messages_of_half_a_second() -> None:
    voice = RealtimeVoice()
    server = ScriptedSocketServer(voice)
    async with server.running() as base_url:
        model = model_at(base_url)
        session = await model.open(RealtimeRequest())
        await session.begin_utterance("u1")
        await session.write(AudioFrame(bytes(48 * 1_250), openai_realtime.FORMAT))
        await session.commit_utterance("u1")
        await model.aclose()
    appended = [message.json() for message in server.peers[0].received]
    sizes = [len(str(one["audio"])) for one in appended if one["type"] == "input_audio_buffer.append"]
    assert sizes == [32_000, 32_000, 16_000]


async def test_an_unencrypted_service_on_another_machine_is_refused() -> None:
    model = openai_realtime.make_model(openai_realtime.OpenAIRealtimeSettings(base_url="ws://192.0.2.1/v1"), KEY)
    with pytest.raises(PortError) as refused:
        await model.open(RealtimeRequest())
    assert refused.value.error.code == "bad_setting"
    assert KEY not in str(refused.value)


async def test_what_was_said_and_the_key_are_in_no_log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)

    async def script(peer: SocketPeer) -> None:
        await becomes_ready(peer)
        await peer.send_json({"type": "unheard.of", "text": "planted words"})
        error: JsonValue = {"type": "invalid_request_error", "code": "odd", "message": f"planted words {KEY}"}
        await peer.send_json({"type": "error", "error": error})
        await peer.send_json({"type": "response.created", "response": "planted words"})
        await peer.hung_up()

    async with session_with(script) as (session, reader):
        await session.submit_text("planted words")
        ended = await reader.has_told(SessionEnded)
    assert "unheard.of" in caplog.text
    assert "odd" in caplog.text
    for planted in ("planted words", KEY):
        assert planted not in caplog.text
        assert planted not in str(ended)


def test_settings_hold_the_name_of_the_key_only() -> None:
    make = openai_realtime.PROVIDER.make
    with pytest.raises(SecretMissing):
        make(openai_realtime.OpenAIRealtimeSettings(), Secrets({}))
    make(openai_realtime.OpenAIRealtimeSettings(), Secrets({"OPENAI_API_KEY": KEY}))
    make(openai_realtime.OpenAIRealtimeSettings(api_key_env=None, base_url="ws://127.0.0.1:1"), Secrets({}))
    with pytest.raises(SecretMissing):
        qwen_omni.PROVIDER.make(qwen_omni.QwenOmniSettings(), Secrets({}))


@pytest.mark.parametrize(
    "settings",
    [
        {"base_url": "https://api.openai.com/v1"},
        {"vad_threshold": 1.1},
        {"vad_silence_ms": 99},
        {"max_session_minutes": 0.5},
        {"max_output_tokens": 0},
        {"turn_detection": "manual"},
        {"api_key": KEY},
    ],
)
def test_settings_outside_their_bounds_are_refused(settings: dict[str, JsonValue]) -> None:
    with pytest.raises(ValidationError) as refused:
        openai_realtime.OpenAIRealtimeSettings.model_validate(settings)
    assert KEY not in str(refused.value)


def test_what_each_can_do_is_the_truth() -> None:
    openai = openai_realtime.make_model(openai_realtime.OpenAIRealtimeSettings(transcription_model=None), KEY)
    assert openai.capabilities == replace(openai_realtime.OFFERS, input_transcripts=False)
    assert openai.capabilities.ends_turns
    assert openai.capabilities.truncate
    qwen = qwen_omni.make_model(qwen_omni.QwenOmniSettings(), KEY)
    assert not qwen.capabilities.ends_turns
    assert not qwen.capabilities.truncate
    assert not openai.capabilities.interrupts
    assert not qwen.capabilities.interrupts
