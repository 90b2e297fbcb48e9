"""Colours and the wording of labels, the same in every kind of drawing."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from .model import Arrow, Line, Picture


@dataclass(frozen=True, slots=True)
class Ink:
    """Colours of one meaning, dark enough on light to be read without them."""

    line: str
    fill: str
    text: str = "#1f2933"


PLAIN = Ink("#7b8794", "#ffffff")
FRAME = Ink("#52606d", "#ffffff")
REGION = Ink("#cbd2d9", "#f5f7fa")
COMPOUND = Ink("#9aa5b1", "#e8edf2")
BARGE_IN = Ink("#d9480f", "#fff0e6", "#a13400")
ACTIVE = Ink("#2b8a3e", "#c3f0ca")
PATH = Ink("#1c6fd1", "#e3f0ff", "#0b4a94")
LATEST = Ink("#7c3aed", "#efe6ff", "#5b21b6")


def ink_of_line(picture: Picture, line: Line) -> Ink:
    """The most telling meaning of a line: taken last, taken, of the transaction, or none."""
    rows = set(line.rows)
    if rows & picture.marks.latest:
        return LATEST
    if rows & picture.marks.path.keys():
        return PATH
    return BARGE_IN if rows & picture.barge_in else PLAIN


def ink_of_arrow(picture: Picture, arrow: Arrow) -> Ink:
    """The most telling meaning of its lines."""
    inks = [ink_of_line(picture, line) for line in arrow.lines]
    return next((ink for ink in (LATEST, PATH, BARGE_IN) if ink in inks), PLAIN)


def legend_of(picture: Picture) -> tuple[tuple[Ink, str], ...]:
    """What the colours of this picture mean; empty when there are none."""
    shown = {row for region in picture.regions for line in region.lines() for row in line.rows}
    entries: list[tuple[Ink, str]] = []
    if picture.barge_in & shown:
        entries.append(
            (BARGE_IN, f"barge-in: one transaction over {len(picture.barge_in_regions)} regions, in one macrostep")
        )
    if picture.marks.active:
        entries.append((ACTIVE, "active"))
    if shown & picture.marks.path.keys():
        entries.append((PATH, "taken in the trace"))
    if shown & picture.marks.latest:
        entries.append((LATEST, "taken last"))
    return tuple(entries)


def badge_of(picture: Picture, *lines: Line) -> str:
    """Which part of the transaction these lines of a region are: "barge-in 2 of 3". Empty for any others."""
    regions = picture.barge_in_regions
    of_it = [line for line in lines if set(line.rows) & picture.barge_in]
    if not of_it or len(regions) < 2:
        return ""
    return f"barge-in {regions.index(of_it[0].region) + 1} of {len(regions)}"


def times_of(picture: Picture, *lines: Line) -> str:
    """How often a trace took these lines; empty when it did not."""
    times = sum(picture.marks.path.get(row, 0) for line in lines for row in line.rows)
    return f"taken {times} ×" if times else ""


def short_of(events: Iterable[str]) -> list[str]:
    """The first event, and how many more there are."""
    different = list(dict.fromkeys(events))
    return different if len(different) == 1 else [different[0], f"and {len(different) - 1} more"]
