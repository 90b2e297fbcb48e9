"""The text of one reply: what the model wrote, and the units in which it is spoken."""

from __future__ import annotations

from dataclasses import dataclass, replace

from .history import Cut
from .ports import SpeechUnit
from .spoken import SpokenTextProjection, UnitGrain, WordTimes, heard_end

MAX_REPLY_CHARS = 65_536
"""A reply longer than this is a runaway model; about an hour of speech."""


class ReplyTooLong(Exception):
    """The model wrote more than `MAX_REPLY_CHARS`."""


@dataclass(frozen=True, slots=True)
class Heard:
    """What was heard of a reply."""

    text: str
    cut: Cut


class ReplyText:
    """Grows as the model writes; tells what a number of heard units amounts to."""

    def __init__(self, grain: UnitGrain = UnitGrain.SENTENCE) -> None:
        self._pieces: list[str] = []
        self._length = 0
        self._projection = SpokenTextProjection(grain=grain)
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

    def flush(self) -> list[SpeechUnit]:
        """What is safe and waits only for more to be said with it."""
        return self._remember(self._projection.flush())

    def close(self) -> list[SpeechUnit]:
        """No more text; returns the last units."""
        return self._remember(self._projection.close())

    def heard(self, units: int, words: WordTimes | None = None, played_samples: int | None = None) -> Heard:
        """The text that was heard, as it was written: the first `units` units whole.

        With the times of the words and a position that was measured, up to the last word of the unit after them that
        was played whole.
        """
        whole = max(0, min(units, len(self._units)))
        end = self._units[whole - 1].source_end if whole else 0
        if words is not None and played_samples is not None and whole < len(self._units):
            unit = self._units[whole]
            is_aside = unit.source_start == unit.source_end
            word_end = None if is_aside else heard_end(self.written, unit, words.of(unit.index), played_samples)
            if word_end is not None:
                return Heard(self.written[:word_end].strip(), Cut.WORD)
        return Heard(self.written[:end].strip(), Cut.UNIT)

    def _remember(self, units: list[SpeechUnit]) -> list[SpeechUnit]:
        # What was said aside has taken numbers, too.
        numbered = [replace(unit, index=len(self._units) + place) for place, unit in enumerate(units)]
        self._units.extend(numbered)
        return numbered
