"""One utterance on its way to the recogniser: captured audio in, facts about words out.

The life of it is the `Recognition` chart's. Audio is kept in one recording from the pre-roll on: what was not yet
written is the pre-ready queue, the whole is what a failed recognition leaves to a batch attempt.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import anyio

from ..audio.formats import AudioFormat, AudioFrame
from ..statecharts.actions import Action, Stamp
from ..statecharts.errors import ErrorScope
from ..statecharts.facts import (
    Fact,
    RecognitionClosed,
    RecognitionFailed,
)
from ..statecharts.recognition import (
    AudioWritten,
    CancelStream,
    FinishStream,
    InputFinished,
    PreReadyOverflowed,
    Recognition,
    RecognitionCancelled,
    RecognizerEnded,
    RecognizerErrored,
    RecognizerReady,
    ReleaseAudio,
    ReportClosed,
    ReportFailed,
)
from .engine import Desk
from .port_calls import error_of, let_go, reading
from .ports import RecognitionRequest, RecognitionStream, Recognizer
from .recognized import cut_off, incomplete, not_finished, not_opened, too_slow, words_to_fact
from .reports import (
    RecognitionEnded,
    RecognitionErrored,
    SegmentFinal,
    SegmentHypothesis,
    Word,
)

MAX_RECORDING_MS = 30_000
"""Contract, section 5: the longest utterance a batch fallback may take."""

MAX_PRE_READY_MS = 2_000
"""Contract, section 5: what may wait for a recogniser that is not ready."""

OPEN_TIMEOUT_S = 10.0
WRITE_TIMEOUT_S = 5.0


class Hearing:
    """One recognition. `offer` audio, then `finish` or `cancel`; facts go to the session."""

    def __init__(
        self,
        desk: Desk,
        recognizer: Recognizer,
        recognition_id: str,
        format: AudioFormat,
        stamp: Stamp,
        on_failure: Callable[[Hearing], None],
    ) -> None:
        self.recognition_id = recognition_id
        self.words: tuple[Word, ...] = ()
        """Of the latest segment, where the recogniser aligns."""
        self.language: str | None = None
        """Where the recogniser tells."""
        self._desk = desk
        self._recognizer = recognizer
        self._format = format
        self._on_failure = on_failure
        self._chart = Recognition(recognition_id, stamp)
        self._recording: list[AudioFrame] = []
        self._recorded_samples = 0
        self._recorded_until: int | None = None
        self._whole = True
        self._unwritten: deque[AudioFrame] = deque()
        self._unwritten_samples = 0
        self._grace_samples = 0
        self._changed = anyio.Event()
        self._stream: RecognitionStream | None = None
        self._released = False
        self._finishing = False
        self._input_over = anyio.Event()
        # Before the chart stops waiting: what fails in time can still be transcribed from its recording.
        self._finish_timeout_ms = desk.conversation.policies.turn.finalization_ms * 4 // 5
        self._scope = anyio.CancelScope()

    @property
    def recording(self) -> tuple[AudioFrame, ...]:
        """The utterance so far, or nothing when it outgrew the bound."""
        return tuple(self._recording) if self._whole else ()

    @property
    def recorded_until(self) -> int | None:
        """Position behind the last sample it was given."""
        return self._recorded_until

    @property
    def recorded_ms(self) -> int:
        """How much of the whole utterance is held; 0 when it outgrew the bound."""
        return int(self._format.duration_ms(self._recorded_samples)) if self._whole else 0

    @property
    def input_is_over(self) -> bool:
        """Live audio belonged to it no more, whatever became of it."""
        return self._finishing

    @property
    def is_listening(self) -> bool:
        """Live audio still belongs to it."""
        return not self._finishing and self._chart.state in ("connecting", "ready", "streaming")

    # -- audio in --------------------------------------------------------------------------------------------------

    def preload(self, frames: tuple[AudioFrame, ...]) -> None:
        """Audio from before this recognition began; it does not count against the pre-ready bound."""
        for frame in frames:
            if not self.is_listening:
                return
            self._keep(frame)
            self._grace_samples += frame.samples

    def offer(self, frame: AudioFrame) -> None:
        """The next live frame. Never waits; what cannot be kept fails the recognition, it is never dropped silently."""
        if not self.is_listening:
            return
        self._keep(frame)
        waiting_ms = self._format.duration_ms(max(0, self._unwritten_samples - self._grace_samples))
        if waiting_ms > MAX_PRE_READY_MS:
            self._tell(PreReadyOverflowed(at=self._now, held_ms=int(waiting_ms)))
            self._tell(RecognizerErrored(at=self._now, error=too_slow(int(waiting_ms))))

    def lose_audio(self) -> None:
        """Part of the utterance is missing for good: there is nothing whole to recognise."""
        if not self.is_listening:
            return
        self._whole = False
        self._recording.clear()
        self._tell(RecognizerErrored(at=self._now, error=incomplete()))

    def finish(self) -> None:
        """The utterance is over."""
        self._finishing = True
        self._input_over.set()
        self._tell(InputFinished(at=self._now))

    def cancel(self) -> None:
        """Nobody wants the transcript any more."""
        self._tell(RecognitionCancelled(at=self._now))

    def _keep(self, frame: AudioFrame) -> None:
        if self._recorded_until is not None and frame.start_sample != self._recorded_until:
            self.lose_audio()
            return
        self._recorded_until = frame.end_sample
        self._recorded_samples += frame.samples
        self._recording.append(frame)
        self._unwritten.append(frame)
        self._unwritten_samples += frame.samples
        if self._format.duration_ms(self._recorded_samples) > MAX_RECORDING_MS:
            self._recording.clear()
            self._whole = False
        self._changed.set()

    # -- the task --------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Open the recogniser, write what is released, report what it says. Ends when the recognition has."""
        with self._scope:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._bound_finish)
                try:
                    if self._chart.state == "connecting":
                        await self._recognize()
                except Exception as failure:
                    self._fail(failure)
                tasks.cancel_scope.cancel()
        await let_go(self._stream, "the recogniser's stream")

    async def _recognize(self) -> None:
        with anyio.move_on_after(OPEN_TIMEOUT_S):
            self._stream = await self._recognizer.open(RecognitionRequest(self.recognition_id, self._format))
        if self._stream is None:
            self._tell(RecognizerErrored(at=self._now, error=not_opened(OPEN_TIMEOUT_S)))
            return
        self._tell(RecognizerReady(at=self._now))
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._write_released, self._stream)
            await self._read_reports(self._stream)
            tasks.cancel_scope.cancel()

    async def _write_released(self, stream: RecognitionStream) -> None:
        try:
            while True:
                while self._released and self._unwritten:
                    frame = self._unwritten.popleft()
                    with anyio.fail_after(WRITE_TIMEOUT_S):
                        await stream.write(frame)
                    self._unwritten_samples -= frame.samples
                    self._grace_samples = max(0, self._grace_samples - frame.samples)
                    if self._chart.state == "ready":
                        self._tell(AudioWritten(at=self._now))
                if self._chart.state == "finishing" and not self._unwritten:
                    await stream.finish_input()
                    return
                self._changed = anyio.Event()
                await self._changed.wait()
        except TimeoutError:
            self._tell(RecognizerErrored(at=self._now, error=too_slow(int(WRITE_TIMEOUT_S * 1_000))))
        except Exception as failure:
            self._fail(failure)

    async def _bound_finish(self) -> None:
        """A recogniser that does not come to its end fails, so that nothing half-heard is taken for whole."""
        await self._input_over.wait()
        await self._desk.clock.sleep_until(self._now + self._finish_timeout_ms * 1_000_000)
        self._tell(RecognizerErrored(at=self._now, error=not_finished(self._finish_timeout_ms)))

    async def _read_reports(self, stream: RecognitionStream) -> None:
        async with reading(stream.reports()) as reports:
            async for report in reports:
                match report:
                    case RecognitionEnded(cancelled):
                        self._end(cancelled=cancelled)
                        return
                    case RecognitionErrored(error):
                        self._tell(RecognizerErrored(at=self._now, error=error))
                        return
                    case _:
                        if isinstance(report, SegmentHypothesis | SegmentFinal):
                            self.words = report.words
                        if isinstance(report, SegmentFinal):
                            self.language = report.language or self.language
                        if self._chart.state in ("ready", "streaming", "finishing"):
                            self._desk.report(words_to_fact(report, self.recognition_id, self._now))
        self._tell(RecognizerErrored(at=self._now, error=cut_off()))

    def _end(self, *, cancelled: bool) -> None:
        """It has said everything. Only one that tells ends of utterances by itself may do so before the input ends."""
        before_the_end = not self._finishing and not self._recognizer.capabilities.endpointing
        if cancelled or before_the_end:
            self._tell(RecognizerErrored(at=self._now, error=cut_off()))
        else:
            self._tell(RecognizerEnded(at=self._now))

    def _fail(self, failure: Exception) -> None:
        error = error_of(failure, "the recogniser", "recognition", ErrorScope.TURN)
        self._tell(RecognizerErrored(at=self._now, error=error))

    # -- the chart -------------------------------------------------------------------------------------------------

    @property
    def _now(self) -> int:
        return self._desk.clock.now_ns()

    def _tell(self, fact: Fact) -> None:
        """Give the recognition's chart a fact and carry out what it decides; what comes late means nothing to it."""
        for action in self._chart.handle(fact):
            self._carry_out(action)

    def _carry_out(self, action: Action) -> None:
        match action:
            case ReleaseAudio():
                self._released = True
            case FinishStream():
                self._finishing = True
                self._input_over.set()
            case CancelStream():
                if self._stream is not None:
                    self._stream.cancel("recognition cancelled")
                self._scope.cancel()
            case ReportClosed():
                self._desk.report(RecognitionClosed(at=self._now, recognition_id=self.recognition_id))
            case ReportFailed(error=error):
                self._on_failure(self)
                self._desk.report(
                    RecognitionFailed(
                        at=self._now,
                        recognition_id=self.recognition_id,
                        error=error,
                        recorded_ms=self.recorded_ms,
                    )
                )
            case _:
                raise AssertionError(f"{type(action).__name__} is not decided by the Recognition chart")
        self._changed.set()
