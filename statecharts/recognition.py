"""Recognition: one utterance on its way through one recogniser.

Theory of operation. Audio is released only after the recogniser is ready; until then it waits in a bounded buffer that
the engine owns, with the speech prefix kept. If the buffer would have to drop anything the recognition fails
instead: a clipped transcript must not claim to be whole. The end of the input may be known before the recogniser is
ready; then it follows the released audio. Cancelling ends it for the chart at once; what still arrives is late.
"""

# ruff: noqa: E501 - transition lines are the rows of a table

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from .actions import Action, Stamp
from .chart import Chart, ChartDefinition, Selection
from .declaration import Compound, State
from .errors import ErrorScope, ScopedError
from .facts import Fact


@dataclass(frozen=True, slots=True, kw_only=True)
class RecognizerReady(Fact):
    """The stream is open and takes audio."""

    event: ClassVar[str] = "recognizer_ready"


@dataclass(frozen=True, slots=True, kw_only=True)
class AudioWritten(Fact):
    """The first audio was accepted. Later audio stays out of the chart."""

    event: ClassVar[str] = "audio_written"


@dataclass(frozen=True, slots=True, kw_only=True)
class PreReadyOverflowed(Fact):
    """The pre-ready buffer is full and the recogniser still not ready. `held_ms`: what it holds."""

    event: ClassVar[str] = "pre_ready_overflowed"
    held_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class InputFinished(Fact):
    """The utterance is over."""

    event: ClassVar[str] = "input_finished"


@dataclass(frozen=True, slots=True, kw_only=True)
class RecognizerEnded(Fact):
    """The recogniser has said everything."""

    event: ClassVar[str] = "recognizer_ended"


@dataclass(frozen=True, slots=True, kw_only=True)
class RecognizerErrored(Fact):
    """The recogniser failed, refused, or met a deadline."""

    event: ClassVar[str] = "recognizer_errored"
    error: ScopedError


@dataclass(frozen=True, slots=True, kw_only=True)
class RecognitionCancelled(Fact):
    """Nobody wants the transcript any more."""

    event: ClassVar[str] = "recognition_cancelled"


@dataclass(frozen=True, slots=True)
class ReleaseAudio(Action):
    """Write what waited, oldest first, then live audio."""

    recognition_id: str


@dataclass(frozen=True, slots=True)
class FinishStream(Action):
    """Half-close the stream behind everything that was released."""

    recognition_id: str


@dataclass(frozen=True, slots=True)
class CancelStream(Action):
    recognition_id: str


@dataclass(frozen=True, slots=True)
class ReportClosed(Action):
    """Tell the conversation that this recognition is complete."""

    recognition_id: str


@dataclass(frozen=True, slots=True)
class ReportFailed(Action):
    """Tell the conversation that this recognition failed."""

    recognition_id: str
    error: ScopedError


@dataclass(slots=True)
class RecognitionContext:
    """What one recognition remembers."""

    recognition_id: str
    stamp: Stamp
    input_is_over: bool = False


class RecognitionChart(ChartDefinition):
    """The declaration."""

    context: RecognitionContext

    class recognition(Compound, name="Recognition"):
        """From asking for a stream to its last word."""

        connecting = State("connecting", initial=True)
        ready = State("ready")
        streaming = State("streaming")
        finishing = State("finishing")
        closed = State("closed")
        failed = State("failed")

        # fmt: off
        finishing.from_(connecting, event="recognizer_ready", cond="input_was_finished", on=["release_audio", "finish_stream"])
        ready.from_(connecting, event="recognizer_ready", on="release_audio")
        connecting.to(None, event="input_finished", on="remember_end")
        failed.from_(connecting, event="pre_ready_overflowed", on="fail_clipped")
        streaming.from_(ready, event="audio_written")
        finishing.from_(ready, streaming, event="input_finished", on="finish_stream")
        closed.from_(ready, streaming, finishing, event="recognizer_ended", on="report_closed")
        failed.from_(connecting, ready, streaming, finishing, event="recognizer_errored", on="report_failed")
        closed.from_(connecting, ready, streaming, finishing, event="recognition_cancelled", on="cancel_stream")
        # fmt: on

    def input_was_finished(self) -> bool:
        return self.context.input_is_over

    def remember_end(self) -> None:
        self.context.input_is_over = True

    def release_audio(self) -> None:
        self.emit(ReleaseAudio(self.context.stamp, self.context.recognition_id))

    def finish_stream(self) -> None:
        self.emit(FinishStream(self.context.stamp, self.context.recognition_id))

    def cancel_stream(self) -> None:
        self.emit(CancelStream(self.context.stamp, self.context.recognition_id))

    def report_closed(self) -> None:
        self.emit(ReportClosed(self.context.stamp, self.context.recognition_id))

    def report_failed(self) -> None:
        fact = self.fact
        assert isinstance(fact, RecognizerErrored)
        self.emit(CancelStream(self.context.stamp, self.context.recognition_id))
        self.emit(ReportFailed(self.context.stamp, self.context.recognition_id, fact.error))

    def fail_clipped(self) -> None:
        fact = self.fact
        assert isinstance(fact, PreReadyOverflowed)
        error = ScopedError(
            "recognizer_not_ready",
            "recognition",
            ErrorScope.TURN,
            f"the recogniser was not ready within {fact.held_ms} ms of speech; call prepare() earlier or use a faster one",
            retryable=True,
        )
        self.emit(CancelStream(self.context.stamp, self.context.recognition_id))
        self.emit(ReportFailed(self.context.stamp, self.context.recognition_id, error))


class Recognition(Chart[RecognitionContext]):
    """A running recognition chart."""

    def __init__(self, recognition_id: str, stamp: Stamp, *, selection: Selection = "indexed") -> None:
        super().__init__(RecognitionChart(RecognitionContext(recognition_id, stamp), selection))

    @property
    def state(self) -> str:
        """The active state."""
        return self.leaves[0]
