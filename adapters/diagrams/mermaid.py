"""A picture as Mermaid text, for pages that draw it themselves and for a terminal.

It is a flowchart, not one of Mermaid's state diagrams: those cannot draw an arrow between compounds, nor colour one. As
in dot, the label of an arrow is a node of its own, so that lines with several sources are written once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from html import escape

from ...statecharts.library import DeclaredState
from .ink import (
    ACTIVE,
    BARGE_IN,
    COMPOUND,
    LATEST,
    PATH,
    PLAIN,
    REGION,
    Ink,
    badge_of,
    ink_of_arrow,
    ink_of_line,
    short_of,
    times_of,
)
from .model import Arrow, Line, Picture, Region

_CLASSES: dict[str, Ink] = {"active": ACTIVE, "bargeIn": BARGE_IN, "path": PATH, "latest": LATEST}


def mermaid_text(picture: Picture, *, overview: bool = False) -> str:
    """The picture as a Mermaid flowchart. The same chart always gives the same text."""
    return "\n".join([*_Mermaid(picture, overview=overview).lines(), ""])


class _Mermaid:
    def __init__(self, picture: Picture, *, overview: bool) -> None:
        self._picture = picture
        self._overview = overview
        self._links = 0
        self._inked: dict[str, list[int]] = {}
        """Links by the class of their colour."""

    def lines(self) -> Iterator[str]:
        yield '%%{init: {"flowchart": {"wrappingWidth": 320}}}%%'
        yield "flowchart TB"
        framed = len(self._picture.regions) > 1
        if framed:
            yield f'  subgraph frame["{self._picture.title}"]'
            yield "  direction TB"
        for region in self._picture.regions:
            yield from self._compound(region, region.states[0], "  ")
        if framed:
            yield "  end"
            yield "  style frame fill:#ffffff,stroke:#52606d"
        yield from self._styles()

    def _compound(self, region: Region, state: DeclaredState, indent: str) -> Iterator[str]:
        yield f'{indent}subgraph {state.state_id}_["{state.name}"]'
        inner = f"{indent}  "
        yield f"{inner}direction TB"
        children = [child for child in region.states if child.parent == state.state_id and child is not state]
        for child in children:
            if child.is_initial:
                yield f"{inner}start_{state.state_id}(( )):::start"
                yield self._link(f"start_{state.state_id}", "-->", self._node(child), inner)
        if self._has_note(region, state):
            words = ["<i>in every state here</i>", *self._lines_of(self._kept_in(region, state))]
            yield f'{inner}in_{state.state_id}["{_joined(words)}"]:::note'
        for child in children:
            if child.children:
                yield from self._compound(region, child, inner)
            else:
                yield f"{inner}{self._state(region, child)}"
        for number, arrow in enumerate(region.arrows):
            if region.home_of(arrow) == state.state_id:
                yield from self._arrow(region, number, arrow, inner)
        yield f"{indent}end"
        ink = REGION if state.state_id == region.region_id else COMPOUND
        yield f"{indent}style {state.state_id}_ fill:{ink.fill},stroke:{ink.line}"

    def _state(self, region: Region, state: DeclaredState) -> str:
        words = [f"<b>{escape(state.name)}</b>", *self._lines_of(self._kept_in(region, state))]
        is_active = state.state_id in self._picture.marks.active
        return f'{state.state_id}("{_joined(words)}"){":::active" if is_active else ":::state"}'

    def _arrow(self, region: Region, number: int, arrow: Arrow, indent: str) -> Iterator[str]:
        label = f"arrow_{region.region_id}_{number}"
        name = _class_of(ink_of_arrow(self._picture, arrow))
        words = self._short(arrow) if self._overview else list(self._lines_of(arrow.lines))
        yield f'{indent}{label}["{_joined(words)}"]:::{name or "label"}'
        for source in arrow.sources:
            is_compound = bool(region.state(source).children)
            own = _class_of(ink_of_arrow(self._picture, arrow.of(source)))
            yield self._link(f"in_{source}" if is_compound else source, "---", label, indent, own)
        yield self._link(label, "-->", self._node(region.state(arrow.target)), indent, name)

    def _link(self, tail: str, kind: str, head: str, indent: str, name: str = "") -> str:
        self._inked.setdefault(name, []).append(self._links)
        self._links += 1
        return f"{indent}{tail} {kind} {head}"

    def _node(self, state: DeclaredState) -> str:
        return f"{state.state_id}_" if state.children else state.state_id

    def _kept_in(self, region: Region, state: DeclaredState) -> list[Line]:
        lines = [line.of(state.state_id) for line in region.internal if state.state_id in line.sources]
        if self._overview:
            return [line for line in lines if ink_of_line(self._picture, line) is not PLAIN]
        return lines

    def _has_note(self, region: Region, state: DeclaredState) -> bool:
        return bool(self._kept_in(region, state)) or any(state.state_id in arrow.sources for arrow in region.arrows)

    def _lines_of(self, lines: Iterable[Line]) -> Iterator[str]:
        for line in lines:
            marks = (badge_of(self._picture, line), times_of(self._picture, line))
            words = [f"<b>{mark}:</b>" for mark in marks if mark]
            if not self._overview:
                words.append(escape(", ".join(line.events)))
                guards = " and ".join(line.guards)
                words += [f"<i>[{escape(guards)}]</i>"] if guards else []
            elif not line.actions:
                words += map(escape, short_of(line.events))
            words += [escape(f"/ {', '.join(line.actions)}")] if line.actions else []
            yield " ".join(words)

    def _short(self, arrow: Arrow) -> list[str]:
        marks = (badge_of(self._picture, *arrow.lines), times_of(self._picture, *arrow.lines))
        events = short_of(event for line in arrow.lines for event in line.events)
        return [*(f"<b>{mark}</b>" for mark in marks if mark), *map(escape, events)]

    def _styles(self) -> Iterator[str]:
        yield f"  classDef state fill:{PLAIN.fill},stroke:{PLAIN.line},color:{PLAIN.text},text-align:left"
        yield f"  classDef start fill:{PLAIN.text},stroke:{PLAIN.text}"
        yield f"  classDef label fill:none,stroke:none,color:{PLAIN.text},text-align:left"
        yield f"  classDef note fill:none,stroke:none,color:{PLAIN.text},text-align:left"
        for name, ink in _CLASSES.items():
            links = self._inked.get(name, [])
            is_used = bool(links) or (name == "active" and self._picture.marks.active)
            if is_used:
                yield f"  classDef {name} fill:{ink.fill},stroke:{ink.line},color:{ink.text},text-align:left"
            if links:
                yield f"  linkStyle {','.join(map(str, links))} stroke:{ink.line},stroke-width:2px"


def _joined(words: Iterable[str]) -> str:
    return "<br/>".join(words)


def _class_of(ink: Ink) -> str:
    return next((name for name, of_it in _CLASSES.items() if of_it is ink), "")
