"""One utterance on its way to the recogniser: captured audio in, facts about words out.

The life of it is the `Recognition` chart's. Audio is kept in one recording from the pre-roll on: what was not yet
written is the pre-ready queue, the whole is what a failed recognition leaves to a batch attempt.
"""

from __future__ import annotations

from collections import deque

import anyio

from ..audio.formats import AudioFormat, AudioFrame
from ..statecharts.actions import Action, Stamp
from ..statecharts.errors import ErrorScope, ScopedError
from ..statecharts.facts import (
    Fact,
    RecognitionClosed,
    RecognitionFailed,
    SegmentFinalized,
    TranscriptUpdated,
    TurnEnded,
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
from ..statecharts.values import TurnAuthority
from .engine import Desk
from .ports import RecognitionRequest, RecognitionStream, Recognizer
from .reports import (
    PortError,
    RecognitionEnded,
    RecognitionErrored,
    RecognitionReport,
    SegmentFinal,
    SegmentHypothesis,
    UtteranceEnded,
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
        self, desk: Desk, recognizer: Recognizer, recognition_id: str, format: AudioFormat, stamp: Stamp
    ) -> None:
        self._desk = desk
        self._recognizer = recognizer
        self._id = recognition_id
        self._format = format
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
        self._scope = anyio.CancelScope()

    @property
    def recording(self) -> tuple[AudioFrame, ...]:
        """The utterance so far, or nothing when it outgrew the bound."""
        return tuple(self._recording) if self._whole else ()

    @property
    def recorded_ms(self) -> int:
        """How much of the whole utterance is held; 0 when it outgrew the bound."""
        return int(self._format.duration_ms(self._recorded_samples)) if self._whole else 0

    @property
    def is_listening(self) -> bool:
        """Live audio still belongs to it."""
        return not self._finishing and self._chart.state in ("connecting", "ready", "streaming")

    @property
    def has_failed(self) -> bool:
        return self._chart.state == "failed"

    # -- audio in --------------------------------------------------------------------------------------------------

    def preload(self, frames: tuple[AudioFrame, ...]) -> None:
        """Audio from before this recognition began; it does not count against the pre-ready bound."""
        for frame in frames:
            self._keep(frame)
            self._grace_samples += frame.samples

    def offer(self, frame: AudioFrame) -> None:
        """The next live frame. Never waits; what cannot be kept fails the recognition, it is never dropped silently."""
        if not self.is_listening:
            return
        if self._recorded_until is not None and frame.start_sample < self._recorded_until:
            # The pre-roll held this moment already.
            return
        self._keep(frame)
        waiting_ms = self._format.duration_ms(max(0, self._unwritten_samples - self._grace_samples))
        if waiting_ms > MAX_PRE_READY_MS:
            self._tell(PreReadyOverflowed(at=self._now, held_ms=int(waiting_ms)))
            if self._chart.state != "failed":
                self._tell(RecognizerErrored(at=self._now, error=_too_slow(int(waiting_ms))))

    def finish(self) -> None:
        """The utterance is over."""
        self._finishing = True
        self._tell(InputFinished(at=self._now))

    def cancel(self) -> None:
        """Nobody wants the transcript any more."""
        self._tell(RecognitionCancelled(at=self._now))

    def _keep(self, frame: AudioFrame) -> None:
        self._recorded_until = frame.end_sample
        self._recording.append(frame)
        self._recorded_samples += frame.samples
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
            try:
                with anyio.fail_after(OPEN_TIMEOUT_S):
                    self._stream = await self._recognizer.open(RecognitionRequest(self._id, self._format))
                self._tell(RecognizerReady(at=self._now))
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(self._write_released)
                    await self._read_reports(self._stream)
                    tasks.cancel_scope.cancel()
            except PortError as failure:
                self._tell(RecognizerErrored(at=self._now, error=failure.error))
            except TimeoutError:
                self._tell(RecognizerErrored(at=self._now, error=_not_opened()))
        if self._stream is not None:
            with anyio.move_on_after(WRITE_TIMEOUT_S, shield=True):
                await self._stream.aclose()

    async def _write_released(self) -> None:
        stream = self._stream
        assert stream is not None
        try:
            while True:
                while self._released and self._unwritten:
                    frame = self._unwritten.popleft()
                    with anyio.fail_after(WRITE_TIMEOUT_S):
                        await stream.write(frame)
                    self._unwritten_samples -= frame.samples
                    self._grace_samples = max(0, self._grace_samples - frame.samples)
                    self._tell(AudioWritten(at=self._now))
                if self._finishing and self._chart.state == "finishing" and not self._unwritten:
                    await stream.finish_input()
                    return
                self._changed = anyio.Event()
                await self._changed.wait()
        except PortError as failure:
            self._tell(RecognizerErrored(at=self._now, error=failure.error))
        except TimeoutError:
            self._tell(RecognizerErrored(at=self._now, error=_too_slow(int(WRITE_TIMEOUT_S * 1_000))))

    async def _read_reports(self, stream: RecognitionStream) -> None:
        async for report in stream.reports():
            match report:
                case RecognitionEnded():
                    self._tell(RecognizerEnded(at=self._now))
                    return
                case RecognitionErrored(error):
                    self._tell(RecognizerErrored(at=self._now, error=error))
                    return
                case _:
                    if self._chart.state in ("ready", "streaming", "finishing"):
                        self._report(words_to_fact(report, self._id, self._now))
        self._tell(RecognizerErrored(at=self._now, error=_cut_off()))

    # -- the chart -------------------------------------------------------------------------------------------------

    @property
    def _now(self) -> int:
        return self._desk.clock.now_ns()

    def _report(self, fact: Fact) -> None:
        self._desk.report(fact)

    def _tell(self, fact: Fact) -> None:
        """Give the recognition's chart a fact and carry out what it decides."""
        if isinstance(fact, AudioWritten) and self._chart.state != "ready":
            return
        for action in self._chart.handle(fact):
            self._carry_out(action)

    def _carry_out(self, action: Action) -> None:
        match action:
            case ReleaseAudio():
                self._released = True
            case FinishStream():
                self._finishing = True
            case CancelStream():
                if self._stream is not None:
                    self._stream.cancel("recognition cancelled")
                self._scope.cancel()
            case ReportClosed():
                self._report(RecognitionClosed(at=self._now, recognition_id=self._id))
            case ReportFailed(error=error):
                self._report(
                    RecognitionFailed(at=self._now, recognition_id=self._id, error=error, recorded_ms=self.recorded_ms)
                )
            case _:
                raise AssertionError(f"{type(action).__name__} is not decided by the Recognition chart")
        self._changed.set()


def words_to_fact(report: RecognitionReport, recognition_id: str, at: int) -> Fact:
    """The chart's fact for what a recogniser reported, its terminal reports apart."""
    match report:
        case SegmentHypothesis():
            return TranscriptUpdated(
                at=at,
                recognition_id=recognition_id,
                segment_id=report.segment_id,
                revision=report.revision,
                text=report.text,
            )
        case SegmentFinal():
            return SegmentFinalized(
                at=at,
                recognition_id=recognition_id,
                segment_id=report.segment_id,
                revision=report.revision,
                text=report.text,
                start_sample=report.start_sample,
                end_sample=report.end_sample,
            )
        case UtteranceEnded():
            return TurnEnded(at=at, authority=TurnAuthority.RECOGNIZER)
        case RecognitionEnded() | RecognitionErrored():
            raise ValueError(f"{type(report).__name__} is terminal: the recognition's own chart takes it")


def _error(code: str, message: str) -> ScopedError:
    return ScopedError(code, "recognition", ErrorScope.TURN, message, retryable=True)


def _too_slow(held_ms: int) -> ScopedError:
    return _error(
        "recognizer_too_slow", f"{held_ms} ms of speech wait for the recogniser; use a smaller model or a faster one"
    )


def _not_opened() -> ScopedError:
    return _error("recognizer_not_opened", f"the recogniser did not open within {OPEN_TIMEOUT_S:.0f} s")


def _cut_off() -> ScopedError:
    return _error("recognizer_cut_off", "the recogniser ended without saying that it had ended")
