"""Telemetry for one session: providers, exporters, and the task that reads the public events."""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread

from ... import __version__
from ...engines import Session
from ...engines.public_events import ObserverLagged
from ...engines.reports import PortError
from ...statecharts.errors import ErrorScope, ScopedError
from .turns import TurnTelemetry

if TYPE_CHECKING:
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.metrics.export import MetricExporter
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SpanExporter

    from .bounded_spans import BoundedSpans

logger = logging.getLogger(__name__)

EXPORT_TIMEOUT_S = 3.0
"""For one export; nobody waits for it but the thread that exports."""
METRICS_EVERY_S = 15.0
SHUTDOWN_S = 5.0
"""How long the end may wait for what is still to be exported."""
MAX_EVENTS = 4_096
"""Public events that may wait to be read."""


@dataclass
class Telemetry:
    """Open for the time of one session. `follow` it, then `aclose`."""

    tracer_provider: TracerProvider
    meter_provider: MeterProvider
    spans: BoundedSpans
    content: bool = False
    missed: int = 0
    """How often public events were lost, because this process had no time to read them."""

    async def follow(self, session: Session) -> None:
        """Read the session's public events to their end."""
        turns = TurnTelemetry(
            self.tracer_provider,
            self.meter_provider,
            wall_offset_ns=lambda: time.time_ns() - session.clock.now_ns(),
            content=self.content,
        )
        lagged = True
        while lagged:
            lagged = False
            try:
                with session.public.subscribe(MAX_EVENTS) as subscription:
                    async for event in subscription.events():
                        turns.take(event)
            except ObserverLagged:
                lagged, self.missed = True, self.missed + 1

    async def aclose(self) -> None:
        """Export what waits, within `SHUTDOWN_S`, and say what was lost."""
        with anyio.CancelScope(shield=True):
            with anyio.move_on_after(SHUTDOWN_S) as bounded:
                await anyio.to_thread.run_sync(self._shut_down, abandon_on_cancel=True)
            if bounded.cancelled_caught:
                logger.warning("telemetry was not exported within %g s; the rest of it is lost", SHUTDOWN_S)
        if self.spans.dropped or self.spans.refused or self.missed:
            logger.warning(
                "telemetry lost %d spans that found no room, %d that the collector did not take, and events %d times",
                self.spans.dropped,
                self.spans.refused,
                self.missed,
            )

    def _shut_down(self) -> None:
        self.tracer_provider.shutdown()
        self.meter_provider.shutdown(SHUTDOWN_S * 1_000)


def open_telemetry(
    endpoint: str | None = None,
    *,
    content: bool = False,
    span_exporter: SpanExporter | None = None,
    metric_exporter: MetricExporter | None = None,
) -> Telemetry:
    """Export to `endpoint`, the base of an OTLP/HTTP collector such as "http://127.0.0.1:4318".

    Without one the standard variables decide (OTEL_EXPORTER_OTLP_ENDPOINT and its like), and else a collector on this
    machine. Secret headers stand in OTEL_EXPORTER_OTLP_HEADERS, names of the service in OTEL_RESOURCE_ATTRIBUTES.
    Other exporters may be given. Nothing is connected yet. Raises `PortError` when the extra is not installed.
    """
    try:
        from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.metrics import CallbackOptions, Observation
        from opentelemetry.sdk.metrics import MeterProvider
        from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
        from opentelemetry.sdk.resources import OTELResourceDetector, Resource
        from opentelemetry.sdk.trace import TracerProvider

        from .bounded_spans import BoundedSpans
    except ImportError as missing:
        message = f"cannot import {missing.name}; install it with: pip install 'voicechart[telemetry]'"
        raise PortError(ScopedError("missing_package", "telemetry", ErrorScope.SESSION, message)) from missing

    base = None if endpoint is None else endpoint.rstrip("/")
    spans = BoundedSpans(span_exporter or OTLPSpanExporter(base and f"{base}/v1/traces", timeout=EXPORT_TIMEOUT_S))
    reader = PeriodicExportingMetricReader(
        metric_exporter or OTLPMetricExporter(base and f"{base}/v1/metrics", timeout=EXPORT_TIMEOUT_S),
        export_interval_millis=METRICS_EVERY_S * 1_000,
    )
    named = Resource.create({"service.name": "voicechart", "service.version": __version__})
    # What the operator's environment says of the service goes before what we say.
    resource = named.merge(OTELResourceDetector().detect())
    tracer_provider = TracerProvider(resource=resource, shutdown_on_exit=False)
    tracer_provider.add_span_processor(spans.processor)
    meter_provider = MeterProvider([reader], resource=resource, shutdown_on_exit=False)

    def lost(_: CallbackOptions) -> list[Observation]:
        return [
            Observation(spans.dropped, {"voicechart.reason": "no_room"}),
            Observation(spans.refused, {"voicechart.reason": "not_accepted"}),
        ]

    meter_provider.get_meter("voicechart").create_observable_counter(
        "voicechart.telemetry.lost_spans", [lost], "{span}", "Spans that never reached the collector."
    )
    return Telemetry(tracer_provider, meter_provider, spans, content)
