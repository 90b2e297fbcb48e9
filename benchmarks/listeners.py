"""What listening to the chart adds to a macrostep: nobody, somebody idle, and a trace recorder, side by side.

`chart.py` shows it. Listeners take turns macrostep by macrostep, so that all of them see the same machine.
"""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from voicechart.adapters.tracing import TraceLimits, TraceRecorder
from voicechart.statecharts import Conversation
from voicechart.statecharts.chart import Snapshot
from voicechart.statecharts.context import Context
from voicechart.statecharts.facts import Fact

TRACE = Path(tempfile.gettempdir()) / f"voicechart-benchmark-{os.getpid()}.jsonl"
NOBODY, RECORDER = "none", "trace recorder"


class Case(Protocol):
    """One fact, handed in again and again from the same beginning."""

    @property
    def name(self) -> str: ...
    @property
    def fact(self) -> Fact: ...
    @property
    def beginning(self) -> Snapshot[Context]: ...


@dataclass(frozen=True)
class Stage:
    """What is measured, and how often."""

    conversation: Callable[[], Conversation]
    cases: Callable[[Conversation], Sequence[Case]]
    rounds: int
    steps: int


def nobody(_: Conversation) -> None: ...


def idler(conversation: Conversation) -> None:
    conversation.observe(lambda step: None)


def trace_recorder(conversation: Conversation) -> TraceRecorder:
    """What it notes it writes later; that cost is measured apart. The queue is large enough never to be full here."""
    recorder = TraceRecorder(conversation, TRACE, limits=TraceLimits(max_queued_steps=65_536))
    recorder.start()
    return recorder


LISTENERS: dict[str, Callable[[Conversation], object]] = {
    NOBODY: nobody,
    "one that does nothing": idler,
    RECORDER: trace_recorder,
}


def listener_costs(stage: Stage) -> dict[str, dict[str, float]]:
    """Median µs by listener and case; the best of the rounds."""
    told: dict[str, tuple[Conversation, Sequence[Case]]] = {}
    for name, listener in LISTENERS.items():
        conversation = stage.conversation()
        told[name] = (conversation, stage.cases(conversation))
        listener(conversation)
    best: dict[str, dict[str, float]] = {name: {} for name in LISTENERS}
    for place, case_name in enumerate(case.name for case in told[NOBODY][1]):
        for _ in range(stage.rounds):
            for name, times in _one_round(told, place, stage.steps).items():
                median_us = round(statistics.median(times) / 1_000, 1)
                best[name][case_name] = min(best[name].get(case_name, median_us), median_us)
    return best


def added_percent(costs: dict[str, dict[str, float]]) -> dict[str, float]:
    """What the recorder adds, by case."""
    return {case: round(100 * (costs[RECORDER][case] / cost - 1), 1) for case, cost in costs[NOBODY].items()}


def writing_cost_us(stage: Stage) -> float:
    """Turning one noted macrostep into a line and writing it, as the recorder does between the macrosteps."""
    conversation = stage.conversation()
    told = stage.cases(conversation)
    best: list[float] = []
    for _ in range(stage.rounds):
        recorder = trace_recorder(conversation)
        for _ in range(stage.steps):
            for case in told:
                conversation.restore(case.beginning)
                conversation.handle(case.fact)
        began = time.process_time_ns()
        recorder.stop()
        best.append((time.process_time_ns() - began) / (1_000 * stage.steps * len(told)))
    for path in TRACE.parent.glob(f"{TRACE.name}*"):
        path.unlink()
    return round(min(best), 1)


def _one_round(told: dict[str, tuple[Conversation, Sequence[Case]]], place: int, steps: int) -> dict[str, list[int]]:
    taken: dict[str, list[int]] = {name: [] for name in told}
    for _ in range(steps):
        for name, (conversation, cases) in told.items():
            case = cases[place]
            conversation.restore(case.beginning)
            began = time.process_time_ns()
            conversation.handle(case.fact)
            taken[name].append(time.process_time_ns() - began)
    return taken
