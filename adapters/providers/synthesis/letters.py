"""From the times of letters to the times of words."""

from __future__ import annotations

from collections.abc import Sequence

from ....audio.formats import AudioFormat
from ....engines.reports import Word

FIRST_WIDE = "\u2e80"
"""From here on (ideographs, kana, hangul) a character is a word: such text has no spaces."""


class AlignedLetters:
    """One unit's letters, message by message; the times of each count from the beginning of its own audio."""

    def __init__(self, format: AudioFormat) -> None:
        self._format = format
        self._bytes = 0
        self._text = ""
        self._start = 0
        self._end = 0

    def advance(self, pcm: bytes) -> None:
        """The audio of the message that was fed last."""
        self._bytes += len(pcm)

    def feed(self, letters: Sequence[str], starts_ms: Sequence[int], durations_ms: Sequence[int]) -> tuple[Word, ...]:
        """The words that these letters complete, in samples of the unit; none where letters and times do not match."""
        if not len(letters) == len(starts_ms) == len(durations_ms):
            return self.close()
        origin = self._bytes // self._format.bytes_per_sample
        words: list[Word] = []
        for letter, start_ms, duration_ms in zip(letters, starts_ms, durations_ms, strict=True):
            start = origin + self._format.samples_for_ms(max(0, start_ms))
            end = start + self._format.samples_for_ms(max(0, duration_ms))
            if not letter.strip() or letter >= FIRST_WIDE:
                words += self.close()
            if letter.strip():
                self._start = self._start if self._text else start
                self._text += letter
                self._end = end
            if letter >= FIRST_WIDE:
                words += self.close()
        return tuple(words)

    def close(self) -> tuple[Word, ...]:
        """The word that was begun: nothing more belongs to it."""
        if not self._text:
            return ()
        word = Word(self._text, self._start, self._end)
        self._text = ""
        return (word,)
