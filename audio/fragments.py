"""From arbitrary pieces to whole frames: byte fragments that cut samples, and frames of the wrong size."""

from __future__ import annotations

from .errors import AudioDiscontinuity, AudioFormatError, AudioSettingsError
from .formats import AudioFormat, AudioFrame


class PcmAssembler:
    """Joins byte fragments of one track into frames of whole samples at exact positions.

    A fragment may have any length; a sample cut at its end waits for the next one. `start_sample` is the position of
    the track's first sample (0 or more, else `AudioFormatError`).
    """

    def __init__(self, format: AudioFormat, start_sample: int = 0) -> None:
        if start_sample < 0:
            raise AudioFormatError(f"a track cannot start at sample {start_sample}")
        self.format = format
        self._next_sample = start_sample
        self._rest = b""

    @property
    def next_sample(self) -> int:
        """Position of the next whole sample."""
        return self._next_sample

    @property
    def pending_bytes(self) -> int:
        """Bytes of a cut sample that wait for their rest; less than one sample."""
        return len(self._rest)

    def feed(self, fragment: bytes | bytearray | memoryview) -> AudioFrame | None:
        """The whole samples that are complete now, or None when there is not one."""
        joined = self._rest + bytes(fragment)
        whole_bytes = len(joined) - len(joined) % self.format.bytes_per_sample
        self._rest = joined[whole_bytes:]
        if not whole_bytes:
            return None
        frame = AudioFrame(joined[:whole_bytes], self.format, self._next_sample)
        self._next_sample = frame.end_sample
        return frame

    def flush(self) -> int:
        """End of the fragments: forget a cut sample. Returns its bytes, 0 when the track ended on a whole sample."""
        leftover_bytes = len(self._rest)
        self._rest = b""
        return leftover_bytes


class Reframer:
    """Cuts one track into frames of exactly `samples` each, positions kept.

    Raises `AudioSettingsError` for a size below 1.
    """

    def __init__(self, format: AudioFormat, samples: int) -> None:
        if samples < 1:
            raise AudioSettingsError(f"a frame of {samples} samples holds nothing; give it at least 1")
        self.format = format
        self.samples = samples
        self._rest = bytearray()
        self._rest_start: int | None = None

    @property
    def pending_samples(self) -> int:
        """Samples that wait for a full frame; less than `samples`."""
        return self.format.samples_in(len(self._rest))

    def feed(self, frame: AudioFrame) -> list[AudioFrame]:
        """Every full frame that is complete now.

        Raises `AudioFormatError` for another format and `AudioDiscontinuity` for a frame that does not continue the
        former one; neither changes anything.
        """
        if frame.format != self.format:
            raise AudioFormatError(f"this track is {self.format}, not {frame.format}; convert the frame first")
        start = frame.start_sample if self._rest_start is None else self._rest_start
        expected = start + self.pending_samples
        if frame.start_sample != expected:
            raise AudioDiscontinuity("the reframer", expected, frame.start_sample)
        self._rest += frame.data
        size_bytes = self.format.bytes_for(self.samples)
        cuts = range(0, len(self._rest) - size_bytes + 1, size_bytes)
        frames = [
            AudioFrame(bytes(self._rest[cut : cut + size_bytes]), self.format, start + index * self.samples)
            for index, cut in enumerate(cuts)
        ]
        del self._rest[: len(frames) * size_bytes]
        self._rest_start = start + len(frames) * self.samples
        return frames

    def flush(self) -> AudioFrame | None:
        """The remainder as a shorter frame, or None when there is none. The next frame may start anywhere."""
        remainder = None
        if self._rest and self._rest_start is not None:
            remainder = AudioFrame(bytes(self._rest), self.format, self._rest_start)
        self.reset()
        return remainder

    def reset(self) -> int:
        """Forget the remainder; the next frame may start anywhere. Returns the samples forgotten."""
        dropped = self.pending_samples
        self._rest.clear()
        self._rest_start = None
        return dropped
