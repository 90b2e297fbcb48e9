"""The audio service: owns the board's microphone and loudspeaker, and lends them to one conversation at a time.

Any number of connections may come. One that breaks the protocol, or does not read, or does not answer, is closed with
a reason and harms nobody else. When its holder goes, the speaker falls silent at once. A device that fails ends the
service, after the holder was told: nothing is ever replaced by another device.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import anyio
from anyio.abc import SocketStream, TaskGroup, TaskStatus

from ...audio.formats import AudioFormat
from ...engines.reports import DeviceButton
from ...statecharts.values import PositionSource
from .background import Readiness
from .buttons import ButtonSource, ButtonsRefused
from .captured_track import DEFAULT_CAPTURE_QUEUE_MS
from .devices import CaptureDevice, DeviceLost, RenderDevice, RenderedSpan
from .link import EndCause, LinkLimits
from .messages import CaptureOffer, DeviceFailed, PlaybackOffer, ServiceHello, WireFormat
from .notification import Notification
from .render_queue import QueueLimits
from .renderer import Renderer
from .service_connection import ServiceConnection
from .socket_path import private_listener

log = logging.getLogger(__name__)

CONVERTED_RATES_HZ = (8_000, 16_000, 22_050, 24_000, 32_000, 44_100, 48_000)
"""What speech synthesisers produce; converted to the device's rate where it differs."""


@dataclass(frozen=True, slots=True)
class ServiceLimits:
    """Deadlines and bounds of the service's end."""

    queue: QueueLimits = field(default_factory=QueueLimits)
    capture_queue_ms: int = DEFAULT_CAPTURE_QUEUE_MS
    """What a slow client may leave waiting."""
    max_connections: int = 16
    device_start_deadline_ms: int = 10_000
    link: LinkLimits = field(default_factory=LinkLimits)


async def serve_audio(
    path: Path,
    capture: CaptureDevice | None,
    render: RenderDevice | None,
    *,
    limits: ServiceLimits | None = None,
    log_rendered: Callable[[RenderedSpan], None] | None = None,
    on_held: Callable[[], None] | None = None,
    buttons: ButtonSource | None = None,
    task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED,
) -> None:
    """Serve the devices at the Unix socket `path` until cancelled; `task_status.started()` once it can be connected to.

    `log_rendered` gets every span of samples that was really rendered. `on_held` is called whenever a conversation has
    taken the devices, so that a virtual microphone can begin to speak. `buttons`: those of the board. Raises
    `SocketRefused` when the path cannot be used, `ButtonsRefused` when the buttons cannot be read, and `DeviceLost`
    when a device cannot start or fails.
    """
    service = _AudioService(capture, render, limits or ServiceLimits(), log_rendered, on_held, buttons)
    await service.serve(path, task_status)


class _AudioService:
    def __init__(
        self,
        capture: CaptureDevice | None,
        render: RenderDevice | None,
        limits: ServiceLimits,
        log_rendered: Callable[[RenderedSpan], None] | None,
        on_held: Callable[[], None] | None,
        buttons: ButtonSource | None,
    ) -> None:
        self._capture = capture
        self._buttons = buttons
        self._on_held = on_held
        self._limits = limits
        self._renderer = None if render is None else Renderer(render, limits=limits.queue, log=log_rendered)
        self._greeting = _greeting(capture, self._renderer, buttons)
        self._connections: set[ServiceConnection] = set()
        self._holder: ServiceConnection | None = None
        self._capture_ended = False
        self._failure: DeviceLost | ButtonsRefused | None = None
        self._changed = Notification()

    async def serve(self, path: Path, task_status: TaskStatus[None]) -> None:
        try:
            async with private_listener(path) as listener, anyio.create_task_group() as group:
                await self._start_devices(group)
                if self._failure is None:
                    group.start_soon(listener.serve, self._speak_with)
                    task_status.started()
                    await self._until_failed()
                group.cancel_scope.cancel()
        finally:
            # Also when cancelled: a recording whose last samples could not be written is no success.
            if self._failure is not None:
                raise self._failure

    # -- who holds the devices (`Holding`) -------------------------------------------------------------------------

    def hold(self, connection: ServiceConnection) -> bool:
        if self._holder is not None:
            return False
        self._holder = connection
        if self._renderer is not None:
            self._renderer.attach(connection.receipt)
        if self._capture_ended:
            connection.capture_ended()
        if self._on_held is not None:
            self._on_held()
        return True

    def let_go(self, connection: ServiceConnection) -> None:
        if self._holder is connection:
            self._holder = None
            if self._renderer is not None:
                self._renderer.detach()

    # -- the microphone's sink (`CaptureSink`) ---------------------------------------------------------------------

    def captured(self, data: bytes, captured_at_ns: int, lost_samples: int = 0) -> None:
        if self._holder is not None:
            self._holder.captured(data, captured_at_ns, lost_samples)

    def _button_used(self, button: DeviceButton) -> None:
        if self._holder is not None:
            self._holder.button_used(button)

    # -- inside ----------------------------------------------------------------------------------------------------

    async def _start_devices(self, group: TaskGroup) -> None:
        ready = [Readiness(), Readiness(), Readiness()]
        group.start_soon(self._run_renderer, ready[0])
        group.start_soon(self._run_capture, ready[1])
        group.start_soon(self._run_buttons, ready[2])
        with anyio.move_on_after(self._limits.device_start_deadline_ms / 1_000) as starting:
            for device in ready:
                await device.wait()
        if starting.cancelled_caught:
            self._fail("speaker", DeviceLost("device_missing", "a sound device does not start; check it"))

    async def _until_failed(self) -> None:
        while self._failure is None:
            await self._changed.wait()
        # The connections end by themselves, once each was told why.
        with anyio.move_on_after(self._limits.link.send_deadline_ms / 1_000):
            while self._connections:
                await self._changed.wait()

    async def _speak_with(self, stream: SocketStream) -> None:
        if len(self._connections) >= self._limits.max_connections:
            log.warning("refused a connection: %d are open", len(self._connections))
            await stream.aclose()
            return
        capture_format: AudioFormat | None = None if self._capture is None else self._capture.format
        connection = ServiceConnection(
            stream,
            self,
            self._greeting,
            self._renderer,
            capture_format,
            capture_queue_ms=self._limits.capture_queue_ms,
            limits=self._limits.link,
        )
        self._connections.add(connection)
        try:
            end = await connection.run()
        finally:
            self._connections.discard(connection)
            self._changed.notify()
        level = logging.INFO if end.cause in (EndCause.CLOSED_HERE, EndCause.CLOSED_THERE) else logging.WARNING
        log.log(level, "a connection ended (%s): %s", end.code, end.reason)

    async def _run_renderer(self, ready: Readiness) -> None:
        if self._renderer is None:
            ready.started()
            return
        try:
            await self._renderer.run(task_status=ready)
        except DeviceLost as error:
            self._fail("speaker", error)
        ready.started()

    async def _run_capture(self, ready: Readiness) -> None:
        if self._capture is None:
            ready.started()
            return
        try:
            await self._capture.run(self, task_status=ready)
        except DeviceLost as error:
            self._fail("microphone", error)
        else:
            self._capture_ended = True
            if self._holder is not None:
                self._holder.capture_ended()
        ready.started()

    async def _run_buttons(self, ready: Readiness) -> None:
        if self._buttons is not None:
            try:
                await self._buttons.run(self._button_used, task_status=ready)
            except ButtonsRefused as error:
                self._failure = self._failure or error
                self._changed.notify()
        ready.started()

    def _fail(self, device: Literal["speaker", "microphone"], error: DeviceLost) -> None:
        if self._failure is not None:
            return
        log.error("the %s failed (%s): %s", device, error.code, error)
        self._failure = error
        for connection in self._connections:
            connection.device_failed(DeviceFailed(device=device, code=error.code, reason=str(error)[:1_000]))
        self._changed.notify()


def _greeting(capture: CaptureDevice | None, renderer: Renderer | None, buttons: ButtonSource | None) -> ServiceHello:
    playback = None
    if renderer is not None:
        native = renderer.format
        channels = sorted({1, native.channels})
        converted = [AudioFormat(rate, count) for rate in CONVERTED_RATES_HZ for count in channels]
        formats = [native, *(one for one in converted if one != native)]
        playback = PlaybackOffer(
            formats=tuple(WireFormat.of(one) for one in formats),
            pause=True,
            position_source=PositionSource(renderer.device.position_source),
            queue_limit_ms=renderer.limits.max_ms,
            queue_limit_bytes=renderer.limits.max_bytes,
        )
    offer = None if capture is None else CaptureOffer(format=WireFormat.of(capture.format))
    names = () if buttons is None else ("stop", "talk")
    return ServiceHello(playback=playback, capture=offer, keep_alive=True, buttons=names)
