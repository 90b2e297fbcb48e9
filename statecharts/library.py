"""Looking into a declared chart: its states and rows, as values that need no library to be read.

Half of python-statemachine is touched here, the other half in `stepping.py`. The library's internals are partly
untyped; these two modules are the boundary behind which everything is.
"""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportMissingTypeArgument=false, reportUnknownParameterType=false, reportPrivateUsage=false
# The library annotates few of its internals; every function here states its own types instead.

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from types import FunctionType
from typing import TYPE_CHECKING, Any

from statemachine import State, StateChart
from statemachine.orderedset import OrderedSet

from .errors import ChartError

if TYPE_CHECKING:
    from statemachine.callbacks import CallbackSpec
    from statemachine.event import Event
    from statemachine.transition import Transition

Guard = tuple[str, bool]
"""A guard's method name and the value it must have."""
Rule = Callable[[Any], Any]
"""A guard or an action: a method of the chart class, called with the chart."""


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


@dataclass(frozen=True, slots=True)
class Row:
    """A transition line as the indexed engine takes it: the functions to call, in order, and the leaf that results."""

    transition: Transition
    guards: tuple[tuple[Rule, bool], ...]
    before: tuple[Rule, ...]
    on: tuple[Rule, ...]
    region: int
    """Place of its region among the regions."""
    leaf: str | None
    """The atomic state it ends in; None: it stays."""


class Anatomy:
    """What a declared chart consists of, computed once a class. Raises `ChartError` for what the charts do not use."""

    def __init__(self, definition: type[StateChart[Any]]) -> None:
        self._definition = definition
        self.states = tuple(_walk(definition))
        atomic = [state for state in self.states if state.is_atomic]
        self.leaf_order = {state.id: place for place, state in enumerate(atomic)}
        """Atomic states in document order."""
        self.region_order: dict[str, int] = {}
        for state in atomic:
            self.region_order.setdefault(region_of(state), len(self.region_order))
        self.described: dict[int, DeclaredTransition] = {}
        self.index: dict[tuple[str, str], tuple[Row, ...]] = {}
        """By leaf and event, the rows to try, in order: inner states first, then as declared."""
        self.named_events: dict[str, Event] = {str(event): event for event in definition._events}
        self._configurations: dict[tuple[str, ...], OrderedSet[Any]] = {}
        rows: dict[int, Row] = {}
        for state in self.states:
            self._check_state(state)
            for transition in state.transitions:
                if not transition.initial:
                    self._check_transition(transition)
                    self.described[id(transition)] = _describe(transition)
                    rows[id(transition)] = self._row(transition)
        for leaf in atomic:
            for owner in (leaf, *leaf.ancestors()):
                for transition in owner.transitions:
                    for event in () if transition.initial else transition.events:
                        key = (leaf.id, str(event))
                        self.index[key] = (*self.index.get(key, ()), rows[id(transition)])
        self.initial_leaves = tuple(
            leaf.id for leaf in atomic if all(s.initial or _is_region(s) for s in (leaf, *leaf.ancestors()))
        )

    def _check_state(self, state: State) -> None:
        if state.parallel and state.parent is not None:
            raise ChartError(f"{state.id} is parallel inside another state: regions are always active here")
        for grouper in (state.enter, state.exit, state.invoke):
            self._check_unbound(state.id, grouper)

    def _check_transition(self, transition: Transition) -> None:
        if transition.is_eventless:
            raise ChartError(f"{transition} has no event: eventless transitions are not used")
        target = transition.target
        if target is not None and region_of(target) != region_of(transition.source):
            raise ChartError(f"{transition} leaves its region")
        for group in (transition.before, transition.on, transition.after, transition.validators):
            used = group in (transition.before, transition.on)
            self._check_unbound(str(transition), (spec for spec in group if spec.is_convention or not used))

    def _check_unbound(self, where: str, specs: Iterable[CallbackSpec]) -> None:
        """Callbacks are bound by name, in `before` and `on`; one found by its name alone would run unseen."""
        for spec in specs:
            if not spec.is_convention or hasattr(self._definition, spec.attr_name):
                raise ChartError(f"{where}: {spec.attr_name} would run there by the library's naming convention")

    def _row(self, transition: Transition) -> Row:
        target = transition.target
        return Row(
            transition=transition,
            guards=tuple((self._rule(name), wanted) for name, wanted in _guards_of(transition)),
            before=tuple(self._rule(name) for name in _actions_of(transition.before)),
            on=tuple(self._rule(name) for name in _actions_of(transition.on)),
            region=self.region_order[region_of(transition.source)],
            leaf=None if target is None else _initial_leaf(target).id,
        )

    def _rule(self, name: str) -> Rule:
        rule = getattr(self._definition, name, None)
        if not isinstance(rule, FunctionType):
            raise ChartError(f"{self._definition.__name__} has no method {name!r}, which a transition line names")
        return rule

    def configuration_of(self, leaves: tuple[str, ...]) -> OrderedSet[Any]:
        """The library's configuration of these leaves: shared, never changed. Raises `ChartError` for unknown ones."""
        configuration = self._configurations.get(leaves)
        if configuration is None:
            configuration = self._configurations[leaves] = self._build_configuration(leaves)
        return configuration

    def _build_configuration(self, leaves: tuple[str, ...]) -> OrderedSet[Any]:
        unknown = [leaf for leaf in leaves if leaf not in self.leaf_order]
        if unknown:
            raise ChartError(f"{unknown[0]!r} is no atomic state of {self._definition.__name__}")
        regions = [self.region_order[region_of(self._definition.states_map[leaf])] for leaf in leaves]
        if regions != list(range(len(self.region_order))):
            raise ChartError(f"{'/'.join(leaves)} is not one leaf a region, in order, of {self._definition.__name__}")
        values: OrderedSet[Any] = OrderedSet()
        for leaf in leaves:
            state = self._definition.states_map[leaf]
            for ancestor in reversed(list(state.ancestors())):
                values.add(ancestor.value)
            values.add(state.value)
        return values

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


def region_of(state: State) -> str:
    """The region a state belongs to: the child of the parallel state above it, or the topmost state."""
    lineage = [state, *state.ancestors()]
    for child, parent in pairwise(lineage):
        if parent.parallel:
            return child.id
    return lineage[-1].id


def _walk(definition: type[StateChart[Any]]) -> Iterator[State]:
    def visit(state: State) -> Iterator[State]:
        yield state
        for child in state.states:
            yield from visit(child)

    for top in definition.states:
        yield from visit(top)


def _guards_of(transition: Transition) -> tuple[Guard, ...]:
    return tuple((str(spec.func), spec.expected_value is not False) for spec in transition.cond)


def _actions_of(group: Iterable[CallbackSpec]) -> tuple[str, ...]:
    return tuple(str(spec.func) for spec in group if not spec.is_convention)


def _initial_leaf(state: State) -> State:
    """Where entering `state` ends."""
    while not state.is_atomic:
        state = next(child for child in state.states if child.initial)
    return state


def _is_region(state: State) -> bool:
    return state.parent is None or state.parent.parallel


def _describe(transition: Transition) -> DeclaredTransition:
    return DeclaredTransition(
        region=region_of(transition.source),
        source=transition.source.id,
        events=tuple(str(event) for event in transition.events),
        target=transition.target.id if transition.target is not None else None,
        guards=tuple(name if wanted else f"not {name}" for name, wanted in _guards_of(transition)),
        actions=(*_actions_of(transition.before), *_actions_of(transition.on)),
    )
