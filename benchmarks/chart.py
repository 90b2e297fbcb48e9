"""What one macrostep of the conversation chart costs, where the time goes, and what a conversation costs to make.

    python benchmarks/chart.py            a table for people
    python benchmarks/chart.py --json     one object

Processor time is measured, not wall time, one macrostep at a time, in several rounds; of median and 99th percentile the
best round counts, because what other processes do to the caches can only make a round slower. Each measured macrostep
begins from the same restored snapshot. All engines run the same declarations and decide the same (a property test says
so); the library's own is there to show what the index saves.
"""

from __future__ import annotations

import cProfile
import json
import os
import platform
import pstats
import statistics
import time
import tracemalloc
from dataclasses import dataclass
from typing import Annotated, Any, get_args

import typer
from listeners import Stage, added_percent, listener_costs, writing_cost_us
from rich.console import Console
from rich.table import Table

from voicechart.statecharts import Conversation, ConversationChart, Policies
from voicechart.statecharts.chart import Selection, Snapshot
from voicechart.statecharts.context import Context
from voicechart.statecharts.facts import (
    Fact,
    OutputStarted,
    PlaybackProgressed,
    RecognitionClosed,
    SpeechStarted,
    TranscriptUpdated,
    Underrun,
)
from voicechart.statecharts.library import Anatomy
from voicechart.statecharts.testing import HANDS_FREE, ScriptedConversation

ORDINARY_TARGET_US = 250
BARGE_IN_TARGET_US = 450
RECORDER_TARGET_PERCENT = 15


@dataclass
class Effort:
    """How often everything is measured."""

    rounds: int = 5
    steps: int = 300


EFFORT = Effort()
SELECTIONS: tuple[Selection, ...] = get_args(Selection)
POLICIES = Policies(interruption=HANDS_FREE)


@dataclass(frozen=True)
class Case:
    """One fact, handed in again and again where it means this."""

    name: str
    fact: Fact
    beginning: Snapshot[Context]


def cases(conversation: Conversation) -> list[Case]:
    """Told once, from the snapshots along the way of one conversation."""
    script = ScriptedConversation(conversation=conversation).opened()
    script.user_starts_speaking()
    script.understands("tell me a story")
    script.user_stops_speaking()
    closing = conversation.snapshot()
    recognition_id = script.recognition_id
    script.recognition_ends()
    script.reply_is_playing((16_000, 32_000), played_samples=20_000)
    playing = conversation.snapshot()
    epoch, stream_id = script.generation.output_epoch, script.stream.stream_id
    progress = PlaybackProgressed(at=1, output_epoch=epoch, stream_id=stream_id, played_samples=21_000)
    underrun = Underrun(at=1, output_epoch=epoch, stream_id=stream_id, played_samples=21_000)
    script.user_starts_speaking()
    speaking = conversation.snapshot()
    words = TranscriptUpdated(
        at=1, recognition_id=script.recognition_id, segment_id="1", revision=1, text="stop it please"
    )
    return [
        Case("ignored", OutputStarted(at=1, attempt_id="another"), playing),
        Case("targetless", progress, playing),
        Case("ordinary", underrun, playing),
        Case("turn opened", SpeechStarted(at=1), playing),
        Case("turn committed, reply started", RecognitionClosed(at=1, recognition_id=recognition_id), closing),
        Case("barge-in", words, speaking),
    ]


@dataclass(frozen=True)
class Cost:
    median_us: float
    p99_us: float
    actions: int


def measured(conversation: Conversation, case: Case) -> Cost:
    """The best of the rounds."""
    medians: list[float] = []
    nearly_worst: list[float] = []
    actions: tuple[object, ...] = ()
    for _ in range(EFFORT.rounds):
        taken: list[int] = []
        for _ in range(EFFORT.steps):
            conversation.restore(case.beginning)
            began = time.process_time_ns()
            actions = conversation.handle(case.fact)
            taken.append(time.process_time_ns() - began)
        taken.sort()
        medians.append(statistics.median(taken) / 1_000)
        nearly_worst.append(taken[len(taken) * 99 // 100] / 1_000)
    return Cost(round(min(medians), 1), round(min(nearly_worst), 1), len(actions))


def steps_of(selection: Selection) -> dict[str, Cost]:
    conversation = Conversation("benchmark", policies=POLICIES, selection=selection)
    return {case.name: measured(conversation, case) for case in cases(conversation)}


def construction_of(selection: Selection) -> dict[str, float]:
    """Making one conversation, with everything of its class known already."""
    best: list[float] = []
    for _ in range(EFFORT.rounds):
        began = time.process_time_ns()
        for _ in range(20):
            Conversation("benchmark", policies=POLICIES, selection=selection)
        best.append((time.process_time_ns() - began) / 20_000)
    tracemalloc.start()
    kept = [Conversation("benchmark", policies=POLICIES, selection=selection) for _ in range(20)]
    used, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return {"median_us": round(statistics.median(best), 1), "kib": round(used / len(kept) / 1_024, 1)}


def class_cost_us() -> float:
    """Looking into the declared chart, once a process."""
    best: list[int] = []
    for _ in range(EFFORT.rounds):
        began = time.process_time_ns()
        Anatomy(ConversationChart)
        best.append(time.process_time_ns() - began)
    return round(min(best) / 1_000, 1)


PARTS: tuple[tuple[str, tuple[str, ...]], ...] = (
    (
        "guards and actions",
        ("barge_in.py", "connection.py", "input_turn.py", "generation.py", "playback.py", "rules.py"),
    ),
    ("policies and identities", ("policies.py", "identity.py", "context.py", "capabilities.py")),
    ("selection and configuration", ("statecharts/stepping.py", "statecharts/library.py")),
    ("snapshot, order, checks", ("chart.py", "conversation.py", "benchmarks/chart.py")),
    ("the library's queues and loop", ("statemachine/", "queue.py", "contextlib.py", "threading.py")),
    ("values (dataclasses, enums)", ("<string>", "dataclasses.py", "enum.py")),
)


def part_of(path: str) -> str:
    return next((part for part, marks in PARTS if any(mark in path for mark in marks)), "built-ins")


def breakdown(name: str) -> dict[str, float]:
    """Shares of one macrostep, in per cent, as a profiler sees them: it makes many small calls look dearer."""
    conversation = Conversation("benchmark", policies=POLICIES)
    [case] = [case for case in cases(conversation) if case.name == name]
    profile = cProfile.Profile()
    for _ in range(EFFORT.steps * EFFORT.rounds):
        conversation.restore(case.beginning)
        profile.enable()
        conversation.handle(case.fact)
        profile.disable()
    spent: dict[str, float] = {}
    stats: dict[tuple[str, int, str], Any] = vars(pstats.Stats(profile))["stats"]
    for (path, _, _), (_, _, own_s, _, _) in stats.items():
        part = part_of(path)
        spent[part] = spent.get(part, 0.0) + own_s
    whole = sum(spent.values())
    return {part: round(100 * own / whole, 1) for part, own in sorted(spent.items(), key=lambda item: -item[1])}


def report() -> dict[str, Any]:
    steps = {selection: steps_of(selection) for selection in SELECTIONS}
    ordinary = [cost.median_us for name, cost in steps["indexed"].items() if name != "barge-in"]
    barge_in = steps["indexed"]["barge-in"].median_us
    stage = Stage(lambda: Conversation("benchmark", policies=POLICIES), cases, EFFORT.rounds, EFFORT.steps)
    listeners = listener_costs(stage)
    added = added_percent(listeners)
    return {
        "machine": {"python": platform.python_version(), "processor": platform.machine(), "cores": os.cpu_count()},
        "steps": {s: {name: vars(cost) for name, cost in costs.items()} for s, costs in steps.items()},
        "construction": {selection: construction_of(selection) for selection in SELECTIONS},
        "class_us": class_cost_us(),
        "breakdown_percent": {name: breakdown(name) for name in ("ordinary", "barge-in")},
        "listeners": listeners,
        "recorder": {"added_percent": added, "written_later_us": writing_cost_us(stage)},
        "targets": {
            "dearest_ordinary_median_us": {"measured": max(ordinary), "target": ORDINARY_TARGET_US},
            "barge_in_median_us": {"measured": barge_in, "target": BARGE_IN_TARGET_US},
            "recorder_adds_at_most_percent": {"measured": max(added.values()), "target": RECORDER_TARGET_PERCENT},
        },
        "meets_targets": max(ordinary) <= ORDINARY_TARGET_US
        and barge_in <= BARGE_IN_TARGET_US
        and max(added.values()) <= RECORDER_TARGET_PERCENT,
    }


def show(found: dict[str, Any], console: Console) -> None:
    table = Table("macrostep", "actions", title="processor time in µs, median / 99th percentile")
    for selection in found["steps"]:
        table.add_column(selection, justify="right")
    for name, cost in found["steps"]["indexed"].items():
        shown = [f"{c[name]['median_us']} / {c[name]['p99_us']}" for c in found["steps"].values()]
        table.add_row(name, str(cost["actions"]), *shown)
    console.print(table)

    table = Table("construction", *found["construction"], title="one conversation")
    table.add_row("µs", *(str(c["median_us"]) for c in found["construction"].values()))
    table.add_row("KiB", *(str(c["kib"]) for c in found["construction"].values()))
    console.print(table)
    console.print(f"once a process, to look into the declared chart: {found['class_us']} µs")

    table = Table(
        "where the time goes", *found["breakdown_percent"], title="per cent of an indexed macrostep, profiled"
    )
    parts = dict.fromkeys(part for shares in found["breakdown_percent"].values() for part in shares)
    for part in parts:
        table.add_row(part, *(str(shares.get(part, 0.0)) for shares in found["breakdown_percent"].values()))
    console.print(table)

    table = Table("listener", *found["steps"]["indexed"], title="median µs with a listener")
    for name, costs in found["listeners"].items():
        table.add_row(name, *(str(cost) for cost in costs.values()))
    table.add_row("the recorder adds", *(f"{percent} %" for percent in found["recorder"]["added_percent"].values()))
    console.print(table)
    console.print(f"written later, between the macrosteps: {found['recorder']['written_later_us']} µs each")
    for name, target in found["targets"].items():
        console.print(f"{name}: {target['measured']} (target ≤ {target['target']})")


def main(
    as_json: Annotated[bool, typer.Option("--json", help="Print one object instead of tables.")] = False,
    rounds: Annotated[int, typer.Option(min=1, help="Rounds, of which the best counts.")] = EFFORT.rounds,
    steps: Annotated[int, typer.Option(min=1, help="Macrosteps in a round.")] = EFFORT.steps,
) -> None:
    """Measure the conversation chart."""
    EFFORT.rounds, EFFORT.steps = rounds, steps
    found = report()
    if as_json:
        print(json.dumps(found))
    else:
        show(found, Console())


if __name__ == "__main__":
    typer.run(main)
