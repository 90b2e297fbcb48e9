"""A timeline as one self-contained file: an SVG, or an HTML page with the SVG in it."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from pathlib import PurePath

from .timeline import Mark, Sort, Timeline

_FONT = "font-family=\"Arial,Helvetica,'Liberation Sans',sans-serif\""
_LEFT, _TOP, _LANE, _GAP, _RIGHT = 120, 64, 34, 10, 24
_MIN_WIDTH, _MAX_WIDTH, _PIXELS_A_SECOND = 900, 6_000, 90
_LETTER_PX = 6.6
_FILLS = ("#dbe7ff", "#d3f3df", "#fdeebf", "#e9e0fb", "#d2f1f5", "#e6e9ed", "#fbe0ea")
_INKS = {
    Sort.INTERRUPTION: "#d9480f",
    Sort.REFUSED_INTERRUPTION: "#d9480f",
    Sort.MOVE: "#1f2933",
    Sort.NOTED: "#9aa5b1",
    Sort.UNUSED: "#c0392b",
}
_ROW_PX = 19
_MAX_ROWS = 500
"""Of the list; a longer trace is cut with `from` and `to`."""


def svg_of(timeline: Timeline) -> str:
    """The drawing. Everything has its words in a tooltip too."""
    duration_s = timeline.end_s - timeline.start_s
    width = min(max(int(duration_s * _PIXELS_A_SECOND), _MIN_WIDTH), _MAX_WIDTH)
    told = [mark for mark in timeline.marks if mark.sort is not Sort.NOTED]
    lanes_end = _TOP + len(timeline.regions) * (_LANE + _GAP)
    height = lanes_end + 60 + _ROW_PX * (min(len(told), _MAX_ROWS) + 2)
    total = _LEFT + width + _RIGHT
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" width="{total}" height="{height}" '
        f'viewBox="0 0 {total} {height}" {_FONT} font-size="12" fill="#1f2933">',
        f"<title>{escape(_file_name(timeline))}: {escape(timeline.chart)} over {duration_s:.2f} s</title>",
        f'<rect width="{total}" height="{height}" fill="#ffffff"/>',
        f'<text x="12" y="24" font-size="15" font-weight="bold">{escape(_file_name(timeline))}</text>',
        *_ruler(timeline, width, lanes_end),
        *_lanes(timeline, width),
        *_facts(timeline, width, lanes_end),
        *_interruptions(timeline, width, lanes_end),
        *_list(told, lanes_end + 60),
        "</svg>",
    ]
    return "\n".join([*lines, ""])


def html_of(timeline: Timeline) -> str:
    """A page that scrolls sideways, with nothing to fetch."""
    return (
        f'<!doctype html>\n<html lang="en">\n<meta charset="utf-8">\n<title>{escape(_file_name(timeline))}</title>\n'
        f'<body style="margin:0;overflow:auto">\n{svg_of(timeline)}</body>\n</html>\n'
    )


def _ruler(timeline: Timeline, width: int, bottom: int) -> Iterator[str]:
    duration_s = timeline.end_s - timeline.start_s
    step_s = next((step for step in (0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 300) if width * step / duration_s >= 60), 600)
    at_s = int(timeline.start_s / step_s) * step_s
    while at_s <= timeline.end_s:
        if at_s >= timeline.start_s:
            x = _x(timeline, at_s, width)
            yield f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{_TOP - 10}" y2="{bottom}" stroke="#e4e7eb"/>'
            yield f'<text x="{x:.1f}" y="{_TOP - 14}" text-anchor="middle" fill="#616e7c">{at_s:g} s</text>'
        at_s += step_s


def _lanes(timeline: Timeline, width: int) -> Iterator[str]:
    for place, region in enumerate(timeline.regions):
        y = _TOP + place * (_LANE + _GAP)
        yield f'<text x="12" y="{y + 22}" font-weight="bold">{escape(region)}</text>'
        spans = [span for span in timeline.spans if span.region == region]
        names = list(dict.fromkeys(span.state for span in spans))
        for span in spans:
            x, end = _x(timeline, span.start_s, width), _x(timeline, span.end_s, width)
            fill = _FILLS[names.index(span.state) % len(_FILLS)]
            words = f"{span.state}, {span.start_s:+.3f} s to {span.end_s:+.3f} s ({span.end_s - span.start_s:.3f} s)"
            yield (
                f'<g><title>{escape(region)}: {escape(words)}</title><rect x="{x:.1f}" y="{y}" '
                f'width="{max(end - x, 1):.1f}" height="{_LANE}" rx="4" fill="{fill}" stroke="#9aa5b1"/>'
            )
            if end - x > len(span.state) * _LETTER_PX + 8:
                yield f'<text x="{x + 5:.1f}" y="{y + 22}">{escape(span.state)}</text>'
            yield "</g>"


def _facts(timeline: Timeline, width: int, y: int) -> Iterator[str]:
    yield f'<text x="12" y="{y + 16}" font-weight="bold">facts</text>'
    for mark in timeline.marks:
        x = _x(timeline, mark.at_s, width)
        words = f"{mark.number}: {mark.event} at {mark.at_s:+.3f} s, {mark.told or mark.sort}"
        yield (
            f'<g><title>{escape(words)}</title><rect x="{x - 3:.1f}" y="{y}" width="6" height="22" fill="transparent"/>'
            f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{y}" y2="{y + 20}" stroke="{_INKS[mark.sort]}" '
            f'stroke-width="{1.5 if mark.sort is Sort.NOTED else 2.5}"/></g>'
        )


def _interruptions(timeline: Timeline, width: int, bottom: int) -> Iterator[str]:
    for mark in timeline.marks:
        if mark.sort in (Sort.INTERRUPTION, Sort.REFUSED_INTERRUPTION):
            x = _x(timeline, mark.at_s, width)
            ink = _INKS[mark.sort]
            dashes = "" if mark.sort is Sort.INTERRUPTION else ' stroke-dasharray="4 3"'
            yield (
                f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{_TOP - 8}" y2="{bottom + 22}" stroke="{ink}" '
                f'stroke-width="2.5"{dashes}/>'
            )
            words = f"{mark.number}: {mark.sort}"
            yield f'<text x="{x:.1f}" y="{bottom + 38}" text-anchor="middle" fill="{ink}">{words}</text>'


def _list(marks: list[Mark], y: int) -> Iterator[str]:
    """The facts that did more than to be noted, as text."""
    columns = ((60, "record"), (80, "time"), (160, "fact"), (340, "what it did"))
    for x, heading in columns:
        anchor = ' text-anchor="end"' if heading == "record" else ""
        yield f'<text x="{x}" y="{y}" fill="#616e7c"{anchor}>{heading}</text>'
    if len(marks) > _MAX_ROWS:
        left_out = len(marks) - _MAX_ROWS
        yield f'<text x="80" y="{y + _ROW_PX * (_MAX_ROWS + 1)}" fill="#616e7c">… and {left_out} more</text>'
    for place, mark in enumerate(marks[:_MAX_ROWS]):
        row = y + _ROW_PX * (place + 1)
        words = (str(mark.number), f"{mark.at_s:+.3f} s", mark.event, mark.told or str(mark.sort))
        for (x, heading), word in zip(columns, words, strict=True):
            anchor = ' text-anchor="end"' if heading == "record" else ""
            yield f'<text x="{x}" y="{row}" fill="{_INKS[mark.sort]}"{anchor}>{escape(word)}</text>'


def _x(timeline: Timeline, at_s: float, width: int) -> float:
    return _LEFT + width * (at_s - timeline.start_s) / (timeline.end_s - timeline.start_s)


def _file_name(timeline: Timeline) -> str:
    return PurePath(timeline.name).name
