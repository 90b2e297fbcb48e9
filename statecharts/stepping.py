"""Who runs the declarations.

Three engines do. `LibraryEngine` is the library as it is. `IndexedEngine` keeps its queues and its run-to-completion
loop, and looks up what the library works out anew at every step: which transitions an event may take in a leaf, and
which leaves result. That is possible because the charts here have no eventless transitions, no entry or exit actions,
and no transition that leaves its region, which `Anatomy` checks once a class. `DirectEngine` leaves out the queues too.
A property test drives them all with the same facts and finds the same actions, leaves and contexts;
`benchmarks/chart.py` shows what each costs.
"""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportMissingTypeArgument=false, reportUnknownParameterType=false
# The library annotates few of its internals; every function here states its own types instead.

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any, cast

from statemachine import StateChart
from statemachine.engines.sync import SyncEngine
from statemachine.event_data import TriggerData

from .library import Row, region_of

if TYPE_CHECKING:
    from statemachine.transition import Transition


class LibraryEngine(SyncEngine):
    """The library's own engine, telling the chart what it takes."""

    def take(self, event: str) -> None:
        """Run one macrostep."""
        self.sm.send(event)

    def join(self, event: str) -> None:
        """Add an internal event to the macrostep that is running."""
        self.sm.raise_(event)

    def microstep(self, transitions: list[Transition], trigger_data: TriggerData) -> Any:  # noqa: ANN401 - the library's
        """As the library does it: in the order of the regions, and remembered."""
        chart = cast("Any", self.sm)
        order = chart.anatomy.region_order
        ordered = sorted(transitions, key=lambda transition: order[region_of(transition.source)])
        chart.note_taken(tuple(ordered), str(trigger_data.event))
        result = super().microstep(ordered, trigger_data)
        chart.leaves = chart.active_leaves()
        return result


class IndexedEngine(SyncEngine):
    """The same by table, around the library's queues and loop."""

    def take(self, event: str) -> None:
        """Run one macrostep."""
        known = cast("Any", self.sm).anatomy.named_events.get(event)
        if known is not None:
            self.put(TriggerData(machine=self.sm, event=known))
            self.processing_loop()

    def join(self, event: str) -> None:
        """Add an internal event to the macrostep that is running."""
        known = cast("Any", self.sm).anatomy.named_events.get(event)
        if known is not None:
            self.put(TriggerData(machine=self.sm, event=known), internal=True)

    def start(self, **_: object) -> None:
        """Nothing is called on the way into the first configuration."""
        anatomy = cast("Any", self.sm).anatomy
        self.sm.current_state_value = anatomy.configuration_of(anatomy.initial_leaves)

    def select_eventless_transitions(self, trigger_data: TriggerData) -> Any:  # noqa: ANN401 - the library's
        """There are none."""
        return ()

    def select_transitions(self, trigger_data: TriggerData) -> Any:  # noqa: ANN401 - rows, for the library to hand on
        """The first enabled row of each active leaf, in the order of the regions."""
        return self._rows_for(self.sm, str(trigger_data.event))

    def microstep(self, transitions: Any, trigger_data: TriggerData) -> None:  # noqa: ANN401 - rows, as selected
        """Every `before`, then every `on`, each in the order of the regions; then the configuration moves, at once."""
        self._step(self.sm, transitions, str(trigger_data.event))

    @staticmethod
    def _rows_for(chart: Any, event: str) -> list[Row]:  # noqa: ANN401 - a chart of any context
        index: dict[tuple[str, str], tuple[Row, ...]] = chart.anatomy.index
        enabled: list[Row] = []
        for leaf in chart.leaves:
            for row in index.get((leaf, event), ()):
                if _is_enabled(row, chart):
                    enabled.append(row)
                    break
        return enabled

    @staticmethod
    def _step(chart: Any, rows: list[Row], event: str) -> None:  # noqa: ANN401 - a chart of any context
        chart.note_taken(tuple(row.transition for row in rows), event)
        for row in rows:
            for action in row.before:
                action(chart)
        for row in rows:
            for action in row.on:
                action(chart)
        leaves = list(chart.leaves)
        for row in rows:
            if row.leaf is not None:
                leaves[row.region] = row.leaf
        chart.leaves = tuple(leaves)
        chart.current_state_value = chart.anatomy.configuration_of(chart.leaves)


class DirectEngine(IndexedEngine):
    """The same table without the library's queues, for whoever takes millions of steps: the explorer.

    It adds nothing but the order that the library's loop keeps: one event at a time, what it decided after it.
    """

    def __init__(self, sm: StateChart[Any]) -> None:
        super().__init__(sm)
        self._waiting: deque[str] = deque()

    def take(self, event: str) -> None:
        """Run one macrostep."""
        chart = cast("Any", self.sm)
        waiting = self._waiting
        waiting.append(event)
        while waiting:
            present = waiting.popleft()
            rows = self._rows_for(chart, present)
            if rows:
                self._step(chart, rows, present)

    def join(self, event: str) -> None:
        """Add an internal event to the macrostep that is running."""
        self._waiting.append(event)

    def clear(self) -> None:
        """Forget what was decided and not yet taken."""
        super().clear()
        self._waiting.clear()


def _is_enabled(row: Row, chart: object) -> bool:
    for guard, wanted in row.guards:  # noqa: SIM110 - the hottest line of a chart, and `all` costs a generator
        if bool(guard(chart)) is not wanted:
            return False
    return True
