"""The context: the only mutable data of a conversation, one dataclass, owned by the chart.

Its fields are frozen values that are replaced, never edited, so a shallow copy is a complete snapshot: that is what
lets a macrostep be undone and the explorer share prefixes. Epochs, ordinals and stream numbers only ever grow.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum

from .capabilities import Capabilities
from .errors import ScopedError
from .values import DeliveryStatus, Outcome, PositionSource, ToolStatus, TurnAuthority, Usage


class TimerKind(StrEnum):
    """What a timer is for. The value is the event under which the chart knows that it fired."""

    CONNECT = "connect_timed_out"
    BACKOFF = "backoff_elapsed"
    RENEWAL = "renewal_due"
    SHUTDOWN = "shutdown_timed_out"
    INPUT = "input_timed_out"
    FINALIZATION = "finalization_timed_out"
    TURN_LIMIT = "turn_limit_reached"
    HOLD = "hold_elapsed"
    FALSE_ALARM = "false_alarm_elapsed"
    RETRY = "retry_elapsed"
    PROGRESS = "generation_stalled"
    CANCEL_ACK = "cancel_ack_timed_out"
    TOOL = "tool_timed_out"
    SPEECH = "speech_stalled"
    PLAYBACK = "playback_stalled"
    STOP_RECEIPT = "stop_receipt_timed_out"


@dataclass(frozen=True, slots=True)
class Timer:
    """A started timer. `key` tells timers of one kind apart (a call, a stream)."""

    timer_id: str
    kind: TimerKind
    key: str = ""


@dataclass(frozen=True, slots=True)
class Segment:
    """A piece of the user's utterance. `is_final`: frozen, will not change any more."""

    recognition_id: str
    segment_id: str | None
    revision: int
    text: str
    is_final: bool
    heard_at: int
    """When its text last changed, monotonic nanoseconds."""
    start_sample: int | None = None
    end_sample: int | None = None


@dataclass(frozen=True, slots=True)
class Turn:
    """The user turn that is open, or the last one."""

    turn_id: str
    authority: TurnAuthority
    started_at: int
    start_sample: int | None = None
    segments: tuple[Segment, ...] = ()
    recognitions: tuple[str, ...] = ()
    """Every recognition that served this turn, newest last."""
    open_recognitions: tuple[str, ...] = ()
    ended_by: TurnAuthority | None = None
    """The authority that ended it; the transcript may still be on its way."""
    speech_ms: int = 0
    kept_segments: int | None = None
    """Of a reopened turn: how many segments had been committed. Whatever follows, they are owed an answer."""
    kept_recognitions: int = 0
    """Of a reopened turn: how many recognitions had served it. Their late finals belong to what had been committed."""
    kept_text: str = ""
    """Of a reopened turn: what had been committed."""
    committed_at: int | None = None
    restarts: int = 0
    """How often more speech has restarted its reply."""
    used_fallback: bool = False
    exceeded: bool = False
    """It was ended for the user, who may be speaking still: what follows is another turn."""
    alarmed: bool = False
    """It has paused the reply once already; it will not again."""
    position: int = 0
    """Where it stands in the history, once committed."""
    revision: int = 0
    """How often it was committed."""

    @property
    def text(self) -> str:
        """All segments that are not retracted, joined as they were spoken."""
        return join_texts(segment.text for segment in self.segments)

    @property
    def final_text(self) -> str:
        """Frozen segments only: what may be committed."""
        return join_texts(segment.text for segment in self.segments if segment.is_final)

    @property
    def has_open_hypothesis(self) -> bool:
        return any(segment.text.strip() and not segment.is_final for segment in self.segments)


@dataclass(frozen=True, slots=True)
class PendingTurn:
    """Committed, waiting for admission."""

    turn_ids: tuple[str, ...]
    restarts: int = 0


@dataclass(frozen=True, slots=True)
class Announcement:
    """A text that is to be said as it is, or is being said."""

    number: int
    text: str
    interrupts: bool = False
    """Goes before everything that waits."""
    interruptible: bool = True
    recorded: bool = True
    restarts: int = 0
    """How often it was taken back before anything of it was heard."""


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A dispatched call; `status` None while it is open."""

    call_id: str
    response_id: str
    background: bool
    status: ToolStatus | None = None


@dataclass(frozen=True, slots=True)
class UnitRange:
    """Samples of the output stream that one unit of speech occupies."""

    unit_index: int
    start_sample: int
    end_sample: int


@dataclass(frozen=True, slots=True)
class Response:
    """The model response that is active, or the last one."""

    run_id: str
    response_id: str
    attempt_id: str
    turn_ids: tuple[str, ...]
    output_epoch: int
    position: int
    """Where it stands in the history: an ordinal, moved once to the moment its playback begins."""
    restarts: int = 0
    attempts: int = 1
    steps: int = 1
    interruptible: bool = True
    step_open: bool = True
    """The model is producing; False while it waits for tools or a retry."""
    output_started: bool = False
    tools: tuple[ToolCall, ...] = ()
    units: tuple[UnitRange, ...] = ()
    outcome: Outcome | None = None
    reason: str = ""
    acknowledged: bool = True
    """False: cancelled, and nobody confirmed it."""
    heard: bool = False
    """At least one sample was rendered, or, without a device, something was shown."""
    announcement: Announcement | None = None
    """What it says as it is; no model works for it."""
    delivery: DeliveryStatus | None = None
    """Set when the delivery record is written, which happens once."""
    usage: Usage | None = None

    @property
    def open_calls(self) -> tuple[ToolCall, ...]:
        return tuple(call for call in self.tools if call.status is None)

    @property
    def has_side_effects(self) -> bool:
        """A tool was dispatched: whatever it did must not be done again."""
        return bool(self.tools)


@dataclass(frozen=True, slots=True)
class Output:
    """An output stream: the one being played, or one that waits for the receipt of its stop."""

    stream_id: int
    output_epoch: int
    response_id: str
    position: int
    announcement: Announcement | None = None
    units: tuple[UnitRange, ...] = ()
    accepted_samples: int = 0
    submitted_samples: int = 0
    played_samples: int | None = None
    source: PositionSource = PositionSource.UNKNOWN
    confidence: float = 0.0
    end_sample: int | None = None
    """Where the stream ends; None while more may come."""
    held: bool = False
    started: bool = False
    """A rendered sample was confirmed."""
    rendering: bool = False
    """Samples are being rendered; False before the first one and after an underrun."""
    underruns: int = 0
    failed: bool = False
    """Synthesis or the speaker failed before the end."""


@dataclass(slots=True)
class Context:
    """What a conversation remembers between macrosteps."""

    conversation_id: str
    session_epoch: int = 1
    output_epoch: int = 1
    now: int = 0
    """Latest time seen on any fact, monotonic nanoseconds."""
    sequence: int = 0
    """Macrosteps so far."""
    minted: int = 0
    """Identities so far."""
    streams: int = 0
    """Output streams so far."""
    positions: int = 0
    """History positions so far."""
    ignored: int = 0
    """Facts that meant nothing when they came."""
    capabilities: Capabilities = field(default_factory=Capabilities)
    connect_attempts: int = 0
    ready_at: int | None = None
    """Since when the present session is ready, monotonic nanoseconds."""
    early_losses: int = 0
    """How many sessions in a row were lost soon after they were ready."""
    closing_reason: str = ""
    closing_error: ScopedError | None = None
    turn: Turn | None = None
    untranscribed: tuple[Turn, ...] = ()
    """Former turns, committed by what the model heard, whose transcript may still come."""
    onset_refused: bool = False
    """Speech began while the microphone was shut, and has not ended: its onset will not be told again."""
    carried: tuple[Segment, ...] = ()
    """Late segments of a committed turn that could not join it any more: they begin the next one."""
    pending: PendingTurn | None = None
    announcements: tuple[Announcement, ...] = ()
    """Waiting to be said, in the order in which they will be."""
    last_announcement: int = 0
    """The highest number seen."""
    response: Response | None = None
    output: Output | None = None
    stopping: tuple[Output, ...] = ()
    """Stopped streams whose receipt has not come."""
    background: tuple[ToolCall, ...] = ()
    """Open background calls of former responses."""
    last_interruption_at: int | None = None
    timers: tuple[Timer, ...] = ()

    @property
    def reply_is_over(self) -> bool:
        """Nothing of the last reply can be heard any more and its model is not at work."""
        reply = self.response
        if reply is None:
            return True
        if reply.outcome is None:
            return False
        return reply.delivery is not None or reply.output_epoch < self.output_epoch

    def timer(self, kind: TimerKind, key: str = "") -> Timer | None:
        """The running timer of that kind and key."""
        return next((timer for timer in self.timers if timer.kind is kind and timer.key == key), None)


def join_texts(texts: Iterable[str]) -> str:
    """Join recognised pieces: a space between words, none between Chinese or Japanese characters."""
    joined = ""
    for piece in texts:
        text = piece.strip()
        if not text:
            continue
        if joined and not (_is_cjk(joined[-1]) and _is_cjk(text[0])):
            joined += " "
        joined += text
    return joined


def _is_cjk(character: str) -> bool:
    return "\u3000" <= character <= "\u9fff" or "\uff00" <= character <= "\uffef"
