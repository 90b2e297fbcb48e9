"""Facts: everything that can happen to a conversation, in the past tense.

A fact is a frozen value with the monotonic time `at` (nanoseconds) at which it was observed. Engines and adapters
report facts; they never decide. A fact that means nothing in the present configuration is counted, not raised, so a
late, duplicated or reordered one can do no harm: each carries the identity it speaks of.

The `event` of a fact is the name under which the charts know it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from .capabilities import Capabilities
from .errors import ScopedError
from .values import InterruptionSource, PositionSource, ToolStatus, TurnAuthority, Usage


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """Base of all facts."""

    event: ClassVar[str] = ""
    at: int
    """Monotonic nanoseconds."""


# -- connection ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenRequested(Fact):
    """The embedder wants the session opened. The first fact of every conversation."""

    event: ClassVar[str] = "open_requested"


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionReady(Fact):
    """Every port answered and the capabilities are final: negotiated, not merely connected."""

    event: ClassVar[str] = "connection_ready"
    capabilities: Capabilities


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionFailed(Fact):
    """An attempt to connect failed."""

    event: ClassVar[str] = "connection_failed"
    error: ScopedError


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionLost(Fact):
    """The live session is gone: the device, or what the engine cannot work without."""

    event: ClassVar[str] = "connection_lost"
    error: ScopedError


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionExpiring(Fact):
    """The provider is about to end the session; a new one has to be made."""

    event: ClassVar[str] = "session_expiring"
    within_ms: int = 0
    """How long it still lives: what is being said may be finished first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CloseRequested(Fact):
    """Somebody wants the conversation ended. `error` when the reason is a failure."""

    event: ClassVar[str] = "close_requested"
    reason: str = "requested"
    error: ScopedError | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TimerFired(Fact):
    """A timer that the chart started is due. Its kind is known to the chart; a dead timer's fact is ignored."""

    event: ClassVar[str] = "timer_fired"
    timer_id: str


# -- input turn ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeechStarted(Fact):
    """Speech was detected, or the talk button went down (`authority` MANUAL)."""

    event: ClassVar[str] = "speech_started"
    authority: TurnAuthority = TurnAuthority.VAD
    sample: int | None = None
    """Position on the capture track where the speech began, pre-roll included."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeechProgressed(Fact):
    """The user has been speaking for `speech_ms` without a pause."""

    event: ClassVar[str] = "speech_progressed"
    speech_ms: int
    sample: int | None = None
    """Position on the capture track that has been judged so far."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TranscriptUpdated(Fact):
    """A newer hypothesis of one segment; an empty text retracts it."""

    event: ClassVar[str] = "transcript_updated"
    recognition_id: str
    segment_id: str
    revision: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentFinalized(Fact):
    """The last word on a segment. Not the end of the turn."""

    event: ClassVar[str] = "segment_finalized"
    recognition_id: str
    segment_id: str | None
    revision: int = 0
    text: str = ""
    start_sample: int | None = None
    end_sample: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RecognitionClosed(Fact):
    """A recognition has said everything it had to say."""

    event: ClassVar[str] = "recognition_closed"
    recognition_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RecognitionFailed(Fact):
    """A recognition failed. `recorded_ms`: how much of the utterance is still held for a batch attempt (0: none)."""

    event: ClassVar[str] = "recognition_failed"
    recognition_id: str
    error: ScopedError
    recorded_ms: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnEnded(Fact):
    """An authority says that the user has finished."""

    event: ClassVar[str] = "turn_ended"
    authority: TurnAuthority
    speech_ended_at: int | None = None
    """When the last sample of speech was captured, monotonic nanoseconds, where that is known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnCancelled(Fact):
    """The user cleared what is being said (push-to-talk)."""

    event: ClassVar[str] = "turn_cancelled"
    reason: str = "cleared"


@dataclass(frozen=True, slots=True, kw_only=True)
class InputDiscontinuity(Fact):
    """Captured audio was lost. `lost_ms` within the utterance that is being recognised."""

    event: ClassVar[str] = "input_discontinuity"
    lost_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TextSubmitted(Fact):
    """A typed message: a whole turn, committed on arrival. It never becomes audio."""

    event: ClassVar[str] = "text_submitted"
    text: str


# -- announcements -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class SayRequested(Fact):
    """A text is to be said as it is, without a model."""

    event: ClassVar[str] = "say_requested"
    number: int
    """Counts up; one that is not greater than every former one is a repetition and changes nothing."""
    text: str
    interrupts: bool = False
    """Silence the present reply, where the policy lets a client do that, and go before turns that wait."""
    interruptible: bool = True
    recorded: bool = True
    """It belongs to the conversation; False for a private notification, which no model ever sees."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SayWithdrawn(Fact):
    """An announcement is not wanted any more: what waits is dropped, what is being said stops as for any client."""

    event: ClassVar[str] = "say_withdrawn"
    number: int


# -- interruption --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class ButtonPressed(Fact):
    """The board's stop button."""

    event: ClassVar[str] = "button_pressed"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderInterrupted(Fact):
    """A realtime provider says that the user interrupted."""

    event: ClassVar[str] = "provider_interrupted"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientCancelled(Fact):
    """A client asked for the present reply to stop. `run_id` None: whatever is active."""

    event: ClassVar[str] = "client_cancelled"
    run_id: str | None = None


# -- generation ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptFact(Fact):
    """A fact about one attempt; of an older attempt it changes nothing but usage."""

    attempt_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputStarted(AttemptFact):
    """The first visible output of the attempt."""

    event: ClassVar[str] = "output_started"


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerationProgressed(AttemptFact):
    """The model is alive. Reported at most about once a second; the deltas themselves stay out of the chart."""

    event: ClassVar[str] = "generation_progressed"


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCallReady(AttemptFact):
    """The model asked for a tool. Dispatched only when complete, valid and approved."""

    event: ClassVar[str] = "tool_call_ready"
    call_id: str
    name: str
    complete: bool = True
    valid: bool = True
    approved: bool = True
    background: bool = False
    """Outlives an interruption."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolFinished(Fact):
    """A dispatched call has its outcome."""

    event: ClassVar[str] = "tool_finished"
    call_id: str
    status: ToolStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class StepCompleted(AttemptFact):
    """The model ended a step that waits for the outcomes of its tool calls."""

    event: ClassVar[str] = "step_completed"


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerationCompleted(AttemptFact):
    """The model ended by itself. Says nothing about playback."""

    event: ClassVar[str] = "generation_completed"


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerationFailed(AttemptFact):
    """The attempt failed."""

    event: ClassVar[str] = "generation_failed"
    error: ScopedError


@dataclass(frozen=True, slots=True, kw_only=True)
class CancelAcknowledged(AttemptFact):
    """Whoever was generating confirms that it stopped."""

    event: ClassVar[str] = "cancel_acknowledged"


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageReported(AttemptFact):
    """Cumulative usage of an attempt; the one thing a late fact may still add."""

    event: ClassVar[str] = "usage_reported"
    usage: Usage


# -- speech and playback -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputFact(Fact):
    """A fact about audio of one output epoch; of an older epoch it changes nothing."""

    output_epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AudioStarted(OutputFact):
    """The first audio of the reply exists; nothing of it has been heard."""

    event: ClassVar[str] = "audio_started"
    sample_rate_hz: int
    channels: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeechUnitSynthesized(OutputFact):
    """A unit of speech occupies samples [start_sample, end_sample) of the output stream."""

    event: ClassVar[str] = "speech_unit_synthesized"
    unit_index: int
    start_sample: int
    end_sample: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AudioEnded(OutputFact):
    """All audio of the reply exists: `end_sample` samples (0: there was nothing to say)."""

    event: ClassVar[str] = "audio_ended"
    end_sample: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SynthesisFailed(OutputFact):
    """No more audio will come; `end_sample` samples exist."""

    event: ClassVar[str] = "synthesis_failed"
    end_sample: int
    error: ScopedError


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamFact(OutputFact):
    """A receipt of the speaker about one stream. Accepted, submitted and played are three numbers, never one."""

    stream_id: int
    accepted_samples: int = 0
    submitted_samples: int = 0
    played_samples: int | None = None
    """None: unknown."""
    source: PositionSource = PositionSource.MEASURED
    confidence: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class PrebufferFilled(StreamFact):
    """The prebuffer is full and the first sample has been rendered (again, after an underrun)."""

    event: ClassVar[str] = "prebuffer_filled"


@dataclass(frozen=True, slots=True, kw_only=True)
class PlaybackProgressed(StreamFact):
    event: ClassVar[str] = "playback_progressed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Underrun(StreamFact):
    """The device ran dry before the end of the stream."""

    event: ClassVar[str] = "underrun"


@dataclass(frozen=True, slots=True, kw_only=True)
class PlaybackDrained(StreamFact):
    """The last sample of the stream was rendered."""

    event: ClassVar[str] = "playback_drained"


@dataclass(frozen=True, slots=True, kw_only=True)
class PlaybackStopped(StreamFact):
    """Receipt of a stop: nothing of the stream is heard after `played_samples`."""

    event: ClassVar[str] = "playback_stopped"


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeakerFailed(OutputFact):
    """The output stream broke, or a write met its deadline."""

    event: ClassVar[str] = "speaker_failed"
    error: ScopedError


INTERRUPTING: dict[type[Fact], InterruptionSource] = {
    SpeechStarted: InterruptionSource.SPEECH,
    SpeechProgressed: InterruptionSource.SPEECH,
    TranscriptUpdated: InterruptionSource.SPEECH,
    SegmentFinalized: InterruptionSource.SPEECH,
    TurnEnded: InterruptionSource.SPEECH,
    RecognitionClosed: InterruptionSource.SPEECH,
    ButtonPressed: InterruptionSource.BUTTON,
    ProviderInterrupted: InterruptionSource.PROVIDER,
    ClientCancelled: InterruptionSource.CLIENT,
    TextSubmitted: InterruptionSource.CLIENT,
    SayRequested: InterruptionSource.CLIENT,
    SayWithdrawn: InterruptionSource.CLIENT,
}
"""The facts that may interrupt a reply, and in whose name the policy is asked."""
