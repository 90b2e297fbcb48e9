"""How a speaker writes one frame, for both speakers: in pieces that fit, waiting for room, giving up on a stall."""

from __future__ import annotations

from typing import Protocol

import anyio
import anyio.lowlevel

from ...audio.formats import AudioFrame
from ...engines.reports import PortError
from ...statecharts.errors import ErrorScope, ScopedError
from .notification import Notification

DEFAULT_WRITE_DEADLINE_MS = 5_000


class FrameLane(Protocol):
    """Where the pieces go."""

    @property
    def changed(self) -> Notification: ...
    def room_samples(self, stream_id: int, output_epoch: int) -> int | None:
        """Samples that may be put now; None when the epoch is invalid. Raises `PortError`."""
        ...

    def put(self, stream_id: int, output_epoch: int, piece: AudioFrame) -> None:
        """Take a piece that fits, or drop and count one of an invalid epoch. Raises `PortError`."""
        ...

    def stands_still(self, stream_id: int) -> bool:
        """Held or paused, because it was asked to be: that no room is made means nothing."""
        ...


async def write_frame(
    lane: FrameLane, stream_id: int, output_epoch: int, frame: AudioFrame, *, deadline_ms: int
) -> None:
    """Put the whole frame, however long.

    Raises `PortError` when no room was made for `deadline_ms`: a speaker that plays slowly is waited for, one that
    stands still is not, unless it was asked to.
    """
    await anyio.lowlevel.checkpoint()
    rest = frame
    while rest.samples:
        room = lane.room_samples(stream_id, output_epoch)
        if room is None:
            lane.put(stream_id, output_epoch, rest)
            return
        if room == 0:
            await _wait_for_room(lane, stream_id, output_epoch, deadline_ms)
            continue
        piece, rest = rest.split_at(min(room, rest.samples))
        lane.put(stream_id, output_epoch, piece)


async def _wait_for_room(lane: FrameLane, stream_id: int, output_epoch: int, deadline_ms: int) -> None:
    while True:
        with anyio.move_on_after(deadline_ms / 1_000):
            while lane.room_samples(stream_id, output_epoch) == 0:
                await lane.changed.wait()
            return
        if not lane.stands_still(stream_id):
            break
    raise PortError(
        ScopedError(
            code="speaker_stalled",
            stage="playback",
            scope=ErrorScope.RESPONSE,
            message=f"the speaker made no room for {deadline_ms} ms; check the audio service and its device",
        )
    )
