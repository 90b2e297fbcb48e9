"""How far into a unit of speech somebody has heard, as the synthesiser's word times tell it.

Times are of *spoken* words, the record is of *written* text. Both are compared as folded letters and digits: the words
of a unit must spell its spoken text from its beginning on, and the written text up to the cut must say just that much.
Where they do not (numbers that were put into words, say) the record says less: it may say less than was heard, never
more.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence

from ..ports import SpeechUnit
from ..reports import Word
from .markup import said

# A wide character (ideographs, kana, hangul) is a token of its own; other letters and digits stand together.
_WIDE = "\u2e80-\ua4cf\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff"
_TOKEN = re.compile(f"[{_WIDE}]|[^\\W_{_WIDE}]+")


class WordTimes:
    """The words of one reply's speech, by unit."""

    def __init__(self) -> None:
        self._words: dict[int, tuple[Word, ...]] = {}

    def add(self, unit_index: int, words: tuple[Word, ...]) -> None:
        """More words of a unit that is being synthesised."""
        if words:
            self._words[unit_index] = self._words.get(unit_index, ()) + words

    def complete(self, unit_index: int, words: tuple[Word, ...]) -> None:
        """All words of a unit, where the synthesiser tells them with its end; they replace those before."""
        if words:
            self._words[unit_index] = words

    def of(self, unit_index: int) -> tuple[Word, ...]:
        """What is known of that unit, in the order in which it is spoken."""
        return self._words.get(unit_index, ())


def heard_end(written: str, unit: SpeechUnit, words: Sequence[Word], played_samples: int) -> int | None:
    """Where in `written` the last word of `unit` ends that was played whole; None when no word is known to be.

    `words` and `played_samples` are in samples of the same stream.
    """
    spoken = _folded(unit.text)
    source = written[unit.source_start : unit.source_end]
    ends = _ends_in_source(unit.text, source)
    for heard in reversed(_heard_letters(spoken, words, played_samples)):
        # The place of a word was found by its letters; what is written up to there must say the same.
        if heard <= len(ends) and _folded(said(source[: ends[heard - 1]])) == spoken[:heard]:
            return unit.source_start + _with_marks(source, ends[heard - 1])
    return None


def _heard_letters(spoken: str, words: Sequence[Word], played_samples: int) -> list[int]:
    """Letters of the spoken text up to the end of each word that was played whole."""
    found: list[int] = []
    count = 0
    for word in words:
        letters = _folded(word.text)
        if word.end_sample > played_samples or not spoken.startswith(letters, count):
            break
        count += len(letters)
        if letters:
            found.append(count)
    return found


def _ends_in_source(spoken: str, source: str) -> list[int]:
    """For each letter of `spoken`, where it ends in `source`; shorter where a token is not there as it is spoken."""
    ends: list[int] = []
    tokens = _TOKEN.finditer(source)
    for token in _TOKEN.findall(spoken):
        letters = _folded(token)
        if not letters:
            continue
        match = next((found for found in tokens if _folded(found.group()) == letters), None)
        if match is None:
            break
        ends.extend(_letter_ends(match))
    return ends


def _letter_ends(token: re.Match[str]) -> Iterable[int]:
    """One end for each letter that the token's characters fold to; those of one character end together."""
    ends = [token.start() + place + 1 for place, character in enumerate(token.group()) for _ in _folded(character)]
    letters = len(_folded(token.group()))
    # Folding a whole word may join what single characters do not; then only its end is known.
    return ends if len(ends) == letters else [token.end()] * letters


def _with_marks(text: str, end: int) -> int:
    """Behind the accents and vowel signs that belong to the last letter."""
    while end < len(text) and unicodedata.category(text[end]).startswith("M"):
        end += 1
    return end


def _folded(text: str) -> str:
    """Letters and digits alone, without case, accents, width and other differences of writing."""
    plain = unicodedata.normalize("NFKD", text).casefold()
    return "".join(character for character in plain if character.isalnum())
