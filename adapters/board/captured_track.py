"""A microphone track between the one who captures and the one who reads: bounded, and honest about what it lost."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from ...audio.formats import AudioFormat, AudioFrame
from ...audio.queues import PcmBuffer
from ...engines.reports import ButtonUsed, Captured, CaptureEnded, CaptureGap, DeviceButton, MicrophoneReport
from ...statecharts.errors import ScopedError
from .notification import Notification

DEFAULT_CAPTURE_QUEUE_MS = 500
MAX_BUTTONS = 64
"""Buttons that may wait among the frames: more of them are a broken button, not a user."""


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
        self._taken_to = 0
        self._buttons: deque[tuple[int, DeviceButton]] = deque()

    def append(self, data: bytes, captured_at_ns: int | None, lost_samples: int = 0) -> None:
        """What the device captured next, after losing `lost_samples`."""
        self.dropped_samples += lost_samples
        self.append_frame(AudioFrame(data, self.format, self._next_sample + lost_samples), captured_at_ns)

    def append_frame(self, frame: AudioFrame, captured_at_ns: int | None) -> None:
        """A frame at its own position, at or behind the end of the former one."""
        self._next_sample = frame.end_sample
        while not self._buffer.offer(frame, captured_at_ns):
            oldest = self._buffer.take()
            if oldest is not None:
                self._taken_to = oldest.frame.end_sample
                self.dropped_samples += oldest.frame.samples
        self.changed.notify()

    def press(self, button: DeviceButton) -> bool:
        """A button was used now: it comes behind what was captured so far, the stop button ahead of it.

        False when too many wait, and this one is lost.
        """
        if len(self._buttons) >= MAX_BUTTONS:
            return False
        if button is DeviceButton.STOP:
            self._buttons.appendleft((0, button))
        else:
            self._buttons.append((self._next_sample, button))
        self.changed.notify()
        return True

    def take(self) -> TrackPiece | DeviceButton | None:
        """The oldest frame, or the button before it; None when there is neither."""
        if self._buttons and (self._buttons[0][0] <= self._taken_to or not len(self._buffer)):
            return self._buttons.popleft()[1]
        queued = self._buffer.take()
        if queued is None:
            return None
        self._taken_to = queued.frame.end_sample
        return TrackPiece(queued.frame, queued.tag, self._buffer.queued_ms, self.dropped_samples)

    @property
    def next_sample(self) -> int:
        """Where the track goes on when nothing is lost."""
        return self._next_sample


class TrackReader:
    """The microphone port's reports of one track: frames, gaps and buttons in order, the end last. Iterated once."""

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
            if isinstance(piece, DeviceButton):
                return ButtonUsed(piece)
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
