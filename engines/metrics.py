"""Metrics of a turn: when what happened, measured from where it happened.

An observer of the chart's macrosteps. Every time is the local monotonic clock's, every duration is between two of
them; a milestone that did not happen is None, not zero. When the reply of a turn has its delivery record, one
`metrics.turn` event is published. Content never enters it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import ClassVar

from ..statecharts.actions import Publish, RecordDelivery, RecordInterruption, StartGeneration, StoreUserTurn
from ..statecharts.chart import Step
from ..statecharts.context import Context
from ..statecharts.facts import (
    AudioStarted,
    CancelAcknowledged,
    OutputStarted,
    PlaybackDrained,
    PlaybackStopped,
    SegmentFinalized,
    SpeechUnitSynthesized,
    StreamFact,
    TranscriptUpdated,
    TurnEnded,
)
from ..statecharts.published import Payload, PlaybackBegan, PlaybackStarved
from ..statecharts.values import DeliveryStatus

NANOSECONDS_PER_MS = 1_000_000
KEPT_TURNS = 16
"""Turns whose reply has no delivery record yet; more than a few means that something is wrong elsewhere."""


@dataclass(frozen=True, slots=True)
class Milestones:
    """Moments of one turn, in monotonic nanoseconds."""

    last_speech: int | None = None
    """The last sample of speech, as voice activity detection tells it."""
    first_transcript: int | None = None
    final_transcript: int | None = None
    turn_accepted: int | None = None
    model_request: int | None = None
    first_text: int | None = None
    first_pcm: int | None = None
    first_unit: int | None = None
    """The first unit of speech was synthesised whole."""
    first_rendered: int | None = None
    last_rendered: int | None = None
    interruption_accepted: int | None = None
    local_stop: int | None = None
    """The receipt of the speaker."""
    remote_acknowledgement: int | None = None


@dataclass(frozen=True, slots=True)
class TurnMetrics(Payload):
    """What one turn and its reply cost. Times in milliseconds from the end of the user's speech where that is known,
    and otherwise from the acceptance of the turn.
    """

    type: ClassVar[str] = "metrics.turn"
    turn_id: str
    response_id: str
    delivery: DeliveryStatus
    milestones: Milestones
    final_transcript_ms: float | None
    turn_accepted_ms: float | None
    first_text_ms: float | None
    first_pcm_ms: float | None
    first_rendered_ms: float | None
    interruption_stop_ms: float | None
    """From the acceptance of the interruption to the speaker's receipt."""
    interruption_acknowledgement_ms: float | None
    """From the acceptance of the interruption to the acknowledgement of whoever was generating."""
    peak_queue_ms: float
    """Most audio that was accepted and not yet played."""
    underruns: int


@dataclass
class _Turn:
    milestones: Milestones
    turn_id: str = ""
    response_id: str = ""
    stream_id: int | None = None
    sample_rate_hz: int = 0
    peak_queue_ms: float = 0.0
    underruns: int = 0

    def note(self, name: str, at: int, *, again: bool = False) -> None:
        """The first time counts, or the last one with `again`."""
        if again or getattr(self.milestones, name) is None:
            self.milestones = replace(self.milestones, **{name: at})


class MetricsObserver:
    """Attach with `conversation.observe(observer)`; `publish` gets each finished turn."""

    def __init__(self, publish: Callable[[TurnMetrics], None]) -> None:
        self._publish = publish
        self._hearing = _Turn(Milestones())
        self._replies: deque[_Turn] = deque(maxlen=KEPT_TURNS)

    def __call__(self, step: Step[Context]) -> None:
        """One macrostep."""
        if step.taken:
            self._note_fact(step)
        for action in step.actions:
            match action:
                case StoreUserTurn(turn_id=turn_id):
                    self._hearing.turn_id = turn_id
                    self._hearing.note("turn_accepted", step.fact.at, again=True)
                case StartGeneration():
                    self._begin_reply(action, step.fact.at)
                case RecordInterruption(at=at, response_id=response_id):
                    self._note_reply(response_id, "interruption_accepted", at)
                case RecordDelivery():
                    self._finish(action)
                case Publish():
                    self._note_event(action, step.fact.at)
                case _:
                    pass

    # -- taking notes ----------------------------------------------------------------------------------------------

    def _note_fact(self, step: Step[Context]) -> None:
        fact, at = step.fact, step.fact.at
        match fact:
            case TranscriptUpdated():
                self._hearing.note("first_transcript", at)
            case SegmentFinalized():
                self._hearing.note("final_transcript", at, again=True)
            case TurnEnded(speech_ended_at=speech_ended_at) if speech_ended_at is not None:
                self._hearing.note("last_speech", speech_ended_at, again=True)
            case OutputStarted():
                self._note_present(step, "first_text", at)
            case AudioStarted():
                self._note_present(step, "first_pcm", at)
                self._note_stream(step, fact)
            case SpeechUnitSynthesized():
                self._note_present(step, "first_unit", at)
            case CancelAcknowledged():
                self._note_present(step, "remote_acknowledgement", at)
            case StreamFact():
                self._note_receipt(fact)
            case _:
                pass

    def _note_stream(self, step: Step[Context], fact: AudioStarted) -> None:
        turn, output = self._present(step), step.after.context.output
        if turn is not None and output is not None:
            turn.stream_id, turn.sample_rate_hz = output.stream_id, fact.sample_rate_hz

    def _note_receipt(self, fact: StreamFact) -> None:
        turn = next((known for known in self._replies if known.stream_id == fact.stream_id), None)
        if turn is None or not turn.sample_rate_hz:
            return
        if fact.played_samples is not None:
            queued_ms = (fact.accepted_samples - fact.played_samples) * 1_000 / turn.sample_rate_hz
            turn.peak_queue_ms = max(turn.peak_queue_ms, queued_ms)
        if isinstance(fact, PlaybackDrained | PlaybackStopped):
            turn.note("last_rendered", fact.at, again=True)
        if isinstance(fact, PlaybackStopped):
            turn.note("local_stop", fact.at)

    def _note_event(self, event: Publish, at: int) -> None:
        match event.payload:
            case PlaybackBegan():
                self._note_reply(event.response_id or "", "first_rendered", at)
            case PlaybackStarved(underruns):
                turn = next((known for known in self._replies if known.stream_id == event.stream_id), None)
                if turn is not None:
                    turn.underruns = underruns
            case _:
                pass

    def _present(self, step: Step[Context]) -> _Turn | None:
        reply = step.after.context.response
        return None if reply is None else self._reply(reply.response_id)

    def _note_present(self, step: Step[Context], name: str, at: int) -> None:
        turn = self._present(step)
        if turn is not None:
            turn.note(name, at)

    def _reply(self, response_id: str) -> _Turn | None:
        return next((known for known in self._replies if known.response_id == response_id), None)

    def _note_reply(self, response_id: str, name: str, at: int) -> None:
        turn = self._reply(response_id)
        if turn is not None:
            turn.note(name, at)

    # -- turns -----------------------------------------------------------------------------------------------------

    def _begin_reply(self, action: StartGeneration, at: int) -> None:
        if self._reply(action.response_id) is not None:
            return
        heard = self._hearing
        turn = _Turn(heard.milestones, turn_id=action.turn_ids[-1], response_id=action.response_id)
        turn.note("model_request", at)
        self._replies.append(turn)
        self._hearing = _Turn(Milestones())

    def _finish(self, action: RecordDelivery) -> None:
        turn = self._reply(action.response_id)
        if turn is None:
            return
        self._replies.remove(turn)
        moments = turn.milestones
        origin = moments.last_speech if moments.last_speech is not None else moments.turn_accepted
        self._publish(
            TurnMetrics(
                turn.turn_id,
                turn.response_id,
                action.status,
                moments,
                _ms(origin, moments.final_transcript),
                _ms(origin, moments.turn_accepted),
                _ms(origin, moments.first_text),
                _ms(origin, moments.first_pcm),
                _ms(origin, moments.first_rendered),
                _ms(moments.interruption_accepted, moments.local_stop),
                _ms(moments.interruption_accepted, moments.remote_acknowledgement),
                round(turn.peak_queue_ms, 1),
                turn.underruns,
            )
        )


def _ms(start: int | None, end: int | None) -> float | None:
    return None if start is None or end is None else round((end - start) / NANOSECONDS_PER_MS, 3)


@dataclass(frozen=True, slots=True)
class Distribution:
    """Of one duration over many turns, in milliseconds."""

    count: int
    p50_ms: float
    p95_ms: float
    max_ms: float


class MetricsAggregate:
    """The last `window` turns, summed up."""

    DURATIONS: ClassVar[tuple[str, ...]] = tuple(
        field.name for field in fields(TurnMetrics) if field.name.endswith("_ms")
    )

    def __init__(self, window: int = 1_000) -> None:
        self._turns: deque[TurnMetrics] = deque(maxlen=window)

    def add(self, metrics: TurnMetrics) -> None:
        self._turns.append(metrics)

    def __len__(self) -> int:
        return len(self._turns)

    def distributions(self) -> dict[str, Distribution]:
        """By duration name; durations that no turn has are left out."""
        found: dict[str, Distribution] = {}
        for name in self.DURATIONS:
            values = sorted(value for turn in self._turns if (value := getattr(turn, name)) is not None)
            if values:
                found[name] = Distribution(len(values), _quantile(values, 0.5), _quantile(values, 0.95), values[-1])
        return found


def _quantile(ordered: list[float], q: float) -> float:
    """Nearest rank: a value that was measured, never one between two."""
    return ordered[min(len(ordered) - 1, max(0, round(q * len(ordered) + 0.5) - 1))]
