"""From what a provider sends back to one gapless track: which samples belong to which unit. No I/O.

Providers may work on several units at once, cut samples between two messages, and tell words before or after their
audio. Here every sample has its place, and a unit ends exactly where the next one begins.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

from ....audio.formats import AudioFormat, AudioFrame
from ....engines.ports import SpeechUnit
from ....engines.reports import SynthesisReport, Synthesized, UnitSynthesized, Word
from ..refusals import Stage

SYNTHESIS = Stage("synthesis")
FRAME_MS = 20
MAX_HELD_BYTES = 4 << 20
"""Audio of units whose turn has not come. At 24 kHz mono nearly a minute and a half."""


@dataclass(slots=True)
class _Unit:
    unit: SpeechUnit
    held: bytearray = field(default_factory=bytearray)
    """Received and not placed: the whole of it while an earlier unit is unfinished, else at most half a sample."""
    words: list[Word] = field(default_factory=list[Word])
    """In samples of the unit, in order."""
    told: int = 0
    """How many words went out with a frame."""
    is_complete: bool = False


class SpokenTrack:
    """Units in the order in which `expect` names them, each with its audio, however it arrives."""

    def __init__(self, format: AudioFormat, max_held_bytes: int = MAX_HELD_BYTES) -> None:
        self.format = format
        self._max_held_bytes = max_held_bytes
        self._units: deque[_Unit] = deque()
        self._unit_start = 0
        self._position = 0

    @property
    def end_sample(self) -> int:
        """Samples so far."""
        return self._position

    def expect(self, unit: SpeechUnit) -> None:
        """The next unit to be heard after those before."""
        self._units.append(_Unit(unit))

    def add(self, unit_index: int, pcm: bytes) -> list[SynthesisReport]:
        """More audio of a unit, cut anywhere. Raises `PortError` `audio_overflow`."""
        unit = self._find(unit_index)
        unit.held += pcm
        if sum(len(waiting.held) for waiting in self._units if waiting is not self._units[0]) > self._max_held_bytes:
            message = f"the provider sent over {self._max_held_bytes} bytes ahead of their turn; make units shorter"
            raise SYNTHESIS.failure("audio_overflow", message)
        return list(self._place()) if unit is self._units[0] else []

    def add_words(self, unit_index: int, words: Iterable[Word]) -> None:
        """Words of a unit with their times in samples of the unit, in order. They go out with the frame they end in."""
        known = self._find(unit_index).words
        for word in words:
            start = max(word.start_sample, known[-1].end_sample if known else 0)
            known.append(replace(word, start_sample=start, end_sample=max(start, word.end_sample)))

    def complete(self, unit_index: int) -> list[SynthesisReport]:
        """A unit has all of its audio. Raises `PortError` when it ends inside a sample, or says nothing of its text."""
        self._find(unit_index).is_complete = True
        reports: list[SynthesisReport] = []
        while self._units and self._units[0].is_complete:
            reports += self._place()
            reports.append(self._ended(self._units[0]))
            self._units.popleft()
            self._unit_start = self._position
        if self._units:
            reports += self._place()
        return reports

    def _find(self, unit_index: int) -> _Unit:
        found = next((unit for unit in self._units if unit.unit.index == unit_index), None)
        if found is None:
            raise AssertionError(f"unit {unit_index} is not expected")
        return found

    def _place(self) -> list[SynthesisReport]:
        """Frames of what the first unit holds, in whole samples."""
        unit = self._units[0]
        samples = len(unit.held) // self.format.bytes_per_sample
        pcm = bytes(unit.held[: self.format.bytes_for(samples)])
        del unit.held[: len(pcm)]
        return [self._frame(unit, piece) for piece in self._pieces(pcm, samples)]

    def _pieces(self, pcm: bytes, samples: int) -> Iterable[bytes]:
        """Of nearly equal length, so that no scrap is left, and none longer than `FRAME_MS`."""
        count = -(-samples // self.format.samples_for_ms(FRAME_MS))
        cuts = [self.format.bytes_for(samples * place // count) for place in range(count + 1)] if count else []
        return (pcm[start:end] for start, end in pairwise(cuts))

    def _frame(self, unit: _Unit, piece: bytes) -> Synthesized:
        frame = AudioFrame(piece, self.format, self._position)
        self._position = frame.end_sample
        ended = sum(self._unit_start + word.end_sample <= self._position for word in unit.words)
        told = self._placed(unit.words[unit.told : ended])
        unit.told = max(unit.told, ended)
        return Synthesized(frame, unit.unit.index, told)

    def _ended(self, unit: _Unit) -> UnitSynthesized:
        if unit.held:
            message = "the provider's audio ends inside a sample; check the audio format of this provider"
            raise SYNTHESIS.failure("provider_malformed", message, retryable=True)
        if self._position == self._unit_start and any(map(str.isalnum, unit.unit.text)):
            message = "the provider made no audio of a text; check that this voice and model speak its language"
            raise SYNTHESIS.failure("no_audio", message)
        return UnitSynthesized(unit.unit.index, self._unit_start, self._position, self._placed(unit.words))

    def _placed(self, words: Sequence[Word]) -> tuple[Word, ...]:
        """In samples of the stream; none beyond what has been made."""
        start, end = self._unit_start, self._position
        return tuple(
            replace(
                word,
                start_sample=min(start + word.start_sample, end),
                end_sample=min(start + word.end_sample, end),
            )
            for word in words
        )
