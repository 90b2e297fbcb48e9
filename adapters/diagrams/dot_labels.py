"""What stands in a label, as the HTML-like text of dot."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from html import escape

from .ink import PLAIN, badge_of, ink_of_arrow, ink_of_line, short_of, times_of
from .model import Arrow, Line, Picture

_WIDTH = 44
"""Letters a line."""


class DotLabels:
    """Writes table rows. `overview`: events only, and the first of several."""

    def __init__(self, picture: Picture, *, overview: bool) -> None:
        self._picture = picture
        self._overview = overview

    def cell(self, line: Line) -> str:
        """One transition line."""
        ink = ink_of_line(self._picture, line)
        text = '<BR ALIGN="LEFT"/>'.join([*self._words(line), ""])
        background = "" if ink is PLAIN else f' BGCOLOR="{ink.fill}"'
        return f'<TR><TD ALIGN="LEFT"{background}><FONT COLOR="{ink.text}">{text}</FONT></TD></TR>'

    def cells(self, arrow: Arrow) -> str:
        """All lines of an arrow."""
        return self._short(arrow) if self._overview else "".join(self.cell(line) for line in arrow.lines)

    def _words(self, line: Line) -> Iterator[str]:
        marks = (badge_of(self._picture, line), times_of(self._picture, line))
        yield from (f"<B>{mark}</B>" for mark in marks if mark)
        if not self._overview:
            yield from map(escape, textwrap.wrap(", ".join(line.events), _WIDTH))
            if line.guards:
                guards = textwrap.wrap(f"[{' and '.join(line.guards)}]", _WIDTH)
                yield from (f"<I>{escape(part)}</I>" for part in guards)
        elif not line.actions:
            yield from map(escape, short_of(line.events))
        if line.actions:
            yield from map(escape, textwrap.wrap(f"/ {', '.join(line.actions)}", _WIDTH))

    def _short(self, arrow: Arrow) -> str:
        ink = ink_of_arrow(self._picture, arrow)
        marks = (badge_of(self._picture, *arrow.lines), times_of(self._picture, *arrow.lines))
        words = [f"<B>{mark}</B>" for mark in marks if mark]
        words += map(escape, short_of(event for line in arrow.lines for event in line.events))
        background = "" if ink is PLAIN else f' BGCOLOR="{ink.fill}"'
        return f'<TR><TD{background}><FONT COLOR="{ink.text}">{"<BR/>".join(words)}</FONT></TD></TR>'
