"""The discipline under every chart: one fact in, one run-to-completion macrostep, a tuple of actions out.

A chart is declared on python-statemachine: states and transition lines in a class body, guards and actions bound by
name to methods of the chart class. This module holds what the library is trusted with and what it is kept from:

- Configurations change atomically (`atomic_configuration_update`), errors propagate (`catch_errors_as_events` off).
- A chart sends itself nothing but `decide`d events, which join the same macrostep. There are no eventless
  transitions, no delays, no `after` or enter callbacks, no invocations.
- `Chart.handle` runs one macrostep. If anything in it raises, configuration and context are put back to where they were
  before the fact and `ChartError` is raised: no half-taken transaction exists, and none is ever seen.
- Actions leave sorted by kind; within a kind in the order of the regions.
"""

# pyright: reportUnknownMemberType=false
# The library annotates few of its members; what comes from them is given its type where it enters.

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from functools import cache
from operator import attrgetter
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, TypeVar

from statemachine import StateChart

from .actions import PRIORITY, Action
from .errors import ChartError, StepRefused
from .facts import Fact
from .library import Anatomy, DeclaredState, DeclaredTransition, TakenTransition
from .stepping import DirectEngine, IndexedEngine, LibraryEngine

if TYPE_CHECKING:
    from statemachine.transition import Transition

ContextT = TypeVar("ContextT")
Selection = Literal["indexed", "library", "direct"]


@dataclass(frozen=True, slots=True)
class Snapshot(Generic[ContextT]):
    """Everything a chart is: restore it into a chart of the same class to go on from here."""

    leaves: tuple[str, ...]
    """The active atomic state of each region."""
    context: ContextT


@dataclass(frozen=True, slots=True)
class Step(Generic[ContextT]):
    """One macrostep, for observers: traces, invariants, the explorer."""

    fact: Fact
    event: str
    """The name under which the chart took the fact; a timer's fact has its kind's."""
    before: Snapshot[ContextT]
    after: Snapshot[ContextT]
    taken: tuple[TakenTransition, ...]
    """In the order taken; empty when the fact was ignored."""
    actions: tuple[Action, ...]


_ENGINES: dict[Selection, type[IndexedEngine | LibraryEngine]] = {
    "indexed": IndexedEngine,
    "library": LibraryEngine,
    "direct": DirectEngine,
}


class ChartDefinition(StateChart[Any]):
    """Base of the declared charts. Not for users of a chart: they hold a `Chart`."""

    atomic_configuration_update = True
    catch_errors_as_events = False
    validate_trap_states = False
    validate_disconnected_states = False

    anatomy: ClassVar[Anatomy]

    def __init__(self, context: Any, selection: Selection = "indexed") -> None:  # noqa: ANN401 - each chart has its own
        self.context = context
        self.fact: Fact = Fact(at=0)
        self.emitted: list[Action] = []
        self.taken: list[tuple[tuple[Transition, ...], str]] = []
        self.leaves: tuple[str, ...] = ()
        self._selection: Selection = selection
        anatomy_of(type(self))
        super().__init__()
        self.leaves = self.active_leaves()

    def _get_engine(self) -> IndexedEngine | LibraryEngine:
        self._runner = _ENGINES[self._selection](self)
        return self._runner

    def _register_callbacks(self, listeners: list[object]) -> None:
        """Only the library's engine needs them looked up once an instance, which costs milliseconds."""
        if self._selection == "library":
            super()._register_callbacks(listeners)

    def active_leaves(self) -> tuple[str, ...]:
        """Active atomic states in document order: one a region."""
        order = self.anatomy.leaf_order
        return tuple(sorted((value for value in self.configuration_values if value in order), key=order.__getitem__))

    def note_taken(self, transitions: tuple[Transition, ...], event: str) -> None:
        """Called by the engine at the start of a microstep."""
        self.taken.append((transitions, event))

    def emit(self, action: Action) -> None:
        """Add one action to the macrostep."""
        self.emitted.append(action)

    def decide(self, event: str) -> None:
        """Raise an internal event that joins this macrostep."""
        self._runner.join(event)

    def run(self, event: str) -> None:
        """Run one macrostep to its end."""
        self._runner.take(event)

    def put_back(self, leaves: tuple[str, ...]) -> None:
        """Be in these states, and forget what was decided and not yet done. Raises `ChartError` for unknown ones."""
        self.current_state_value = self.anatomy.configuration_of(leaves)
        self.leaves = leaves
        self._runner.clear()


class Chart(Generic[ContextT]):
    """A running chart. `handle` is all there is to running it; the rest is for looking and for going back."""

    def __init__(self, definition: ChartDefinition) -> None:
        self._chart = definition
        self._observers: list[Callable[[Step[ContextT]], None]] = []

    @property
    def definition(self) -> type[ChartDefinition]:
        """The declared chart that this one runs."""
        return type(self._chart)

    @property
    def context(self) -> ContextT:
        """The present context. Read it; only the chart writes it."""
        return self._chart.context

    @property
    def leaves(self) -> tuple[str, ...]:
        """Active leaf states, one a region, in the order of the regions."""
        return self._chart.leaves

    def handle(self, fact: Fact) -> tuple[Action, ...]:
        """Run one macrostep.

        Raises `ChartError` when a guard, an action or an observer of the chart is broken; nothing of the macrostep took
        effect then, and the next fact finds the chart as if this one had not come.
        """
        chart = self._chart
        before = self.snapshot()
        chart.fact = fact
        chart.emitted = []
        chart.taken = []
        try:
            event = self._begin(fact)
            chart.run(event)
            actions = self._finish(tuple(sorted(chart.emitted, key=_place)))
            if self._observers:
                self._tell(fact, event, before, actions)
        except BaseException as error:
            chart.context = before.context
            chart.put_back(before.leaves)
            if not isinstance(error, Exception) or isinstance(error, StepRefused):
                raise
            raise ChartError(f"{type(fact).__name__} was undone in {'/'.join(before.leaves)}: {error!r}") from error
        return actions

    def observe(self, observer: Callable[[Step[ContextT]], None]) -> Callable[[], None]:
        """Call `observer` after each macrostep; the returned function ends that.

        An observer that raises undoes the macrostep, as a broken action would: its actions cannot be carried out when
        nobody gets them.
        """
        self._observers.append(observer)
        return lambda: self._observers.remove(observer)

    def snapshot(self) -> Snapshot[ContextT]:
        """Where the chart is, to come back to."""
        return Snapshot(self._chart.leaves, _copied(self._chart.context))

    def restore(self, snapshot: Snapshot[ContextT]) -> None:
        """Go on from `snapshot`, which must come from a chart of the same class. Raises `ChartError` otherwise."""
        self._chart.put_back(snapshot.leaves)
        self._chart.context = _copied(snapshot.context)

    @contextmanager
    def considering(self, fact: Fact) -> Generator[tuple[str, ChartDefinition]]:
        """For looking: the event under which a fact would be taken, and the chart as its guards would find it.

        No macrostep runs, and everything is put back at the end.
        """
        before, former = self.snapshot(), self._chart.fact
        self._chart.fact = fact
        try:
            yield self._begin(fact), self._chart
        finally:
            self._chart.fact = former
            self.restore(before)

    def _begin(self, fact: Fact) -> str:
        """Before the macrostep: note the time, and say under which event the chart takes the fact."""
        return fact.event

    def _finish(self, actions: tuple[Action, ...]) -> tuple[Action, ...]:
        """After the macrostep: last checks. Whatever raises here undoes the step too."""
        return actions

    def _tell(self, fact: Fact, event: str, before: Snapshot[ContextT], actions: tuple[Action, ...]) -> None:
        chart = self._chart
        described = chart.anatomy.described
        taken = [TakenTransition(described[id(line)], by) for lines, by in chart.taken for line in lines]
        step = Step(fact, event, before, self.snapshot(), tuple(taken), actions)
        for observer in tuple(self._observers):
            observer(step)


def _place(action: Action) -> int:
    return PRIORITY.get(type(action), 0)


def _copied(context: ContextT) -> ContextT:
    """A shallow copy of a dataclass whose fields are its positional arguments; `copy.copy` takes five times as long."""
    kind = type(context)
    return kind(*_fields_of(kind)(context))


@cache
def _fields_of(kind: type[Any]) -> Callable[[object], tuple[object, ...]]:
    names = tuple(field.name for field in fields(kind))
    getter = attrgetter(*names)
    return getter if len(names) > 1 else lambda context: (getter(context),)


def anatomy_of(definition: type[ChartDefinition]) -> Anatomy:
    """The anatomy of a declared chart, computed once a class."""
    if "anatomy" not in vars(definition):
        definition.anatomy = Anatomy(definition)
    return definition.anatomy


def states_of(definition: type[ChartDefinition]) -> tuple[DeclaredState, ...]:
    """Every declared state, parents before children."""
    return anatomy_of(definition).declared_states()


def transitions_of(definition: type[ChartDefinition]) -> tuple[DeclaredTransition, ...]:
    """Every transition line, in the order in which it is tried."""
    return anatomy_of(definition).declared_transitions()
