"""A session with Gemini Live over a socket: its bounds, what is told to whom, and how one goes on after another."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TypeVar

import anyio
import pytest
from pydantic import ValidationError

from voicechart.adapters.providers.declaration import SecretMissing, Secrets
from voicechart.adapters.providers.realtime.gemini_live import PROVIDER, GeminiLiveModel, GeminiLiveSettings, make_model
from voicechart.adapters.providers.realtime.gemini_live.model import limits_of_live
from voicechart.adapters.providers.realtime_protocol import RealtimeLimits
from voicechart.adapters.providers.websocket import SocketLimits
from voicechart.adapters.testing import ScriptedSocketServer, SocketPeer
from voicechart.adapters.testing.gemini_server import GeminiVoice
from voicechart.adapters.testing.realtime_servers import Says
from voicechart.audio.formats import SPEECH_FORMAT, AudioFrame
from voicechart.engines.realtime import RealtimeRequest, RealtimeSession
from voicechart.engines.realtime.reports import (
    AnswerAudio,
    AnswerEnded,
    AnswerStopped,
    RealtimeReport,
    SessionEnded,
    SessionExpires,
    SessionResumable,
)
from voicechart.engines.reports import PortError

pytestmark = pytest.mark.anyio

KEY = "sk-very-secret-0123456789"
SHORT = RealtimeLimits(ready_s=0.2, respond_s=0.1, utterance_s=0.1)
Script = Callable[[SocketPeer], Awaitable[None]]
R = TypeVar("R", bound=RealtimeReport)


class Reader:
    def __init__(self) -> None:
        self.reports: list[RealtimeReport] = []
        self._changed = anyio.Event()

    async def read(self, session: RealtimeSession) -> None:
        async for report in session.reports():
            self.reports.append(report)
            self._changed.set()
            self._changed = anyio.Event()

    async def has_told(self, kind: type[R]) -> R:
        while not (found := [report for report in self.reports if isinstance(report, kind)]):
            await self._changed.wait()
        return found[0]


def model_at(base_url: str, limits: RealtimeLimits | None = None) -> GeminiLiveModel:
    return make_model(GeminiLiveSettings(base_url=base_url), KEY, limits)


@asynccontextmanager
async def session_with(
    script: Script, limits: RealtimeLimits | None = None
) -> AsyncGenerator[tuple[RealtimeSession, Reader], None]:
    server = ScriptedSocketServer(script)
    with anyio.fail_after(10):
        async with server.running() as base_url:
            model = model_at(base_url, limits)
            session, reader = await model.open(RealtimeRequest()), Reader()
            async with anyio.create_task_group() as group:
                group.start_soon(reader.read, session)
                yield session, reader
                await model.aclose()


async def becomes_ready(peer: SocketPeer) -> None:
    await peer.expect()
    await peer.send_json({"setupComplete": {}})


def frames(milliseconds: int) -> list[AudioFrame]:
    step = SPEECH_FORMAT.samples_for_ms(20)
    return [
        AudioFrame(bytes(SPEECH_FORMAT.bytes_for(step)), SPEECH_FORMAT, number * step)
        for number in range(milliseconds // 20)
    ]


# -- opening -------------------------------------------------------------------------------------------------------


async def test_a_session_is_ready_only_when_the_service_says_so() -> None:
    async def never(peer: SocketPeer) -> None:
        await peer.send_json({"sessionResumptionUpdate": {"newHandle": "h", "resumable": True}})
        await peer.hung_up()

    async with ScriptedSocketServer(never).running() as base_url:
        with pytest.raises(PortError) as refused:
            await model_at(base_url, SHORT).open(RealtimeRequest())
    assert refused.value.error.code == "provider_silent"
    assert refused.value.error.retryable


async def test_the_key_is_in_a_header_and_never_in_the_address_or_a_log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    server = ScriptedSocketServer(GeminiVoice())
    async with server.running() as base_url:
        model = model_at(base_url)
        session = await model.open(RealtimeRequest())
        await session.aclose()
    (peer,) = server.peers
    assert peer.path == "/ws/google.ai.generativelanguage.v1beta.GenerativeService.BidiGenerateContent"
    assert (peer.query, peer.headers["x-goog-api-key"]) == ({}, KEY)
    assert KEY not in caplog.text


async def test_binary_messages_are_as_good_as_text() -> None:
    """Trap 37."""
    async with session_with(GeminiVoice(Says("It is noon.", 100), binary=True)) as (session, reader):
        await session.submit_text("what time is it")
        await session.respond("a1")
        assert await reader.has_told(AnswerEnded) == AnswerEnded("a1")
        assert (await reader.has_told(AnswerAudio)).frame.data[:2] == b"\x02\x00"


def test_a_record_is_read_strictly_and_its_key_from_the_environment() -> None:
    settings = GeminiLiveSettings()
    assert settings.url.startswith("wss://generativelanguage.googleapis.com/ws/")
    with pytest.raises(SecretMissing):
        PROVIDER.make(settings, Secrets({}))
    assert isinstance(PROVIDER.make(settings, Secrets({"GEMINI_API_KEY": KEY})), GeminiLiveModel)
    assert KEY not in PROVIDER.describe(settings)
    for wrong in ({"api_version": "latest"}, {"model": ""}, {"base_url": "https://x"}, {"temperature": 2.1}):
        with pytest.raises(ValidationError):
            GeminiLiveSettings.model_validate(wrong)


# -- bounds --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("excess", "code"), [(0, "provider_malformed"), (1, "message_too_large")])
async def test_a_message_that_is_too_long_ends_the_session(excess: int, code: str) -> None:
    async def speaks(peer: SocketPeer) -> None:
        await becomes_ready(peer)
        await peer.send_text("x" * (1_000 + excess))
        await peer.hung_up()

    limits = replace(limits_of_live(), socket=SocketLimits(max_message_bytes=1_000))
    async with session_with(speaks, limits) as (_, reader):
        ended = await reader.has_told(SessionEnded)
    assert ended.error is not None
    assert ended.error.code == code


async def test_an_answer_that_never_ends_keeps_the_next_one_waiting_no_longer_than_its_bound() -> None:
    async with session_with(GeminiVoice(Says("A story.", goes_on=True)), SHORT) as (session, reader):
        await session.respond("a1")
        await reader.has_told(AnswerAudio)
        with pytest.raises(PortError) as refused:
            await session.respond("a2")
    assert (refused.value.error.code, refused.value.error.retryable) == ("answer_goes_on", True)


async def test_an_utterance_that_never_ends_keeps_the_next_one_waiting_no_longer_than_its_bound() -> None:
    async with session_with(GeminiVoice(), SHORT) as (session, _):
        await session.begin_utterance("u1")
        with pytest.raises(PortError, match="utterance_open"):
            await session.begin_utterance("u2")
        with pytest.raises(PortError, match="no_utterance"):
            await session.commit_utterance("u2")
        await session.commit_utterance("u1")
        with pytest.raises(PortError, match="no_utterance"):
            await session.write(frames(20)[0])


async def test_one_answer_waits_at_a_time() -> None:
    async with session_with(GeminiVoice(Says("A story.", goes_on=True))) as (session, reader):
        await session.respond("a1")
        await reader.has_told(AnswerAudio)
        async with anyio.create_task_group() as group:
            group.start_soon(session.respond, "a2")
            await anyio.lowlevel.checkpoint()
            with pytest.raises(PortError, match="answer_goes_on"):
                await session.respond("a3")
            session.cancel("a2", "interrupted")
        assert await reader.has_told(AnswerStopped) == AnswerStopped("a2")


async def test_an_answer_is_told_apart_from_one_that_was_cancelled_before_it_began() -> None:
    """The service was interrupted before it said anything: nothing more comes of that, and that is waited for."""
    asked = anyio.Event()

    async def is_slow(peer: SocketPeer) -> None:
        await becomes_ready(peer)
        await peer.skip_to({"realtimeInput": {"activityEnd": {}}})
        asked.set()
        await peer.skip_to({"realtimeInput": {"activityEnd": {}}})
        await peer.send_json({"serverContent": {"outputTranscription": {"text": "Very well."}}})
        await peer.send_json({"serverContent": {"turnComplete": True}})

    async with session_with(is_slow) as (session, reader):
        for number in (1, 2):
            await session.begin_utterance(f"u{number}")
            for frame in frames(100):
                await session.write(frame)
            await session.commit_utterance(f"u{number}")
            await session.respond(f"a{number}")
            if number == 1:
                await asked.wait()
                session.cancel("a1", "interrupted")
        assert await reader.has_told(AnswerEnded) == AnswerEnded("a2")


# -- one after another ---------------------------------------------------------------------------------------------


def test_a_late_answer_to_a_ping_ends_no_session() -> None:
    """Trap 35: they were measured to take 8 to 30 s."""
    timeout_s = limits_of_live().socket.ping_timeout_s
    assert timeout_s is None or timeout_s > 30


async def test_the_former_connection_is_closed_before_its_session_is_gone_on_with() -> None:
    """Trap 35: the service refuses it otherwise."""
    first, second = GeminiVoice(), GeminiVoice()
    server = ScriptedSocketServer(first, second)
    with anyio.fail_after(10):
        async with server.running() as base_url, anyio.create_task_group() as group:
            model, reader = model_at(base_url), Reader()
            group.start_soon(reader.read, await model.open(RealtimeRequest()))
            await first.go_away("10s")
            assert await reader.has_told(SessionExpires) == SessionExpires(10_000)
            handles = [report.handle for report in reader.reports if isinstance(report, SessionResumable)]
            assert handles == ["handle_1", "handle_2"]
            session = await model.open(RealtimeRequest(resumption=handles[-1]))
            assert server.peers[0].close_code == 1000
            assert reader.reports[-1] == SessionEnded()
            await session.aclose()
    setup = server.peers[1].received[0].json()["setup"]
    assert isinstance(setup, dict)
    assert setup["sessionResumption"] == {"handle": "handle_2"}


@pytest.mark.parametrize(
    ("code", "reason", "expected"),
    [
        (1007, "Request contains an invalid argument.", "resumption_refused"),
        (1008, "Session not found.", "session_expired"),
        (1011, "Internal error encountered.", "provider_unavailable"),
        (1007, "API key not valid.", "auth_refused"),
    ],
)
async def test_a_handle_that_is_refused_is_no_reason_not_to_try_without_it(
    code: int, reason: str, expected: str
) -> None:
    async def refuses(peer: SocketPeer) -> None:
        await peer.expect()
        await peer.close(code, reason)

    async with ScriptedSocketServer(refuses).running() as base_url:
        with pytest.raises(PortError) as refused:
            await model_at(base_url).open(RealtimeRequest(resumption="stale"))
    assert refused.value.error.code == expected
    assert refused.value.error.retryable is (expected != "auth_refused")


async def test_a_session_is_not_gone_on_with_where_the_record_says_so() -> None:
    server = ScriptedSocketServer(GeminiVoice())
    async with server.running() as base_url:
        model = make_model(GeminiLiveSettings(base_url=base_url, resumption=False, context_compression=False), KEY)
        assert not model.capabilities.resume
        await (await model.open(RealtimeRequest())).aclose()
    setup = server.peers[0].received[0].json()["setup"]
    assert isinstance(setup, dict)
    assert not {"sessionResumption", "contextWindowCompression", "historyConfig"} & setup.keys()
