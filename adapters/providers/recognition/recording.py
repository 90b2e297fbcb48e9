"""An utterance that is kept until it is over, as a WAV file."""

from __future__ import annotations

import io
import wave

from ....audio.formats import BYTES_PER_SAMPLE, AudioFormat, AudioFrame
from .dialect import STAGE
from .input_track import InputTrack

MAX_UTTERANCE_MS = 30_000
"""Contract, section 5: the longest utterance that is recognised as a whole."""


class Recording:
    """Bounded: what would make it longer than `MAX_UTTERANCE_MS` is refused, not cut."""

    def __init__(self, format: AudioFormat) -> None:
        self._format = format
        self._track = InputTrack(format, format, 0, MAX_UTTERANCE_MS, False)
        self._pcm = bytearray()

    @property
    def samples(self) -> int:
        return self._track.written_samples

    def append(self, frame: AudioFrame) -> None:
        """Raises `PortError`, and takes nothing of the frame, for another format, for a hole, and beyond the bound."""
        if self._format.duration_ms(self.samples + frame.samples) > MAX_UTTERANCE_MS:
            message = f"an utterance may last {MAX_UTTERANCE_MS} ms; finish this one and open another stream"
            raise STAGE.failure("utterance_too_long", message)
        self._track.take(frame)
        for pcm in self._track.messages():
            self._pcm += pcm

    def as_wav(self) -> bytes:
        """The whole utterance."""
        file = io.BytesIO()
        with wave.open(file, "wb") as wav:
            wav.setnchannels(1)
            wav.setsampwidth(BYTES_PER_SAMPLE)
            wav.setframerate(self._format.sample_rate_hz)
            wav.writeframes(bytes(self._pcm))
        return file.getvalue()
