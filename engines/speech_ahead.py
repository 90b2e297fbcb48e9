"""How much speech was handed to the synthesiser and is not audio yet, by estimate."""

from __future__ import annotations

from .ports import SpeechUnit

MAX_AHEAD_MS = 2_000
"""Contract, section 5."""
MS_PER_CHAR = 66
MS_PER_WIDE_CHAR = 220
"""Fifteen letters or four and a half Chinese characters a second."""


class SpeechAhead:
    """One unit of any length may always wait in the synthesiser; a further one only within `MAX_AHEAD_MS`."""

    def __init__(self) -> None:
        self._left_ms: dict[int, float] = {}

    def __bool__(self) -> bool:
        """Some unit is not complete."""
        return bool(self._left_ms)

    @property
    def has_room(self) -> bool:
        """Another unit may be handed in."""
        return sum(self._left_ms.values()) < MAX_AHEAD_MS

    def hand_in(self, unit: SpeechUnit) -> None:
        """That unit goes to the synthesiser."""
        wide = sum(character >= "\u2e80" for character in unit.text)
        self._left_ms[unit.index] = wide * MS_PER_WIDE_CHAR + (len(unit.text) - wide) * MS_PER_CHAR

    def came(self, unit_index: int, duration_ms: float) -> None:
        """So much of the unit is audio now."""
        self._left_ms[unit_index] = max(0.0, self._left_ms.get(unit_index, 0.0) - duration_ms)

    def complete(self, unit_index: int) -> None:
        """All of the unit is audio."""
        self._left_ms.pop(unit_index, None)
