"""The SDK's batch processor with a bound that is told: what finds no room, or no collector, is counted."""

from __future__ import annotations

from collections.abc import Sequence
from threading import Lock

from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult

MAX_WAITING = 2_048
"""Spans; a turn has five at most."""
BATCH = 256
DELAY_MS = 2_000


class BoundedSpans(SpanProcessor):
    """Spans wait here, at most `max_waiting`; a thread of the SDK's exports them. `on_end` never waits for it."""

    def __init__(self, exporter: SpanExporter, *, max_waiting: int = MAX_WAITING, delay_ms: float = DELAY_MS) -> None:
        self._max_waiting = max_waiting
        self._lock = Lock()
        self._waiting = 0
        self._dropped = 0
        self._refused = 0
        # The SDK's queue never holds more than are waiting here, so that it never drops one by itself.
        self._batches = BatchSpanProcessor(
            _Counted(exporter, self),
            max_queue_size=max_waiting,
            schedule_delay_millis=delay_ms,
            max_export_batch_size=min(BATCH, max_waiting),
        )

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

    def on_end(self, span: ReadableSpan) -> None:
        """Keep it, or drop and count it."""
        with self._lock:
            if self._waiting >= self._max_waiting:
                self._dropped += 1
                return
            self._waiting += 1
        self._batches.on_end(span)

    def shutdown(self) -> None:
        """Export what waits, bounded by the exporter's own deadline. Blocks."""
        self._batches.shutdown()

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """Export what waits. Blocks."""
        return self._batches.force_flush(timeout_millis)

    def note_taken(self, count: int) -> None:
        """For the exporter: so many wait no longer."""
        with self._lock:
            self._waiting -= count

    def note_refused(self, count: int) -> None:
        """For the exporter: so many are lost."""
        with self._lock:
            self._refused += count


class _Counted(SpanExporter):
    def __init__(self, exporter: SpanExporter, spans: BoundedSpans) -> None:
        self._exporter = exporter
        self._spans = spans

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        self._spans.note_taken(len(spans))
        result = SpanExportResult.FAILURE
        try:
            result = self._exporter.export(spans)
        finally:
            if result is not SpanExportResult.SUCCESS:
                self._spans.note_refused(len(spans))
        return result

    def shutdown(self) -> None:
        self._exporter.shutdown()

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        return self._exporter.force_flush(timeout_millis)
