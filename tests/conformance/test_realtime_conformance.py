"""What every `RealtimeModel` promises, run against each one with the same conversation."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import TypeVar

import anyio
import pytest

from voicechart.adapters.providers.realtime import gemini_live, openai_realtime, qwen_omni
from voicechart.adapters.testing import ScriptedSocketServer
from voicechart.adapters.testing.gemini_server import GeminiVoice
from voicechart.adapters.testing.realtime_servers import RealtimeVoice, Says
from voicechart.audio.formats import AudioFormat, AudioFrame
from voicechart.engines.realtime import RealtimeModel, RealtimeRequest, RealtimeSession, ToolOutput
from voicechart.engines.realtime.reports import (
    AnswerAudio,
    AnswerCallsTool,
    AnswerEnded,
    AnswerFailed,
    AnswerProgressed,
    AnswerStopped,
    AnswerText,
    AnswerUsage,
    RealtimeReport,
    SessionEnded,
    SpeechCommitted,
    SpeechDetected,
    Transcribed,
    TranscriptionEnded,
    Truncated,
)
from voicechart.engines.reports import PortError
from voicechart.engines.testing import ScriptedRealtimeModel, ScriptedRealtimeSession
from voicechart.statecharts.errors import ErrorScope

pytestmark = pytest.mark.anyio

DEADLINE_S = 10.0
OF_ANSWERS = (AnswerText, AnswerAudio, AnswerProgressed, AnswerCallsTool, AnswerUsage)
ENDS = (AnswerEnded, AnswerStopped, AnswerFailed)
R = TypeVar("R")


@dataclass(frozen=True)
class Stage:
    """A model whose sessions answer as `answers` says, and the ways to disturb it."""

    model: RealtimeModel
    lose: Callable[[], None]
    """The provider is gone."""
    is_synthetic: bool = False
    """It hears nothing, and checks nothing of what it is given."""
    hears_when_asked: bool = False
    """It is told that an utterance has ended only when an answer is asked for."""


Make = Callable[[tuple[Says, ...]], AbstractAsyncContextManager[Stage]]


def over_a_socket(make: Callable[[str], RealtimeModel], *, beta: bool = False) -> Make:
    @asynccontextmanager
    async def staged(answers: tuple[Says, ...]) -> AsyncGenerator[Stage, None]:
        voices = [RealtimeVoice(*answers, hears=("one", "two"), beta=beta) for _ in range(2)]
        server = ScriptedSocketServer(*voices)
        async with server.running() as base_url:
            model = make(base_url)
            yield Stage(model, lambda: server.peers[-1].drop())
            await model.aclose()

    return staged


@asynccontextmanager
async def gemini(answers: tuple[Says, ...]) -> AsyncGenerator[Stage, None]:
    server = ScriptedSocketServer(*(GeminiVoice(*answers, hears=("one", "two")) for _ in range(2)))
    async with server.running() as base_url:
        model = gemini_live.make_model(gemini_live.GeminiLiveSettings(base_url=base_url), "key")
        yield Stage(model, lambda: server.peers[-1].drop(), hears_when_asked=True)
        await model.aclose()


@asynccontextmanager
async def scripted(answers: tuple[Says, ...]) -> AsyncGenerator[Stage, None]:
    def answering(says: Says) -> Callable[[ScriptedRealtimeSession, str], None]:
        def answer(session: ScriptedRealtimeSession, answer_id: str) -> None:
            session.says(answer_id, says.text, says.milliseconds)
            for call_id, name, arguments in says.calls:
                session.tell(AnswerCallsTool(answer_id, call_id, name, arguments))
            if not says.goes_on:
                session.tell(AnswerEnded(answer_id, awaits_tools=bool(says.calls)))

        return answer

    model = ScriptedRealtimeModel(*map(answering, answers))
    yield Stage(model, lambda: model.session.is_lost(), is_synthetic=True)


STAGES: Mapping[str, Make] = {
    "scripted": scripted,
    "openai-realtime": over_a_socket(
        lambda url: openai_realtime.make_model(openai_realtime.OpenAIRealtimeSettings(base_url=url), "key")
    ),
    "qwen-omni": over_a_socket(
        lambda url: qwen_omni.make_model(qwen_omni.QwenOmniSettings(base_url=url), "key"), beta=True
    ),
    "gemini-live": gemini,
}
"""A model that comes later adds itself here."""


@pytest.fixture(params=STAGES)
def make(request: pytest.FixtureRequest) -> Make:
    return STAGES[request.param]


class Talk:
    """A session that somebody reads."""

    def __init__(self, stage: Stage, session: RealtimeSession) -> None:
        self.stage = stage
        self.model = stage.model
        self.session = session
        self.reports: list[RealtimeReport] = []
        self._changed = anyio.Event()

    async def read(self) -> None:
        async for report in self.session.reports():
            self.reports.append(report)
            self._changed.set()
            self._changed = anyio.Event()

    async def has_told(self, kind: type[R], number: int = 1) -> R:
        """The report of that kind, counted from 1."""
        while len(found := [report for report in self.reports if isinstance(report, kind)]) < number:
            await self._changed.wait()
        return found[number - 1]

    async def is_over(self, answer_id: str) -> RealtimeReport:
        """The terminal of an answer."""
        while True:
            for report in self.reports:
                if isinstance(report, ENDS) and report.answer_id == answer_id:
                    return report
            await self._changed.wait()

    def of(self, answer_id: str) -> list[RealtimeReport]:
        """Everything about one answer."""
        about = (*OF_ANSWERS, *ENDS)
        return [report for report in self.reports if isinstance(report, about) and report.answer_id == answer_id]

    async def speak(self, utterance_id: str) -> None:
        await self.session.begin_utterance(utterance_id)
        await self.write()
        await self.session.commit_utterance(utterance_id)

    async def is_heard(self, utterance_id: str) -> None:
        """Whoever hears only what it is asked about is asked."""
        if self.stage.hears_when_asked:
            await self.session.respond(f"answer to {utterance_id}")

    async def write(self, milliseconds: int = 200, level: int = 0, start_ms: int = 0) -> None:
        for frame in frames(self.model.input_format, milliseconds, level, start_ms):
            await self.session.write(frame)


def frames(format: AudioFormat, milliseconds: int, level: int, start_ms: int) -> list[AudioFrame]:
    step = format.samples_for_ms(20)
    sample = level.to_bytes(2, "little", signed=True)
    start = format.samples_for_ms(start_ms)
    return [AudioFrame(sample * step, format, start + step * number) for number in range(milliseconds // 20)]


@asynccontextmanager
async def talking(make: Make, *answers: Says, request: RealtimeRequest | None = None) -> AsyncGenerator[Talk, None]:
    """Closed at the end, if the test has not."""
    reports: list[RealtimeReport] = []
    with anyio.fail_after(DEADLINE_S):
        async with make(answers) as stage, anyio.create_task_group() as group:
            talk = Talk(stage, await stage.model.open(request or RealtimeRequest()))
            reports = talk.reports
            group.start_soon(talk.read)
            yield talk
            await talk.session.aclose()
            await talk.session.aclose()
    assert [type(report) is SessionEnded for report in reports].count(True) == 1
    assert isinstance(reports[-1], SessionEnded)


async def test_preparing_twice_is_allowed(make: Make) -> None:
    async with make(()) as stage:
        await stage.model.prepare()
        await stage.model.prepare()


async def test_a_session_that_was_closed_from_here_ends_without_an_error(make: Make) -> None:
    async with talking(make) as talk:
        pass
    assert talk.reports == [SessionEnded()]


async def test_a_spoken_turn_is_answered_and_the_terminal_is_the_last_word(make: Make) -> None:
    async with talking(make, Says("It is noon.", 400)) as talk:
        await talk.speak("u1")
        await talk.session.respond("a1")
        assert await talk.is_over("a1") == AnswerEnded("a1")
    told = talk.of("a1")
    assert [isinstance(report, ENDS) for report in told].count(True) == 1
    assert isinstance(told[-1], AnswerEnded)
    assert "".join(report.text for report in told if isinstance(report, AnswerText)) == "It is noon."


async def test_the_audio_of_an_item_is_gapless_and_in_the_models_format(make: Make) -> None:
    async with talking(make, Says("One.", 400), Says("Two.", 200)) as talk:
        for answer_id in ("a1", "a2"):
            await talk.session.submit_text("?")
            await talk.session.respond(answer_id)
            await talk.is_over(answer_id)
    for answer_id, milliseconds in (("a1", 400), ("a2", 200)):
        heard = [report for report in talk.of(answer_id) if isinstance(report, AnswerAudio)]
        assert len({report.item_id for report in heard}) == 1
        assert {report.frame.format for report in heard} == {talk.model.output_format}
        position = 0
        for report in heard:
            assert report.frame.start_sample == position
            assert report.frame.duration_ms <= 20
            position = report.frame.end_sample
        assert position == talk.model.output_format.samples_for_ms(milliseconds)


async def test_answers_asked_for_at_once_come_one_after_the_other(make: Make) -> None:
    async with talking(make, Says("One."), Says("Two.")) as talk:
        await talk.session.respond("a1")
        await talk.session.respond("a2")
        await talk.is_over("a2")
    order = [report.answer_id for report in talk.reports if isinstance(report, (*OF_ANSWERS, *ENDS))]
    assert order == sorted(order)
    assert [type(talk.of(answer_id)[-1]) for answer_id in ("a1", "a2")] == [AnswerEnded, AnswerEnded]


async def test_a_cancel_stops_an_answer_once_and_the_next_one_can_be_asked_for(make: Make) -> None:
    async with talking(make, Says("A long story.", 2_000, goes_on=True), Says("Very well.")) as talk:
        await talk.session.respond("a1")
        await talk.has_told(AnswerAudio)
        talk.session.cancel("a1", "interrupted")
        talk.session.cancel("a1", "again")
        assert await talk.is_over("a1") == AnswerStopped("a1")
        await talk.session.respond("a2")
        await talk.is_over("a2")
    assert talk.of("a1")[-1] == AnswerStopped("a1")
    assert talk.of("a1").count(AnswerStopped("a1")) == 1 or talk.stage.is_synthetic


async def test_a_cancel_at_once_stops_an_answer_of_which_nothing_is_known_yet(make: Make) -> None:
    async with talking(make, Says("A long story.", 2_000, goes_on=True), Says("Very well.")) as talk:
        await talk.session.respond("a1")
        talk.session.cancel("a1", "interrupted")
        assert await talk.is_over("a1") == AnswerStopped("a1")
        await talk.session.respond("a2")
        assert await talk.is_over("a2") == AnswerEnded("a2")


async def test_a_cancel_after_the_end_and_one_of_nothing_change_nothing(make: Make) -> None:
    async with talking(make, Says("One."), Says("Two.")) as talk:
        if talk.stage.is_synthetic:
            pytest.skip("acknowledges whatever it is asked")
        talk.session.cancel("a0", "nothing")
        await talk.session.respond("a1")
        await talk.is_over("a1")
        talk.session.cancel("a1", "late")
        await talk.session.respond("a2")
        await talk.is_over("a2")
    ends = [report for report in talk.reports if isinstance(report, ENDS)]
    assert ends == [AnswerEnded("a1"), AnswerEnded("a2")]


async def test_a_call_is_told_whole_before_the_end_and_the_model_goes_on_when_it_is_asked(make: Make) -> None:
    calls = (("c1", "weather", '{"city":"Oslo"}'), ("c2", "weather", '{"city":"Rome"}'))
    async with talking(make, Says("Let me see.", calls=calls), Says("Sunny.")) as talk:
        await talk.session.respond("a1")
        assert await talk.is_over("a1") == AnswerEnded("a1", awaits_tools=True)
        outputs = tuple(ToolOutput(call_id, name, "sunny") for call_id, name, _ in calls)
        await talk.session.submit_outputs(outputs)
        await talk.session.respond("a2")
        assert await talk.is_over("a2") == AnswerEnded("a2")
    told = [report for report in talk.of("a1") if isinstance(report, AnswerCallsTool)]
    assert [(call.call_id, call.name, call.arguments_json) for call in told] == list(calls)


async def test_an_utterance_is_written_down_by_its_own_name(make: Make) -> None:
    async with talking(make) as talk:
        if talk.stage.is_synthetic or not talk.model.capabilities.input_transcripts:
            pytest.skip("tells nothing of what it heard")
        for number, utterance_id in enumerate(("u1", "u2"), start=1):
            await talk.speak(utterance_id)
            await talk.is_heard(utterance_id)
            await talk.has_told(TranscriptionEnded, number)
    for utterance_id, text in (("u1", "one"), ("u2", "two")):
        words = [
            report for report in talk.reports if isinstance(report, Transcribed) and report.utterance_id == utterance_id
        ]
        assert [report.revision for report in words] == sorted({report.revision for report in words})
        assert [report.text for report in words if report.is_final] == [text]
        assert words[-1].is_final


async def test_an_utterance_without_audio_is_over_and_answers_nothing(make: Make) -> None:
    async with talking(make) as talk:
        if talk.stage.is_synthetic:
            pytest.skip("hears nothing")
        await talk.session.begin_utterance("u1")
        await talk.session.commit_utterance("u1")
        ended = await talk.has_told(TranscriptionEnded)
        assert ended.utterance_id == "u1"
        assert ended.error is not None
        await talk.speak("u2")
        await talk.is_heard("u2")
        assert (await talk.has_told(TranscriptionEnded, 2)).error is None


async def test_a_short_utterance_is_heard(make: Make) -> None:
    async with talking(make) as talk:
        if talk.stage.is_synthetic:
            pytest.skip("hears nothing")
        await talk.session.begin_utterance("u1")
        await talk.write(20)
        await talk.session.commit_utterance("u1")
        await talk.is_heard("u1")
        assert (await talk.has_told(TranscriptionEnded)).error is None


async def test_an_utterance_that_was_discarded_does_not_disturb_the_next_one(make: Make) -> None:
    async with talking(make) as talk:
        await talk.session.begin_utterance("u1")
        await talk.write()
        await talk.session.discard_utterance("u1")
        await talk.speak("u2")
        if talk.stage.is_synthetic or not talk.model.capabilities.input_transcripts:
            return
        await talk.is_heard("u2")
        assert (await talk.has_told(TranscriptionEnded)).utterance_id == "u2"


async def test_an_utterance_waits_for_the_end_of_the_one_before(make: Make) -> None:
    async with talking(make) as talk:
        await talk.session.begin_utterance("u1")
        await talk.write()
        async with anyio.create_task_group() as group:
            group.start_soon(talk.session.begin_utterance, "u2")
            await anyio.lowlevel.checkpoint()
            await talk.session.commit_utterance("u1")
        await talk.write()
        await talk.session.commit_utterance("u2")


async def test_what_the_model_believes_is_cut_where_that_can_be_told(make: Make) -> None:
    async with talking(make, Says("A long story.", 1_000), Says("Another one.", 1_000)) as talk:
        items: list[str] = []
        for answer_id in ("a1", "a2"):
            await talk.session.respond(answer_id)
            await talk.is_over(answer_id)
            items += [next(report.item_id for report in talk.of(answer_id) if isinstance(report, AnswerAudio))]
        if not talk.model.capabilities.truncate:
            with pytest.raises(PortError):
                await talk.session.truncate(items[0], 300)
            return
        await talk.session.truncate(items[0], 300)
        await talk.session.truncate(items[1], 0)
        await talk.has_told(Truncated, 2)
    assert [report for report in talk.reports if isinstance(report, Truncated)] == [
        Truncated(items[0], 300),
        Truncated(items[1], 0),
    ]


async def test_the_provider_ends_turns_where_it_can(make: Make) -> None:
    request = RealtimeRequest(provider_turns=True)
    async with make(()) as stage:
        if not stage.model.capabilities.ends_turns:
            with pytest.raises(PortError):
                await stage.model.open(request)
            return
        if stage.is_synthetic:
            pytest.skip("hears nothing")
    async with talking(make, Says("It is noon."), request=request) as talk:
        await talk.write(400, 5_000)
        detected = await talk.has_told(SpeechDetected)
        await talk.write(800, 0, 400)
        assert (await talk.has_told(SpeechCommitted)).speech_id == detected.speech_id
        assert (await talk.has_told(TranscriptionEnded)).utterance_id == detected.speech_id
        assert not any(isinstance(report, (*OF_ANSWERS, *ENDS)) for report in talk.reports)
        await talk.session.respond("a1")
        await talk.is_over("a1")


async def test_another_format_than_the_models_is_refused(make: Make) -> None:
    async with talking(make) as talk:
        if talk.stage.is_synthetic:
            pytest.skip("is given what the test gives it")
        await talk.session.begin_utterance("u1")
        with pytest.raises(PortError, match="wrong_format"):
            await talk.session.write(AudioFrame(bytes(1_600), AudioFormat(8_000)))


async def test_a_provider_that_is_gone_ends_the_session_with_a_retryable_error(make: Make) -> None:
    async with talking(make, Says("A long story.", 2_000, goes_on=True)) as talk:
        await talk.session.respond("a1")
        await talk.has_told(AnswerAudio)
        talk.stage.lose()
        ended = await talk.has_told(SessionEnded)
        assert ended.error is not None
        assert (ended.error.scope, ended.error.retryable) == (ErrorScope.SESSION, True)
        if talk.stage.is_synthetic:
            return
        with pytest.raises(PortError):
            await talk.session.respond("a2")
        with pytest.raises(PortError):
            await talk.session.begin_utterance("u1")
        with pytest.raises(PortError):
            await talk.session.submit_text("hello")
        talk.session.cancel("a1", "too late")


async def test_a_close_ends_a_wait_for_the_answer_before(make: Make) -> None:
    async with talking(make, Says("A long story.", 2_000, goes_on=True)) as talk:
        if talk.stage.is_synthetic:
            pytest.skip("never waits")
        await talk.session.respond("a1")

        async def ask_again() -> None:
            with pytest.raises(PortError):
                await talk.session.respond("a2")

        async with anyio.create_task_group() as group:
            group.start_soon(ask_again)
            await talk.has_told(AnswerAudio)
            await talk.session.aclose()


async def test_an_answer_that_waits_for_another_can_be_cancelled(make: Make) -> None:
    async with talking(make, Says("A long story.", 2_000, goes_on=True)) as talk:
        if talk.stage.is_synthetic:
            pytest.skip("never waits")
        await talk.session.respond("a1")
        await talk.has_told(AnswerAudio)
        async with anyio.create_task_group() as group:
            group.start_soon(talk.session.respond, "a2")
            await anyio.lowlevel.checkpoint()
            talk.session.cancel("a2", "interrupted")
        assert await talk.is_over("a2") == AnswerStopped("a2")


async def test_a_second_session_knows_nothing_of_the_first(make: Make) -> None:
    with anyio.fail_after(DEADLINE_S):
        async with make((Says("One."), Says("Two."))) as stage:
            for _ in range(2):
                session = await stage.model.open(RealtimeRequest())
                talk = Talk(stage, session)
                async with anyio.create_task_group() as group:
                    group.start_soon(talk.read)
                    await session.respond("a1")
                    assert await talk.is_over("a1") == AnswerEnded("a1")
                    await session.aclose()


async def test_closing_the_model_closes_its_sessions(make: Make) -> None:
    with anyio.fail_after(DEADLINE_S):
        async with make((Says("A long story.", 2_000, goes_on=True),)) as stage:
            if stage.is_synthetic:
                pytest.skip("its session is the test's")
            talk = Talk(stage, await stage.model.open(RealtimeRequest()))
            async with anyio.create_task_group() as group:
                group.start_soon(talk.read)
                await talk.session.respond("a1")
                await talk.has_told(AnswerAudio)
                await stage.model.aclose()
            assert talk.reports[-1] == SessionEnded()
            with pytest.raises(PortError, match="port_closed"):
                await stage.model.open(RealtimeRequest())
