"""The render core joined to a device: the one path to the speaker, for the service and for embedders alike."""

from __future__ import annotations

from collections.abc import Callable

import anyio
from anyio.abc import TaskStatus

from ...audio.formats import AudioFormat, AudioFrame
from ...engines.ports import OutputOpening
from ...engines.reports import SpeakerReport
from .devices import RenderBlock, RenderDevice, RenderedSpan
from .notification import Notification
from .render_queue import QueueLimits, RenderQueue, RenderStatistics, WriteOutcome


class Renderer:
    """Feeds a device from a `RenderQueue` and passes the receipts on to whoever is attached.

    Every method but `render` belongs to the event loop. Raises `RenderRefused` as the queue does.
    """

    def __init__(
        self,
        device: RenderDevice,
        *,
        limits: QueueLimits | None = None,
        log: Callable[[RenderedSpan], None] | None = None,
    ) -> None:
        self.device = device
        self.changed = Notification()
        """Notified whenever room may have been made, a gate moved or a receipt was written."""
        self._queue = RenderQueue(
            device.format,
            source=device.position_source,
            confidence=device.position_confidence,
            limits=limits,
            log=log,
        )
        self._receiver: Callable[[SpeakerReport], None] | None = None

    @property
    def format(self) -> AudioFormat:
        return self.device.format

    @property
    def limits(self) -> QueueLimits:
        return self._queue.limits

    @property
    def statistics(self) -> RenderStatistics:
        return self._queue.statistics

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Keep the device going until cancelled. Raises `DeviceLost`."""
        await self.device.run(self, task_status=task_status)

    # -- whose speaker it is ---------------------------------------------------------------------------------------

    def attach(self, receiver: Callable[[SpeakerReport], None]) -> None:
        """From now on `receiver` gets the receipts."""
        self._receiver = receiver

    def detach(self) -> None:
        """Silence, now: every stream of the attached one is forgotten, and the next one starts afresh."""
        self._receiver = None
        if self._queue.reset():
            self.device.flush()
        self._deliver()

    @property
    def has_streams(self) -> bool:
        """Whether a stream is neither drained nor stopped."""
        return self._queue.has_streams

    # -- the writer's side -----------------------------------------------------------------------------------------

    def open(self, opening: OutputOpening) -> None:
        self._queue.open(opening)
        self._deliver()

    def room_samples(self, stream_id: int, output_epoch: int) -> int | None:
        return self._queue.room_samples(stream_id, output_epoch)

    def credit(self, stream_id: int) -> tuple[int, int] | None:
        return self._queue.credit(stream_id)

    def drop_if_stale(self, output_epoch: int) -> bool:
        return self._queue.drop_if_stale(output_epoch)

    def write(self, stream_id: int, output_epoch: int, frame: AudioFrame) -> WriteOutcome:
        return self._queue.write(stream_id, output_epoch, frame)

    def finish(self, stream_id: int, end_sample: int) -> None:
        self._queue.finish(stream_id, end_sample)
        self._deliver()

    def pause(self, stream_id: int) -> None:
        if self._queue.pause(stream_id):
            self.device.flush()

    def resume(self, stream_id: int) -> None:
        self._queue.resume(stream_id)

    def release(self, stream_id: int) -> None:
        self._queue.release(stream_id)

    def stands_still(self, stream_id: int) -> bool:
        return self._queue.stands_still(stream_id)

    def invalidate_before(self, output_epoch: int) -> None:
        """When this returns, the device is handed no older sample any more, and drops those it has."""
        if self._queue.invalidate_before(output_epoch):
            self.device.flush()
        self._deliver()

    def invalidate_all(self) -> None:
        """Stop and drop every stream there is."""
        if self._queue.invalidate_all():
            self.device.flush()
        self._deliver()

    # -- the device's side (`RenderSource`) ------------------------------------------------------------------------

    def render(self, samples: int) -> RenderBlock:
        return self._queue.render(samples)

    def presented(self, position_samples: int, now_ns: int) -> None:
        self._queue.presented(position_samples, now_ns)
        self._deliver()

    def flushed(self, position_samples: int, now_ns: int) -> None:
        self._queue.flushed(position_samples, now_ns)
        self._deliver()

    def _deliver(self) -> None:
        for report in self._queue.take_reports():
            if self._receiver is not None:
                self._receiver(report)
        self.changed.notify()
