"""From public events to spans and instruments. Works on any providers; an embedder may pass its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ...engines.public_events import PublicEvent
from ...engines.turn_metrics import MetricsAggregate, TurnMetrics
from ...statecharts.values import DeliveryStatus, Outcome
from .phases import moments_of, phases_of, turn_of
from .texts import TurnTexts

if TYPE_CHECKING:
    from opentelemetry.metrics import MeterProvider
    from opentelemetry.trace import TracerProvider

SCOPE = "voicechart"
BOUNDARIES_S = (0.005, 0.01, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 5.0, 10.0, 30.0)
"""From the stop of a speaker to a long story."""
DURATIONS = tuple(name for name in MetricsAggregate.DURATIONS if name != "peak_queue_ms")


class TurnTelemetry:
    """One span a turn with an event a milestone and a child a phase; histograms of the durations, and counters."""

    def __init__(
        self,
        tracer_provider: TracerProvider,
        meter_provider: MeterProvider,
        *,
        wall_offset_ns: Callable[[], int],
        content: bool = False,
    ) -> None:
        """`wall_offset_ns`: what to add to the session's monotonic clock to get the wall clock's nanoseconds."""
        self._tracer = tracer_provider.get_tracer(SCOPE)
        self._wall_offset_ns = wall_offset_ns
        self._texts = TurnTexts() if content else None
        meter = meter_provider.get_meter(SCOPE)
        self._durations = {
            name: meter.create_histogram(
                f"voicechart.turn.{name.removesuffix('_ms')}", "s", explicit_bucket_boundaries_advisory=BOUNDARIES_S
            )
            for name in DURATIONS
        }
        self._queue = meter.create_histogram(
            "voicechart.playback.queue.peak",
            "s",
            "Most audio that was accepted and not yet played, a turn.",
            explicit_bucket_boundaries_advisory=BOUNDARIES_S,
        )
        self._turns = meter.create_counter("voicechart.turns", "{turn}", "Turns by what became of their reply.")
        self._interruptions = meter.create_counter("voicechart.interruptions", "{interruption}")
        self._underruns = meter.create_counter("voicechart.playback.underruns", "{underrun}")
        self._stale = meter.create_counter("voicechart.playback.stale_frames", "{frame}")

    def take(self, event: PublicEvent) -> None:
        """One public event. Returns at once: whoever exports does so in a thread of its own."""
        if self._texts is not None:
            self._texts.take(event)
        if isinstance(event.payload, TurnMetrics):
            self._count(event.payload)
            self._trace(event.payload, event.conversation_id)

    def _count(self, turn: TurnMetrics) -> None:
        kinds = {"voicechart.delivery": turn.delivery.value, "voicechart.outcome": turn.outcome.value}
        self._turns.add(1, kinds)
        for name, histogram in self._durations.items():
            value_ms: float | None = getattr(turn, name)
            if value_ms is not None:
                # What is known before the speech has ended is there without a wait.
                histogram.record(max(0.0, value_ms / 1_000), kinds)
        if turn.peak_queue_ms is not None:
            self._queue.record(turn.peak_queue_ms / 1_000)
        for counter, count in (
            (self._interruptions, int(turn.interrupted)),
            (self._underruns, turn.underruns),
            (self._stale, turn.stale_frames),
        ):
            if count:
                counter.add(count)

    def _trace(self, turn: TurnMetrics, conversation_id: str) -> None:
        from opentelemetry.context import Context
        from opentelemetry.trace import Status, StatusCode, set_span_in_context

        whole = turn_of(turn.milestones)
        if whole is None:
            return
        offset = self._wall_offset_ns()
        attributes: dict[str, str | int | float | bool] = {
            "voicechart.conversation_id": conversation_id,
            "voicechart.turn_id": turn.turn_id,
            "voicechart.response_id": turn.response_id,
            "voicechart.outcome": turn.outcome.value,
            "voicechart.delivery": turn.delivery.value,
            "voicechart.units_heard": turn.units,
            "voicechart.interrupted": turn.interrupted,
            "voicechart.underruns": turn.underruns,
            "voicechart.stale_frames": turn.stale_frames,
        }
        for name in MetricsAggregate.DURATIONS:
            value_ms: float | None = getattr(turn, name)
            if value_ms is not None:
                attributes[f"voicechart.{name}"] = value_ms
        if self._texts is not None:
            attributes.update(self._texts.attributes_of(turn))
        # A root of its own, whatever span happens to be current where the event is read.
        span = self._tracer.start_span(
            "voicechart.turn", context=Context(), attributes=attributes, start_time=whole.start + offset
        )
        for name, at in moments_of(turn.milestones).items():
            span.add_event(name, timestamp=at + offset)
        if turn.outcome is Outcome.FAILED or turn.delivery is DeliveryStatus.FAILED:
            span.set_status(Status(StatusCode.ERROR))
        below = set_span_in_context(span, Context())
        for phase in phases_of(turn.milestones):
            child = self._tracer.start_span(f"voicechart.{phase.name}", context=below, start_time=phase.start + offset)
            child.end(phase.end + offset)
        span.end(whole.end + offset)
