"""A picture as dot text: the source of every drawing, and itself a drawing for those who read dot.

Two styles. The *full* one writes every line with its guards and actions, region beside region. The *overview* has
states and the events that lead from one to another, two regions abreast, narrow enough for a page.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from html import escape

from ...statecharts.library import DeclaredState
from .dot_arrows import DotArrows
from .dot_labels import DotLabels
from .ink import ACTIVE, COMPOUND, FRAME, PLAIN, REGION, ink_of_line, legend_of
from .model import Line, Picture, Region

FONT = "Arial"
"""Both layout programs know how wide its letters are."""
_MIN_SHARED_LINES = 3
"""From so many on, lines that several states have in common are written once, beside them."""
_COLUMNS = 2
"""Of regions, in an overview."""


def dot_text(picture: Picture, *, overview: bool = False, identified: bool = False) -> str:
    """The picture as dot text. The same chart always gives the same text.

    `identified`: in an SVG every state has the id `state_<id>`, and what belongs to a line has the class `row_<row>`.
    """
    spacing, size = ("nodesep=0.1 ranksep=0.14", 9) if overview else ("nodesep=0.25 ranksep=0.3", 10)
    lines = [
        f'digraph "{picture.name}" {{',
        f'  graph [{spacing} compound=true fontname="{FONT}" fontsize={size} pad=0.1 bgcolor="#ffffff"]',
        f'  node [fontname="{FONT}" fontsize={size} shape=plain margin=0]',
        f'  edge [arrowsize=0.7 color="{PLAIN.line}"]',
    ]
    legend = _legend(picture)
    if legend:
        lines.append(f"  graph [labelloc=b labeljust=l label=<{legend}>]")
    framed = len(picture.regions) > 1
    if framed:
        title = f"<B>{escape(picture.title)}</B>"
        style = f'style=rounded color="{FRAME.line}" margin=8 fontsize={size + 3}'
        lines.append(f"  subgraph cluster_frame {{ label=<{title}> labelloc=t labeljust=c {style}")
    regions = [
        _DotRegion(picture, region, overview=overview, size=size, identified=identified) for region in picture.regions
    ]
    for region in regions:
        lines += region.text()
    if overview:
        for upper, lower in zip(regions, regions[_COLUMNS:], strict=False):
            lines += (f"  {node} -> {lower.top} [style=invis weight=0]" for node in upper.nodes)
    lines += ["  }"] * framed
    return "\n".join([*lines, "}", ""])


class _DotRegion:
    """Writes one region. `size`: of the letters, in points."""

    def __init__(self, picture: Picture, region: Region, *, overview: bool, size: int, identified: bool) -> None:
        self._picture = picture
        self._region = region
        self._overview = overview
        self._size = size
        self._identified = identified
        self._labels = DotLabels(picture, overview=overview)
        self._shared = {} if overview else _shared_lines(region)
        noted = frozenset(filter(self._has_note, _ids(region)))
        self._arrows = DotArrows(picture, region, self._labels, noted, identified=identified)
        self.top = f"start_{region.region_id}"
        """The topmost node of the region."""

    @property
    def nodes(self) -> list[str]:
        """Every state and label that is drawn."""
        return [state.state_id for state in self._region.states if not state.children] + self._arrows.labels

    def text(self) -> Iterator[str]:
        region = self._region
        style = f'style="rounded,filled" color="{REGION.line}" fillcolor="{REGION.fill}" margin=10'
        head = f"{self._id(region.region_id)}{self._title(region.name, 2)}"
        yield f"  subgraph cluster_{region.region_id} {{ {head} {style}"
        yield from self._children(region.states[0])
        for number, (sources, lines) in enumerate(self._shared.items()):
            names = " and ".join(escape(region.state(source).name) for source in sources)
            note = f"shared_{region.region_id}_{number}"
            yield f"    {note} [label=<{self._note(f'in {names}', lines)}>]"
            yield from (f"    {source} -> {note} [style=dashed arrowhead=none]" for source in sources)
        yield "  }"

    def _children(self, parent: DeclaredState) -> Iterator[str]:
        children = [state for state in self._region.states if state.parent == parent.state_id and state is not parent]
        for child in children:
            if child.is_initial:
                yield f'    start_{parent.state_id} [shape=point width=0.09 color="#1f2933"]'
                yield f"    start_{parent.state_id} -> {self._arrows.into(child.state_id)}"
        if self._has_note(parent.state_id):
            lines = self._kept_in(parent.state_id)
            yield f"    in_{parent.state_id} [label=<{self._note('in every state here', lines)}>]"
        for child in children:
            if child.children:
                yield from self._compound(child)
            else:
                yield f"    {child.state_id} [{self._id(child.state_id)}label=<{self._state(child)}>]"
        yield from self._arrows.within(parent.state_id)

    def _compound(self, state: DeclaredState) -> Iterator[str]:
        ink = ACTIVE if any(child in self._picture.marks.active for child in state.children) else COMPOUND
        style = f'style="rounded,filled" color="{ink.line}" fillcolor="{COMPOUND.fill}" margin=8'
        yield f"    subgraph cluster_{state.state_id} {{ {self._id(state.state_id)}{self._title(state.name, 1)} {style}"
        yield from self._children(state)
        yield "    }"

    def _id(self, state_id: str) -> str:
        return f'id="state_{state_id}" ' if self._identified else ""

    def _state(self, state: DeclaredState) -> str:
        ink, border = (ACTIVE, 2) if state.state_id in self._picture.marks.active else (PLAIN, 1)
        name = f'<FONT POINT-SIZE="{self._size + 1}"><B>{escape(state.name)}</B></FONT>'
        cells = "".join(self._labels.cell(line) for line in self._kept_in(state.state_id))
        if cells:
            cells += '<TR><TD HEIGHT="4" FIXEDSIZE="TRUE" WIDTH="1"></TD></TR>'  # room for the round corners
        return (
            f'<TABLE BORDER="{border}" CELLBORDER="0" CELLSPACING="0" CELLPADDING="3" STYLE="ROUNDED" '
            f'COLOR="{ink.line}" BGCOLOR="{ink.fill}"><TR><TD CELLPADDING="4">{name}</TD></TR>{cells}</TABLE>'
        )

    def _title(self, name: str, larger: int) -> str:
        return f"label=<<B>{escape(name)}</B>> labelloc=t labeljust=l fontsize={self._size + larger}"

    def _kept_in(self, state_id: str) -> list[Line]:
        """The lines that are written inside a state; in an overview only those with a meaning of their own."""
        lines = [line for line in self._region.internal if state_id in line.sources]
        if not self._overview:
            shared = [line for of_several in self._shared.values() for line in of_several]
            return [line.of(state_id) for line in lines if line not in shared]
        own = [line.of(state_id) for line in lines]
        return [line for line in own if ink_of_line(self._picture, line) is not PLAIN]

    def _has_note(self, state_id: str) -> bool:
        """A compound's note is also where the arrows begin that lead out of whatever is inside."""
        if not self._region.state(state_id).children:
            return False
        return bool(self._kept_in(state_id)) or any(state_id in arrow.sources for arrow in self._region.arrows)

    def _note(self, heading: str, lines: Iterable[Line]) -> str:
        cells = "".join(self._labels.cell(line) for line in lines)
        return (
            '<TABLE BORDER="0" CELLBORDER="0" CELLSPACING="0" CELLPADDING="3">'
            f'<TR><TD ALIGN="LEFT"><I>{heading}</I></TD></TR>{cells}</TABLE>'
        )


def _ids(region: Region) -> list[str]:
    return [state.state_id for state in region.states]


def _shared_lines(region: Region) -> dict[tuple[str, ...], list[Line]]:
    """Lines that stay, by the several states that have them in common."""
    shared: dict[tuple[str, ...], list[Line]] = {}
    for line in region.internal:
        if len(line.sources) > 1:
            shared.setdefault(line.sources, []).append(line)
    return {sources: lines for sources, lines in shared.items() if len(lines) >= _MIN_SHARED_LINES}


def _legend(picture: Picture) -> str:
    cells = "".join(
        f'<TD BORDER="1" COLOR="{ink.line}" BGCOLOR="{ink.fill}"><FONT COLOR="{ink.text}">{escape(text)}</FONT></TD>'
        for ink, text in legend_of(picture)
    )
    return f'<TABLE BORDER="0" CELLSPACING="6" CELLPADDING="4"><TR>{cells}</TR></TABLE>' if cells else ""
