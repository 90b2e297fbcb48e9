"""From what the model writes to what is said: units of safe speech, cut as the text streams in."""

from __future__ import annotations

from collections.abc import Callable

from ..ports import SpeechUnit
from .grain import UnitGrain
from .markup import said
from .scanner import Scanner

WHOLE_CHARS = 1_000
"""A group of sentences ends with the one that makes it at least so long: about a minute of speech."""


class SpokenTextProjection:
    """Feed text as it comes, take units as they become safe; `close` gives the rest.

    The same text gives the same units however it was chunked. Each unit knows the range of the text it speaks; ranges
    are in order and do not overlap, and what lies between them has no sound. `grain` is how much a synthesiser takes at
    a time. `spoken_form` may turn numbers, times and the like into words, for synthesisers that do not.
    """

    def __init__(
        self, spoken_form: Callable[[str], str] | None = None, *, grain: UnitGrain = UnitGrain.SENTENCE
    ) -> None:
        self._scanner = Scanner(every_clause=grain is UnitGrain.CLAUSE)
        self._spoken_form = spoken_form
        self._grain = grain
        self._offset = 0
        self._next_index = 0
        self._group: list[SpeechUnit] = []

    def feed(self, text: str) -> list[SpeechUnit]:
        """Units that are complete now, in order."""
        self._scanner.feed(text)
        return self._grouped(self._cut_all())

    def flush(self) -> list[SpeechUnit]:
        """What is safe and waits only for more to be said with it."""
        group, self._group = self._group, []
        return [self._numbered(_joined(group))] if group else []

    def close(self) -> list[SpeechUnit]:
        """The rest, spoken as it stands."""
        self._scanner.finish()
        units = self._cut_all()
        if self._scanner.pending:
            units.extend(self._cut(len(self._scanner.pending)))
        return [*self._grouped(units), *self.flush()]

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
        return [SpeechUnit(0, spoken, start, self._offset)] if spoken else []

    def _grouped(self, units: list[SpeechUnit]) -> list[SpeechUnit]:
        """As many together as the synthesiser takes at a time, in their order."""
        if self._grain is not UnitGrain.WHOLE:
            return [self._numbered(unit) for unit in units]
        groups: list[SpeechUnit] = []
        for unit in units:
            self._group.append(unit)
            if sum(len(known.text) for known in self._group) >= WHOLE_CHARS:
                groups.extend(self.flush())
        return groups

    def _numbered(self, unit: SpeechUnit) -> SpeechUnit:
        self._next_index += 1
        return SpeechUnit(self._next_index - 1, unit.text, unit.source_start, unit.source_end)


def _joined(units: list[SpeechUnit]) -> SpeechUnit:
    """Sentences after one another, as one unit."""
    text = units[0].text
    for unit in units[1:]:
        # Between wide characters no space is written.
        text += unit.text if text[-1] >= "\u2e80" and unit.text[0] >= "\u2e80" else f" {unit.text}"
    return SpeechUnit(0, text, units[0].source_start, units[-1].source_end)
