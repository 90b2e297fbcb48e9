"""A collector that is slow, gone or broken costs spans, which are counted, and never the conversation's time."""

from __future__ import annotations

from collections.abc import Sequence
from threading import Event

import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from voicechart.adapters.telemetry.bounded_spans import BoundedSpans


class Stuck(SpanExporter):
    """Takes a batch and does not come back before it is told to."""

    def __init__(self) -> None:
        self.entered = Event()
        self.release = Event()
        self.exported = 0

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        self.entered.set()
        assert self.release.wait(30)
        self.exported += len(spans)
        return SpanExportResult.SUCCESS

    def shutdown(self) -> None:
        self.release.set()


class Broken(SpanExporter):
    """Refuses, or raises."""

    def __init__(self, raises: bool) -> None:
        self.raises = raises

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        if self.raises:
            raise OSError("the collector hung up")
        return SpanExportResult.FAILURE

    def shutdown(self) -> None:
        """Nothing is open."""


def traced(spans: BoundedSpans) -> TracerProvider:
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(spans.processor)
    return provider


def end_spans(provider: TracerProvider, count: int) -> None:
    tracer = provider.get_tracer("test")
    for _ in range(count):
        tracer.start_span("span").end()


def test_a_full_queue_drops_what_comes_and_counts_it() -> None:
    exporter = Stuck()
    spans = BoundedSpans(exporter, max_waiting=8, delay_ms=1)
    provider = traced(spans)
    end_spans(provider, 8)
    # The first batch is on its way and makes room for as many again.
    assert exporter.entered.wait(30)
    under_way = 8 - spans.waiting
    end_spans(provider, under_way + 5)
    assert spans.dropped == 5
    assert spans.waiting == 8
    exporter.release.set()
    provider.shutdown()
    assert exporter.exported == 8 + under_way
    assert spans.refused == 0
    assert spans.waiting == 0


def test_everything_that_waits_is_exported_at_the_end() -> None:
    exporter = InMemorySpanExporter()
    provider = traced(BoundedSpans(exporter, max_waiting=100, delay_ms=60_000))
    end_spans(provider, 100)
    provider.shutdown()
    assert len(exporter.get_finished_spans()) == 100


@pytest.mark.parametrize("raises", [True, False])
def test_what_the_collector_does_not_take_is_counted(raises: bool, caplog: pytest.LogCaptureFixture) -> None:
    spans = BoundedSpans(Broken(raises), max_waiting=10, delay_ms=60_000)
    provider = traced(spans)
    end_spans(provider, 7)
    provider.shutdown()
    assert (spans.dropped, spans.refused, spans.waiting) == (0, 7, 0)


def test_a_flush_exports_now() -> None:
    exporter = InMemorySpanExporter()
    spans = BoundedSpans(exporter, delay_ms=60_000)
    provider = traced(spans)
    end_spans(provider, 3)
    assert provider.force_flush()
    assert len(exporter.get_finished_spans()) == 3
    provider.shutdown()
