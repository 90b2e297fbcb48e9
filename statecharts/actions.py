"""Actions: what the chart decided, in the imperative. Engines carry them out in the order given.

Every action is a frozen value with the `stamp` of its macrostep. The order of one macrostep is fixed by `PRIORITY`,
whatever order the regions ran in: the speaker falls silent first, the public hears about it last.
"""

from __future__ import annotations

from dataclasses import dataclass

from .context import TimerKind
from .errors import ScopedError
from .published import Payload
from .values import (
    AnnouncementOutcome,
    DeliveryStatus,
    InterruptionSource,
    Outcome,
    PositionSource,
    ToolStatus,
    TurnAuthority,
)


@dataclass(frozen=True, slots=True)
class Stamp:
    """The epochs in force when the macrostep ended."""

    session_epoch: int
    output_epoch: int


@dataclass(frozen=True, slots=True)
class Action:
    """Base of all actions."""

    stamp: Stamp


# -- silence first -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class StopPlayback(Action):
    """Nothing of an epoch before `before_epoch` may be heard from now on. Must not wait for anything."""

    before_epoch: int
    reason: str


@dataclass(frozen=True, slots=True)
class PausePlayback(Action):
    stream_id: int


# -- the rest of the transaction -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class CancelGeneration(Action):
    """Ask the model to end. Neither an acknowledgement nor silence."""

    response_id: str
    attempt_id: str
    reason: str


@dataclass(frozen=True, slots=True)
class CancelSynthesis(Action):
    """End the synthesis of that response from its start, heard or not."""

    response_id: str
    before_epoch: int


@dataclass(frozen=True, slots=True)
class CancelTools(Action):
    """End these foreground calls. Background work goes on."""

    call_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TruncateContext(Action):
    """Cut what the provider believes it said, at what was played (None: unknown, ask for the receipt first)."""

    response_id: str
    played_samples: int | None
    source: PositionSource


# -- timers --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class CancelTimer(Action):
    timer_id: str


@dataclass(frozen=True, slots=True)
class StartTimer(Action):
    """After `delay_ms` report `TimerFired(timer_id)`."""

    timer_id: str
    kind: TimerKind
    delay_ms: int


# -- records -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RecordInterruption(Action):
    source: InterruptionSource
    at: int
    response_id: str


@dataclass(frozen=True, slots=True)
class StoreUserTurn(Action):
    """Durable. The same `turn_id` again replaces its text (the turn was continued)."""

    turn_id: str
    position: int
    text: str
    authority: TurnAuthority
    revision: int


@dataclass(frozen=True, slots=True)
class RecordDelivery(Action):
    """Exactly one a response. `units`: how many whole units of speech the receipts confirm as heard."""

    response_id: str
    position: int
    status: DeliveryStatus
    units: int
    played_samples: int | None
    source: PositionSource
    confidence: float
    at: int


@dataclass(frozen=True, slots=True)
class RecordToolOutcome(Action):
    """Every dispatched or refused call gets exactly one."""

    response_id: str
    call_id: str
    status: ToolStatus


@dataclass(frozen=True, slots=True)
class RecordResponse(Action):
    """The response has ended; its generated text is stored with this status."""

    response_id: str
    run_id: str
    outcome: Outcome
    reason: str


@dataclass(frozen=True, slots=True)
class SettleAnnouncement(Action):
    """What became of an announcement; exactly one each."""

    number: int
    outcome: AnnouncementOutcome
    reason: str


# -- connection ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Connect(Action):
    """Bring every port up and report `ConnectionReady` or `ConnectionFailed`. Restores committed context only."""

    attempt: int


@dataclass(frozen=True, slots=True)
class Disconnect(Action):
    """Let go of the broken live session before the next `Connect`."""

    reason: str


@dataclass(frozen=True, slots=True)
class Release(Action):
    """The conversation is closed: release everything."""

    reason: str
    error: ScopedError | None


# -- input ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class StartRecognition(Action):
    """Recognise the utterance that began at `sample` of the capture track, pre-roll included."""

    turn_id: str
    recognition_id: str
    sample: int | None


@dataclass(frozen=True, slots=True)
class FinishRecognition(Action):
    """The utterance is over: half-close, and report what is final."""

    recognition_id: str


@dataclass(frozen=True, slots=True)
class CancelRecognition(Action):
    recognition_id: str


@dataclass(frozen=True, slots=True)
class TranscribeRecording(Action):
    """Transcribe the bounded recording of a failed recognition as a whole, under a new identity."""

    turn_id: str
    failed_recognition_id: str
    recognition_id: str


# -- reply ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class StartGeneration(Action):
    """Begin an attempt. Everything it produces belongs to `output_epoch`."""

    run_id: str
    response_id: str
    attempt_id: str
    turn_ids: tuple[str, ...]
    output_epoch: int
    position: int
    """Where the reply stands in the history unless its playback moves it."""


@dataclass(frozen=True, slots=True)
class ContinueGeneration(Action):
    """Every call of the step has an outcome: ask the model to go on, in the same response."""

    response_id: str
    attempt_id: str
    output_epoch: int


@dataclass(frozen=True, slots=True)
class ExecuteTool(Action):
    """Dispatch a complete, valid, approved call. Happens once a call."""

    response_id: str
    call_id: str
    background: bool


@dataclass(frozen=True, slots=True)
class OpenOutput(Action):
    """Open the output stream; `held` until `ReleaseOutput`."""

    stream_id: int
    output_epoch: int
    response_id: str
    sample_rate_hz: int
    channels: int
    prebuffer_ms: int
    held: bool


@dataclass(frozen=True, slots=True)
class ReleaseOutput(Action):
    stream_id: int


@dataclass(frozen=True, slots=True)
class ResumePlayback(Action):
    stream_id: int


@dataclass(frozen=True, slots=True)
class FinishOutput(Action):
    """The end barrier: the stream ends at `end_sample` and must not overtake data."""

    stream_id: int
    end_sample: int


@dataclass(frozen=True, slots=True)
class StartAnnouncement(Action):
    """Say `text` as it is. What it produces belongs to `output_epoch`."""

    number: int
    run_id: str
    response_id: str
    text: str
    output_epoch: int
    position: int
    recorded: bool
    """False: it enters neither history nor any model's context."""


# -- the public ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Publish(Action):
    """A public event with the identities that its kind requires."""

    payload: Payload
    turn_id: str | None = None
    run_id: str | None = None
    response_id: str | None = None
    attempt_id: str | None = None
    stream_id: int | None = None
    call_id: str | None = None


ORDER: tuple[type[Action], ...] = (
    StopPlayback,
    PausePlayback,
    CancelGeneration,
    CancelSynthesis,
    CancelTools,
    TruncateContext,
    CancelTimer,
    StartTimer,
    RecordInterruption,
    RecordToolOutcome,
    RecordResponse,
    RecordDelivery,
    SettleAnnouncement,
    StoreUserTurn,
    Disconnect,
    Connect,
    CancelRecognition,
    TranscribeRecording,
    StartRecognition,
    # Behind them: a recording that is transcribed after the end of its turn is finished in the same macrostep.
    FinishRecognition,
    OpenOutput,
    ReleaseOutput,
    ResumePlayback,
    FinishOutput,
    ExecuteTool,
    ContinueGeneration,
    StartGeneration,
    StartAnnouncement,
    Publish,
    Release,
)

PRIORITY: dict[type[Action], int] = {kind: place for place, kind in enumerate(ORDER)}
"""Place of each kind in the order of one macrostep."""
