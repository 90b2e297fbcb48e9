"""What one turn and its reply cost, and many of them summed up.

Moments are the local monotonic clock's, in nanoseconds; every duration is between two of them, in milliseconds. What
did not happen is None, not zero. No words of anybody are in it.
"""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import dataclass, fields
from math import ceil
from typing import ClassVar

from ..statecharts.published import Payload
from ..statecharts.values import DeliveryStatus, Outcome

NANOSECONDS_PER_MS = 1_000_000


@dataclass(frozen=True, slots=True)
class Milestones:
    """Moments of one turn, in the order in which they usually come."""

    speech_started: int | None = None
    """Speech was detected; for typed text None, as everything up to `final_transcript`."""
    first_transcript: int | None = None
    last_speech: int | None = None
    """The last sample of speech, as voice activity detection tells it."""
    final_transcript: int | None = None
    """The last segment that was frozen."""
    turn_accepted: int | None = None
    model_request: int | None = None
    first_text: int | None = None
    first_unit: int | None = None
    """The first unit of speech was handed to the synthesiser."""
    first_pcm: int | None = None
    generation_ended: int | None = None
    """By itself, by a cancel, or by a failure."""
    last_pcm: int | None = None
    """Everything that is to be heard exists."""
    first_rendered: int | None = None
    """The speaker's receipt of the first sample that was heard."""
    last_rendered: int | None = None
    """The speaker's receipt of the last one."""
    interruption_accepted: int | None = None
    local_stop: int | None = None
    """The speaker's receipt that nothing more is heard."""
    remote_acknowledgement: int | None = None
    """Whoever was generating confirms that it stopped."""


@dataclass(frozen=True, slots=True)
class TurnMetrics(Payload):
    """One finished turn. Durations count from the end of the user's speech where that is known, and otherwise from the
    acceptance of the turn, unless they say something else.
    """

    type: ClassVar[str] = "metrics.turn"
    turn_id: str
    response_id: str
    outcome: Outcome
    """What became of the model's side."""
    delivery: DeliveryStatus
    units: int
    """Whole units of speech that were heard."""
    milestones: Milestones
    first_transcript_ms: float | None
    """From the first detected speech."""
    final_transcript_ms: float | None
    turn_accepted_ms: float | None
    model_request_ms: float | None
    first_text_ms: float | None
    first_unit_ms: float | None
    first_pcm_ms: float | None
    first_rendered_ms: float | None
    """The silence that the user hears."""
    generation_ms: float | None
    """From the request to its end."""
    playback_ms: float | None
    """From the first rendered sample to the last one."""
    interruption_stop_ms: float | None
    """From the acceptance of the interruption to the speaker's receipt."""
    interruption_acknowledgement_ms: float | None
    """From the acceptance of the interruption to the acknowledgement of whoever was generating."""
    peak_queue_ms: float | None
    """Most audio that was accepted and not yet played, as the receipts tell; None when no receipt did."""
    underruns: int
    stale_frames: int
    """Frames of this reply that came too late to be heard and were stopped at the gate."""

    @property
    def interrupted(self) -> bool:
        """An interruption of it was accepted."""
        return self.milestones.interruption_accepted is not None


def turn_metrics(
    turn_id: str,
    response_id: str,
    outcome: Outcome,
    delivery: DeliveryStatus,
    moments: Milestones,
    *,
    units: int = 0,
    peak_queue_ms: float | None = None,
    underruns: int = 0,
    stale_frames: int = 0,
) -> TurnMetrics:
    """The durations between a turn's moments."""
    origin = moments.last_speech if moments.last_speech is not None else moments.turn_accepted
    return TurnMetrics(
        turn_id,
        response_id,
        outcome,
        delivery,
        units,
        moments,
        first_transcript_ms=_ms(moments.speech_started, moments.first_transcript),
        final_transcript_ms=_ms(origin, moments.final_transcript),
        turn_accepted_ms=_ms(origin, moments.turn_accepted),
        model_request_ms=_ms(origin, moments.model_request),
        first_text_ms=_ms(origin, moments.first_text),
        first_unit_ms=_ms(origin, moments.first_unit),
        first_pcm_ms=_ms(origin, moments.first_pcm),
        first_rendered_ms=_ms(origin, moments.first_rendered),
        generation_ms=_ms(moments.model_request, moments.generation_ended),
        playback_ms=_ms(moments.first_rendered, moments.last_rendered),
        interruption_stop_ms=_ms(moments.interruption_accepted, moments.local_stop),
        interruption_acknowledgement_ms=_ms(moments.interruption_accepted, moments.remote_acknowledgement),
        peak_queue_ms=None if peak_queue_ms is None else round(peak_queue_ms, 1),
        underruns=underruns,
        stale_frames=stale_frames,
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


@dataclass(frozen=True, slots=True)
class Totals:
    """Counts since the beginning."""

    turns: int
    interruptions: int
    underruns: int
    stale_frames: int
    deliveries: dict[str, int]
    """Turns by the delivery of their reply; kinds that did not occur are left out."""


class MetricsAggregate:
    """Distributions over the last `window` turns, and totals over all."""

    DURATIONS: ClassVar[tuple[str, ...]] = tuple(
        field.name for field in fields(TurnMetrics) if field.name.endswith("_ms")
    )

    def __init__(self, window: int = 1_000) -> None:
        self._turns: deque[TurnMetrics] = deque(maxlen=window)
        self._counts: Counter[str] = Counter()
        self._deliveries: Counter[str] = Counter()

    def add(self, metrics: TurnMetrics) -> None:
        """One more turn."""
        self._turns.append(metrics)
        self._counts["turns"] += 1
        self._counts["interruptions"] += metrics.interrupted
        self._counts["underruns"] += metrics.underruns
        self._counts["stale_frames"] += metrics.stale_frames
        self._deliveries[metrics.delivery.value] += 1

    def __len__(self) -> int:
        """Turns that the distributions are made of."""
        return len(self._turns)

    def distributions(self) -> dict[str, Distribution]:
        """By the name of the duration; durations that no turn has are left out."""
        found: dict[str, Distribution] = {}
        for name in self.DURATIONS:
            values = sorted(value for turn in self._turns if (value := getattr(turn, name)) is not None)
            if values:
                found[name] = Distribution(len(values), quantile(values, 0.5), quantile(values, 0.95), values[-1])
        return found

    @property
    def totals(self) -> Totals:
        counts = self._counts
        return Totals(
            counts["turns"],
            counts["interruptions"],
            counts["underruns"],
            counts["stale_frames"],
            dict(sorted(self._deliveries.items())),
        )


def quantile(ordered: list[float], q: float) -> float:
    """Nearest rank: the smallest value that at least the share `q` does not exceed. Measured, never between two.

    `ordered` ascends and is not empty; 0 < q <= 1.
    """
    # Without the margin 0.95 * 20 is a hair more than 19, and its ceiling one rank too far.
    return ordered[max(1, ceil(q * len(ordered) - 1e-9)) - 1]
