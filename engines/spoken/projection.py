"""From what the model writes to what is said: units of safe speech, cut as the text streams in."""

from __future__ import annotations

from collections.abc import Callable

from ..ports import SpeechUnit
from .markup import said
from .scanner import Scanner


class SpokenTextProjection:
    """Feed text as it comes, take units as they become safe; `close` gives the rest.

    The same text gives the same units however it was chunked. Each unit knows the range of the text it speaks; ranges
    are in order and do not overlap, and what lies between them has no sound. `spoken_form` may turn numbers, times and
    the like into words, for synthesisers that do not.
    """

    def __init__(self, spoken_form: Callable[[str], str] | None = None) -> None:
        self._scanner = Scanner()
        self._spoken_form = spoken_form
        self._offset = 0
        self._next_index = 0

    def feed(self, text: str) -> list[SpeechUnit]:
        """Units that are complete now, in order."""
        self._scanner.feed(text)
        return self._cut_all()

    def close(self) -> list[SpeechUnit]:
        """The rest, spoken as it stands."""
        self._scanner.finish()
        units = self._cut_all()
        if self._scanner.pending:
            units.extend(self._cut(len(self._scanner.pending)))
        return units

    def _cut_all(self) -> list[SpeechUnit]:
        units: list[SpeechUnit] = []
        while (end := self._scanner.next_end()) is not None:
            units.extend(self._cut(end))
        return units

    def _cut(self, end: int) -> list[SpeechUnit]:
        source = self._scanner.take(end)
        start, self._offset = self._offset, self._offset + end
        spoken = said(source)
        if spoken and self._spoken_form is not None:
            spoken = self._spoken_form(spoken)
        if not spoken:
            return []
        unit = SpeechUnit(self._next_index, spoken, start, self._offset)
        self._next_index += 1
        return [unit]
