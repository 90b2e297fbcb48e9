"""The audio of one utterance on its way out: checked, in the provider's format, in messages of the right length."""

from __future__ import annotations

from collections.abc import Iterator

from ....audio.formats import AudioFormat, AudioFrame
from ....audio.resampling import ResamplingQuality, TrackResampler
from .dialect import STAGE


def written_format(format: AudioFormat) -> AudioFormat:
    """`format` where a recogniser can be given it. Raises `PortError`: which of several channels holds the speech is
    not this side's guess.
    """
    if format.channels != 1:
        raise STAGE.failure("wrong_format", f"recognisers hear one channel, not {format.channels}; mix down first")
    return format


class InputTrack:
    """From written frames to messages of `min_ms` to `max_ms`."""

    def __init__(self, source: AudioFormat, target: AudioFormat, min_ms: int, max_ms: int, pads_last: bool) -> None:
        self._source = written_format(source)
        self._target = target
        self._min_bytes = target.bytes_for(target.samples_for_ms(min_ms))
        self._max_bytes = target.bytes_for(target.samples_for_ms(max_ms))
        self._pads_last = pads_last
        self._resampler = TrackResampler(source, target, quality=ResamplingQuality.LOW) if source != target else None
        self._gathered = bytearray()
        self._expected_sample: int | None = None
        self.written_samples = 0
        """In samples of the recognition's own audio."""

    def take(self, frame: AudioFrame) -> None:
        """Raises `PortError`, and takes nothing of the frame, for another format and for a hole."""
        if frame.format != self._source:
            message = f"this utterance is {self._source}, not {frame.format}; resample first"
            raise STAGE.failure("wrong_format", message)
        if self._expected_sample not in (None, frame.start_sample):
            message = f"expected sample {self._expected_sample}, got {frame.start_sample}; open another stream"
            raise STAGE.failure("audio_discontinuity", message)
        self._expected_sample = frame.end_sample
        self.written_samples += frame.samples
        self._gather(self._resampler.feed(frame) if self._resampler is not None else frame)

    def messages(self) -> Iterator[bytes]:
        """What has come together by now."""
        while self._gathered and len(self._gathered) >= self._min_bytes:
            yield self._cut(min(len(self._gathered), self._max_bytes))

    def rest(self) -> Iterator[bytes]:
        """The end of the utterance: everything that is left."""
        if self._resampler is not None:
            self._gather(self._resampler.flush())
        yield from self.messages()
        if self._gathered:
            missing = self._min_bytes - len(self._gathered) if self._pads_last else 0
            yield self._cut(len(self._gathered)) + bytes(missing)

    def _gather(self, frame: AudioFrame | None) -> None:
        if frame is not None:
            self._gathered += frame.data

    def _cut(self, length_bytes: int) -> bytes:
        piece = bytes(self._gathered[:length_bytes])
        del self._gathered[:length_bytes]
        return piece
