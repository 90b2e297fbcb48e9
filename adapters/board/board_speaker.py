"""The `Speaker` port over the board-audio socket.

What keeps an interruption fast: at most `IN_FLIGHT_MS` of audio is on its way to the service at any moment (the
service acknowledges what it queued), so that the control lane, which goes first, is never behind a full socket; the
rest waits in the caller's `write`. The service's queue is never filled beyond its offer, counted from what it said it
submitted to its device.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator
from dataclasses import dataclass

import anyio

from ...audio.formats import AudioFormat, AudioFrame
from ...engines.ports import OutputOpening
from ...engines.reports import PortError, SpeakerLost, SpeakerReport
from ...statecharts.capabilities import SpeakerCapabilities
from ...statecharts.errors import ScopedError
from ...statecharts.values import PositionSource
from .errors import closed, receipts_unread, refused
from .link import Link
from .messages import (
    Accepted,
    Discarded,
    Drained,
    FinishStream,
    InvalidateBefore,
    OpenStream,
    PauseStream,
    PlaybackOffer,
    Receipt,
    ReleaseStream,
    ResumeStream,
    Stopped,
    WireFormat,
)
from .notification import Notification
from .protocol import PlaybackAudio, ProtocolViolation
from .receipt_messages import to_report
from .render_stream import QueueLimits, RenderRefused
from .report_queue import ReportQueue, newer_progress
from .speaker_writing import write_frame

IN_FLIGHT_MS = 80
CHUNK_MS = 20
CLOSE_DEADLINE_MS = 1_000


@dataclass(slots=True)
class ClientStatistics:
    """Counts of one connection."""

    stale_frames: int = 0
    """Frames of an invalidated epoch that were dropped at the client."""
    service_stale_frames: int = 0
    """Those that had left before and were dropped at the service's gate."""
    peak_queued_ms: float = 0.0
    """The most of one stream that was written and not yet known to be submitted to the device."""
    peak_queued_bytes: int = 0
    """The same in bytes."""


@dataclass(slots=True)
class _Outgoing:
    """What was written to one stream, and what the service said about it. All in samples of the stream."""

    output_epoch: int
    format: AudioFormat
    limit: int
    held: bool
    paused: bool = False
    written: int = 0
    accepted: int = 0
    submitted: int = 0
    finished: bool = False

    @property
    def room(self) -> int:
        in_flight = self.format.samples_for_ms(IN_FLIGHT_MS) - (self.written - self.accepted)
        queued = self.limit - (self.written - self.submitted)
        return max(0, min(in_flight, queued, self.format.samples_for_ms(CHUNK_MS)))


class BoardSpeaker:
    """Made by `BoardAudio.connect`."""

    def __init__(self, link: Link, offer: PlaybackOffer, *, write_deadline_ms: int) -> None:
        self.changed = Notification()
        self.statistics = ClientStatistics()
        self._link = link
        self._offer = offer
        self._formats = {offered.to_format() for offered in offer.formats}
        self._limits = QueueLimits(offer.queue_limit_ms, offer.queue_limit_bytes)
        self._write_deadline_ms = write_deadline_ms
        self._streams: dict[int, _Outgoing] = {}
        self._last_stream_id = 0
        self._barrier = 0
        self._lane: deque[PlaybackAudio | FinishStream] = deque()
        self._reports: ReportQueue[SpeakerReport] = ReportQueue(replaces=newer_progress)
        self._lost: ScopedError | None = None
        self._closing = False

    # -- the port --------------------------------------------------------------------------------------------------

    @property
    def capabilities(self) -> SpeakerCapabilities:
        return SpeakerCapabilities(
            pause=self._offer.pause,
            stop_receipt=True,
            measured_position=self._offer.position_source is PositionSource.MEASURED,
            max_queue_ms=self._offer.queue_limit_ms,
        )

    async def open(self, opening: OutputOpening) -> None:
        self._check_usable()
        limit = self._limits.samples(opening.format)
        if opening.format not in self._formats:
            raise _refusal("wrong_format", f"the audio service does not take {opening.format}; see its greeting")
        if opening.stream_id <= self._last_stream_id:
            raise _refusal("stream_reused", f"stream ids grow: {opening.stream_id} after {self._last_stream_id}")
        if opening.format.samples_for_ms(opening.prebuffer_ms) > limit:
            raise _refusal("prebuffer_too_long", f"a prebuffer of {opening.prebuffer_ms} ms never fills; lower it")
        self._last_stream_id = opening.stream_id
        self._streams[opening.stream_id] = _Outgoing(opening.output_epoch, opening.format, limit, held=opening.held)
        self._link.post(
            OpenStream(
                stream_id=opening.stream_id,
                output_epoch=opening.output_epoch,
                format=WireFormat.of(opening.format),
                prebuffer_ms=opening.prebuffer_ms,
                held=opening.held,
            )
        )

    async def write(self, stream_id: int, output_epoch: int, frame: AudioFrame) -> None:
        await write_frame(self, stream_id, output_epoch, frame, deadline_ms=self._write_deadline_ms)

    async def finish(self, stream_id: int, end_sample: int) -> None:
        self._check_usable()
        stream = self._find(stream_id)
        if stream is None or stream.output_epoch < self._barrier:
            return
        if stream.finished or end_sample != stream.written:
            raise _refusal("end_mismatch", f"stream {stream_id} ends once, at {stream.written}, not at {end_sample}")
        stream.finished = True
        self._lane.append(FinishStream(stream_id=stream_id, end_sample=end_sample))
        self._link.media_ready()

    def invalidate_before(self, output_epoch: int, reason: str) -> None:
        if output_epoch <= self._barrier:
            return
        self._barrier = output_epoch
        self._link.post(InvalidateBefore(output_epoch=output_epoch, reason=reason[:1_000]), first=True)
        self._drop_stale_lane()
        self.changed.notify()

    def pause(self, stream_id: int) -> None:
        if not self._offer.pause:
            raise _refusal("pause_not_offered", "this audio service cannot pause; its capabilities say so")
        stream = self._find(stream_id)
        if stream is not None:
            stream.paused = True
            self._link.post(PauseStream(stream_id=stream_id))

    def resume(self, stream_id: int) -> None:
        stream = self._find(stream_id)
        if stream is not None:
            stream.paused = False
            self._link.post(ResumeStream(stream_id=stream_id))

    def release(self, stream_id: int) -> None:
        stream = self._find(stream_id)
        if stream is not None:
            stream.held = False
            self._link.post(ReleaseStream(stream_id=stream_id))

    def reports(self) -> AsyncIterator[SpeakerReport]:
        return self._reports

    async def aclose(self) -> None:
        if self._closing:
            return
        self._closing = True
        if self._streams:
            self.invalidate_before(1 + max(stream.output_epoch for stream in self._streams.values()), "closed")
        with anyio.move_on_after(CLOSE_DEADLINE_MS / 1_000, shield=True):
            while self._streams and self._lost is None:
                await self.changed.wait()
        self._reports.close()

    # -- how a frame is written (`FrameLane`) ----------------------------------------------------------------------

    def room_samples(self, stream_id: int, output_epoch: int) -> int | None:
        self._check_usable()
        if output_epoch < self._barrier:
            return None
        return self._live(stream_id, output_epoch).room

    def stands_still(self, stream_id: int) -> bool:
        stream = self._streams.get(stream_id)
        return stream is not None and (stream.held or stream.paused)

    def put(self, stream_id: int, output_epoch: int, piece: AudioFrame) -> None:
        if output_epoch < self._barrier:
            self.statistics.stale_frames += 1
            return
        stream = self._live(stream_id, output_epoch)
        if stream.finished or piece.format != stream.format or piece.start_sample != stream.written:
            raise _refusal(
                "not_contiguous",
                f"stream {stream_id} goes on at sample {stream.written} in {stream.format} until it is finished",
            )
        stream.written = piece.end_sample
        statistics, queued = self.statistics, stream.written - stream.submitted
        statistics.peak_queued_ms = max(statistics.peak_queued_ms, stream.format.duration_ms(queued))
        statistics.peak_queued_bytes = max(statistics.peak_queued_bytes, stream.format.bytes_for(queued))
        self._lane.append(PlaybackAudio(stream_id, output_epoch, piece.start_sample, piece.data))
        self._link.media_ready()

    # -- what the connection tells ---------------------------------------------------------------------------------

    def next_media(self) -> PlaybackAudio | FinishStream | None:
        """The next item for the wire."""
        return self._lane.popleft() if self._lane else None

    def accepted(self, message: Accepted) -> None:
        """More credit."""
        stream = self._streams.get(message.stream_id)
        if stream is not None:
            self._credit(stream, message.accepted_samples, message.submitted_samples)

    def discarded(self, message: Discarded) -> None:
        """Stale audio reached the service."""
        self.statistics.service_stale_frames = message.stale_frames

    def receipt(self, message: Receipt) -> None:
        """A fact about a stream. Raises `ProtocolViolation` when it cannot be."""
        stream = self._streams.get(message.stream_id)
        if stream is None or stream.output_epoch != message.output_epoch:
            raise ProtocolViolation(f"a receipt for stream {message.stream_id}, which is not open")
        self._credit(stream, message.position.accepted_samples, message.position.submitted_samples)
        if isinstance(message, Drained | Stopped):
            del self._streams[message.stream_id]
            self.changed.notify()
        if not self._reports.put(to_report(message)):
            self.lose(receipts_unread())

    def lose(self, error: ScopedError) -> None:
        """The speaker is gone; whoever waits learns it now."""
        if self._lost is None:
            self._lost = error
            self._lane.clear()
            self._reports.close(SpeakerLost(error))
            self.changed.notify()

    # -- inside ----------------------------------------------------------------------------------------------------

    def _credit(self, stream: _Outgoing, accepted: int, submitted: int) -> None:
        if not submitted <= accepted <= stream.written:
            raise ProtocolViolation("the service tells of more audio than it was sent")
        stream.accepted = max(stream.accepted, accepted)
        stream.submitted = max(stream.submitted, submitted)
        self.changed.notify()

    def _drop_stale_lane(self) -> None:
        kept: deque[PlaybackAudio | FinishStream] = deque()
        for item in self._lane:
            stream = self._streams.get(item.stream_id)
            if stream is not None and stream.output_epoch >= self._barrier:
                kept.append(item)
            elif isinstance(item, PlaybackAudio):
                self.statistics.stale_frames += 1
        self._lane = kept

    def _find(self, stream_id: int) -> _Outgoing | None:
        if not 0 < stream_id <= self._last_stream_id:
            raise _refusal("unknown_stream", f"stream {stream_id} was never opened")
        return self._streams.get(stream_id)

    def _live(self, stream_id: int, output_epoch: int) -> _Outgoing:
        stream = self._find(stream_id)
        if stream is None:
            raise _refusal("stream_ended", f"stream {stream_id} has ended; open another one")
        if stream.output_epoch != output_epoch:
            raise _refusal("wrong_epoch", f"stream {stream_id} is of epoch {stream.output_epoch}, not {output_epoch}")
        return stream

    def _check_usable(self) -> None:
        if self._closing:
            raise closed("playback", "the speaker")
        if self._lost is not None:
            raise PortError(self._lost)


def _refusal(code: str, message: str) -> PortError:
    return refused(RenderRefused(code, message))
