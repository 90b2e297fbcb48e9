"""What the live checks add to a macrostep, beside the same macrosteps without them.

    python benchmarks/checks.py            a table for people
    python benchmarks/checks.py --json     one object

Processor time is measured, not wall time. The same recorded conversation - turns that are answered and heard, and some
that are interrupted - is told again and again to a conversation that nobody checks and to one that is checked, in
turns, so that both see the same machine; of each macrostep the median counts.
"""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable, Sequence
from typing import Annotated

import typer

from voicechart.engines.live_checks import CheckFailed, LiveChecks
from voicechart.statecharts import Conversation, Policies
from voicechart.statecharts.chart import Step
from voicechart.statecharts.context import Context
from voicechart.statecharts.explorer.prelude import ABLE
from voicechart.statecharts.facts import ButtonPressed, Fact, OpenRequested
from voicechart.statecharts.invariants import INVARIANTS, Ledger
from voicechart.statecharts.invariants.observation import Observation
from voicechart.statecharts.testing.natural import next_fact

TURNS = 10
FACTS_A_TURN = 10


def recorded() -> tuple[Fact, ...]:
    """A conversation: every other reply is interrupted while it is being heard."""
    conversation = Conversation("benchmark")
    facts: list[Fact] = [OpenRequested(at=0)]
    conversation.handle(facts[0])
    for place in range(TURNS * FACTS_A_TURN):
        interrupts = place % (2 * FACTS_A_TURN) == FACTS_A_TURN and conversation.leaves[3] == "playing"
        at = conversation.context.now
        fact = ButtonPressed(at=at) if interrupts else next_fact(conversation, ABLE)
        assert fact is not None
        conversation.handle(fact)
        facts.append(fact)
    return tuple(facts)


def told(facts: Sequence[Fact], prepare: Callable[[Conversation], object]) -> list[int]:
    """Nanoseconds of processor time of each macrostep."""
    conversation = Conversation("benchmark", policies=Policies())
    prepare(conversation)
    times: list[int] = []
    for fact in facts:
        began = time.process_time_ns()
        conversation.handle(fact)
        times.append(time.process_time_ns() - began)
    return times


def refuse(failure: CheckFailed) -> None:
    raise failure


def measure(rounds: int) -> dict[str, object]:
    facts = recorded()
    ways: dict[str, Callable[[Conversation], object]] = {
        "unchecked": lambda conversation: None,
        "checked": lambda conversation: LiveChecks(conversation, refuse),
    }
    times: dict[str, list[list[int]]] = {name: [] for name in ways}
    for _ in range(rounds):
        for name, prepare in ways.items():
            times[name].append(told(facts, prepare))
    medians = {
        name: [statistics.median(step) / 1_000 for step in zip(*runs, strict=True)] for name, runs in times.items()
    }
    unchecked, checked = statistics.mean(medians["unchecked"]), statistics.mean(medians["checked"])
    return {
        "macrosteps": len(facts),
        "rounds": rounds,
        "unchecked_us": round(unchecked, 1),
        "checked_us": round(checked, 1),
        "added_us": round(checked - unchecked, 1),
        "worst_added_us": round(max(map(float.__sub__, medians["checked"], medians["unchecked"])), 1),
        "dearest_invariants_us": dearest(facts, rounds),
    }


def dearest(facts: Sequence[Fact], rounds: int) -> dict[str, float]:
    """The five that cost most, mean µs a macrostep."""
    steps: list[Step[Context]] = []
    conversation = Conversation("benchmark", policies=Policies())
    conversation.observe(steps.append)
    for fact in facts:
        conversation.handle(fact)
    observations: list[Observation] = []
    ledger = Ledger()
    for step in steps:
        after = ledger.after(step)
        observations.append(Observation(step, ledger, after, conversation.policies))
        ledger = after
    cost: dict[str, float] = {}
    for checked in INVARIANTS:
        began = time.process_time_ns()
        for _ in range(rounds):
            for observation in observations:
                list(checked.check(observation))
        cost[checked.name] = round((time.process_time_ns() - began) / rounds / len(observations) / 1_000, 2)
    return dict(sorted(cost.items(), key=lambda each: -each[1])[:5])


def main(
    rounds: Annotated[int, typer.Option(min=1, help="How often the conversation is told each way.")] = 30,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Measure and print."""
    found = measure(rounds)
    if as_json:
        typer.echo(json.dumps(found, indent=2))
        return
    for name, value in found.items():
        typer.echo(f"{name:24} {value}")


if __name__ == "__main__":
    typer.run(main)
