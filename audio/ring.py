"""Pre-roll: the last moments of capture, kept until somebody is ready for them."""

from __future__ import annotations

from dataclasses import dataclass

from .errors import AudioDiscontinuity, AudioFormatError, AudioSettingsError
from .formats import AudioFormat, AudioFrame

DEFAULT_CAPACITY_MS = 2_000
"""The pre-ready budget: capture that waits for a recogniser longer than this needs a fallback, not a bigger ring."""

MAX_CAPACITY_MS = 30_000
"""The longest utterance that a batch fallback may still take."""

OUTPUT_FRAME_MS = 20


@dataclass(frozen=True, slots=True)
class PreRollAudio:
    """Consecutive frames out of the ring, oldest first, and what should have stood before them."""

    frames: tuple[AudioFrame, ...]
    missing_samples: int
    """Asked for but overwritten before it was read: the frames are whole only when this is 0."""


class PreRoll:
    """Holds exactly the last `capacity_ms` of one capture track and counts what it overwrites.

    `capacity_ms` is 1 to 30,000 and must hold at least one sample, otherwise `AudioSettingsError`. Memory is the
    capacity in bytes however small the frames are.
    """

    def __init__(self, format: AudioFormat, capacity_ms: int = DEFAULT_CAPACITY_MS) -> None:
        if not 1 <= capacity_ms <= MAX_CAPACITY_MS:
            raise AudioSettingsError(f"a pre-roll of {capacity_ms} ms is outside 1–{MAX_CAPACITY_MS} ms")
        self.format = format
        self.capacity_samples = format.samples_for_ms(capacity_ms)
        self._pcm = bytearray()
        self._end_sample: int | None = None
        self._lost_samples = 0

    @property
    def held_samples(self) -> int:
        return self.format.samples_in(len(self._pcm))

    @property
    def held_ms(self) -> float:
        return self.format.duration_ms(self.held_samples)

    @property
    def lost_samples(self) -> int:
        """Overwritten since the last `drain` or `clear`."""
        return self._lost_samples

    def append(self, frame: AudioFrame) -> int:
        """Add the next frame; the oldest samples beyond the capacity go. Returns how many were overwritten just now.

        Raises `AudioFormatError` for another format and `AudioDiscontinuity` for a frame that does not continue the
        track (after a capture gap, `clear` first); neither changes anything.
        """
        if frame.format != self.format:
            raise AudioFormatError(f"this ring holds {self.format}, not {frame.format}")
        if self._end_sample is not None and frame.start_sample != self._end_sample:
            raise AudioDiscontinuity("the pre-roll", self._end_sample, frame.start_sample)
        self._pcm += frame.data
        self._end_sample = frame.end_sample
        overwritten = max(0, self.held_samples - self.capacity_samples)
        del self._pcm[: self.format.bytes_for(overwritten)]
        self._lost_samples += overwritten
        return overwritten

    def since(self, sample: int) -> PreRollAudio:
        """Everything held from position `sample` on; the ring keeps it.

        What was overwritten after `sample` is told in `missing_samples`. A position at or after the end: no frames.
        """
        if self._end_sample is None:
            return PreRollAudio((), 0)
        oldest = self._end_sample - self.held_samples
        # Samples before the ring's first one were never captured here, so they cannot be missing.
        never_captured_before = oldest - self._lost_samples
        return PreRollAudio(
            frames=self._last(self._end_sample - min(max(sample, oldest), self._end_sample), self._end_sample),
            missing_samples=max(0, oldest - max(sample, never_captured_before)),
        )

    def drain(self) -> PreRollAudio:
        """Take everything; `missing_samples` is what was overwritten before it. The next frame must still continue."""
        if self._end_sample is None:
            return PreRollAudio((), 0)
        drained = PreRollAudio(self._last(self.held_samples, self._end_sample), self._lost_samples)
        self._pcm.clear()
        self._lost_samples = 0
        return drained

    def clear(self) -> int:
        """Forget everything, as after a capture gap; the next frame may start anywhere. Returns the samples dropped."""
        dropped = self.held_samples
        self._pcm.clear()
        self._end_sample = None
        self._lost_samples = 0
        return dropped

    def _last(self, samples: int, end_sample: int) -> tuple[AudioFrame, ...]:
        first_sample = end_sample - samples
        offset_bytes = len(self._pcm) - self.format.bytes_for(samples)
        frame_samples = max(1, self.format.samples_for_ms(OUTPUT_FRAME_MS))
        frame_bytes = self.format.bytes_for(frame_samples)
        return tuple(
            AudioFrame(bytes(self._pcm[cut : cut + frame_bytes]), self.format, first_sample + index * frame_samples)
            for index, cut in enumerate(range(offset_bytes, len(self._pcm), frame_bytes))
        )
