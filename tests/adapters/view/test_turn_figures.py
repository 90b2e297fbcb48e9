"""The figures of a conversation's turns, for people and for programs."""

from __future__ import annotations

from rich.console import Console

from voicechart.adapters.view.turn_figures import MEANINGS, figures_line, figures_object, figures_table
from voicechart.engines.turn_metrics import MetricsAggregate, Milestones, turn_metrics
from voicechart.statecharts.values import DeliveryStatus, Outcome

MS = 1_000_000


def measured() -> MetricsAggregate:
    metrics = MetricsAggregate()
    for rendered_ms in (600, 900):
        moments = Milestones(last_speech=0, turn_accepted=300 * MS, first_rendered=rendered_ms * MS)
        metrics.add(turn_metrics("t", "r", Outcome.COMPLETED, DeliveryStatus.DELIVERED, moments, underruns=1))
    cut = Milestones(interruption_accepted=0, local_stop=12 * MS)
    metrics.add(turn_metrics("t", "r", Outcome.CANCELLED, DeliveryStatus.INTERRUPTED, cut, stale_frames=2))
    return metrics


def test_every_duration_has_a_meaning() -> None:
    assert set(MEANINGS) == set(MetricsAggregate.DURATIONS)


def test_the_object_has_totals_and_the_measured_durations() -> None:
    assert figures_object(measured()) == {
        "turns": 3,
        "interruptions": 1,
        "underruns": 2,
        "stale_frames": 2,
        "deliveries": {"delivered": 2, "interrupted": 1},
        "durations": {
            "turn_accepted_ms": {"count": 2, "p50_ms": 300, "p95_ms": 300, "max_ms": 300},
            "first_rendered_ms": {"count": 2, "p50_ms": 600, "p95_ms": 900, "max_ms": 900},
            "interruption_stop_ms": {"count": 1, "p50_ms": 12, "p95_ms": 12, "max_ms": 12},
        },
    }


def test_nothing_measured_is_no_figure() -> None:
    assert figures_object(MetricsAggregate()) == {
        "turns": 0,
        "interruptions": 0,
        "underruns": 0,
        "stale_frames": 0,
        "deliveries": {},
        "durations": {},
    }
    assert figures_line(MetricsAggregate()) == "turns=0 interruptions=0 underruns=0 stale_frames=0"


def test_the_table_has_a_row_a_duration() -> None:
    console = Console(width=100, record=True, file=None, quiet=False)
    with console.capture() as captured:
        console.print(figures_table(measured()))
    rows = [line.split() for line in captured.get().splitlines()]
    assert ["first", "sound", "heard", "2", "600", "900", "900"] in rows
    assert len(rows) == 4


def test_the_line_of_a_log_has_no_words() -> None:
    assert figures_line(measured()) == (
        "turns=3 interruptions=1 underruns=2 stale_frames=2 delivered=2 interrupted=1 "
        "first_rendered_ms_p50=600 first_rendered_ms_p95=900 interruption_stop_ms_p50=12 interruption_stop_ms_p95=12"
    )
