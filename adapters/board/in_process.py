"""The speaker and the microphone without a socket: same ports, same render core, for embedders and benchmarks."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator
from contextlib import asynccontextmanager, contextmanager

import anyio

from ...audio.formats import AudioFormat, AudioFrame
from ...engines.ports import OutputOpening
from ...engines.reports import (
    DeviceButton,
    MicrophoneReport,
    PortError,
    SpeakerLost,
    SpeakerReport,
)
from ...statecharts.capabilities import SpeakerCapabilities
from ...statecharts.errors import ScopedError
from ...statecharts.values import PositionSource
from .background import Readiness, background
from .captured_track import DEFAULT_CAPTURE_QUEUE_MS, CapturedTrack, TrackReader
from .devices import CaptureDevice, DeviceLost, RenderDevice, RenderedSpan
from .errors import closed, microphone_lost, receipts_unread, refused, speaker_lost
from .notification import Notification
from .render_queue import QueueLimits, RenderStatistics
from .render_stream import RenderRefused
from .renderer import Renderer
from .report_queue import ReportQueue, newer_progress
from .speaker_writing import DEFAULT_WRITE_DEADLINE_MS, write_frame

CLOSE_DEADLINE_MS = 1_000


@contextmanager
def _refusals() -> Generator[None, None, None]:
    """Refusals of the render core, as the port raises them."""
    try:
        yield
    except RenderRefused as error:
        raise refused(error) from error


class InProcessSpeaker:
    """The `Speaker` port on a render device in this process. Made by `running`."""

    def __init__(
        self,
        device: RenderDevice,
        *,
        limits: QueueLimits | None = None,
        write_deadline_ms: int = DEFAULT_WRITE_DEADLINE_MS,
        log: Callable[[RenderedSpan], None] | None = None,
    ) -> None:
        self._renderer = Renderer(device, limits=limits, log=log)
        self._write_deadline_ms = write_deadline_ms
        self._reports: ReportQueue[SpeakerReport] = ReportQueue(replaces=newer_progress)
        self._ready = Readiness()
        self._lost: ScopedError | None = None
        self._lost_after_close: ScopedError | None = None
        self._closing = False
        self._renderer.attach(self._receive)

    @classmethod
    @asynccontextmanager
    async def running(
        cls,
        device: RenderDevice,
        *,
        limits: QueueLimits | None = None,
        write_deadline_ms: int = DEFAULT_WRITE_DEADLINE_MS,
        log: Callable[[RenderedSpan], None] | None = None,
    ) -> AsyncGenerator[InProcessSpeaker, None]:
        """A speaker whose device runs during the block.

        `write_deadline_ms`: how long a write waits without any room being made. `log` gets every rendered span.
        Raises `PortError` when the device cannot start, and at the end when what it still had to record was lost.
        """
        speaker = cls(device, limits=limits, write_deadline_ms=write_deadline_ms, log=log)
        async with background(speaker._run):
            await speaker._ready.wait()
            speaker._check_usable()
            try:
                yield speaker
            finally:
                await speaker.aclose()
        if speaker._lost_after_close is not None:
            raise PortError(speaker._lost_after_close)

    # -- the port --------------------------------------------------------------------------------------------------

    @property
    def capabilities(self) -> SpeakerCapabilities:
        return SpeakerCapabilities(
            pause=True,
            stop_receipt=True,
            measured_position=self._renderer.device.position_source is PositionSource.MEASURED,
            max_queue_ms=self._renderer.limits.max_ms,
        )

    async def open(self, opening: OutputOpening) -> None:
        self._check_usable()
        with _refusals():
            self._renderer.open(opening)

    async def write(self, stream_id: int, output_epoch: int, frame: AudioFrame) -> None:
        await write_frame(self, stream_id, output_epoch, frame, deadline_ms=self._write_deadline_ms)

    async def finish(self, stream_id: int, end_sample: int) -> None:
        self._check_usable()
        with _refusals():
            self._renderer.finish(stream_id, end_sample)

    def invalidate_before(self, output_epoch: int, reason: str) -> None:
        self._renderer.invalidate_before(output_epoch)

    def pause(self, stream_id: int) -> None:
        with _refusals():
            self._renderer.pause(stream_id)

    def resume(self, stream_id: int) -> None:
        with _refusals():
            self._renderer.resume(stream_id)

    def release(self, stream_id: int) -> None:
        with _refusals():
            self._renderer.release(stream_id)

    def reports(self) -> AsyncIterator[SpeakerReport]:
        return self._reports

    async def aclose(self) -> None:
        if self._closing:
            return
        self._closing = True
        self._renderer.invalidate_all()
        with anyio.move_on_after(CLOSE_DEADLINE_MS / 1_000, shield=True):
            while self._renderer.has_streams and self._lost is None:
                await self._renderer.changed.wait()
        self._reports.close()
        self._renderer.detach()

    # -- for measuring ---------------------------------------------------------------------------------------------

    @property
    def statistics(self) -> RenderStatistics:
        """Stale frames dropped, underruns, the longest queue."""
        return self._renderer.statistics

    # -- how a frame is written (`FrameLane`) ----------------------------------------------------------------------

    @property
    def changed(self) -> Notification:
        return self._renderer.changed

    def room_samples(self, stream_id: int, output_epoch: int) -> int | None:
        self._check_usable()
        with _refusals():
            return self._renderer.room_samples(stream_id, output_epoch)

    def stands_still(self, stream_id: int) -> bool:
        return self._renderer.stands_still(stream_id)

    def put(self, stream_id: int, output_epoch: int, piece: AudioFrame) -> None:
        with _refusals():
            self._renderer.write(stream_id, output_epoch, piece)

    # -- inside ----------------------------------------------------------------------------------------------------

    async def _run(self) -> None:
        try:
            await self._renderer.run(task_status=self._ready)
        except DeviceLost as error:
            if self._closing and self._lost is None:
                self._lost_after_close = speaker_lost(error)
            self._lose(speaker_lost(error))
            self._ready.started()

    def _receive(self, report: SpeakerReport) -> None:
        if not self._reports.put(report):
            self._lose(receipts_unread())

    def _lose(self, error: ScopedError) -> None:
        if self._lost is None:
            self._lost = error
            self._reports.close(SpeakerLost(error))
            self._renderer.changed.notify()

    def _check_usable(self) -> None:
        if self._closing:
            raise closed("playback", "the speaker")
        if self._lost is not None:
            raise PortError(self._lost)


class InProcessMicrophone:
    """The `Microphone` port on a capture device in this process. Made by `running`."""

    def __init__(self, device: CaptureDevice, *, queue_ms: int = DEFAULT_CAPTURE_QUEUE_MS) -> None:
        self._device = device
        self._track = CapturedTrack(device.format, max_ms=queue_ms)
        self._reader = TrackReader(self._track)
        self._ready = Readiness()
        self._failure: ScopedError | None = None
        self._listening = False

    @classmethod
    @asynccontextmanager
    async def running(
        cls, device: CaptureDevice, *, queue_ms: int = DEFAULT_CAPTURE_QUEUE_MS
    ) -> AsyncGenerator[InProcessMicrophone, None]:
        """A microphone whose device runs during the block; its track begins when `reports` is called.

        `queue_ms`: what a slow reader may leave waiting. Raises `PortError` when the device cannot start.
        """
        microphone = cls(device, queue_ms=queue_ms)
        async with background(microphone._run):
            await microphone._ready.wait()
            if microphone._failure is not None:
                raise PortError(microphone._failure)
            yield microphone

    @property
    def format(self) -> AudioFormat:
        return self._device.format

    def reports(self) -> AsyncIterator[MicrophoneReport]:
        self._listening = True
        return self._reader

    async def aclose(self) -> None:
        self._listening = False
        self._reader.end()

    def captured(self, data: bytes, captured_at_ns: int, lost_samples: int = 0) -> None:
        """Called by the device (`CaptureSink`)."""
        if self._listening:
            self._track.append(data, captured_at_ns, lost_samples)

    def press(self, button: DeviceButton) -> None:
        """A button is used now."""
        if self._listening:
            self._track.press(button)

    async def _run(self) -> None:
        try:
            await self._device.run(self, task_status=self._ready)
        except DeviceLost as error:
            self._failure = microphone_lost(error)
        self._reader.end(self._failure)
        self._ready.started()
