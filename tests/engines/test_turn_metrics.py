"""Sums over turns: nearest rank, totals, the window; and the public form of one turn."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voicechart.engines.turn_metrics import (
    Distribution,
    MetricsAggregate,
    Milestones,
    Totals,
    TurnMetrics,
    quantile,
    turn_metrics,
)
from voicechart.statecharts.values import DeliveryStatus, Outcome

MS = 1_000_000


def turn(first_text_ms: float | None = None, **more: int) -> TurnMetrics:
    at = None if first_text_ms is None else 1_000 * MS + round(first_text_ms * MS)
    moments = Milestones(turn_accepted=1_000 * MS, first_text=at)
    return turn_metrics("turn-1", "response-1", Outcome.COMPLETED, DeliveryStatus.DELIVERED, moments, **more)


@pytest.mark.parametrize(
    ("count", "p50", "p95"),
    [(1, 1, 1), (2, 1, 2), (3, 2, 3), (4, 2, 4), (10, 5, 10), (19, 10, 19), (20, 10, 19), (21, 11, 20), (100, 50, 95)],
)
def test_a_quantile_is_the_value_at_the_nearest_rank(count: int, p50: int, p95: int) -> None:
    values = [float(value) for value in range(1, count + 1)]
    assert (quantile(values, 0.5), quantile(values, 0.95)) == (p50, p95)
    assert quantile(values, 1.0) == count


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=200), st.sampled_from([0.01, 0.5, 0.9, 0.95, 0.99, 1.0]))
def test_a_quantile_was_measured_and_covers_its_share(values: list[float], q: float) -> None:
    ordered = sorted(values)
    found = quantile(ordered, q)
    assert found in ordered
    assert sum(value <= found for value in ordered) >= q * len(ordered) - 1e-6
    assert sum(value < found for value in ordered) < q * len(ordered) + 1e-6


def test_an_aggregate_of_nothing_is_empty() -> None:
    aggregate = MetricsAggregate()
    assert aggregate.distributions() == {}
    assert aggregate.totals == Totals(0, 0, 0, 0, {})
    assert len(aggregate) == 0


def test_durations_that_a_turn_does_not_have_are_not_counted_as_zero() -> None:
    aggregate = MetricsAggregate()
    for first_text_ms in (30, None, 10, 20):
        aggregate.add(turn(first_text_ms))
    distributions = aggregate.distributions()
    assert distributions["first_text_ms"] == Distribution(3, 20, 30, 30)
    assert distributions["turn_accepted_ms"].count == 4
    assert "first_pcm_ms" not in distributions
    assert "peak_queue_ms" not in distributions


def test_distributions_are_of_the_last_turns_and_totals_of_all() -> None:
    aggregate = MetricsAggregate(window=2)
    for first_text_ms in (500, 10, 20):
        aggregate.add(turn(first_text_ms, underruns=1, stale_frames=2))
    assert aggregate.distributions()["first_text_ms"] == Distribution(2, 10, 20, 20)
    assert len(aggregate) == 2
    assert aggregate.totals == Totals(3, 0, 3, 6, {"delivered": 3})


def test_totals_count_interruptions_and_deliveries() -> None:
    aggregate = MetricsAggregate()
    interrupted = turn_metrics(
        "turn-2", "response-2", Outcome.CANCELLED, DeliveryStatus.INTERRUPTED, Milestones(interruption_accepted=5)
    )
    for metrics in (turn(), interrupted, interrupted):
        aggregate.add(metrics)
    assert aggregate.totals == Totals(3, 2, 0, 0, {"delivered": 1, "interrupted": 2})


def test_a_duration_keeps_microseconds_and_may_be_before_its_origin() -> None:
    moments = Milestones(last_speech=2_000_000, final_transcript=1_000_000, first_text=3_234_567)
    metrics = turn_metrics("turn-1", "response-1", Outcome.COMPLETED, DeliveryStatus.DELIVERED, moments)
    assert metrics.final_transcript_ms == -1.0
    assert metrics.first_text_ms == 1.235
    assert metrics.turn_accepted_ms is None


def test_a_turn_without_an_origin_has_no_durations_from_it() -> None:
    moments = Milestones(first_text=5, first_rendered=6)
    metrics = turn_metrics("turn-1", "response-1", Outcome.COMPLETED, DeliveryStatus.DELIVERED, moments)
    assert (metrics.first_text_ms, metrics.first_rendered_ms) == (None, None)


def test_a_turn_is_plain_json_without_anybodys_words() -> None:
    from pydantic import TypeAdapter

    form = json.loads(TypeAdapter(TurnMetrics).dump_json(turn(10, underruns=1)))
    assert TurnMetrics.type == "metrics.turn"
    assert form["delivery"] == "delivered"
    assert form["first_text_ms"] == 10
    assert form["first_rendered_ms"] is None
    assert form["milestones"]["turn_accepted"] == 1_000 * MS
    numbers_or_names = [*form.values(), *form["milestones"].values()]
    texts = {value for value in numbers_or_names if isinstance(value, str)}
    assert texts == {"turn-1", "response-1", "completed", "delivered"}
