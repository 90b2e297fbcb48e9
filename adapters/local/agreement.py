"""When a growing utterance is decoded again and again: which part of the text will stay.

Three decodes in a row that agree on a word settle it, except for the words near the end of the audio, which may be cut
or still lack their context ("30" becomes "13" a word later). What is settled stays, letter by letter: a later decode
that contradicts it only continues it. Two decodes would settle earlier, and more that is wrong.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from itertools import takewhile


@dataclass(frozen=True, slots=True)
class DecodedWord:
    """`piece` is the text as it stands in the sentence, with its leading space and its punctuation."""

    piece: str
    start_s: float
    end_s: float
    probability: float

    @property
    def letters(self) -> str:
        """What two spellings of the same word share."""
        return "".join(character for character in self.piece.casefold() if character.isalnum())


@dataclass(frozen=True, slots=True)
class Settled:
    """An utterance as it stands now: the first `stable_chars` of `text` will not change any more."""

    text: str
    stable_chars: int
    words: tuple[DecodedWord, ...]


@dataclass(slots=True)
class Agreement:
    """The state of one utterance."""

    edge_s: float = 0.8
    """Words that end later than so much before the end of the audio are not settled."""
    _settled: tuple[DecodedWord, ...] = ()
    _stable_text: str = ""
    _former: deque[tuple[str, ...]] = field(default_factory=lambda: deque(maxlen=2))

    def update(self, decoded: tuple[DecodedWord, ...], audio_end_s: float) -> Settled:
        """Take the newest decode of the whole utterance so far."""
        words = self._continued(decoded)
        letters = tuple(word.letters for word in words)
        inside = sum(1 for _ in takewhile(lambda word: word.end_s <= audio_end_s - self.edge_s, words))
        full = len(self._former) == self._former.maxlen
        count = min(inside, *(_common(letters, former) for former in self._former)) if full else 0
        self._former.append(letters)
        text = self._stable_text + self._rest(words)
        if count > len(self._settled):
            self._settled = words[:count]
            self._stable_text = text[: len(text) - len(self._after_letters(words, count))]
        return Settled(text, len(self._stable_text), words)

    def _continued(self, decoded: tuple[DecodedWord, ...]) -> tuple[DecodedWord, ...]:
        """The settled words and what `decoded` has after them."""
        count = len(self._settled)
        if [word.letters for word in decoded[:count]] == [word.letters for word in self._settled]:
            return (*self._settled[: count - 1], *decoded[max(count - 1, 0) :]) if count else decoded
        end_s = self._settled[-1].end_s
        return (*self._settled, *(word for word in decoded if (word.start_s + word.end_s) / 2 > end_s))

    def _rest(self, words: tuple[DecodedWord, ...]) -> str:
        """The text after the stable one: the punctuation of the last settled word, and the words after it."""
        return self._after_letters(words, len(self._settled))

    @staticmethod
    def _after_letters(words: tuple[DecodedWord, ...], count: int) -> str:
        text = "".join(word.piece for word in words[count:])
        if not count:
            return text.lstrip()
        piece = words[count - 1].piece
        letters_end = max(
            (index + 1 for index, character in enumerate(piece) if character.isalnum()), default=len(piece)
        )
        return piece[letters_end:] + text


def _common(first: tuple[str, ...], second: tuple[str, ...]) -> int:
    """How many words the two begin with alike."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(first, second, strict=False)))
