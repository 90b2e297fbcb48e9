"""PCM16 formats and frames, with sample arithmetic that never drifts.

Everything is counted in *samples per channel* ("samples" for short). Durations are derived from samples, never
the other way round, and nanoseconds are computed from the absolute position, so that a long stream accumulates no
rounding error.
"""

from __future__ import annotations

from dataclasses import dataclass

from .errors import AudioFormatError

BYTES_PER_SAMPLE = 2
"""Signed 16-bit little-endian, the only sample encoding inside voicechart."""

NANOSECONDS_PER_SECOND = 1_000_000_000


@dataclass(frozen=True, slots=True)
class AudioFormat:
    """Interleaved signed 16-bit little-endian PCM. Raises `AudioFormatError` outside the supported bounds."""

    sample_rate_hz: int
    """4,000 to 192,000 Hz."""

    channels: int = 1
    """1 to 8 interleaved channels."""

    def __post_init__(self) -> None:
        if not 4_000 <= self.sample_rate_hz <= 192_000:
            raise AudioFormatError(f"sample rate {self.sample_rate_hz} Hz is outside 4000–192000 Hz")
        if not 1 <= self.channels <= 8:
            raise AudioFormatError(f"{self.channels} channels are outside 1–8")

    @property
    def bytes_per_sample(self) -> int:
        """Bytes of one sample of every channel."""
        return BYTES_PER_SAMPLE * self.channels

    def samples_in(self, length_bytes: int) -> int:
        """Whole samples in `length_bytes`; raises `AudioFormatError` when a sample is cut."""
        samples, rest = divmod(length_bytes, self.bytes_per_sample)
        if rest:
            raise AudioFormatError(f"{length_bytes} bytes cut a sample of {self.bytes_per_sample} bytes")
        return samples

    def bytes_for(self, samples: int) -> int:
        """Bytes that hold `samples`."""
        return samples * self.bytes_per_sample

    def samples_for_ms(self, duration_ms: float) -> int:
        """The nearest whole number of samples lasting `duration_ms`."""
        return round(duration_ms * self.sample_rate_hz / 1_000)

    def duration_ms(self, samples: int) -> float:
        """How long `samples` last, in milliseconds."""
        return samples * 1_000 / self.sample_rate_hz

    def duration_ns(self, samples: int) -> int:
        """How long `samples` last, in whole nanoseconds (rounded down)."""
        return samples * NANOSECONDS_PER_SECOND // self.sample_rate_hz


SPEECH_FORMAT = AudioFormat(16_000)
"""What voice activity detection and the local recogniser take: 16 kHz mono."""


@dataclass(frozen=True, slots=True)
class AudioFrame:
    """A run of whole samples at an absolute position of one track.

    `data` holds interleaved PCM16; a cut sample raises `AudioFormatError`.
    """

    data: bytes
    format: AudioFormat
    start_sample: int = 0
    """Position of the first sample in its track, in samples since the track began."""

    def __post_init__(self) -> None:
        self.format.samples_in(len(self.data))
        if self.start_sample < 0:
            raise AudioFormatError(f"a frame cannot start at sample {self.start_sample}")

    @property
    def samples(self) -> int:
        """Samples per channel in this frame."""
        return len(self.data) // self.format.bytes_per_sample

    @property
    def end_sample(self) -> int:
        """Position just after the last sample."""
        return self.start_sample + self.samples

    @property
    def duration_ms(self) -> float:
        """How long this frame lasts."""
        return self.format.duration_ms(self.samples)

    def split_at(self, samples: int) -> tuple[AudioFrame, AudioFrame]:
        """The first `samples` and the rest, both at their absolute positions.

        `samples` is 0 to `self.samples`; outside it raises `AudioFormatError`.
        """
        if not 0 <= samples <= self.samples:
            raise AudioFormatError(f"a frame of {self.samples} samples cannot be split at {samples}")
        cut_bytes = self.format.bytes_for(samples)
        return (
            AudioFrame(self.data[:cut_bytes], self.format, self.start_sample),
            AudioFrame(self.data[cut_bytes:], self.format, self.start_sample + samples),
        )
