"""What a trace says happened: turns, replies, streams, stops, from its facts and actions alone."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from ...statecharts.actions import (
    Action,
    OpenOutput,
    Publish,
    RecordDelivery,
    RecordInterruption,
    RecordResponse,
    Release,
    StartGeneration,
    StopPlayback,
    StoreUserTurn,
)
from ...statecharts.errors import ScopedError
from ...statecharts.facts import Fact, PlaybackStopped, SpeechUnitSynthesized, StreamFact
from ...statecharts.published import StreamError, TurnDiscarded, TurnDropped
from ...statecharts.traces import Trace
from ...statecharts.values import InterruptionSource, Outcome, TurnAuthority


@dataclass(frozen=True, slots=True)
class TurnTold:
    """A committed turn, as last stored."""

    turn_id: str
    text: str
    authority: TurnAuthority
    revision: int
    position: int
    """Where it stands in the history."""


@dataclass(slots=True)
class ResponseTold:
    """A response of the model."""

    response_id: str
    turn_ids: tuple[str, ...]
    ended_at: int | None = None
    """When the model's side ended, monotonic nanoseconds."""
    outcome: Outcome | None = None
    deliveries: list[RecordDelivery] = field(default_factory=list[RecordDelivery])


@dataclass(slots=True)
class StreamTold:
    """An output stream."""

    stream_id: int
    output_epoch: int
    response_id: str
    sample_rate_hz: int
    stopped_at: int | None = None
    """When the receipt of its stop was handled, monotonic nanoseconds."""
    stopped_position: int | None = None
    """The receipt's played samples."""
    peak_queued_samples: int = 0


@dataclass(frozen=True, slots=True)
class InterruptionTold:
    """An accepted interruption."""

    at: int
    """Monotonic nanoseconds."""
    source: InterruptionSource
    response_id: str


@dataclass(slots=True)
class Account:
    """Everything the summary asks a trace."""

    turns: dict[str, TurnTold] = field(default_factory=dict[str, TurnTold])
    responses: dict[str, ResponseTold] = field(default_factory=dict[str, ResponseTold])
    streams: dict[int, StreamTold] = field(default_factory=dict[int, StreamTold])
    interruptions: list[InterruptionTold] = field(default_factory=list[InterruptionTold])
    epoch_moves: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])
    """(when, the epoch from then on)."""
    units: Counter[tuple[str, int]] = field(default_factory=Counter[tuple[str, int]])
    """How often each (response, unit index) was said to be synthesised."""
    dropped_turns: list[str] = field(default_factory=list[str])
    discarded_turns: int = 0
    errors: list[ScopedError] = field(default_factory=list[ScopedError])
    closed: Release | None = None

    def epoch_left_at(self, output_epoch: int) -> int | None:
        """When that epoch was invalidated; None while it is in force."""
        return next((at for at, epoch in self.epoch_moves if epoch > output_epoch), None)


def read_account(trace: Trace) -> Account:
    """Go through a trace once. Raises `TraceError` for what this version does not know."""
    account = Account()
    for record in trace.records:
        _note_fact(account, record.typed_fact())
        for action in record.typed_actions():
            _note_action(account, action, record.at)
    return account


def _note_fact(account: Account, fact: Fact) -> None:
    if isinstance(fact, SpeechUnitSynthesized):
        # Of an epoch, which several replies may share: it can only be the latest one's.
        latest = next(reversed(account.responses), "")
        account.units[latest, fact.unit_index] += 1
    if isinstance(fact, StreamFact) and (stream := account.streams.get(fact.stream_id)) is not None:
        queued = fact.accepted_samples - (fact.played_samples or 0)
        stream.peak_queued_samples = max(stream.peak_queued_samples, queued)
        if isinstance(fact, PlaybackStopped):
            stream.stopped_at, stream.stopped_position = fact.at, fact.played_samples


def _note_action(account: Account, action: Action, at: int) -> None:
    match action:
        case StoreUserTurn():
            account.turns[action.turn_id] = TurnTold(
                action.turn_id, action.text, action.authority, action.revision, action.position
            )
        case StartGeneration():
            account.responses.setdefault(action.response_id, ResponseTold(action.response_id, action.turn_ids))
        case OpenOutput():
            account.streams[action.stream_id] = StreamTold(
                action.stream_id, action.output_epoch, action.response_id, action.sample_rate_hz
            )
        case RecordResponse():
            response = account.responses[action.response_id]
            response.ended_at, response.outcome = at, action.outcome
        case RecordDelivery():
            account.responses[action.response_id].deliveries.append(action)
        case RecordInterruption():
            account.interruptions.append(InterruptionTold(action.at, action.source, action.response_id))
        case StopPlayback():
            account.epoch_moves.append((at, action.before_epoch))
        case Release():
            account.closed = action
        case Publish():
            _note_published(account, action)
        case _:
            pass


def _note_published(account: Account, action: Publish) -> None:
    match action.payload:
        case StreamError(error=error):
            account.errors.append(error)
        case TurnDropped():
            account.dropped_turns.append(action.turn_id or "")
        case TurnDiscarded():
            account.discarded_turns += 1
        case _:
            pass
