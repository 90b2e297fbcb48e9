"""A turn as spans and measurements, in the SDK's own memory."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode

from voicechart.adapters.telemetry import TurnTelemetry
from voicechart.engines.public_events import PublicEvent, SpeechTextCommitted, TextAppended, TextFinished
from voicechart.engines.turn_metrics import Milestones, turn_metrics
from voicechart.statecharts.published import Payload, TurnCommitted
from voicechart.statecharts.values import DeliveryStatus, Outcome, TurnAuthority

MS = 1_000_000
WALL_OFFSET_NS = 1_700_000_000_000_000_000
WHOLE = Milestones(
    speech_started=100 * MS,
    first_transcript=400 * MS,
    last_speech=700 * MS,
    final_transcript=900 * MS,
    turn_accepted=1_000 * MS,
    model_request=1_000 * MS,
    first_text=1_200 * MS,
    first_unit=1_250 * MS,
    first_pcm=1_300 * MS,
    generation_ended=1_700 * MS,
    last_pcm=1_800 * MS,
    first_rendered=1_400 * MS,
    last_rendered=2_400 * MS,
)


class Collected:
    """Turn telemetry into memory."""

    def __init__(self, *, content: bool = False) -> None:
        self.exporter = InMemorySpanExporter()
        self.reader = InMemoryMetricReader()
        tracers = TracerProvider(shutdown_on_exit=False)
        tracers.add_span_processor(SimpleSpanProcessor(self.exporter))
        meters = MeterProvider([self.reader], shutdown_on_exit=False)
        self.turns = TurnTelemetry(tracers, meters, wall_offset_ns=lambda: WALL_OFFSET_NS, content=content)


def event(payload: Payload, turn_id: str | None = None, response_id: str | None = None) -> PublicEvent:
    return PublicEvent("e", 1, 1, 1, "kitchen", 0, payload, turn_id=turn_id, response_id=response_id)


def finished(
    milestones: Milestones = WHOLE,
    outcome: Outcome = Outcome.COMPLETED,
    delivery: DeliveryStatus = DeliveryStatus.DELIVERED,
    **more: int | float,
) -> PublicEvent:
    return event(replace(turn_metrics("turn-1", "response-1", outcome, delivery, milestones), **more))


def spans_of(collected: Collected) -> dict[str, ReadableSpan]:
    return {span.name: span for span in collected.exporter.get_finished_spans()}


def stretch(span: ReadableSpan) -> tuple[float, float]:
    """Start and end in milliseconds of the session's clock."""
    assert span.start_time is not None
    assert span.end_time is not None
    return (span.start_time - WALL_OFFSET_NS) / MS, (span.end_time - WALL_OFFSET_NS) / MS


def points_of(collected: Collected) -> dict[str, list[Any]]:
    data = collected.reader.get_metrics_data()
    if data is None:
        return {}
    return {
        metric.name: list(metric.data.data_points)
        for resource in data.resource_metrics
        for scope in resource.scope_metrics
        for metric in scope.metrics
    }


# -- spans ---------------------------------------------------------------------------------------------------------


def test_a_turn_is_one_span_with_a_child_a_phase() -> None:
    collected = Collected()
    collected.turns.take(finished())
    spans = spans_of(collected)
    turn = spans["voicechart.turn"]
    assert {name: stretch(span) for name, span in spans.items()} == {
        "voicechart.turn": (100, 2_400),
        "voicechart.recognition": (100, 900),
        "voicechart.generation": (1_000, 1_700),
        "voicechart.synthesis": (1_250, 1_800),
        "voicechart.playback": (1_400, 2_400),
    }
    assert turn.parent is None
    assert turn.context is not None
    for name, span in spans.items():
        if name != "voicechart.turn":
            assert span.parent is not None
            assert span.parent.span_id == turn.context.span_id


def test_every_milestone_is_an_event_at_its_moment() -> None:
    collected = Collected()
    collected.turns.take(finished())
    events = spans_of(collected)["voicechart.turn"].events
    assert [(moment.name, (moment.timestamp - WALL_OFFSET_NS) / MS) for moment in events] == [
        ("speech_started", 100),
        ("first_transcript", 400),
        ("last_speech", 700),
        ("final_transcript", 900),
        ("turn_accepted", 1_000),
        ("model_request", 1_000),
        ("first_text", 1_200),
        ("first_unit", 1_250),
        ("first_pcm", 1_300),
        ("first_rendered", 1_400),
        ("generation_ended", 1_700),
        ("last_pcm", 1_800),
        ("last_rendered", 2_400),
    ]


def test_a_span_carries_identities_and_durations_and_no_words() -> None:
    collected = Collected()
    collected.turns.take(event(TurnCommitted("a secret", TurnAuthority.VAD, 1), "turn-1"))
    collected.turns.take(event(TextFinished("another secret"), None, "response-1"))
    collected.turns.take(finished(underruns=2, stale_frames=1, units=3))
    attributes = dict(spans_of(collected)["voicechart.turn"].attributes or {})
    assert attributes["voicechart.conversation_id"] == "kitchen"
    assert attributes["voicechart.turn_id"] == "turn-1"
    assert attributes["voicechart.delivery"] == "delivered"
    assert attributes["voicechart.first_rendered_ms"] == 700
    assert (attributes["voicechart.underruns"], attributes["voicechart.stale_frames"]) == (2, 1)
    assert attributes["voicechart.units_heard"] == 3
    assert "voicechart.interruption_stop_ms" not in attributes
    assert "secret" not in str([span.to_json() for span in collected.exporter.get_finished_spans()])


def test_phases_of_which_an_end_is_unknown_are_left_out() -> None:
    collected = Collected()
    collected.turns.take(finished(Milestones(turn_accepted=5 * MS, model_request=6 * MS, first_text=7 * MS)))
    assert set(spans_of(collected)) == {"voicechart.turn"}


def test_the_synthesis_of_an_interrupted_reply_ends_with_the_interruption() -> None:
    collected = Collected()
    cut = Milestones(turn_accepted=0, first_pcm=100 * MS, interruption_accepted=300 * MS, local_stop=310 * MS)
    collected.turns.take(finished(cut, Outcome.CANCELLED, DeliveryStatus.INTERRUPTED))
    spans = spans_of(collected)
    assert stretch(spans["voicechart.synthesis"]) == (100, 300)
    assert spans["voicechart.turn"].status.status_code is StatusCode.UNSET


@pytest.mark.parametrize(
    ("outcome", "delivery"),
    [(Outcome.FAILED, DeliveryStatus.DELIVERED), (Outcome.COMPLETED, DeliveryStatus.FAILED)],
)
def test_a_turn_that_failed_is_an_error(outcome: Outcome, delivery: DeliveryStatus) -> None:
    collected = Collected()
    collected.turns.take(finished(WHOLE, outcome, delivery))
    assert spans_of(collected)["voicechart.turn"].status.status_code is StatusCode.ERROR


def test_a_turn_without_a_moment_has_no_span_and_is_counted() -> None:
    collected = Collected()
    collected.turns.take(finished(Milestones()))
    assert spans_of(collected) == {}
    assert points_of(collected)["voicechart.turns"][0].value == 1


def test_a_turn_is_a_root_whatever_span_is_current() -> None:
    collected = Collected()
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(InMemorySpanExporter()))
    with provider.get_tracer("somebody").start_as_current_span("somebody's"):
        collected.turns.take(finished())
    assert spans_of(collected)["voicechart.turn"].parent is None


# -- measurements --------------------------------------------------------------------------------------------------


def test_durations_are_histograms_in_seconds_by_delivery_and_outcome() -> None:
    collected = Collected()
    collected.turns.take(finished(peak_queue_ms=250.0))
    collected.turns.take(finished())
    points = points_of(collected)
    (rendered,) = points["voicechart.turn.first_rendered"]
    assert (rendered.count, rendered.sum) == (2, pytest.approx(1.4))
    assert dict(rendered.attributes) == {"voicechart.delivery": "delivered", "voicechart.outcome": "completed"}
    (queue,) = points["voicechart.playback.queue.peak"]
    assert (queue.count, queue.sum) == (1, 0.25)
    assert "voicechart.turn.interruption_stop" not in points


def test_what_is_known_before_the_speech_ends_took_no_time() -> None:
    collected = Collected()
    collected.turns.take(finished(Milestones(last_speech=9 * MS, final_transcript=3 * MS)))
    (final,) = points_of(collected)["voicechart.turn.final_transcript"]
    assert final.sum == 0.0


def test_turns_interruptions_underruns_and_stale_frames_are_counted() -> None:
    collected = Collected()
    cut = Milestones(turn_accepted=0, interruption_accepted=5)
    collected.turns.take(finished(cut, Outcome.CANCELLED, DeliveryStatus.INTERRUPTED, underruns=2, stale_frames=3))
    collected.turns.take(finished())
    points = points_of(collected)
    by_delivery = {point.attributes["voicechart.delivery"]: point.value for point in points["voicechart.turns"]}
    assert by_delivery == {"interrupted": 1, "delivered": 1}
    totals = {
        name: sum(point.value for point in points[name]) for name in points if "frames" in name or "under" in name
    }
    assert totals == {"voicechart.playback.underruns": 2, "voicechart.playback.stale_frames": 3}
    assert [point.value for point in points["voicechart.interruptions"]] == [1]


# -- content -------------------------------------------------------------------------------------------------------


def say(collected: Collected, delivery: DeliveryStatus, units: int, *, final: str | None = None) -> dict[str, Any]:
    turns = collected.turns
    turns.take(event(TurnCommitted("what time is it", TurnAuthority.VAD, 1), "turn-1"))
    for text in ("It is noon.", " Time for", " lunch."):
        turns.take(event(TextAppended(text), None, "response-1"))
    for index, text in enumerate(("It is noon.", "Time for lunch.")):
        turns.take(event(SpeechTextCommitted(index, text), None, "response-1"))
    if final is not None:
        turns.take(event(TextFinished(final), None, "response-1"))
    turns.take(finished(WHOLE, Outcome.COMPLETED, delivery, units=units))
    return dict(spans_of(collected)["voicechart.turn"].attributes or {})


@pytest.mark.parametrize(
    ("delivery", "units", "final", "generated", "heard"),
    [
        (DeliveryStatus.DELIVERED, 2, "It is noon.", "It is noon.", "It is noon."),
        (DeliveryStatus.TEXT_ONLY, 0, None, "It is noon. Time for lunch.", "It is noon. Time for lunch."),
        (DeliveryStatus.INTERRUPTED, 1, None, "It is noon. Time for lunch.", "It is noon."),
        (DeliveryStatus.INTERRUPTED, 0, None, "It is noon. Time for lunch.", ""),
        (DeliveryStatus.UNKNOWN, 2, None, "It is noon. Time for lunch.", "It is noon. Time for lunch."),
    ],
)
def test_with_content_a_span_says_what_was_said_and_what_was_heard(
    delivery: DeliveryStatus, units: int, final: str | None, generated: str, heard: str
) -> None:
    attributes = say(Collected(content=True), delivery, units, final=final)
    assert attributes["voicechart.user.text"] == "what time is it"
    assert attributes["voicechart.reply.generated"] == generated
    assert attributes["voicechart.reply.heard"] == heard


def test_content_is_bounded_in_length_and_in_number() -> None:
    collected = Collected(content=True)
    for number in range(40):
        collected.turns.take(event(TurnCommitted("w" * 10_000, TurnAuthority.VAD, 1), f"turn-{number}"))
        collected.turns.take(event(TextAppended("t" * 10_000), None, f"response-{number}"))
    collected.turns.take(
        event(turn_metrics("turn-39", "response-39", Outcome.COMPLETED, DeliveryStatus.DELIVERED, WHOLE))
    )
    attributes = dict(spans_of(collected)["voicechart.turn"].attributes or {})
    assert len(str(attributes["voicechart.user.text"])) == 8_192
    assert len(str(attributes["voicechart.reply.generated"])) == 8_192
    forgotten = event(turn_metrics("turn-0", "response-0", Outcome.COMPLETED, DeliveryStatus.DELIVERED, WHOLE))
    collected.turns.take(forgotten)
    last = collected.exporter.get_finished_spans()[-1].attributes or {}
    assert last["voicechart.user.text"] == ""
