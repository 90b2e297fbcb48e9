"""What the turns of a conversation cost, for people and for programs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from rich.table import Table

from ...engines.turn_metrics import MetricsAggregate

MEANINGS: Mapping[str, str] = {
    "first_transcript_ms": "first words recognised, from the first sound",
    "final_transcript_ms": "last words recognised",
    "turn_accepted_ms": "turn accepted",
    "model_request_ms": "model asked",
    "first_text_ms": "first text of the answer",
    "first_unit_ms": "first sentence given to the voice",
    "first_pcm_ms": "first sound made",
    "first_rendered_ms": "first sound heard",
    "generation_ms": "the model at work",
    "playback_ms": "the answer heard",
    "interruption_stop_ms": "silent after an interruption",
    "interruption_acknowledgement_ms": "model stopped after an interruption",
    "peak_queue_ms": "most sound waiting to be heard",
}
"""In the order in which they come. Without another word they count from the end of the user's speech."""


def figures_object(metrics: MetricsAggregate) -> dict[str, Any]:
    """Totals, and p50, p95 and the maximum of every duration that was measured, in milliseconds."""
    durations = {name: asdict(found) for name, found in metrics.distributions().items()}
    return {**asdict(metrics.totals), "durations": {name: durations[name] for name in MEANINGS if name in durations}}


def figures_table(metrics: MetricsAggregate) -> Table:
    """One row a duration that was measured."""
    table = Table(box=None, padding=(0, 2, 0, 0), title_justify="left")
    table.add_column("from the end of speech", header_style="dim")
    for column in ("turns", "p50 ms", "p95 ms", "max ms"):
        table.add_column(column, header_style="dim", justify="right")
    found = metrics.distributions()
    for name, meaning in MEANINGS.items():
        if name in found:
            of = found[name]
            table.add_row(meaning, str(of.count), *(f"{value:,.0f}" for value in (of.p50_ms, of.p95_ms, of.max_ms)))
    return table


def figures_line(metrics: MetricsAggregate) -> str:
    """One line for a log: totals, the silence that users hear, and how fast interruptions silence."""
    totals = metrics.totals
    said = [
        f"turns={totals.turns}",
        f"interruptions={totals.interruptions}",
        f"underruns={totals.underruns}",
        f"stale_frames={totals.stale_frames}",
        *(f"{delivery}={count}" for delivery, count in totals.deliveries.items()),
    ]
    found = metrics.distributions()
    for name in ("first_rendered_ms", "interruption_stop_ms"):
        if name in found:
            said.append(f"{name}_p50={found[name].p50_ms:.0f} {name}_p95={found[name].p95_ms:.0f}")
    return " ".join(said)
