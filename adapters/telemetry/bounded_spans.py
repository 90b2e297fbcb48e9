"""The SDK's batch processor with a bound that is told: what finds no room, or no collector, is counted."""

from __future__ import annotations

from collections.abc import Sequence
from threading import Lock
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor
    from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

MAX_WAITING = 2_048
"""Spans; a turn has five at most."""
BATCH = 256
DELAY_MS = 2_000


class BoundedSpans:
    """Spans wait here, at most `max_waiting`; a thread of the SDK's exports them, and nobody waits for it."""

    def __init__(self, exporter: SpanExporter, *, max_waiting: int = MAX_WAITING, delay_ms: float = DELAY_MS) -> None:
        self._max_waiting = max_waiting
        self._lock = Lock()
        self._waiting = 0
        self._dropped = 0
        self._refused = 0
        self.processor: SpanProcessor = _processor(self, exporter, max_waiting, delay_ms)
        """For a tracer provider."""

    @property
    def waiting(self) -> int:
        """Spans that no export has taken yet."""
        return self._waiting

    @property
    def dropped(self) -> int:
        """Spans that found no room."""
        return self._dropped

    @property
    def refused(self) -> int:
        """Spans that were handed over and not accepted."""
        return self._refused

    def admit(self) -> bool:
        """Whether there is room for one more; it is dropped and counted where there is none."""
        with self._lock:
            if self._waiting >= self._max_waiting:
                self._dropped += 1
                return False
            self._waiting += 1
            return True

    def note_taken(self, count: int) -> None:
        """So many wait no longer."""
        with self._lock:
            self._waiting -= count

    def note_refused(self, count: int) -> None:
        """So many are lost."""
        with self._lock:
            self._refused += count


def _processor(bound: BoundedSpans, exporter: SpanExporter, max_waiting: int, delay_ms: float) -> SpanProcessor:
    # Here, because the SDK's classes are there only with the extra.
    from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult

    class Counted(SpanExporter):
        def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
            bound.note_taken(len(spans))
            result = SpanExportResult.FAILURE
            try:
                result = exporter.export(spans)
            finally:
                if result is not SpanExportResult.SUCCESS:
                    bound.note_refused(len(spans))
            return result

        def shutdown(self) -> None:
            exporter.shutdown()

        def force_flush(self, timeout_millis: int = 30_000) -> bool:
            return exporter.force_flush(timeout_millis)

    class Bounded(BatchSpanProcessor):
        def on_end(self, span: ReadableSpan) -> None:
            if bound.admit():
                super().on_end(span)

    # The SDK's queue never holds more than are waiting here, so that it never drops one by itself.
    return Bounded(
        Counted(),
        max_queue_size=max_waiting,
        schedule_delay_millis=delay_ms,
        max_export_batch_size=min(BATCH, max_waiting),
    )
