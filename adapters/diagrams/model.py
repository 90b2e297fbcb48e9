"""What a picture shows, taken from the declared chart: regions, states, and transition lines that belong together."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field, replace

from ...statecharts.chart import ChartDefinition, states_of, transitions_of
from ...statecharts.errors import ChartError
from ...statecharts.library import DeclaredState, DeclaredTransition


@dataclass(frozen=True, slots=True)
class Line:
    """Transition lines that differ in their source alone, as the chart's file writes them."""

    region: str
    sources: tuple[str, ...]
    target: str | None
    events: tuple[str, ...]
    guards: tuple[str, ...]
    actions: tuple[str, ...]
    rows: tuple[int, ...]
    """Their places among the declared transitions, in the order of the sources."""

    def of(self, source: str) -> Line:
        """The one of them that has this source."""
        place = self.sources.index(source)
        return replace(self, sources=(source,), rows=(self.rows[place],))


@dataclass(frozen=True, slots=True)
class Arrow:
    """All lines that lead from the same sources to the same target."""

    sources: tuple[str, ...]
    target: str
    lines: tuple[Line, ...]

    def of(self, source: str) -> Arrow:
        """The part of it that has this source."""
        return Arrow((source,), self.target, tuple(line.of(source) for line in self.lines))


@dataclass(frozen=True, slots=True)
class Region:
    """One region with its states, parents before children, and its lines."""

    region_id: str
    name: str
    states: tuple[DeclaredState, ...]
    arrows: tuple[Arrow, ...]
    internal: tuple[Line, ...]
    """The lines that stay where they are."""

    def lines(self) -> tuple[Line, ...]:
        """Every line of the region."""
        return (*(line for arrow in self.arrows for line in arrow.lines), *self.internal)

    def state(self, state_id: str) -> DeclaredState:
        """The state of that id."""
        return next(state for state in self.states if state.state_id == state_id)

    def lineage(self, state_id: str) -> tuple[str, ...]:
        """The state and everything it is in, up to the region."""
        parent = self.state(state_id).parent
        return (state_id,) if state_id == self.region_id or parent is None else (state_id, *self.lineage(parent))

    def home_of(self, arrow: Arrow) -> str:
        """The innermost compound that the whole arrow stays in."""
        outside = [set(self.lineage(source)) for source in arrow.sources]
        enclosing = self.lineage(arrow.target)[1:]
        return next(state for state in enclosing if all(state in lineage for lineage in outside))

    def leaf_of(self, state: DeclaredState) -> DeclaredState:
        """The leaf that entering a state leads to."""
        while state.children:
            state = next(child for child in self.states if child.parent == state.state_id and child.is_initial)
        return state


@dataclass(frozen=True, slots=True)
class Marks:
    """What is highlighted in a picture, beside the barge-in transaction."""

    active: frozenset[str] = frozenset()
    """Active leaves; their ancestors are active too."""
    path: dict[int, int] = field(default_factory=dict[int, int])
    """Declared transitions that a trace took, by their place, and how often."""
    latest: frozenset[int] = frozenset()
    """Those that its last macrostep took."""


@dataclass(frozen=True, slots=True)
class Picture:
    """A chart, or some of its regions, to be drawn."""

    name: str
    title: str
    definition: type[ChartDefinition]
    regions: tuple[Region, ...]
    barge_in: frozenset[int]
    """Places of the declared transitions that make up the transaction."""
    barge_in_regions: tuple[str, ...]
    """The regions of the transaction, in the order in which they run; of the whole chart, shown or not."""
    marks: Marks = field(default_factory=Marks)


def picture_of(
    name: str,
    definition: type[ChartDefinition],
    barge_in: Collection[int] = (),
    marks: Marks | None = None,
    region: str | None = None,
) -> Picture:
    """The picture of a chart, or of one of its regions. Raises `ChartError` for an unknown region."""
    states, transitions = states_of(definition), transitions_of(definition)
    roots = [state for state in states if state.state_id == state.region and not state.is_parallel]
    if region is not None and region not in [root.region for root in roots]:
        known = ", ".join(root.region for root in roots)
        raise ChartError(f"{name} has no region {region!r}: choose one of {known}")
    shown = [root for root in roots if region in (None, root.region)]
    lines = _lines(transitions)
    parallel = next((state.name for state in states if state.is_parallel), None)
    title = parallel if parallel is not None and region is None else shown[0].name
    return Picture(
        name=name,
        title=title,
        definition=definition,
        regions=tuple(_region(root, states, lines) for root in shown),
        barge_in=frozenset(barge_in),
        barge_in_regions=tuple(
            root.region for root in roots if any(transitions[row].region == root.region for row in barge_in)
        ),
        marks=marks or Marks(),
    )


def leaves_named(definition: type[ChartDefinition], names: Collection[str]) -> frozenset[str]:
    """The leaves that these names mean: state ids, plain names, or "region=name". Raises `ChartError`."""
    leaves = [state for state in states_of(definition) if not state.children]
    found: dict[str, str] = {}
    for name in names:
        region, _, plain = name.rpartition("=")
        meant = [leaf for leaf in leaves if region in ("", leaf.region) and plain in (leaf.state_id, leaf.name)]
        if len(meant) != 1:
            why = "more than one region has" if meant else "no region has"
            known = ", ".join(f"{leaf.region}={leaf.name}" for leaf in leaves)
            raise ChartError(f"{why} a state {name!r}: choose from {known}")
        other = found.setdefault(meant[0].region, meant[0].state_id)
        if other != meant[0].state_id:
            raise ChartError(
                f"{other!r} and {meant[0].state_id!r} are both of {meant[0].region}: one a region is active"
            )
    return frozenset(found.values())


def _lines(transitions: tuple[DeclaredTransition, ...]) -> tuple[Line, ...]:
    together: dict[tuple[object, ...], list[int]] = {}
    for row, line in enumerate(transitions):
        together.setdefault((line.region, line.target, line.events, line.guards, line.actions), []).append(row)
    return tuple(
        Line(
            region=transitions[rows[0]].region,
            sources=tuple(transitions[row].source for row in rows),
            target=transitions[rows[0]].target,
            events=transitions[rows[0]].events,
            guards=transitions[rows[0]].guards,
            actions=transitions[rows[0]].actions,
            rows=tuple(rows),
        )
        for rows in together.values()
    )


def _region(root: DeclaredState, states: tuple[DeclaredState, ...], lines: tuple[Line, ...]) -> Region:
    arrows: dict[tuple[tuple[str, ...], str], list[Line]] = {}
    internal: list[Line] = []
    for line in lines:
        if line.region != root.region:
            continue
        if line.target is None:
            internal.append(line)
        else:
            arrows.setdefault((line.sources, line.target), []).append(line)
    return Region(
        region_id=root.region,
        name=root.name,
        states=tuple(state for state in states if state.region == root.region),
        arrows=tuple(Arrow(sources, target, tuple(of_them)) for (sources, target), of_them in arrows.items()),
        internal=tuple(internal),
    )
