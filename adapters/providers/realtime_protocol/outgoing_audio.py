"""Captured audio on its way out: gathered to messages of a bounded length. No I/O."""

from __future__ import annotations

from collections.abc import Iterator

from ....audio.formats import AudioFormat, AudioFrame
from .dialect import HEARING

MIN_MESSAGE_MS = 40
MAX_MESSAGE_MS = 500


class OutgoingAudio:
    """What was written and not sent."""

    def __init__(self, format: AudioFormat) -> None:
        self._format = format
        self._min_bytes = format.bytes_for(format.samples_for_ms(MIN_MESSAGE_MS))
        self._max_bytes = format.bytes_for(format.samples_for_ms(MAX_MESSAGE_MS))
        self._gathered = bytearray()
        self._sent_bytes = 0

    @property
    def sent_ms(self) -> float:
        """How much lies in the provider's buffer since the last `begin`."""
        return self._format.duration_ms(self._sent_bytes // self._format.bytes_per_sample)

    @property
    def is_empty(self) -> bool:
        """Nothing was written since the last `begin`."""
        return not (self._gathered or self._sent_bytes)

    def begin(self) -> None:
        """The provider's buffer is empty; what was gathered is dropped."""
        self._gathered.clear()
        self._sent_bytes = 0

    def take(self, frame: AudioFrame) -> Iterator[bytes]:
        """What has come together by now. Raises `PortError` for another format."""
        if frame.format != self._format:
            raise HEARING.failure("wrong_format", f"this model hears {self._format}, not {frame.format}")
        self._gathered += frame.data
        while len(self._gathered) >= self._min_bytes:
            yield self._cut()

    def rest(self, min_ms: float) -> Iterator[bytes]:
        """The end of the utterance, filled up with silence where it is shorter than the provider takes."""
        missing_ms = (
            min_ms - self.sent_ms - self._format.duration_ms(len(self._gathered) // self._format.bytes_per_sample)
        )
        if missing_ms > 0:
            self._gathered += bytes(self._format.bytes_for(self._format.samples_for_ms(missing_ms) + 1))
        while self._gathered:
            yield self._cut()

    def _cut(self) -> bytes:
        piece = bytes(self._gathered[: self._max_bytes])
        del self._gathered[: self._max_bytes]
        self._sent_bytes += len(piece)
        return piece
