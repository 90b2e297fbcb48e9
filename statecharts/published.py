"""Payloads of the public event stream that the chart itself publishes, one value class a kind.

The envelope (identities, sequence, times) is made where the event leaves the session; `Publish` carries the
identities. Deltas of text and audio never pass here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from .errors import ScopedError
from .values import (
    AnnouncementOutcome,
    DeliveryStatus,
    InterruptionSource,
    Outcome,
    PositionSource,
    ToolStatus,
    TurnAuthority,
    Usage,
)


@dataclass(frozen=True, slots=True)
class Payload:
    """Base of all payloads; `type` is the event's public name."""

    type: ClassVar[str] = ""


@dataclass(frozen=True, slots=True)
class SessionReady(Payload):
    type: ClassVar[str] = "session.ready"
    degradations: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SessionReconnecting(Payload):
    type: ClassVar[str] = "session.reconnecting"
    attempt: int
    reason: str


@dataclass(frozen=True, slots=True)
class SessionClosing(Payload):
    type: ClassVar[str] = "session.closing"
    reason: str


@dataclass(frozen=True, slots=True)
class SessionClosed(Payload):
    type: ClassVar[str] = "session.closed"
    reason: str
    error: ScopedError | None


@dataclass(frozen=True, slots=True)
class SpeechBegan(Payload):
    type: ClassVar[str] = "input.speech_started"
    continues_turn: bool


@dataclass(frozen=True, slots=True)
class TranscriptChanged(Payload):
    type: ClassVar[str] = "transcript.updated"
    segment_id: str
    revision: int
    text: str


@dataclass(frozen=True, slots=True)
class SegmentFrozen(Payload):
    type: ClassVar[str] = "transcript.segment_final"
    segment_id: str | None
    text: str


@dataclass(frozen=True, slots=True)
class TurnCommitted(Payload):
    type: ClassVar[str] = "turn.committed"
    text: str
    authority: TurnAuthority
    revision: int
    """1 at the first commit; higher when the same turn was continued and committed again."""


@dataclass(frozen=True, slots=True)
class TurnDiscarded(Payload):
    type: ClassVar[str] = "turn.discarded"
    reason: str


@dataclass(frozen=True, slots=True)
class TurnDropped(Payload):
    """A committed turn will not be answered."""

    type: ClassVar[str] = "turn.dropped"
    reason: str


@dataclass(frozen=True, slots=True)
class TurnExceeded(Payload):
    type: ClassVar[str] = "turn.exceeded"
    limit: str


@dataclass(frozen=True, slots=True)
class FallbackStarted(Payload):
    """Recognition failed; the bounded recording is transcribed as a whole instead."""

    type: ClassVar[str] = "input.fallback"
    recorded_ms: int
    error: ScopedError


@dataclass(frozen=True, slots=True)
class StreamDiscontinuity(Payload):
    type: ClassVar[str] = "stream.discontinuity"
    lost_ms: int


@dataclass(frozen=True, slots=True)
class ResponseStarted(Payload):
    type: ClassVar[str] = "response.started"
    attempt: int


@dataclass(frozen=True, slots=True)
class ResponseTerminal(Payload):
    type: ClassVar[str] = "response.terminal"
    outcome: Outcome
    reason: str
    acknowledged: bool


@dataclass(frozen=True, slots=True)
class RunTerminal(Payload):
    """The execution has ended; playback may go on."""

    type: ClassVar[str] = "run.terminal"
    outcome: Outcome
    reason: str


@dataclass(frozen=True, slots=True)
class ToolStarted(Payload):
    type: ClassVar[str] = "tool.started"
    name: str
    background: bool


@dataclass(frozen=True, slots=True)
class ToolEnded(Payload):
    """`type` is "tool.completed" or "tool.failed" by the status."""

    type: ClassVar[str] = "tool.ended"
    status: ToolStatus


@dataclass(frozen=True, slots=True)
class CancelRequested(Payload):
    type: ClassVar[str] = "cancel.requested"
    reason: str


@dataclass(frozen=True, slots=True)
class CancelConfirmed(Payload):
    type: ClassVar[str] = "cancel.acknowledged"


@dataclass(frozen=True, slots=True)
class UsageChanged(Payload):
    type: ClassVar[str] = "usage.updated"
    usage: Usage


@dataclass(frozen=True, slots=True)
class AudioBegan(Payload):
    type: ClassVar[str] = "audio.started"
    sample_rate_hz: int
    channels: int
    held: bool


@dataclass(frozen=True, slots=True)
class AudioFinished(Payload):
    type: ClassVar[str] = "audio.ended"
    end_sample: int


@dataclass(frozen=True, slots=True)
class PlaybackBegan(Payload):
    """The first sample of the stream was rendered."""

    type: ClassVar[str] = "playback.started"


@dataclass(frozen=True, slots=True)
class PlaybackMoved(Payload):
    type: ClassVar[str] = "playback.progress"
    accepted_samples: int
    submitted_samples: int
    played_samples: int | None
    source: PositionSource


@dataclass(frozen=True, slots=True)
class PlaybackStarved(Payload):
    type: ClassVar[str] = "playback.underrun"
    underruns: int


@dataclass(frozen=True, slots=True)
class PlaybackPaused(Payload):
    type: ClassVar[str] = "playback.paused"


@dataclass(frozen=True, slots=True)
class PlaybackResumed(Payload):
    type: ClassVar[str] = "playback.resumed"


@dataclass(frozen=True, slots=True)
class PlaybackFinished(Payload):
    type: ClassVar[str] = "playback.drained"
    played_samples: int | None


@dataclass(frozen=True, slots=True)
class PlaybackCut(Payload):
    """The speaker was told to stop, or stopped."""

    type: ClassVar[str] = "playback.stopped"
    reason: str


@dataclass(frozen=True, slots=True)
class DeliveryRecorded(Payload):
    type: ClassVar[str] = "delivery.recorded"
    status: DeliveryStatus
    units: int
    played_samples: int | None
    source: PositionSource


@dataclass(frozen=True, slots=True)
class InterruptionAccepted(Payload):
    type: ClassVar[str] = "interruption.accepted"
    source: InterruptionSource
    reason: str


@dataclass(frozen=True, slots=True)
class InterruptionRejected(Payload):
    type: ClassVar[str] = "interruption.rejected"
    source: InterruptionSource
    reason: str


@dataclass(frozen=True, slots=True)
class AnnouncementBegan(Payload):
    """A text is being said as it is. `private`: it is no part of the conversation."""

    type: ClassVar[str] = "announcement.started"
    number: int
    private: bool


@dataclass(frozen=True, slots=True)
class AnnouncementEnded(Payload):
    type: ClassVar[str] = "announcement.ended"
    number: int
    private: bool
    outcome: AnnouncementOutcome
    reason: str


@dataclass(frozen=True, slots=True)
class StreamError(Payload):
    type: ClassVar[str] = "stream.error"
    error: ScopedError
