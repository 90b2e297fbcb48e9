"""Synthesis: one reply on its way through one synthesiser.

Theory of operation. A synthesis belongs to one output epoch for life. Cancelling it ends it for the chart at once, from
its very start and whether or not anything was heard: audio that the synthesiser still produces is late, and nobody
forwards it. The first audio is reported once; the end is reported with the number of samples that exist, also when
the synthesiser failed halfway, so that nothing that does not exist is ever claimed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from .actions import Action, Stamp
from .chart import Chart, ChartDefinition, Selection
from .declaration import Compound, State
from .errors import ScopedError
from .facts import Fact


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstAudioProduced(Fact):
    event: ClassVar[str] = "first_audio_produced"
    sample_rate_hz: int
    channels: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TextEnded(Fact):
    """No more text will come."""

    event: ClassVar[str] = "text_ended"


@dataclass(frozen=True, slots=True, kw_only=True)
class SynthesizerEnded(Fact):
    """Everything was spoken: `end_sample` samples."""

    event: ClassVar[str] = "synthesizer_ended"
    end_sample: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SynthesizerErrored(Fact):
    event: ClassVar[str] = "synthesizer_errored"
    end_sample: int
    error: ScopedError


@dataclass(frozen=True, slots=True, kw_only=True)
class SynthesisCancelled(Fact):
    event: ClassVar[str] = "synthesis_cancelled"


@dataclass(frozen=True, slots=True)
class ReportAudioStarted(Action):
    response_id: str
    sample_rate_hz: int
    channels: int


@dataclass(frozen=True, slots=True)
class FinishText(Action):
    """Half-close the synthesiser."""

    response_id: str


@dataclass(frozen=True, slots=True)
class ReportAudioEnded(Action):
    response_id: str
    end_sample: int


@dataclass(frozen=True, slots=True)
class ReportSynthesisFailed(Action):
    response_id: str
    end_sample: int
    error: ScopedError


@dataclass(frozen=True, slots=True)
class StopSynthesizer(Action):
    response_id: str


@dataclass(slots=True)
class SynthesisContext:
    """What one synthesis remembers."""

    response_id: str
    stamp: Stamp


class SynthesisChart(ChartDefinition):
    """The declaration."""

    context: SynthesisContext

    class synthesis(Compound, name="Synthesis"):
        """From the first unit of speech to the last sample."""

        silent = State("silent", initial=True)
        speaking = State("speaking")
        finishing = State("finishing")
        ended = State("ended")
        cancelled = State("cancelled")
        failed = State("failed")

        # fmt: off
        speaking.from_(silent, event="first_audio_produced", on="report_started")
        silent.to(None, event="text_ended", on="finish_text")
        finishing.from_(speaking, event="text_ended", on="finish_text")
        ended.from_(silent, speaking, finishing, event="synthesizer_ended", on="report_ended")
        failed.from_(silent, speaking, finishing, event="synthesizer_errored", on="report_failed")
        cancelled.from_(silent, speaking, finishing, event="synthesis_cancelled", on="stop_synthesizer")
        # fmt: on

    def report_started(self) -> None:
        fact = self.fact
        assert isinstance(fact, FirstAudioProduced)
        context = self.context
        self.emit(ReportAudioStarted(context.stamp, context.response_id, fact.sample_rate_hz, fact.channels))

    def finish_text(self) -> None:
        self.emit(FinishText(self.context.stamp, self.context.response_id))

    def report_ended(self) -> None:
        fact = self.fact
        assert isinstance(fact, SynthesizerEnded)
        self.emit(ReportAudioEnded(self.context.stamp, self.context.response_id, fact.end_sample))

    def report_failed(self) -> None:
        fact = self.fact
        assert isinstance(fact, SynthesizerErrored)
        context = self.context
        self.emit(ReportSynthesisFailed(context.stamp, context.response_id, fact.end_sample, fact.error))

    def stop_synthesizer(self) -> None:
        self.emit(StopSynthesizer(self.context.stamp, self.context.response_id))


class Synthesis(Chart[SynthesisContext]):
    """A running synthesis chart."""

    def __init__(self, response_id: str, stamp: Stamp, *, selection: Selection = "indexed") -> None:
        super().__init__(SynthesisChart(SynthesisContext(response_id, stamp), selection))

    @property
    def state(self) -> str:
        """The active state."""
        return self.leaves[0]

    @property
    def is_cancelled(self) -> bool:
        return self.state == "cancelled"
