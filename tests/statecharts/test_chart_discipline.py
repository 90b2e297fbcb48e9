"""What every declared chart is held to, whatever it is about."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, get_args

import pytest
from statemachine import State

from voicechart.statecharts import Conversation, ConversationChart, Policies, SeededIds
from voicechart.statecharts.actions import Stamp
from voicechart.statecharts.chart import Chart, ChartDefinition, Selection, Snapshot, Step, states_of, transitions_of
from voicechart.statecharts.context import Context
from voicechart.statecharts.declaration import Compound, Parallel
from voicechart.statecharts.errors import ChartError
from voicechart.statecharts.facts import Fact
from voicechart.statecharts.testing import Reached
from voicechart.statecharts.tool_call import ToolCallChart, ToolCallContext

# Small charts are declared in the library's own words here, so that they can also say what ours may not.


@dataclass(frozen=True, slots=True, kw_only=True)
class Pushed(Fact):
    event: ClassVar[str] = "pushed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Unheard(Fact):
    event: ClassVar[str] = "unheard_of"


@dataclass(slots=True)
class Count:
    pushes: int = 0


class TurnstileChart(ChartDefinition):
    context: Count

    class turnstile(State.Compound, name="Turnstile"):
        locked = State("locked", initial=True)
        unlocked = State("unlocked")
        locked.to(unlocked, event="pushed", cond="is_first", on=["count", "pass_through"])
        unlocked.to(locked, event="passed", on="count")

    def is_first(self) -> int:
        """Not a bool, but as true as one."""
        return int(self.context.pushes == 0)

    def count(self) -> None:
        self.context.pushes += 1

    def pass_through(self) -> None:
        self.decide("passed")
        self.decide("unknown to this chart")


@pytest.mark.parametrize("selection", get_args(Selection))
def test_what_a_chart_decides_joins_the_macrostep_and_a_fact_without_a_row_is_nothing(selection: Selection) -> None:
    turnstile = Chart[Count](TurnstileChart(Count(), selection))
    steps: list[Step[Count]] = []
    turnstile.observe(steps.append)
    turnstile.handle(Pushed(at=1))
    turnstile.handle(Unheard(at=2))
    turnstile.handle(Pushed(at=3))
    assert turnstile.leaves == ("locked",)
    assert turnstile.context.pushes == 2
    assert [[(row.declared.source, row.event) for row in step.taken] for step in steps] == [
        [("locked", "pushed"), ("unlocked", "passed")],
        [],
        [],
    ]


def test_a_step_tells_before_and_after_apart() -> None:
    turnstile = Chart[Count](TurnstileChart(Count()))
    steps: list[Step[Count]] = []
    leave = turnstile.observe(steps.append)
    turnstile.handle(Pushed(at=1))
    leave()
    turnstile.handle(Pushed(at=2))
    [step] = steps
    assert (step.before.context, step.after.context) == (Count(0), Count(2))
    assert step.event == "pushed"


def test_a_snapshot_restores_another_chart_of_the_same_class(reached: Reached) -> None:
    script = reached.playing()
    there = script.conversation.snapshot()
    elsewhere = Conversation()
    elsewhere.restore(there)
    assert elsewhere.snapshot() == there
    script.user_presses_stop()
    assert elsewhere.snapshot() == there


@pytest.mark.parametrize(
    ("leaves", "complaint"),
    [
        (("ready", "input_idle", "generation_idle", "nowhere"), "'nowhere' is no atomic state of ConversationChart"),
        (("ready", "input_idle", "running", "drained"), "'running' is no atomic state"),
        (("ready", "input_idle", "drained", "generation_idle"), "is not one leaf a region, in order"),
        (("ready", "input_idle", "generation_idle"), "is not one leaf a region, in order"),
    ],
)
def test_a_snapshot_of_something_else_is_refused(leaves: tuple[str, ...], complaint: str) -> None:
    conversation = Conversation()
    before = conversation.snapshot()
    with pytest.raises(ChartError, match=complaint):
        conversation.restore(Snapshot(leaves, Context("other")))
    assert conversation.snapshot() == before


class EventlessChart(ChartDefinition):
    class machine(State.Compound):
        one = State(initial=True)
        two = State()
        one.to(two, cond="always")
        two.to(one, event="back")

    def always(self) -> bool:
        return True


class CrossingChart(ChartDefinition):
    class machine(State.Parallel):
        class left(State.Compound):
            one = State(initial=True)

        class right(State.Compound):
            two = State(initial=True)
            three = State()
            two.to(three, event="go")

        left.one.to(right.three, event="cross")


class NestedParallelChart(ChartDefinition):
    class machine(State.Compound):
        one = State(initial=True)

        class two(State.Parallel):
            class left(State.Compound):
                three = State(initial=True)

            class right(State.Compound):
                four = State(initial=True)

        one.to(two, event="go")


class ConventionalActionChart(ChartDefinition):
    class machine(State.Compound):
        one = State(initial=True)
        two = State()
        one.to(two, event="go")

    def on_go(self) -> None:
        """The library would run this by its name alone."""


class ConventionalEntryChart(ChartDefinition):
    class machine(State.Compound):
        one = State(initial=True)
        two = State()
        one.to(two, event="go")

    def on_enter_two(self) -> None:
        """The library would run this by its name alone."""


class AfterChart(ChartDefinition):
    class machine(State.Compound):
        one = State(initial=True)
        two = State()
        one.to(two, event="go", after="too_late")

    def too_late(self) -> None:
        """A raise in here could not be undone."""


class MisspeltChart(ChartDefinition):
    class machine(State.Compound):
        one = State(initial=True)
        two = State()
        one.to(two, event="go", on="wave")


@pytest.mark.parametrize(
    ("definition", "complaint"),
    [
        (EventlessChart, "has no event: eventless transitions are not used"),
        (CrossingChart, "leaves its region"),
        (NestedParallelChart, "two is parallel inside another state"),
        (ConventionalActionChart, "on_go would run there"),
        (ConventionalEntryChart, "on_enter_two would run there"),
        (AfterChart, "too_late would run there"),
        (MisspeltChart, "MisspeltChart has no method 'wave', which a transition line names"),
    ],
)
def test_what_the_charts_do_not_use_is_refused_when_the_first_is_made(
    definition: type[ChartDefinition], complaint: str
) -> None:
    with pytest.raises(ChartError, match=complaint):
        definition(Count())


def test_a_declared_chart_can_be_looked_at() -> None:
    states = {state.state_id: state for state in states_of(ConversationChart)}
    assert [s.state_id for s in states.values() if s.parent == "conversation"] == [
        "connection",
        "input_turn",
        "generation",
        "playback",
    ]
    assert states["conversation"].is_parallel
    assert states["running"].children == ("waiting", "streaming", "tools")
    assert states["waiting"].is_initial
    assert (states["waiting"].region, states["waiting"].parent) == ("generation", "running")
    rows = transitions_of(ConversationChart)
    [drain] = [row for row in rows if row.events == ("playback_drained",) and row.target == "drained"]
    assert (drain.region, drain.source) == ("playback", "draining")
    assert (drain.guards, drain.actions) == (("is_this_stream",), ("deliver",))
    [other] = [row for row in rows if row.source == "speech" and "not is_from_the_authority" in row.guards]
    assert other.target is None


def test_the_events_of_a_chart_are_the_ones_its_facts_and_timers_have() -> None:
    events = Conversation().definition.anatomy.events()
    assert {"speech_started", "cancel_ack_timed_out", "interrupted"} <= events
    assert "timer_fired" not in events, "a timer is known under its kind"


def test_a_conversation_tells_what_it_was_made_with() -> None:
    ids = SeededIds("kitchen")
    conversation = Conversation("kitchen", ids=ids)
    assert conversation.ids is ids
    assert conversation.policies == Policies()
    assert conversation.definition is ConversationChart


def test_a_chart_of_one_region_is_held_to_the_same() -> None:
    context = ToolCallContext("call-1", Stamp(1, 1))
    assert ToolCallChart(context).leaves == ("pending",)


def test_the_words_of_a_declaration_are_the_library_s() -> None:
    assert Compound is State.Compound
    assert Parallel is State.Parallel
