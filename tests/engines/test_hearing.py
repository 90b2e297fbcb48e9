"""One recognition, and the decisions about it, at the pace of the test: what comes between a failure and its remedy."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager

import anyio
import pytest
from anyio.abc import TaskGroup
from trio.testing import MockClock

from voicechart.audio.formats import SPEECH_FORMAT
from voicechart.engines.clock import LoopClock
from voicechart.engines.listening import Listening
from voicechart.engines.recognized import words_to_fact
from voicechart.engines.reports import (
    RecognitionEnded,
    RecognitionErrored,
    RecognitionReport,
    SegmentFinal,
    SegmentHypothesis,
    UtteranceEnded,
)
from voicechart.engines.testing import (
    Script,
    ScriptedMicrophone,
    ScriptedRecognizer,
    SoundIsSpeech,
    Step,
    hears,
    scripted_error,
)
from voicechart.statecharts.actions import FinishRecognition, Stamp, StartRecognition, TranscribeRecording
from voicechart.statecharts.conversation import Conversation
from voicechart.statecharts.facts import (
    Fact,
    RecognitionClosed,
    RecognitionFailed,
    SegmentFinalized,
    TranscriptUpdated,
    TurnEnded,
)
from voicechart.statecharts.published import Payload
from voicechart.statecharts.values import TurnAuthority

pytestmark = pytest.mark.anyio
STAMP = Stamp(1, 1)
VOICE = 1_000


@pytest.fixture
def anyio_backend() -> object:
    return "trio", {"clock": MockClock(autojump_threshold=0)}


class PatientDesk:
    """A session that writes facts down and decides nothing."""

    def __init__(self, tasks: TaskGroup) -> None:
        self.clock = LoopClock()
        self.conversation = Conversation("desk")
        self.facts: list[Fact] = []
        self._tasks = tasks

    def report(self, fact: Fact) -> None:
        self.facts.append(fact)

    def start_task(self, function: Callable[..., Awaitable[object]], *args: object, name: str) -> None:
        async def run() -> None:
            await function(*args)

        self._tasks.start_soon(run, name=name)

    def publish(self, payload: Payload, **identities: str | int | None) -> None:
        """Nobody watches."""

    def note_stale(self, output_epoch: int) -> None:
        """Nobody counts."""

    def failures(self) -> list[RecognitionFailed]:
        return [fact for fact in self.facts if isinstance(fact, RecognitionFailed)]


@asynccontextmanager
async def listening(
    recognizer: ScriptedRecognizer, microphone: ScriptedMicrophone
) -> AsyncGenerator[tuple[Listening, PatientDesk], None]:
    async with anyio.create_task_group() as tasks:
        desk = PatientDesk(tasks)
        listening = Listening(desk, recognizer, SoundIsSpeech())
        tasks.start_soon(listening.listen, microphone)
        yield listening, desk
        tasks.cancel_scope.cancel()


def dies_after(duration_ms: int) -> Script[RecognitionReport]:
    died = RecognitionErrored(scripted_error("stt_died", "recognition"))
    return Script([Step(died, written_samples=SPEECH_FORMAT.samples_for_ms(duration_ms))])


async def test_what_was_captured_between_a_failure_and_the_batch_attempt_is_in_it() -> None:
    recognizer, microphone = ScriptedRecognizer(dies_after(400), Script(hears("hello"))), ScriptedMicrophone()
    async with listening(recognizer, microphone) as (listener, desk):
        listener.start(StartRecognition(STAMP, "t1", "r1", 0))
        await microphone.listen(500, VOICE)
        assert [failure.recognition_id for failure in desk.failures()] == ["r1"]
        await microphone.listen(700, VOICE)
        listener.transcribe(TranscribeRecording(STAMP, "t1", "r1", "r2"))
        await microphone.listen(300, VOICE)
        await anyio.wait_all_tasks_blocked()
        listener.finish(FinishRecognition(STAMP, "r2"))
        await anyio.wait_all_tasks_blocked()
        assert desk.facts[-1] == RecognitionClosed(at=desk.facts[-1].at, recognition_id="r2")
    frames = recognizer.streams[1].frames
    assert (frames[0].start_sample, frames[-1].end_sample) == (0, SPEECH_FORMAT.samples_for_ms(1_500))


async def test_a_batch_attempt_that_is_asked_for_too_late_fails_instead_of_leaving_a_hole() -> None:
    recognizer, microphone = ScriptedRecognizer(dies_after(400), Script(hears("hello"))), ScriptedMicrophone()
    async with listening(recognizer, microphone) as (listener, desk):
        listener.start(StartRecognition(STAMP, "t1", "r1", 0))
        # The ring holds two seconds.
        await microphone.listen(2_600, VOICE)
        listener.transcribe(TranscribeRecording(STAMP, "t1", "r1", "r2"))
        await anyio.wait_all_tasks_blocked()
        assert [failure.error.code for failure in desk.failures()] == ["stt_died", "audio_incomplete"]
    assert len(recognizer.streams) == 1


async def test_a_recording_that_nobody_kept_cannot_be_sent_again() -> None:
    recognizer, microphone = ScriptedRecognizer(Script(hears("hello"))), ScriptedMicrophone()
    async with listening(recognizer, microphone) as (listener, desk):
        listener.transcribe(TranscribeRecording(STAMP, "t1", "unknown", "r2"))
        await anyio.wait_all_tasks_blocked()
    assert [(failure.recognition_id, failure.recorded_ms) for failure in desk.failures()] == [("r2", 0)]


@pytest.mark.slow
@pytest.mark.parametrize(("duration_ms", "recorded_ms"), [(30_000, 30_000), (30_020, 0)])
async def test_at_most_thirty_seconds_of_an_utterance_are_kept(duration_ms: int, recorded_ms: int) -> None:
    recognizer, microphone = ScriptedRecognizer(dies_after(duration_ms)), ScriptedMicrophone()
    async with listening(recognizer, microphone) as (listener, desk):
        listener.start(StartRecognition(STAMP, "t1", "r1", 0))
        await microphone.listen(duration_ms, VOICE)
        await anyio.wait_all_tasks_blocked()
    assert [failure.recorded_ms for failure in desk.failures()] == [recorded_ms]


async def test_two_recognitions_that_fail_keep_a_recording_each() -> None:
    recognizer = ScriptedRecognizer(dies_after(200), dies_after(400), Script(hears("a")), Script(hears("b")))
    microphone = ScriptedMicrophone()
    async with listening(recognizer, microphone) as (listener, desk):
        listener.start(StartRecognition(STAMP, "t1", "r1", 0))
        await anyio.wait_all_tasks_blocked()
        listener.start(StartRecognition(STAMP, "t1", "r2", 0))
        await microphone.listen(600, VOICE)
        assert [failure.recognition_id for failure in desk.failures()] == ["r1", "r2"]
        listener.transcribe(TranscribeRecording(STAMP, "t1", "r1", "r3"))
        listener.transcribe(TranscribeRecording(STAMP, "t1", "r2", "r4"))
        await anyio.wait_all_tasks_blocked()
    assert [stream.written_samples for stream in recognizer.streams[2:]] == [9_600, 9_600]


# -- words ---------------------------------------------------------------------------------------------------------


def test_what_a_recogniser_says_becomes_a_fact_with_everything_it_told() -> None:
    assert words_to_fact(SegmentHypothesis("s", 3, "what time"), "r1", 7) == TranscriptUpdated(
        at=7, recognition_id="r1", segment_id="s", revision=3, text="what time"
    )
    assert words_to_fact(SegmentFinal("s", 4, "what time is it", 160, 16_000), "r1", 8) == SegmentFinalized(
        at=8,
        recognition_id="r1",
        segment_id="s",
        revision=4,
        text="what time is it",
        start_sample=160,
        end_sample=16_000,
    )
    assert words_to_fact(UtteranceEnded(), "r1", 9) == TurnEnded(at=9, authority=TurnAuthority.RECOGNIZER)


@pytest.mark.parametrize("terminal", [RecognitionEnded(), RecognitionErrored(scripted_error())])
def test_the_end_of_a_recognition_is_its_own_chart_s_affair(terminal: RecognitionReport) -> None:
    with pytest.raises(ValueError, match="terminal"):
        words_to_fact(terminal, "r1", 0)
