"""Stateful sample-rate and channel conversion, one converter per track.

soxr runs on float32 here, not on int16: its int16 path adds dither (±1 even on digital silence, and different for every
chunking), whereas float32 gives bit-identical audio however a track is cut into frames.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Protocol, cast

import numpy as np
import numpy.typing as npt
import soxr  # pyright: ignore[reportMissingTypeStubs]  # typed by `_Stream` below

from .errors import AudioDiscontinuity, AudioFormatError
from .formats import AudioFormat, AudioFrame

Samples = npt.NDArray[np.float32]
"""Shape (samples, channels), in units of one PCM16 step."""


class ResamplingQuality(StrEnum):
    """soxr's recipes. The lag is what the converter holds back in the worst case: soxr works in blocks, so that its
    output is bursty, and the lag changes from frame to frame. Measured at 22.05, 24, 44.1 or 48 to 16 kHz.

    soxr's QQ is left out: it holds nothing back, but it has no anti-alias filter (a 9.5 kHz tone of a 48 kHz track
    comes out at 16 kHz at full level, as a tone that was never there).
    """

    LOW = "LQ"
    """22 ms at most; aliases below -110 dB; the pass band is a little narrower. The choice for conversation."""
    MEDIUM = "MQ"
    """41 ms at most."""
    HIGH = "HQ"
    """40 ms at most; aliases below -135 dB. For recordings."""


class DownMix(StrEnum):
    """How several channels become one. Never implied: on a board the second channel is often the echo reference."""

    AVERAGE = "average"
    FIRST_CHANNEL = "first_channel"


class _Stream(Protocol):
    """The part of `soxr.ResampleStream` in use; soxr ships it without annotations."""

    def resample_chunk(self, x: Samples, last: bool = False) -> Samples: ...
    def clear(self) -> None: ...


class TrackResampler:
    """Converts the frames of one track from `source` to `target`.

    Positions are exact: the input samples [a, b) of one run (from the first frame, or the first after `flush` or
    `reset`, up to `flush`) become exactly the output samples [r(a), r(b)) with r(n) = n × target / source rounded half
    up. So runs that follow each other in the input follow each other in the output, and nothing drifts. Equal rates
    pass through without delay.

    Channels: equal numbers are kept, one becomes many by copying, many become one by `downmix`, which must then be
    given; anything else raises `AudioFormatError`.
    """

    def __init__(
        self,
        source: AudioFormat,
        target: AudioFormat,
        *,
        quality: ResamplingQuality = ResamplingQuality.LOW,
        downmix: DownMix | None = None,
    ) -> None:
        if source.channels != target.channels and 1 not in (source.channels, target.channels):
            raise AudioFormatError(f"cannot turn {source.channels} channels into {target.channels}; go through one")
        if source.channels > target.channels and downmix is None:
            raise AudioFormatError(f"say how {source.channels} channels become one: pass a DownMix")
        self.source = source
        self.target = target
        self._downmix = downmix
        self._working_channels = min(source.channels, target.channels)
        self._stream = self._new_stream(quality) if source.sample_rate_hz != target.sample_rate_hz else None
        self._expected_input: int | None = None
        self._next_output = 0
        self._clipped_samples = 0

    @property
    def clipped_samples(self) -> int:
        """Values that filter overshoot pushed beyond 16 bits, and that were limited to them."""
        return self._clipped_samples

    def feed(self, frame: AudioFrame) -> AudioFrame | None:
        """What can be converted now; None while the converter still gathers.

        Raises `AudioFormatError` for another format and `AudioDiscontinuity` for a frame that does not continue the
        former one; neither changes anything.
        """
        if frame.format != self.source:
            raise AudioFormatError(f"this track is {self.source}, not {frame.format}")
        if self._expected_input is None:
            self._next_output = self._output_position(frame.start_sample)
        elif frame.start_sample != self._expected_input:
            raise AudioDiscontinuity("the resampler", self._expected_input, frame.start_sample)
        self._expected_input = frame.end_sample
        if not frame.samples:
            return None
        if self.source == self.target:
            self._next_output = frame.end_sample
            return frame
        samples = self._fold(frame)
        return self._emit(samples if self._stream is None else self._stream.resample_chunk(samples))

    def flush(self) -> AudioFrame | None:
        """The end of a run: whatever is still held back, so that the run's length is exact. Ready for a new run."""
        if self._expected_input is None:
            return None
        owed = self._output_position(self._expected_input) - self._next_output
        self._expected_input = None
        if self._stream is None:
            return None
        tail = self._stream.resample_chunk(np.zeros((0, self._working_channels), np.float32), last=True)
        # Without clear() a stream that has seen its last chunk answers further input with nothing.
        self._stream.clear()
        # soxr rounds the length of a run, not its ends: one sample more or less than the positions ask for.
        if len(tail) < owed:
            tail = np.pad(tail, ((0, owed - len(tail)), (0, 0)), mode="edge" if len(tail) else "constant")
        return self._emit(tail[:owed])

    def reset(self) -> None:
        """A deliberate cut: drop what is held back. The next frame may start anywhere."""
        self._expected_input = None
        if self._stream is not None:
            self._stream.clear()

    def _new_stream(self, quality: ResamplingQuality) -> _Stream:
        stream = soxr.ResampleStream(
            self.source.sample_rate_hz,
            self.target.sample_rate_hz,
            self._working_channels,
            dtype="float32",
            quality=quality.value,
        )
        return cast("_Stream", stream)

    def _output_position(self, input_position: int) -> int:
        source_hz, target_hz = self.source.sample_rate_hz, self.target.sample_rate_hz
        return (2 * input_position * target_hz + source_hz) // (2 * source_hz)

    def _fold(self, frame: AudioFrame) -> Samples:
        samples = np.frombuffer(frame.data, "<i2").reshape(-1, self.source.channels).astype(np.float32)
        if self._working_channels == self.source.channels:
            return samples
        if self._downmix is DownMix.FIRST_CHANNEL:
            return np.ascontiguousarray(samples[:, :1])
        return samples.mean(axis=1, keepdims=True, dtype=np.float32)

    def _emit(self, samples: Samples) -> AudioFrame | None:
        if not len(samples):
            return None
        rounded = np.rint(samples)
        limited = np.clip(rounded, -32_768, 32_767)
        self._clipped_samples += int(np.count_nonzero(rounded != limited))
        pcm = np.repeat(limited.astype("<i2"), self.target.channels // self._working_channels, axis=1)
        frame = AudioFrame(pcm.tobytes(), self.target, self._next_output)
        self._next_output = frame.end_sample
        return frame
