"""The text of one reply: what the model wrote, and the units in which it is spoken."""

from __future__ import annotations

from dataclasses import replace

from .ports import SpeechUnit
from .spoken import SpokenTextProjection

MAX_REPLY_CHARS = 65_536
"""A reply longer than this is a runaway model; about an hour of speech."""


class ReplyTooLong(Exception):
    """The model wrote more than `MAX_REPLY_CHARS`."""


class ReplyText:
    """Grows as the model writes; tells what a number of heard units amounts to."""

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._length = 0
        self._projection = SpokenTextProjection()
        self._units: list[SpeechUnit] = []

    @property
    def written(self) -> str:
        """Everything so far."""
        return "".join(self._pieces)

    @property
    def units(self) -> tuple[SpeechUnit, ...]:
        """The units that are safe so far."""
        return tuple(self._units)

    def append(self, text: str) -> list[SpeechUnit]:
        """Add a delta; returns the units that became safe by it. Raises `ReplyTooLong`."""
        self._length += len(text)
        if self._length > MAX_REPLY_CHARS:
            raise ReplyTooLong(f"the reply exceeds {MAX_REPLY_CHARS} characters")
        self._pieces.append(text)
        return self._remember(self._projection.feed(text))

    def aside(self, text: str) -> SpeechUnit:
        """A unit that speaks nothing of the text: it stands behind the units before it."""
        end = self._units[-1].source_end if self._units else 0
        unit = SpeechUnit(len(self._units), text, end, end)
        self._units.append(unit)
        return unit

    def close(self) -> list[SpeechUnit]:
        """No more text; returns the last units."""
        return self._remember(self._projection.close())

    def heard(self, units: int) -> str:
        """The text that the first `units` units speak: whole units, as they were written."""
        if units <= 0 or not self._units:
            return ""
        last = self._units[min(units, len(self._units)) - 1]
        return self.written[: last.source_end].strip()

    def _remember(self, units: list[SpeechUnit]) -> list[SpeechUnit]:
        # What was said aside has taken numbers, too.
        numbered = [replace(unit, index=len(self._units) + place) for place, unit in enumerate(units)]
        self._units.extend(numbered)
        return numbered
