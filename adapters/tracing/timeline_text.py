"""A timeline for a terminal: a lane a region, the facts under them, and a list of what they did."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rich.table import Table
from rich.text import Text

from .timeline import Mark, Sort, Span, Timeline

_MIN_WIDTH = 40
_STYLES = ("white on blue", "black on green", "black on cyan", "white on magenta", "black on yellow", "white on grey37")
_SIGNS = {
    Sort.INTERRUPTION: ("┃", "bold red"),
    Sort.REFUSED_INTERRUPTION: ("╎", "red"),
    Sort.MOVE: ("│", ""),
    Sort.NOTED: ("·", "dim"),
    Sort.UNUSED: ("×", "dim"),
}


def lanes(timeline: Timeline, width: int) -> Iterator[Text]:
    """The drawing, line by line, no wider than `width` letters (40 at least)."""
    label = max(map(len, (*timeline.regions, "facts"))) + 1
    cells = max(width, _MIN_WIDTH) - label
    interruptions = {_cell(timeline, mark.at_s, cells) for mark in timeline.marks if mark.sort is Sort.INTERRUPTION}
    yield Text(" " * label + _ruler(timeline, cells), style="dim")
    for region in timeline.regions:
        spans = [span for span in timeline.spans if span.region == region]
        yield Text.assemble((f"{region:<{label}}", "bold"), _lane(timeline, spans, cells, interruptions))
    yield Text.assemble((f"{'facts':<{label}}", "bold"), _facts(timeline, cells))


def key() -> Text:
    """What the signs mean."""
    return Text.assemble(*((f"{sign} {sort}   ", style) for sort, (sign, style) in _SIGNS.items()))


def list_of(marks: Iterable[Mark]) -> Table:
    """The facts that did something, one a line."""
    table = Table(box=None, padding=(0, 1), show_edge=False)
    table.add_column("record", justify="right")
    table.add_column("time", justify="right")
    table.add_column("fact")
    table.add_column("what it did")
    for mark in marks:
        style = _SIGNS[mark.sort][1] if mark.sort in (Sort.INTERRUPTION, Sort.REFUSED_INTERRUPTION) else ""
        told = mark.told or str(mark.sort)
        table.add_row(str(mark.number), f"{mark.at_s:+.3f} s", mark.event, told, style=style)
    return table


def _lane(timeline: Timeline, spans: list[Span], cells: int, interruptions: set[int]) -> Text:
    """Short stays are drawn one cell wide, as long as nothing later falls into the same cell."""
    owners = [0] * cells
    for number, span in enumerate(spans):
        first = _cell(timeline, span.start_s, cells)
        last = cells if number == len(spans) - 1 else max(_cell(timeline, span.end_s, cells), first + 1)
        owners[first:last] = [number] * (min(last, cells) - first)
    names = list(dict.fromkeys(span.state for span in spans))
    lane = Text()
    start = 0
    while start < cells:
        end = next((cell for cell in range(start, cells) if owners[cell] != owners[start]), cells)
        state = spans[owners[start]].state
        letters = f"▏{state}"[: end - start] if end - start > 3 else "▏"
        lane.append(f"{letters:<{end - start}}", style=_STYLES[names.index(state) % len(_STYLES)])
        start = end
    for cell in interruptions:
        lane.stylize("bold white on red", cell, cell + 1)
    return lane


def _facts(timeline: Timeline, cells: int) -> Text:
    """One sign a cell: of several facts the most telling."""
    found: dict[int, Sort] = {}
    telling = list(_SIGNS)
    for mark in timeline.marks:
        cell = _cell(timeline, mark.at_s, cells)
        found[cell] = min(found.get(cell, mark.sort), mark.sort, key=telling.index)
    line = Text()
    for cell in range(cells):
        sign, style = _SIGNS[found[cell]] if cell in found else (" ", "")
        line.append(sign, style=style)
    return line


def _ruler(timeline: Timeline, cells: int) -> str:
    """Times where they fit, the first and the last among them."""
    line = [" "] * cells
    last = f"{timeline.end_s:+.2f} s"
    places = [(cell, f"{_time(timeline, cell, cells):+.2f}") for cell in range(0, cells - len(last) - 8, 12)]
    for cell, letters in [*places, (cells - len(last), last)]:
        line[cell : cell + len(letters)] = letters
    return "".join(line)[:cells]


def _cell(timeline: Timeline, at_s: float, cells: int) -> int:
    share = (at_s - timeline.start_s) / (timeline.end_s - timeline.start_s)
    return min(max(int(share * cells), 0), cells - 1)


def _time(timeline: Timeline, cell: int, cells: int) -> float:
    return timeline.start_s + (timeline.end_s - timeline.start_s) * cell / cells
