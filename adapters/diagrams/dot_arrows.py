"""The arrows of a region as dot text.

The label of an arrow is a node of its own, because the layout keeps nodes apart and labels not. An arrow that leads
back to a state declared earlier is written the other way round, so that the layout keeps the order of declaration.
"""

from __future__ import annotations

from collections.abc import Iterator, Set
from dataclasses import dataclass

from .dot_labels import DotLabels
from .ink import COMPOUND, PLAIN, REGION, Ink, ink_of_arrow
from .model import Arrow, Picture, Region


@dataclass(frozen=True, slots=True)
class _End:
    """Where an edge ends: a node, and the compound at whose border it is cut off."""

    node: str
    cluster: str = ""


class DotArrows:
    """Writes the arrows of one region. `noted`: the compounds with a note inside, where their arrows end."""

    def __init__(
        self, picture: Picture, region: Region, labels: DotLabels, noted: Set[str], *, identified: bool = False
    ) -> None:
        self._picture = picture
        self._region = region
        self._words = labels
        self._noted = noted
        self._identified = identified
        self._order = {state.state_id: place for place, state in enumerate(region.states)}

    @property
    def labels(self) -> list[str]:
        """The nodes that are labels."""
        return [self._label_of(number) for number in range(len(self._region.arrows))]

    def within(self, state_id: str) -> Iterator[str]:
        """The arrows that stay in that compound and in none inside of it."""
        for number, arrow in enumerate(self._region.arrows):
            if self._region.home_of(arrow) == state_id:
                yield from self._arrow(number, arrow)

    def into(self, state_id: str) -> str:
        """The head of an edge into a state, with its attributes."""
        end = self._entry_of(state_id)
        return f"{end.node} [{_attributes(lhead=end.cluster)}]"

    def _arrow(self, number: int, arrow: Arrow) -> Iterator[str]:
        label = self._label_of(number)
        ink = ink_of_arrow(self._picture, arrow)
        ground = REGION if self._region.home_of(arrow) == self._region.region_id else COMPOUND
        yield (
            f"    {label} [{self._class(arrow)}"
            f'label=<<TABLE BORDER="{int(ink is not PLAIN)}" CELLBORDER="0" CELLSPACING="0" '
            f'CELLPADDING="2" COLOR="{ink.line}" BGCOLOR="{ground.fill}">'
            f"{self._words.cells(arrow)}</TABLE>>]"
        )
        later = {source for source in arrow.sources if self._order[source] >= self._order[arrow.target]}
        upwards = len(later) == len(arrow.sources)
        for source in arrow.sources:
            rank = {} if upwards or source not in later else {"constraint": "false"}
            style = _style(ink_of_arrow(self._picture, arrow.of(source))) | self._classes(arrow.of(source))
            yield _edge(self._exit_of(source, arrow.target), _End(label), upwards, arrowed=False, **style, **rank)
        yield _edge(
            _End(label), self._entry_of(arrow.target), upwards, arrowed=True, **_style(ink), **self._classes(arrow)
        )

    def _classes(self, arrow: Arrow) -> dict[str, str]:
        """The lines that a drawn thing stands for."""
        rows = sorted({row for line in arrow.lines for row in line.rows})
        return {"class": " ".join(f"row_{row}" for row in rows)} if self._identified else {}

    def _class(self, arrow: Arrow) -> str:
        return "".join(f'class="{value}" ' for value in self._classes(arrow).values())

    def _label_of(self, number: int) -> str:
        return f"arrow_{self._region.region_id}_{number}"

    def _entry_of(self, state_id: str) -> _End:
        state = self._region.state(state_id)
        if not state.children:
            return _End(state_id)
        inside = f"in_{state_id}" if state_id in self._noted else self._region.leaf_of(state).state_id
        return _End(inside, f"cluster_{state_id}")

    def _exit_of(self, source: str, target: str) -> _End:
        if not self._region.state(source).children:
            return _End(source)
        return _End(f"in_{source}", "" if source in self._region.lineage(target) else f"cluster_{source}")


def _style(ink: Ink) -> dict[str, str]:
    return {} if ink is PLAIN else {"color": ink.line, "penwidth": "1.8"}


def _edge(tail: _End, head: _End, upwards: bool, *, arrowed: bool, **style: str) -> str:
    direction = ("back" if upwards else "forward") if arrowed else "none"
    if upwards:
        tail, head = head, tail
    attributes = _attributes(dir=direction, ltail=tail.cluster, lhead=head.cluster, **style)
    return f"    {tail.node} -> {head.node} [{attributes}]"


def _attributes(**attributes: str) -> str:
    return " ".join(f'{name}="{value}"' for name, value in attributes.items() if value)
