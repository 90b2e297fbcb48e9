"""What a sound device is to the board's audio: two small protocols, and the values that cross them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from anyio.abc import TaskStatus

from ...audio.formats import AudioFormat
from ...statecharts.values import PositionSource


class DeviceLost(Exception):
    """A device cannot go on: unplugged, its disk full, its library missing. The text says what to do."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        """Stable: "device_missing", "device_vanished", "recording_failed", "library_missing"."""


@dataclass(frozen=True, slots=True)
class RenderedSpan:
    """Samples that were really rendered, all of one stream."""

    stream_id: int
    output_epoch: int
    start_sample: int
    end_sample: int
    """Both in samples of the stream."""
    rendered_at_ns: int
    """Monotonic time at which the device told that they were."""


@dataclass(frozen=True, slots=True)
class RenderBlock:
    """PCM for a device: first what streams had, then silence."""

    data: bytes
    sounding_samples: int
    """How many samples at the front belong to streams."""


class RenderSource(Protocol):
    """Where a render device gets its samples, and whom it tells what became of them."""

    def render(self, samples: int) -> RenderBlock:
        """Exactly `samples` in the device's format. May be called from any thread; short, and never waits."""
        ...

    def presented(self, position_samples: int, now_ns: int) -> None:
        """Everything handed out up to `position_samples` (counted over all `render` calls) was heard.

        Called on the event loop, at least every few tens of milliseconds while the device runs.
        """
        ...

    def flushed(self, position_samples: int, now_ns: int) -> None:
        """The device dropped whatever it held beyond `position_samples`; counting goes on where `render` stands.

        Called on the event loop, also from inside `RenderDevice.flush`. A device that cannot take back what it holds
        passes the position of everything handed out: all of it will be heard.
        """
        ...


class RenderDevice(Protocol):
    """One loudspeaker."""

    @property
    def format(self) -> AudioFormat: ...
    @property
    def position_source(self) -> PositionSource:
        """`MEASURED` only where the device itself tells what was heard."""
        ...

    @property
    def position_confidence(self) -> float:
        """0 to 1."""
        ...

    async def run(self, source: RenderSource, *, task_status: TaskStatus[None]) -> None:
        """Render from `source` until cancelled. Raises `DeviceLost`, also before `task_status.started()`."""
        ...

    def flush(self) -> None:
        """Drop what was taken and is not heard yet, now; `RenderSource.flushed` follows. Never blocks."""
        ...


class CaptureSink(Protocol):
    """Whom a capture device hands its samples. Called on the event loop."""

    def captured(self, data: bytes, captured_at_ns: int, lost_samples: int = 0) -> None:
        """PCM in the device's format; `captured_at_ns` is the monotonic time of its first sample.

        `lost_samples` were lost by the device just before it.
        """
        ...


class CaptureDevice(Protocol):
    """One microphone."""

    @property
    def format(self) -> AudioFormat: ...

    async def run(self, sink: CaptureSink, *, task_status: TaskStatus[None]) -> None:
        """Capture until cancelled; return when the recording ended. Raises `DeviceLost`."""
        ...
