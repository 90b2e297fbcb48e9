"""The `Microphone` port over the board-audio socket."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass

from ...audio.errors import AudioFormatError
from ...audio.formats import AudioFormat, AudioFrame
from ...engines.reports import DeviceButton, MicrophoneReport
from ...statecharts.errors import ScopedError
from .captured_track import CapturedTrack, TrackReader
from .link import Link
from .messages import CaptureOffer, StartCapture, StopCapture
from .protocol import CaptureAudio, ProtocolViolation


@dataclass(slots=True)
class CaptureStatistics:
    """What the service told beside the audio, from its latest frame."""

    service_queued_ms: float = 0.0
    """Captured audio that waited behind the frame in the service."""
    service_dropped_samples: int = 0
    """Lost in the device or the service so far."""


class BoardMicrophone:
    """Made by `BoardAudio.connect`. Its track begins when `reports` is called."""

    def __init__(self, link: Link, offer: CaptureOffer, *, queue_ms: int) -> None:
        self.statistics = CaptureStatistics()
        self._link = link
        self._format = offer.format.to_format()
        self._track = CapturedTrack(self._format, max_ms=queue_ms)
        self._reader = TrackReader(self._track)

    @property
    def format(self) -> AudioFormat:
        return self._format

    def reports(self) -> AsyncIterator[MicrophoneReport]:
        self._link.post(StartCapture())
        return self._reader

    async def aclose(self) -> None:
        if not self._reader.ended:
            self._link.post(StopCapture())
            self._reader.end()

    def captured(self, audio: CaptureAudio) -> None:
        """A frame came. Raises `ProtocolViolation` when it does not fit the track."""
        if self._reader.ended:
            return
        try:
            frame = AudioFrame(audio.data, self._format, audio.sample_position)
        except AudioFormatError as error:
            raise ProtocolViolation(f"a capture frame is not whole: {error}") from error
        if frame.start_sample < self._track.next_sample:
            raise ProtocolViolation(f"capture went back from {self._track.next_sample} to {frame.start_sample}")
        self.statistics.service_queued_ms = audio.queued_us / 1_000
        self.statistics.service_dropped_samples = audio.dropped_samples
        self._track.append_frame(frame, audio.captured_at_ns)

    def pressed(self, name: str) -> None:
        """A button of the board was used. One of a newer service, unknown here, means nothing."""
        if name not in tuple(DeviceButton):
            return
        if not self._track.press(DeviceButton(name)):
            raise ProtocolViolation("more buttons were used than anybody reads")

    def end(self, error: ScopedError | None) -> None:
        """No more comes: the recording ended (None) or the microphone is gone."""
        self._reader.end(error)
