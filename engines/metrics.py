"""Metrics: when what happened in a turn, measured from where it happened.

An observer of the chart's macrosteps. A moment belongs to the turn, the attempt or the output that its fact names, so
that nothing of a reply is ever counted for the next one. A reply is finished when the model's side has its outcome and
the speaker's side its delivery record, in either order: an interruption is acknowledged by the one and confirmed by the
other.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field, replace

from ..statecharts.actions import (
    ContinueGeneration,
    OpenOutput,
    Publish,
    RecordDelivery,
    RecordInterruption,
    RecordResponse,
    StartGeneration,
    StoreUserTurn,
)
from ..statecharts.chart import Step
from ..statecharts.context import Context
from ..statecharts.facts import (
    AttemptFact,
    AudioEnded,
    AudioStarted,
    CancelAcknowledged,
    OutputFact,
    OutputStarted,
    PlaybackDrained,
    PlaybackStopped,
    SegmentFinalized,
    SpeechStarted,
    StreamFact,
    TranscriptUpdated,
    TurnEnded,
)
from ..statecharts.published import PlaybackBegan, PlaybackStarved
from ..statecharts.values import DeliveryStatus, Outcome
from .turn_metrics import Milestones, TurnMetrics, turn_metrics

KEPT = 16
"""Turns without a reply, and replies without an end. Older ones are forgotten: a turn that was discarded has no end."""


@dataclass
class _Turn:
    """What was heard."""

    turn_id: str
    moments: dict[str, int] = field(default_factory=dict[str, int])


@dataclass
class _Reply:
    """What was said."""

    turn_id: str
    response_id: str
    output_epoch: int
    moments: dict[str, int]
    attempts: set[str] = field(default_factory=set[str])
    stream_id: int | None = None
    sample_rate_hz: int = 0
    peak_queue_ms: float | None = None
    underruns: int = 0
    stale_frames: int = 0
    outcome: Outcome | None = None
    delivery: DeliveryStatus | None = None
    units: int = 0


class MetricsObserver:
    """Attach with `conversation.observe(observer)`; `take` gives the turns that have finished since."""

    def __init__(self) -> None:
        self._turns: deque[_Turn] = deque(maxlen=KEPT)
        self._replies: deque[_Reply] = deque(maxlen=KEPT)
        self._finished: list[TurnMetrics] = []

    def __call__(self, step: Step[Context]) -> None:
        """One macrostep."""
        if step.taken:
            self._note_fact(step)
        for action in step.actions:
            match action:
                case StoreUserTurn(turn_id=turn_id):
                    _note_last(self._turn(turn_id), "turn_accepted", step.fact.at)
                case StartGeneration():
                    self._begin(action, step.fact.at)
                case ContinueGeneration(response_id=response_id, attempt_id=attempt_id):
                    for reply in self._of(response_id):
                        reply.attempts.add(attempt_id)
                case OpenOutput(response_id=response_id):
                    for reply in self._of(response_id):
                        reply.stream_id, reply.sample_rate_hz = action.stream_id, action.sample_rate_hz
                case RecordInterruption(at=at, response_id=response_id):
                    for reply in self._of(response_id):
                        _note_first(reply, "interruption_accepted", at)
                case RecordResponse(response_id=response_id, outcome=outcome):
                    for reply in self._of(response_id):
                        reply.outcome = outcome
                        _note_first(reply, "generation_ended", step.fact.at)
                        self._finish_if_over(reply)
                case RecordDelivery(response_id=response_id, status=status, units=units):
                    for reply in self._of(response_id):
                        reply.delivery, reply.units = status, units
                        self._finish_if_over(reply)
                case Publish():
                    self._note_event(action, step.fact.at)
                case _:
                    pass

    def note_unit(self, response_id: str, at: int) -> None:
        """A unit of speech was handed to the synthesiser."""
        for reply in self._of(response_id):
            _note_first(reply, "first_unit", at)

    def note_stale(self, output_epoch: int) -> None:
        """A frame of a dead epoch was dropped."""
        for reply in self._in_epoch(output_epoch):
            reply.stale_frames += 1

    def take(self) -> tuple[TurnMetrics, ...]:
        """What has finished since the last call."""
        if not self._finished:
            return ()
        finished, self._finished = tuple(self._finished), []
        return finished

    # -- facts -----------------------------------------------------------------------------------------------------

    def _note_fact(self, step: Step[Context]) -> None:
        match step.fact:
            case SpeechStarted(at=at):
                self._note_heard(step, "speech_started", at)
            case TranscriptUpdated(at=at):
                self._note_heard(step, "first_transcript", at)
            case SegmentFinalized(at=at):
                # A recogniser without hypotheses gives its first transcript as its last.
                self._note_heard(step, "first_transcript", at)
                self._note_heard(step, "final_transcript", at, last=True)
            case TurnEnded(speech_ended_at=speech_ended_at) if speech_ended_at is not None:
                self._note_heard(step, "last_speech", speech_ended_at, last=True)
            case AttemptFact() as fact:
                self._note_attempt(fact)
            case OutputFact() as fact:
                self._note_output(fact)
            case _:
                pass

    def _note_heard(self, step: Step[Context], name: str, at: int, *, last: bool = False) -> None:
        turn = step.after.context.turn
        if turn is not None:
            (_note_last if last else _note_first)(self._turn(turn.turn_id), name, at)

    def _note_attempt(self, fact: AttemptFact) -> None:
        name = _ATTEMPT_MOMENTS.get(type(fact))
        if name is None:
            return
        for reply in self._replies:
            if fact.attempt_id in reply.attempts:
                _note_first(reply, name, fact.at)

    def _note_output(self, fact: OutputFact) -> None:
        if isinstance(fact, StreamFact):
            for reply in self._replies:
                if reply.stream_id == fact.stream_id:
                    _note_receipt(reply, fact)
        name = _OUTPUT_MOMENTS.get(type(fact))
        if name is not None:
            for reply in self._in_epoch(fact.output_epoch):
                _note_first(reply, name, fact.at)

    def _note_event(self, event: Publish, at: int) -> None:
        match event.payload:
            case PlaybackBegan():
                for reply in self._of(event.response_id):
                    _note_first(reply, "first_rendered", at)
            case PlaybackStarved(underruns):
                for reply in self._replies:
                    if reply.stream_id == event.stream_id:
                        reply.underruns = underruns
            case _:
                pass

    # -- turns and replies -----------------------------------------------------------------------------------------

    def _turn(self, turn_id: str) -> _Turn:
        known = next((turn for turn in self._turns if turn.turn_id == turn_id), None)
        if known is None:
            known = _Turn(turn_id)
            self._turns.append(known)
        return known

    def _of(self, response_id: str | None) -> tuple[_Reply, ...]:
        """The reply with this identity, if it is known."""
        return tuple(reply for reply in self._replies if reply.response_id == response_id)

    def _in_epoch(self, output_epoch: int) -> tuple[_Reply, ...]:
        """The newest reply of that epoch: one that was heard whole leaves it to the next one."""
        return tuple(reply for reply in self._replies if reply.output_epoch == output_epoch)[-1:]

    def _begin(self, action: StartGeneration, at: int) -> None:
        """The first attempt begins a reply, a further one belongs to it. Its turn's moments are those so far."""
        known = self._of(action.response_id)
        if not known:
            turn = self._turn(action.turn_ids[-1])
            known = (_Reply(turn.turn_id, action.response_id, action.output_epoch, dict(turn.moments)),)
            self._replies.extend(known)
        for reply in known:
            reply.attempts.add(action.attempt_id)
            _note_first(reply, "model_request", at)

    def _finish_if_over(self, reply: _Reply) -> None:
        if reply.outcome is None or reply.delivery is None:
            return
        self._replies.remove(reply)
        self._finished.append(
            turn_metrics(
                reply.turn_id,
                reply.response_id,
                reply.outcome,
                reply.delivery,
                replace(Milestones(), **reply.moments),
                units=reply.units,
                peak_queue_ms=reply.peak_queue_ms,
                underruns=reply.underruns,
                stale_frames=reply.stale_frames,
            )
        )


_OUTPUT_MOMENTS: dict[type[OutputFact], str] = {AudioStarted: "first_pcm", AudioEnded: "last_pcm"}
_ATTEMPT_MOMENTS: dict[type[AttemptFact], str] = {
    OutputStarted: "first_text",
    CancelAcknowledged: "remote_acknowledgement",
}


def _note_first(of: _Turn | _Reply, name: str, at: int) -> None:
    of.moments.setdefault(name, at)


def _note_last(of: _Turn | _Reply, name: str, at: int) -> None:
    of.moments[name] = at


def _note_receipt(reply: _Reply, receipt: StreamFact) -> None:
    if receipt.played_samples is not None:
        queued_ms = (receipt.accepted_samples - receipt.played_samples) * 1_000 / reply.sample_rate_hz
        reply.peak_queue_ms = max(reply.peak_queue_ms or 0.0, queued_ms)
    if isinstance(receipt, PlaybackDrained | PlaybackStopped):
        _note_last(reply, "last_rendered", receipt.at)
    if isinstance(receipt, PlaybackStopped):
        _note_first(reply, "local_stop", receipt.at)
