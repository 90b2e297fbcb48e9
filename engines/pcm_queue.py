"""The awaiting side of `PcmBuffer`: producers wait for room up to a deadline, consumers wait for frames."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar, cast, overload

import anyio
import anyio.lowlevel

from ..audio.errors import QueueClosed, QueueFull
from ..audio.formats import AudioFormat, AudioFrame
from ..audio.queues import DEFAULT_MAX_FRAMES, PcmBuffer, QueuedFrame

Tag = TypeVar("Tag")


class PcmQueue(Generic[Tag]):
    """First in, first out between the tasks of one event loop, bounded by bytes *and* duration (and frame count).

    Waiting producers are served in the order in which they came, and every wait is followed by a new look at all
    bounds and at `close`. A cancelled `put` has queued nothing; a cancelled `get` has taken nothing.
    """

    def __init__(
        self, format: AudioFormat, *, max_bytes: int, max_ms: int, max_frames: int = DEFAULT_MAX_FRAMES
    ) -> None:
        self._buffer: PcmBuffer[Tag] = PcmBuffer(format, max_bytes=max_bytes, max_ms=max_ms, max_frames=max_frames)
        self._closed = False
        # One producer and one consumer at a time look at the queue; the locks are fair, so the others keep their order.
        self._producing = anyio.Lock(fast_acquire=True)
        self._consuming = anyio.Lock(fast_acquire=True)
        self._room_made = anyio.Event()
        self._frame_came = anyio.Event()

    @property
    def format(self) -> AudioFormat:
        return self._buffer.format

    @property
    def max_ms(self) -> int:
        return self._buffer.max_ms

    @property
    def max_bytes(self) -> int:
        return self._buffer.max_bytes

    @property
    def queued_samples(self) -> int:
        return self._buffer.queued_samples

    @property
    def queued_bytes(self) -> int:
        return self._buffer.queued_bytes

    @property
    def queued_ms(self) -> float:
        return self._buffer.queued_ms

    @property
    def peak_bytes(self) -> int:
        """The most that was ever queued at once."""
        return self._buffer.peak_bytes

    @property
    def peak_ms(self) -> float:
        """The most that was ever queued at once."""
        return self._buffer.peak_ms

    @property
    def closed(self) -> bool:
        return self._closed

    @overload
    async def put(self: PcmQueue[None], frame: AudioFrame, *, timeout_s: float) -> None: ...
    @overload
    async def put(self, frame: AudioFrame, tag: Tag, *, timeout_s: float) -> None: ...
    async def put(self, frame: AudioFrame, tag: Tag | None = None, *, timeout_s: float) -> None:
        """Queue the frame, waiting for room at most `timeout_s` seconds (0: only when there is room now).

        Raises `QueueFull` when the time is over, `QueueClosed` when the queue is or becomes closed, and at once
        `FrameTooLarge` or `AudioFormatError` for a frame that never fits.
        """
        await anyio.lowlevel.checkpoint()
        if self._accepts(frame) and not self._producing.locked():
            self._append(frame, cast("Tag", tag))
            return
        with anyio.move_on_after(timeout_s):
            async with self._producing:
                while not self._accepts(frame):
                    await self._room_made.wait()
                self._append(frame, cast("Tag", tag))
                return
        raise self._full(f"within {timeout_s:g} s")

    @overload
    def put_nowait(self: PcmQueue[None], frame: AudioFrame) -> None: ...
    @overload
    def put_nowait(self, frame: AudioFrame, tag: Tag) -> None: ...
    def put_nowait(self, frame: AudioFrame, tag: Tag | None = None) -> None:
        """Queue the frame now, or raise as `put` does; it never overtakes a producer that waits."""
        if not self._accepts(frame) or self._producing.locked():
            raise self._full("now")
        self._append(frame, cast("Tag", tag))

    async def get(self, max_samples: int | None = None) -> QueuedFrame[Tag]:
        """The oldest frame (or its first `max_samples`), waiting for one as long as the caller's scope lets it.

        Raises `QueueClosed` once the queue is closed and empty.
        """
        await anyio.lowlevel.checkpoint()
        async with self._consuming:
            while (queued := self.get_nowait(max_samples)) is None:
                await self._frame_came.wait()
            return queued

    def get_nowait(self, max_samples: int | None = None) -> QueuedFrame[Tag] | None:
        """The oldest frame (or its first `max_samples`), None when there is none yet. Raises as `get` does."""
        queued = self._buffer.take(max_samples)
        if queued is None and self._closed:
            raise QueueClosed("the PCM queue is closed and empty")
        self._wake_producer()
        return queued

    def discard(self, matches: Callable[[Tag], bool]) -> int:
        """Drop every frame whose tag matches, such as those of an invalidated epoch. Returns the samples dropped."""
        dropped = self._buffer.discard(matches)
        self._wake_producer()
        return dropped

    def clear(self) -> int:
        """Drop everything. Returns the samples dropped."""
        dropped = self._buffer.clear()
        self._wake_producer()
        return dropped

    def close(self) -> None:
        """Nothing more goes in: waiting producers get `QueueClosed`, and consumers too once the queue is empty.

        To end at once, `clear` as well. Closing again changes nothing.
        """
        self._closed = True
        self._wake_producer()
        self._frame_came.set()

    def _accepts(self, frame: AudioFrame) -> bool:
        if self._closed:
            raise QueueClosed("the PCM queue is closed; the frame was not queued")
        return self._buffer.has_room_for(frame)

    def _append(self, frame: AudioFrame, tag: Tag) -> None:
        self._buffer.offer(frame, tag)
        self._frame_came.set()
        self._frame_came = anyio.Event()

    def _wake_producer(self) -> None:
        self._room_made.set()
        self._room_made = anyio.Event()

    def _full(self, when: str) -> QueueFull:
        return QueueFull(
            f"no room {when}: {self.queued_ms:.0f} of {self.max_ms} ms and {self.queued_bytes} of {self.max_bytes} "
            "bytes are queued; the consumer is too slow or has stopped"
        )
