"""One client of the audio service."""

from __future__ import annotations

import logging
from typing import Protocol

from anyio.abc import SocketStream

from ...audio.errors import AudioFormatError
from ...audio.formats import AudioFormat, AudioFrame
from ...engines.ports import OutputOpening
from ...engines.reports import DeviceButton, RenderingDrained, RenderingStopped, SpeakerLost, SpeakerReport
from .captured_track import CapturedTrack
from .link import Link, LinkEnd, LinkLimits
from .messages import (
    Accepted,
    ButtonPressed,
    CaptureFinished,
    ClientHello,
    ClientMessage,
    ClientRole,
    DeviceFailed,
    Discarded,
    FinishStream,
    InvalidateBefore,
    OpenStream,
    PauseStream,
    ReleaseStream,
    ResumeStream,
    ServiceHello,
    ServiceMessage,
    StartCapture,
    StopCapture,
)
from .protocol import CaptureAudio, Inbound, PlaybackAudio, ProtocolViolation, Side
from .receipt_messages import to_message
from .render_stream import RenderRefused
from .renderer import Renderer

log = logging.getLogger(__name__)


class Holding(Protocol):
    """Who may hold the devices. At most one connection does."""

    def hold(self, connection: ServiceConnection) -> bool:
        """Give the devices to `connection`; False when another has them."""
        ...

    def let_go(self, connection: ServiceConnection) -> None:
        """`connection` is gone."""
        ...


class ServiceConnection:
    """Speaks with one client. What it breaks is its own: the link ends with a reason and nothing else changes."""

    def __init__(
        self,
        stream: SocketStream,
        holding: Holding,
        greeting: ServiceHello,
        renderer: Renderer | None,
        capture_format: AudioFormat | None,
        *,
        capture_queue_ms: int,
        limits: LinkLimits,
    ) -> None:
        self._holding = holding
        self._greeting = greeting
        self._renderer = renderer
        self._capture_format = capture_format
        self._capture_queue_ms = capture_queue_ms
        self._link = Link(stream, Side.CLIENT, self, limits)
        self._holds = False
        self._takes_buttons = False
        self._track: CapturedTrack | None = None
        self._capture_ended = False
        self._formats: dict[int, AudioFormat] = {}
        self._credited: set[int] = set()
        self._found_stale = False

    async def run(self) -> LinkEnd:
        """Speak until the end; the devices are let go when this returns."""
        try:
            return await self._link.run()
        finally:
            self._track = None
            if self._holds:
                self._holding.let_go(self)

    # -- what the service tells ------------------------------------------------------------------------------------

    def captured(self, data: bytes, captured_at_ns: int, lost_samples: int) -> None:
        """The microphone's next samples."""
        if self._track is not None:
            self._track.append(data, captured_at_ns, lost_samples)
            self._link.media_ready()

    def capture_ended(self) -> None:
        """The microphone's recording ended; said behind what is still queued."""
        self._capture_ended = True
        self._link.media_ready()

    def button_used(self, button: DeviceButton) -> None:
        """Told in its place on the track; a client of before there were buttons is not told."""
        if not self._takes_buttons:
            return
        if self._track is None:
            self._link.post(ButtonPressed(button=button.value))
        elif not self._track.press(button):
            log.warning("a button is used faster than the client reads; %s was lost", button.value)
        self._link.media_ready()

    def device_failed(self, failure: DeviceFailed) -> None:
        """A device is gone, and the service with it."""
        self._link.post(failure)
        self._link.close("device_lost", failure.reason)

    def receipt(self, report: SpeakerReport) -> None:
        """What became of a stream."""
        if isinstance(report, SpeakerLost):
            return
        if isinstance(report, RenderingDrained | RenderingStopped):
            self._formats.pop(report.stream_id, None)
        self._link.post(to_message(report))

    # -- what the link tells (`LinkUser`) --------------------------------------------------------------------------

    def handle(self, item: Inbound) -> None:
        """One message of the client."""
        match item:
            case ClientHello():
                self._greet(item)
            case _ if not self._holds:
                raise ProtocolViolation("an observer holds no device")
            case StartCapture():
                if self._capture_format is None:
                    raise ProtocolViolation("StartCapture for a microphone that was not offered")
                self._track = CapturedTrack(self._capture_format, max_ms=self._capture_queue_ms)
                self._link.media_ready()
            case StopCapture():
                self._track = None
            case _ if self._renderer is not None:
                try:
                    self._play(item, self._renderer)
                except (RenderRefused, AudioFormatError) as error:
                    raise ProtocolViolation(str(error)) from error
            case _:
                raise ProtocolViolation(f"{type(item).__name__} for a device that was not offered")

    def handled_batch(self) -> None:
        """Acknowledge what was queued, once for all that came together."""
        if self._renderer is None or not self._holds:
            return
        for stream_id in self._credited:
            credit = self._renderer.credit(stream_id)
            if credit is not None:
                self._link.post(Accepted(stream_id=stream_id, accepted_samples=credit[0], submitted_samples=credit[1]))
        self._credited.clear()
        if self._found_stale:
            self._found_stale = False
            self._link.post(Discarded(stale_frames=self._renderer.statistics.stale_frames))

    def next_media(self) -> CaptureAudio | PlaybackAudio | ClientMessage | ServiceMessage | None:
        """The microphone's next frame, or a button that was used before it."""
        piece = None if self._track is None else self._track.take()
        if isinstance(piece, DeviceButton):
            return ButtonPressed(button=piece.value)
        if piece is None:
            if self._capture_ended and self._track is not None:
                self._track = None
                self._link.post(CaptureFinished())
            return None
        return CaptureAudio(
            piece.frame.start_sample,
            piece.frame.data,
            piece.captured_at_ns,
            round(piece.queued_ms * 1_000),
            piece.dropped_samples,
        )

    # -- inside ----------------------------------------------------------------------------------------------------

    def _greet(self, hello: ClientHello) -> None:
        if hello.role is ClientRole.CONVERSATION:
            if not self._holding.hold(self):
                self._link.close("busy", "another conversation holds the microphone and the speaker; end it first")
                return
            self._holds = True
            self._takes_buttons = hello.buttons
        self._link.post(self._greeting, first=True)
        self._link.greeted(keep_alive=hello.keep_alive)

    def _play(self, item: Inbound, renderer: Renderer) -> None:
        match item:
            case PlaybackAudio():
                self._queue_audio(item, renderer)
            case InvalidateBefore():
                renderer.invalidate_before(item.output_epoch)
            case OpenStream():
                self._formats[item.stream_id] = item.format.to_format()
                renderer.open(
                    OutputOpening(
                        item.stream_id, item.output_epoch, item.format.to_format(), item.prebuffer_ms, item.held
                    )
                )
            case FinishStream():
                renderer.finish(item.stream_id, item.end_sample)
            case PauseStream():
                renderer.pause(item.stream_id)
            case ResumeStream():
                renderer.resume(item.stream_id)
            case ReleaseStream():
                renderer.release(item.stream_id)
            case _:
                raise ProtocolViolation(f"{type(item).__name__} is not for a speaker")

    def _queue_audio(self, audio: PlaybackAudio, renderer: Renderer) -> None:
        if renderer.drop_if_stale(audio.output_epoch):
            self._found_stale = True
            return
        audio_format = self._formats.get(audio.stream_id)
        if audio_format is None:
            raise ProtocolViolation(f"audio for stream {audio.stream_id}, which is not open")
        frame = AudioFrame(audio.data, audio_format, audio.sample_position)
        renderer.write(audio.stream_id, audio.output_epoch, frame)
        self._credited.add(audio.stream_id)
