"""One output stream in front of a device: its queue, its gates, and its three positions. Sans-IO."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from ...audio.errors import AudioFormatError, AudioSettingsError
from ...audio.formats import AudioFormat, AudioFrame
from ...audio.resampling import DownMix, TrackResampler
from ...engines.ports import OutputOpening
from ...engines.reports import PlaybackPosition
from ...statecharts.values import PositionSource


class RenderRefused(Exception):
    """What was asked of a stream breaks the speaker's contract; nothing was done. `code` is stable."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True, slots=True)
class QueueLimits:
    """How much one stream may hold before the device, by duration *and* by bytes, and how many streams there may be.

    Raises `AudioSettingsError` outside 1 to 10,000 ms, below 16 bytes (one sample of 8 channels) or below 1 stream.
    """

    max_ms: int = 1_000
    max_bytes: int = 262_144
    max_streams: int = 8

    def __post_init__(self) -> None:
        if not 1 <= self.max_ms <= 10_000 or self.max_bytes < 16 or self.max_streams < 1:
            raise AudioSettingsError(
                f"{self.max_ms} ms, {self.max_bytes} bytes and {self.max_streams} streams are outside the bounds of an "
                "output queue; the usual limits are 1,000 ms, 262,144 bytes and 8 streams"
            )

    def samples(self, audio_format: AudioFormat) -> int:
        """Both bounds in samples of `audio_format`: the smaller one."""
        by_duration = self.max_ms * audio_format.sample_rate_hz // 1_000
        return min(by_duration, self.max_bytes // audio_format.bytes_per_sample)


class StreamPhase(Enum):
    """Whether a stream has enough to be rendered."""

    BUFFERING = "buffering"
    RENDERING = "rendering"


class RenderStream:
    """Takes frames in the stream's own format, gives PCM in the device's, and counts in both.

    Accepted, submitted and played are reported in samples of the stream: with a conversion between, device sample d
    is stream sample floor(d × stream rate / device rate), and the whole stream once its end was reached. Raises
    `RenderRefused` for a format that cannot be converted or a prebuffer that the limits cannot hold.
    """

    def __init__(self, opening: OutputOpening, device_format: AudioFormat, limits: QueueLimits) -> None:
        self.stream_id = opening.stream_id
        self.output_epoch = opening.output_epoch
        self.format = opening.format
        self.held = opening.held
        self.paused = False
        self.phase = StreamPhase.BUFFERING
        self.starts_next = False
        """The next samples taken are the first ones after buffering."""
        self.stopping = False
        """Invalidated; only the receipt is still to come."""
        self.accepted_samples = 0
        self.reported_played = 0
        """Device samples played when the last receipt was made."""
        self._device_format = device_format
        self._resampler = self._converter(opening.format, device_format)
        self._limit_samples = limits.samples(opening.format)
        self._prebuffer_samples = opening.format.samples_for_ms(opening.prebuffer_ms)
        if self._prebuffer_samples > self._limit_samples:
            raise RenderRefused(
                "prebuffer_too_long",
                f"a prebuffer of {opening.prebuffer_ms} ms can never fill in a queue of {self._limit_samples} samples; "
                "lower it or raise the queue's limit",
            )
        self._queued = bytearray()
        self._converted = 0
        self._submitted = 0
        self._played = 0
        self._credit_mark = 0
        self._end_sample: int | None = None

    @property
    def end_known(self) -> bool:
        return self._end_sample is not None

    @property
    def queued_samples(self) -> int:
        """Device samples that wait."""
        return len(self._queued) // self._device_format.bytes_per_sample

    @property
    def submitted_device_samples(self) -> int:
        return self._submitted

    @property
    def played_device_samples(self) -> int:
        return self._played

    @property
    def played_whole(self) -> bool:
        """The end is known and everything before it was played."""
        return self.end_known and self._played == self._converted

    @property
    def room_samples(self) -> int:
        """Stream samples that may be written now. Room that was once given is never taken back."""
        return self._limit_samples - (self.accepted_samples - self._credit_mark)

    @property
    def unplayed_samples(self) -> int:
        """Stream samples accepted and not yet played."""
        return self.accepted_samples - self.to_stream(self._played)

    @property
    def may_render(self) -> bool:
        if self.held or self.paused or self.stopping:
            return False
        if self.phase is StreamPhase.RENDERING or self.end_known:
            return True
        # Counted before the conversion, which holds some samples back: else a full queue could wait for ever.
        waiting = self.accepted_samples - self.to_stream(self._submitted)
        return self.queued_samples > 0 and waiting >= self._prebuffer_samples

    def append(self, frame: AudioFrame) -> None:
        """Queue a frame that continues the stream and fits; otherwise `RenderRefused`."""
        if self._end_sample is not None:
            raise RenderRefused("finished", f"stream {self.stream_id} was finished; open another one")
        if frame.format != self.format:
            raise RenderRefused("wrong_format", f"stream {self.stream_id} takes {self.format}, not {frame.format}")
        if frame.start_sample != self.accepted_samples:
            raise RenderRefused(
                "not_contiguous",
                f"stream {self.stream_id} goes on at sample {self.accepted_samples}, not {frame.start_sample}",
            )
        if frame.samples > self.room_samples:
            raise RenderRefused(
                "queue_full", f"stream {self.stream_id} has room for {self.room_samples} samples, not {frame.samples}"
            )
        self._enqueue(frame if self._resampler is None else self._resampler.feed(frame))
        self.accepted_samples = frame.end_sample

    def finish(self, end_sample: int) -> None:
        """Set the end barrier, which must be where the data ends."""
        if self._end_sample is not None:
            raise RenderRefused("finished", f"stream {self.stream_id} was finished before")
        if end_sample != self.accepted_samples:
            raise RenderRefused(
                "end_mismatch",
                f"stream {self.stream_id} holds {self.accepted_samples} samples; its end cannot be {end_sample}",
            )
        if self._resampler is not None:
            self._enqueue(self._resampler.flush())
        self._end_sample = end_sample

    def take(self, max_samples: int) -> bytes:
        """Up to `max_samples` device samples, handed to the device."""
        size = min(len(self._queued), self._device_format.bytes_for(max_samples))
        data = bytes(self._queued[:size])
        del self._queued[:size]
        self._submitted += self._device_format.samples_in(size)
        self._credit_mark = max(self._credit_mark, self.to_stream(self._submitted))
        return data

    def give_back(self, data: bytes) -> None:
        """The device returned the last `data` unheard; they are next again."""
        self._queued[:0] = data
        self._submitted -= self._device_format.samples_in(len(data))

    def mark_played(self, samples: int) -> None:
        """`samples` more device samples were heard."""
        self._played += samples

    def drop_queue(self) -> None:
        """Forget what waits."""
        self._queued.clear()

    def to_stream(self, device_samples: int) -> int:
        """Where device sample `device_samples` of this stream is, in samples of the stream."""
        if self._resampler is None:
            return device_samples
        if self.end_known and device_samples == self._converted:
            return self.accepted_samples
        scaled = device_samples * self.format.sample_rate_hz // self._device_format.sample_rate_hz
        return min(scaled, self.accepted_samples)

    def position(self, source: PositionSource, confidence: float, at_ns: int | None = None) -> PlaybackPosition:
        """The receipt's three numbers, as of `at_ns`."""
        return PlaybackPosition(
            accepted_samples=self.accepted_samples,
            submitted_samples=self.to_stream(self._submitted),
            played_samples=self.to_stream(self._played),
            source=source,
            confidence=confidence,
            at_ns=at_ns,
        )

    def _enqueue(self, converted: AudioFrame | None) -> None:
        if converted is not None:
            self._queued += converted.data
            self._converted += converted.samples

    def _converter(self, source: AudioFormat, target: AudioFormat) -> TrackResampler | None:
        if source == target:
            return None
        try:
            return TrackResampler(source, target, downmix=DownMix.AVERAGE)
        except AudioFormatError as error:
            raise RenderRefused("wrong_format", str(error)) from error
