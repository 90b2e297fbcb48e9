"""What comes back through the ports. Plain values; the engine stamps them with identities and time for the chart."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from ..audio.formats import AudioFrame
from ..statecharts.errors import ScopedError
from ..statecharts.values import PositionSource, Usage


class PortError(Exception):
    """A port refused or failed. Carries the scoped error that goes to the chart."""

    def __init__(self, error: ScopedError) -> None:
        super().__init__(str(error))
        self.error = error


# -- microphone ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Captured:
    """One captured frame. `captured_at_ns`: monotonic time of its first sample where the device tells it."""

    frame: AudioFrame
    captured_at_ns: int | None = None


@dataclass(frozen=True, slots=True)
class CaptureGap:
    """Samples that were captured but lost, or a jump of the device clock, before the next frame."""

    lost_samples: int
    reason: str


@dataclass(frozen=True, slots=True)
class CaptureEnded:
    """Terminal. `error` is None when the microphone was closed on purpose or a recording ended."""

    error: ScopedError | None = None


class DeviceButton(StrEnum):
    """What the user of a device may do with its buttons."""

    STOP = "stop"
    """The stop button: interrupts the reply that is heard."""
    TALK = "talk"
    """The talk button went down (push-to-talk): a turn begins."""
    RELEASE = "release"
    """The talk button went up: the turn is over."""
    CLEAR = "clear"
    """What is being said is not meant."""


@dataclass(frozen=True, slots=True)
class ButtonUsed:
    """A button of the device, at its place between the captured frames. The stop button may come ahead of them."""

    button: DeviceButton


MicrophoneReport = Captured | CaptureGap | ButtonUsed | CaptureEnded


# -- recognition ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Word:
    """A recognised word with its times, in samples of the recognition's audio."""

    text: str
    start_sample: int
    end_sample: int
    confidence: float | None = None


@dataclass(frozen=True, slots=True)
class SegmentHypothesis:
    """A newer revision replaces an older one of the same segment; an empty text retracts it."""

    segment_id: str
    revision: int
    text: str
    stable_chars: int = 0
    """Length of the prefix that will not change any more."""
    words: tuple[Word, ...] = ()


@dataclass(frozen=True, slots=True)
class SegmentFinal:
    """The last word on a segment. `segment_id` may be None where the provider gives no identity."""

    segment_id: str | None
    revision: int
    text: str
    start_sample: int | None = None
    end_sample: int | None = None
    words: tuple[Word, ...] = ()
    language: str | None = None
    confidence: float | None = None


@dataclass(frozen=True, slots=True)
class UtteranceEnded:
    """The provider's own endpointing says the user has finished."""


@dataclass(frozen=True, slots=True)
class RecognitionEnded:
    """Terminal: everything that was written has been recognised, or the stream was cancelled."""

    cancelled: bool = False


@dataclass(frozen=True, slots=True)
class RecognitionErrored:
    """Terminal."""

    error: ScopedError


RecognitionReport = SegmentHypothesis | SegmentFinal | UtteranceEnded | RecognitionEnded | RecognitionErrored


# -- generation ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TextDelta:
    """Visible text to append."""

    text: str


@dataclass(frozen=True, slots=True)
class ModelSpoke:
    """The first audio of a model that speaks by itself; the audio goes its own way."""


@dataclass(frozen=True, slots=True)
class ReasoningDelta:
    """Model reasoning: kept, never shown and never spoken."""

    text: str


@dataclass(frozen=True, slots=True)
class ProviderState:
    """What a provider wants back, as it is, when it goes on after its tools: signed or encrypted reasoning, say.

    At most one for each attempt, before its terminal report; it belongs to the text and the calls of that attempt. Held
    in memory for the reply's next steps only: never shown, spoken, stored, traced or logged.
    """

    provider: str
    """The kind of the adapter that made it; another one leaves it out."""
    content_json: str = field(repr=False)
    """Opaque to everybody else."""


@dataclass(frozen=True, slots=True)
class ToolCallProposed:
    """One complete call (all argument deltas received)."""

    call_id: str
    name: str
    arguments_json: str


@dataclass(frozen=True, slots=True)
class UsageUpdated:
    """Cumulative usage of this attempt; replaces the former one."""

    usage: Usage


@dataclass(frozen=True, slots=True)
class GenerationEnded:
    """Terminal: the model ended by itself. `final_text` replaces the folded deltas where given."""

    final_text: str | None = None
    awaits_tools: bool = False


@dataclass(frozen=True, slots=True)
class GenerationStopped:
    """Terminal: it ended because of `cancel`. This is the acknowledgement."""


@dataclass(frozen=True, slots=True)
class GenerationErrored:
    """Terminal."""

    error: ScopedError


GenerationReport = (
    TextDelta
    | ModelSpoke
    | ReasoningDelta
    | ProviderState
    | ToolCallProposed
    | UsageUpdated
    | GenerationEnded
    | GenerationStopped
    | GenerationErrored
)


# -- synthesis -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Synthesized:
    """PCM of one unit, gapless after the former frame of the stream."""

    frame: AudioFrame
    unit_index: int
    words: tuple[Word, ...] = ()
    """Words of the unit that end by the end of this frame and were not told yet, where the synthesiser aligns as it
    speaks: whoever interrupts a long unit is told where. In samples of the stream.
    """


@dataclass(frozen=True, slots=True)
class UnitSynthesized:
    """A unit is complete: it occupies samples [start_sample, end_sample) of the stream."""

    unit_index: int
    start_sample: int
    end_sample: int
    words: tuple[Word, ...] = ()
    """All words of the unit with their times in samples of the stream, where the synthesiser aligns."""


@dataclass(frozen=True, slots=True)
class SynthesisEnded:
    """Terminal: every unit was spoken; `end_sample` samples in total."""

    end_sample: int


@dataclass(frozen=True, slots=True)
class SynthesisStopped:
    """Terminal: ended because of `cancel`."""


@dataclass(frozen=True, slots=True)
class SynthesisErrored:
    """Terminal."""

    error: ScopedError


SynthesisReport = Synthesized | UnitSynthesized | SynthesisEnded | SynthesisStopped | SynthesisErrored


# -- playback ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PlaybackPosition:
    """Three numbers, never one, in samples of the stream. `played_samples` None: unknown."""

    accepted_samples: int
    submitted_samples: int
    played_samples: int | None
    source: PositionSource
    confidence: float = 1.0
    """0 to 1."""
    at_ns: int | None = field(default=None, compare=False)
    """When this was so, monotonic nanoseconds of the speaker's machine, where it tells."""


@dataclass(frozen=True, slots=True)
class RenderingStarted:
    """The prebuffer filled and the first sample was rendered (again, after an underrun)."""

    stream_id: int
    output_epoch: int
    position: PlaybackPosition


@dataclass(frozen=True, slots=True)
class RenderingProgressed:
    """A receipt, at most about ten a second."""

    stream_id: int
    output_epoch: int
    position: PlaybackPosition


@dataclass(frozen=True, slots=True)
class RenderingStarved:
    """The queue ran dry before the end barrier."""

    stream_id: int
    output_epoch: int
    position: PlaybackPosition


@dataclass(frozen=True, slots=True)
class RenderingDrained:
    """The last sample before the end barrier was rendered."""

    stream_id: int
    output_epoch: int
    position: PlaybackPosition


@dataclass(frozen=True, slots=True)
class RenderingStopped:
    """The receipt of a stop: nothing of the stream is heard after `position.played_samples`."""

    stream_id: int
    output_epoch: int
    position: PlaybackPosition
    dropped_samples: int = 0
    """Accepted but never rendered."""


@dataclass(frozen=True, slots=True)
class SpeakerLost:
    """Terminal: the speaker is gone."""

    error: ScopedError


SpeakerReport = (
    RenderingStarted | RenderingProgressed | RenderingStarved | RenderingDrained | RenderingStopped | SpeakerLost
)
