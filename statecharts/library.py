"""Where python-statemachine is touched: its engine, and looking into a declared chart.

The library's internals are partly untyped; this module is the boundary behind which everything is.

Two engines run the same declarations. `IndexedEngine` selects transitions through an index of (leaf, event), because
selection is about half of a step's cost in a chart without eventless transitions; `LibraryEngine` keeps the library's
own scan. A test drives both with the same facts and finds them equal.
"""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportMissingTypeArgument=false, reportUnknownParameterType=false, reportPrivateUsage=false
# The library annotates few of its internals; every function here states its own types instead.

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, cast

from statemachine import State, StateChart
from statemachine.engines.sync import SyncEngine
from statemachine.orderedset import OrderedSet

from .errors import ChartError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from statemachine.event_data import TriggerData
    from statemachine.transition import Transition

Guard = tuple[str, bool]
"""A guard's method name and the value it must have."""


@dataclass(frozen=True, slots=True)
class DeclaredTransition:
    """One transition line, as traces, diagrams and the explorer name it. `target` None: it stays."""

    region: str
    source: str
    events: tuple[str, ...]
    target: str | None
    guards: tuple[str, ...]
    """Method names; "not name" where the guard must not hold."""
    actions: tuple[str, ...]
    """Method names in the order in which they run."""


@dataclass(frozen=True, slots=True)
class DeclaredState:
    """One declared state. `children` empty: atomic."""

    state_id: str
    name: str
    region: str
    parent: str | None
    children: tuple[str, ...]
    is_initial: bool
    is_parallel: bool


@dataclass(frozen=True, slots=True)
class TakenTransition:
    """A transition that was taken, and by which of its events."""

    declared: DeclaredTransition
    event: str


class Anatomy:
    """What a declared chart consists of, computed once a class."""

    def __init__(self, definition: type[StateChart[Any]]) -> None:
        self.states = tuple(_walk(definition))
        atomic = [state for state in self.states if state.is_atomic]
        self.leaf_order = {state.id: place for place, state in enumerate(atomic)}
        """Atomic states in document order."""
        self.region_order: dict[str, int] = {}
        for state in atomic:
            self.region_order.setdefault(region_of(state), len(self.region_order))
        self.described: dict[int, DeclaredTransition] = {}
        self.index: dict[tuple[str, str], list[tuple[Transition, tuple[Guard, ...]]]] = {}
        for state in self.states:
            for transition in state.transitions:
                if not transition.initial:
                    self._check(transition)
                    self.described[id(transition)] = _describe(transition)
        for leaf in atomic:
            for owner in (leaf, *leaf.ancestors()):
                for transition in owner.transitions:
                    if transition.initial:
                        continue
                    for event in transition.events:
                        self.index.setdefault((leaf.id, str(event)), []).append((transition, _guards_of(transition)))

    @staticmethod
    def _check(transition: Transition) -> None:
        if transition.is_eventless:
            raise ChartError(f"{transition} has no event: eventless transitions are not used")
        target = transition.target
        if target is not None and region_of(target) != region_of(transition.source):
            raise ChartError(f"{transition} leaves its region")

    def declared_states(self) -> tuple[DeclaredState, ...]:
        """Every state, parents before children."""
        return tuple(
            DeclaredState(
                state_id=state.id,
                name=str(state.name),
                region=region_of(state),
                parent=state.parent.id if state.parent is not None else None,
                children=tuple(child.id for child in state.states),
                is_initial=bool(state.initial),
                is_parallel=bool(state.parallel),
            )
            for state in self.states
        )

    def declared_transitions(self) -> tuple[DeclaredTransition, ...]:
        """Every transition line, in the order in which it is tried."""
        return tuple(self.described.values())

    def events(self) -> frozenset[str]:
        """Every event that some transition names."""
        return frozenset(event for _, event in self.index)


class ObservedEngine(SyncEngine):
    """The library's engine, telling the chart what it takes."""

    def microstep(self, transitions: list[Transition], trigger_data: TriggerData) -> Any:  # noqa: ANN401 - the library's
        """As the library does it: in the order of the regions, and remembered."""
        chart = cast("Any", self.sm)
        order = chart.anatomy.region_order
        ordered = sorted(transitions, key=lambda transition: order[region_of(transition.source)])
        chart.note_taken(tuple(ordered), str(trigger_data.event))
        result = super().microstep(ordered, trigger_data)
        chart.leaves = chart.active_leaves()
        return result


class LibraryEngine(ObservedEngine):
    """Selection by the library's own scan."""


class IndexedEngine(ObservedEngine):
    """Selection by table, for charts whose transitions never leave their region and always have an event."""

    def select_eventless_transitions(self, trigger_data: TriggerData) -> OrderedSet[Any]:
        """There are none: `Anatomy` refuses a chart that has one."""
        return OrderedSet()

    def select_transitions(self, trigger_data: TriggerData) -> OrderedSet[Any]:
        """The first enabled transition of each active leaf, in the order of the regions."""
        chart = cast("Any", self.sm)
        index = chart.anatomy.index
        event = str(trigger_data.event)
        enabled: OrderedSet[Any] = OrderedSet()
        for leaf in chart.leaves:
            for transition, guards in index.get((leaf, event), ()):
                if all(bool(getattr(chart, name)()) is wanted for name, wanted in guards):
                    enabled.add(transition)
                    break
        return enabled


def region_of(state: State) -> str:
    """The region a state belongs to: the child of the parallel state above it, or the topmost state."""
    lineage = [state, *state.ancestors()]
    for child, parent in pairwise(lineage):
        if parent.parallel:
            return child.id
    return lineage[-1].id


def configuration_of(definition: type[StateChart[Any]], leaves: tuple[str, ...]) -> OrderedSet[Any]:
    """The library's full configuration of these leaves. Raises `ChartError` for an unknown one."""
    values: OrderedSet[Any] = OrderedSet()
    for leaf in leaves:
        state = definition.states_map.get(leaf)
        if state is None or not state.is_atomic:
            raise ChartError(f"{leaf!r} is no atomic state of {definition.__name__}")
        for ancestor in reversed(list(state.ancestors())):
            values.add(ancestor.value)
        values.add(state.value)
    return values


def _walk(definition: type[StateChart[Any]]) -> Iterator[State]:
    def visit(state: State) -> Iterator[State]:
        yield state
        for child in state.states:
            yield from visit(child)

    for top in definition.states:
        yield from visit(top)


def _guards_of(transition: Transition) -> tuple[Guard, ...]:
    return tuple((str(spec.func), spec.expected_value is not False) for spec in transition.cond)


def _describe(transition: Transition) -> DeclaredTransition:
    actions = (spec for group in (transition.before, transition.on) for spec in group if not spec.is_convention)
    return DeclaredTransition(
        region=region_of(transition.source),
        source=transition.source.id,
        events=tuple(str(event) for event in transition.events),
        target=transition.target.id if transition.target is not None else None,
        guards=tuple(name if wanted else f"not {name}" for name, wanted in _guards_of(transition)),
        actions=tuple(str(spec.func) for spec in actions),
    )
