"""Telemetry of a whole session: a dead collector, a missing extra, and what the operator is told."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import anyio
import pytest
from opentelemetry.sdk.metrics.export import MetricExporter, MetricExportResult, MetricsData
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from voicechart.adapters.telemetry import Telemetry, bounded_spans, open_telemetry, opening
from voicechart.engines.reports import PortError
from voicechart.engines.testing import (
    Rehearsal,
    Script,
    ScriptedDevice,
    ScriptedResponder,
    ScriptedSynthesizer,
    SpeechScript,
    says,
)

pytestmark = pytest.mark.anyio
ANSWER = "It is noon."


class Kept(MetricExporter):
    """Keeps what is exported."""

    def __init__(self) -> None:
        super().__init__()
        self.names: set[str] = set()
        self.service: set[str] = set()

    def export(self, metrics_data: MetricsData, timeout_millis: float = 0, **_: object) -> MetricExportResult:
        for resource in metrics_data.resource_metrics:
            self.service.add(str(resource.resource.attributes["service.name"]))
            for scope in resource.scope_metrics:
                self.names |= {metric.name for metric in scope.metrics}
        return MetricExportResult.SUCCESS

    def force_flush(self, timeout_millis: float = 0) -> bool:
        return True

    def shutdown(self, timeout_millis: float = 0, **_: object) -> None:
        """Nothing is open."""


class Unreachable(SpanExporter):
    """A collector that is not there."""

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        return SpanExportResult.FAILURE

    def shutdown(self) -> None:
        """Nothing is open."""


async def converse(telemetry: Telemetry, questions: int = 1) -> Rehearsal:
    rehearsal = Rehearsal(
        responder=ScriptedResponder(*[Script(says(ANSWER))] * questions),
        synthesizer=ScriptedSynthesizer(SpeechScript(ms_per_char=2)),
    )
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(telemetry.follow, rehearsal.session)
        async with rehearsal.running():
            for number in range(1, questions + 1):
                rehearsal.say("what time is it")
                await rehearsal.until("metrics.turn", number)
    return rehearsal


async def test_every_turn_of_a_session_is_exported_at_the_latest_when_it_is_closed() -> None:
    spans, metrics = InMemorySpanExporter(), Kept()
    telemetry = open_telemetry(span_exporter=spans, metric_exporter=metrics)
    rehearsal = await converse(telemetry, questions=2)
    await telemetry.aclose()
    roots = [span for span in spans.get_finished_spans() if span.name == "voicechart.turn"]
    assert [dict(root.attributes or {})["voicechart.turn_id"] for root in roots] == [
        event.turn_id for event in rehearsal.of("metrics.turn")
    ]
    assert {"voicechart.turns", "voicechart.turn.first_rendered", "voicechart.telemetry.lost_spans"} <= metrics.names
    assert "noon" not in str([span.to_json() for span in spans.get_finished_spans()])
    assert telemetry.missed == 0


async def test_the_moments_of_a_span_are_of_the_wall_clock() -> None:
    spans = InMemorySpanExporter()
    telemetry = open_telemetry(span_exporter=spans, metric_exporter=Kept())
    before = time.time_ns()
    await converse(telemetry)
    after = time.time_ns()
    await telemetry.aclose()
    (root,) = [span for span in spans.get_finished_spans() if span.name == "voicechart.turn"]
    assert root.start_time is not None
    assert root.end_time is not None
    margin = 1_000_000_000
    assert before - margin <= root.start_time <= root.end_time <= after + margin


async def test_content_goes_out_when_it_was_asked_for() -> None:
    spans = InMemorySpanExporter()
    telemetry = open_telemetry(content=True, span_exporter=spans, metric_exporter=Kept())
    await converse(telemetry)
    await telemetry.aclose()
    (root,) = [span for span in spans.get_finished_spans() if span.name == "voicechart.turn"]
    attributes = dict(root.attributes or {})
    assert attributes["voicechart.user.text"] == "what time is it"
    assert attributes["voicechart.reply.heard"] == ANSWER


async def test_a_collector_that_is_not_there_costs_nothing_but_is_told(caplog: pytest.LogCaptureFixture) -> None:
    telemetry = open_telemetry(span_exporter=Unreachable(), metric_exporter=Kept())
    rehearsal = await converse(telemetry)
    assert rehearsal.closed is not None
    assert rehearsal.closed.error is None
    await telemetry.aclose()
    assert telemetry.spans.refused > 0
    assert f"{telemetry.spans.refused} that the collector did not take" in caplog.text


async def test_a_collector_that_hangs_is_given_up_at_the_end(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    released = threading.Event()

    class Hanging(Unreachable):
        def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
            released.wait(30)
            return SpanExportResult.FAILURE

    monkeypatch.setattr(opening, "SHUTDOWN_S", 0.2)
    telemetry = open_telemetry(span_exporter=Hanging(), metric_exporter=Kept())
    await converse(telemetry)
    await telemetry.aclose()
    assert "not exported within 0.2 s" in caplog.text
    released.set()


async def test_a_collector_that_hangs_holds_up_no_audio_and_no_further_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    hangs, released = threading.Event(), threading.Event()

    class Hanging(Unreachable):
        def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
            hangs.set()
            released.wait(30)
            return SpanExportResult.FAILURE

    monkeypatch.setattr(opening, "SHUTDOWN_S", 0.2)
    monkeypatch.setattr(bounded_spans, "BATCH", 1)
    telemetry = open_telemetry(span_exporter=Hanging(), metric_exporter=Kept())
    device = ScriptedDevice()
    rehearsal = Rehearsal(
        device=device,
        responder=ScriptedResponder(answers=lambda _: Script(says(ANSWER))),
        synthesizer=ScriptedSynthesizer(SpeechScript(ms_per_char=10)),
    )
    turns = 0
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(telemetry.follow, rehearsal.session)
        async with rehearsal.running():
            while not hangs.is_set():
                turns += 1
                rehearsal.say("what time is it")
                await rehearsal.until("metrics.turn", turns)
            for number in range(turns + 1, turns + 6):
                rehearsal.say("and now")
                await rehearsal.until("metrics.turn", number)
    # Everything after the first export was heard whole while the exporter stood still.
    assert not released.is_set()
    assert telemetry.spans.waiting > 0
    assert rehearsal.of("playback.underrun") == []
    assert len(device.speaker.outputs) == turns + 5
    assert {output.heard_samples for output in device.speaker.outputs.values()} == {len(ANSWER) * 10 * 16}
    await telemetry.aclose()
    released.set()


async def test_events_that_could_not_be_read_in_time_are_told(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(opening, "MAX_EVENTS", 1)
    telemetry = open_telemetry(span_exporter=InMemorySpanExporter(), metric_exporter=Kept())
    await converse(telemetry)
    await telemetry.aclose()
    assert telemetry.missed > 0
    assert f"events {telemetry.missed} times" in caplog.text


async def test_the_operators_environment_names_the_service(monkeypatch: pytest.MonkeyPatch) -> None:
    for given, expected in ((None, "voicechart"), ("hall", "hall")):
        if given is not None:
            monkeypatch.setenv("OTEL_SERVICE_NAME", given)
        metrics = Kept()
        telemetry = open_telemetry(span_exporter=InMemorySpanExporter(), metric_exporter=metrics)
        await converse(telemetry)
        await telemetry.aclose()
        assert metrics.service == {expected}


async def test_without_the_extra_it_is_refused_with_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.exporter.otlp.proto.http.trace_exporter", None)
    with pytest.raises(PortError, match=r"pip install 'voicechart\[telemetry\]'") as refused:
        open_telemetry()
    assert (refused.value.error.code, refused.value.error.stage) == ("missing_package", "telemetry")


async def test_nothing_is_connected_by_opening_and_an_unused_one_closes_at_once() -> None:
    telemetry = open_telemetry("http://127.0.0.1:9/", metric_exporter=Kept())
    await telemetry.aclose()
    assert telemetry.spans.refused == 0


@contextmanager
def collector() -> Generator[tuple[str, dict[str, str | None]]]:
    """A collector on this machine: its address, and the key that came with each path."""
    received: dict[str, str | None] = {}

    class Receiver(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            received[self.path] = self.headers.get("x-key")
            self.send_response(200)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            """Nobody needs to know."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Receiver) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/", received
        server.shutdown()
        thread.join()


async def test_a_collector_gets_both_signals_with_the_headers_of_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-key=secret")
    with collector() as (address, received):
        telemetry = open_telemetry(address)
        await converse(telemetry)
        await telemetry.aclose()
    assert received == {"/v1/traces": "secret", "/v1/metrics": "secret"}
    assert telemetry.spans.refused == 0
