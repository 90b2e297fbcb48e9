"""A microphone track between the one who captures and the one who reads: bounded, and honest about what it lost."""

from __future__ import annotations

from dataclasses import dataclass

from ...audio.formats import AudioFormat, AudioFrame
from ...audio.queues import PcmBuffer
from ...engines.reports import Captured, CaptureEnded, CaptureGap, MicrophoneReport
from ...statecharts.errors import ScopedError
from .notification import Notification

DEFAULT_CAPTURE_QUEUE_MS = 500


@dataclass(frozen=True, slots=True)
class TrackPiece:
    """One frame taken from a track."""

    frame: AudioFrame
    captured_at_ns: int | None
    queued_ms: float
    """What still waited behind it."""
    dropped_samples: int
    """Lost so far, in the device and here."""


class CapturedTrack:
    """First in, first out. When `max_ms` are queued the oldest frame is dropped and counted: positions tell the gap."""

    def __init__(self, audio_format: AudioFormat, *, max_ms: int = DEFAULT_CAPTURE_QUEUE_MS) -> None:
        self.format = audio_format
        self.changed = Notification()
        self.dropped_samples = 0
        self._buffer: PcmBuffer[int | None] = PcmBuffer(
            audio_format, max_bytes=audio_format.bytes_for(audio_format.samples_for_ms(max_ms)), max_ms=max_ms
        )
        self._next_sample = 0

    def append(self, data: bytes, captured_at_ns: int | None, lost_samples: int = 0) -> None:
        """What the device captured next, after losing `lost_samples`."""
        self.dropped_samples += lost_samples
        self.append_frame(AudioFrame(data, self.format, self._next_sample + lost_samples), captured_at_ns)

    def append_frame(self, frame: AudioFrame, captured_at_ns: int | None) -> None:
        """A frame at its own position, at or behind the end of the former one."""
        self._next_sample = frame.end_sample
        while not self._buffer.offer(frame, captured_at_ns):
            oldest = self._buffer.take()
            self.dropped_samples += oldest.frame.samples if oldest is not None else 0
        self.changed.notify()

    def take(self) -> TrackPiece | None:
        """The oldest frame, None when there is none."""
        queued = self._buffer.take()
        if queued is None:
            return None
        return TrackPiece(queued.frame, queued.tag, self._buffer.queued_ms, self.dropped_samples)

    @property
    def next_sample(self) -> int:
        """Where the track goes on when nothing is lost."""
        return self._next_sample


class TrackReader:
    """The microphone port's reports of one track: frames and gaps in track order, the end last. Iterated once."""

    def __init__(self, track: CapturedTrack) -> None:
        self._track = track
        self._ended: CaptureEnded | None = None
        self._told_end = False
        self._behind_gap: Captured | None = None
        self._expected = 0

    @property
    def ended(self) -> bool:
        return self._ended is not None

    def end(self, error: ScopedError | None = None) -> None:
        """No more is captured. Ending again changes nothing."""
        if self._ended is None:
            self._ended = CaptureEnded(error)
            self._track.changed.notify()

    def __aiter__(self) -> TrackReader:
        return self

    async def __anext__(self) -> MicrophoneReport:
        while True:
            if self._behind_gap is not None:
                captured, self._behind_gap = self._behind_gap, None
                return captured
            piece = self._track.take()
            if piece is not None:
                return self._report(piece)
            if self._ended is not None:
                if self._told_end:
                    raise StopAsyncIteration
                self._told_end = True
                return self._ended
            await self._track.changed.wait()

    def _report(self, piece: TrackPiece) -> MicrophoneReport:
        captured = Captured(piece.frame, piece.captured_at_ns)
        lost = piece.frame.start_sample - self._expected
        self._expected = piece.frame.end_sample
        if lost <= 0:
            return captured
        self._behind_gap = captured
        return CaptureGap(lost, "the device overran, or its reader was too slow")
