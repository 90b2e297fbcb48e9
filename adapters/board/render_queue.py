"""The render core: what may reach the speaker, and the receipts of what did. Sans-IO; the last gate before the device.

Theory of operation. Streams are rendered one after the other, in the order in which they were opened. The device
takes samples with `render` and tells with `presented` how far they were heard; what lies between is the *handed* run,
kept here with its bytes. `invalidate_before` closes the gate under the same lock that `render` takes: after it returns
no sample of an older epoch is handed out. When some were handed out and not heard yet, the device must be flushed;
`flushed` then settles what was heard, which the receipt says. A pause works the same way, except that what comes back
unheard is queued again.

Buffering: a stream renders once its prebuffer is there (or its end is known). A device that asks for more than there
is gets silence, the stream is starved, and buffers again by itself.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from ...audio.formats import AudioFormat, AudioFrame
from ...engines.ports import OutputOpening
from ...engines.reports import SpeakerReport
from ...statecharts.values import PositionSource
from .devices import RenderBlock, RenderedSpan
from .handed_runs import HandedRun, HandedRuns
from .receipts import Receipts
from .render_stream import QueueLimits, RenderRefused, RenderStream, StreamPhase


class WriteOutcome(Enum):
    """What became of a frame at the gate."""

    ACCEPTED = "accepted"
    STALE = "stale"
    """Of an invalidated epoch: dropped and counted."""


@dataclass(slots=True)
class RenderStatistics:
    """Counts since the last `reset`."""

    stale_frames: int = 0
    """Frames of an invalidated epoch that were dropped at the gate."""
    underruns: int = 0
    peak_queued_ms: float = 0.0
    """The most of one stream that was accepted and not yet heard."""
    peak_queued_bytes: int = 0
    """The same in bytes, in the format of the stream."""


class RenderQueue:
    """Every stream of one speaker. Any thread may call; each call is short and never blocks on anything but the lock.

    `log` is called for every rendered span, on the thread that calls `presented`.
    """

    def __init__(
        self,
        device_format: AudioFormat,
        *,
        source: PositionSource = PositionSource.MEASURED,
        confidence: float = 1.0,
        limits: QueueLimits | None = None,
        log: Callable[[RenderedSpan], None] | None = None,
    ) -> None:
        self.limits = limits or QueueLimits()
        self.statistics = RenderStatistics()
        self._format = device_format
        self._log = log
        self._lock = threading.Lock()
        self._streams: dict[int, RenderStream] = {}
        self._waiting: deque[RenderStream] = deque()
        self._handed = HandedRuns(device_format)
        self._receipts = Receipts(device_format, source, confidence)
        self._barrier = 0
        self._last_stream_id = 0

    # -- the writer's side -----------------------------------------------------------------------------------------

    def open(self, opening: OutputOpening) -> None:
        """Add a stream. Of an invalidated epoch: it is stopped at once. Raises `RenderRefused`."""
        with self._lock:
            if opening.stream_id <= self._last_stream_id:
                raise RenderRefused(
                    "stream_reused", f"stream ids grow: {opening.stream_id} came after {self._last_stream_id}"
                )
            if len(self._streams) >= self.limits.max_streams:
                raise RenderRefused(
                    "too_many_streams", f"{self.limits.max_streams} streams are open; stop or drain one"
                )
            stream = RenderStream(opening, self._format, self.limits)
            self._last_stream_id = opening.stream_id
            self._streams[stream.stream_id] = stream
            if stream.output_epoch < self._barrier:
                self._report_stop(stream)
            else:
                self._waiting.append(stream)

    def room_samples(self, stream_id: int, output_epoch: int) -> int | None:
        """How much may be written now, in samples of the stream; None where a write would be stale."""
        with self._lock:
            if output_epoch < self._barrier:
                return None
            return self._stream(stream_id).room_samples

    def write(self, stream_id: int, output_epoch: int, frame: AudioFrame) -> WriteOutcome:
        """Queue a frame that fits. Raises `RenderRefused`."""
        with self._lock:
            if output_epoch < self._barrier:
                self.statistics.stale_frames += 1
                return WriteOutcome.STALE
            stream = self._stream(stream_id)
            if stream.output_epoch != output_epoch:
                raise RenderRefused(
                    "wrong_epoch", f"stream {stream_id} is of epoch {stream.output_epoch}, not {output_epoch}"
                )
            stream.append(frame)
            statistics, unplayed = self.statistics, stream.unplayed_samples
            statistics.peak_queued_ms = max(statistics.peak_queued_ms, stream.format.duration_ms(unplayed))
            statistics.peak_queued_bytes = max(statistics.peak_queued_bytes, stream.format.bytes_for(unplayed))
            return WriteOutcome.ACCEPTED

    def drop_if_stale(self, output_epoch: int) -> bool:
        """Whether a frame of this epoch is stale; it is counted as dropped then."""
        with self._lock:
            stale = output_epoch < self._barrier
            self.statistics.stale_frames += stale
            return stale

    def finish(self, stream_id: int, end_sample: int) -> None:
        """Set the end barrier; nothing when the stream has ended already. Raises `RenderRefused`."""
        with self._lock:
            stream = self._live(stream_id)
            if stream is not None:
                stream.finish(end_sample)
                self._report_drain_if_whole(stream)

    def pause(self, stream_id: int) -> bool:
        """Stop rendering where the device is; True when the device must be flushed for that."""
        with self._lock:
            stream = self._live(stream_id)
            if stream is None or stream.paused:
                return False
            stream.paused = True
            return self._handed.holds(stream)

    def resume(self, stream_id: int) -> None:
        """Go on where the pause stopped."""
        with self._lock:
            stream = self._live(stream_id)
            if stream is not None:
                stream.paused = False

    def stands_still(self, stream_id: int) -> bool:
        """Held or paused."""
        with self._lock:
            stream = self._streams.get(stream_id)
            return stream is not None and (stream.held or stream.paused)

    def release(self, stream_id: int) -> None:
        """Let a held stream render."""
        with self._lock:
            stream = self._live(stream_id)
            if stream is not None:
                stream.held = False

    def invalidate_before(self, output_epoch: int) -> bool:
        """Close the gate for every older epoch; True when the device must be flushed before the receipts are known."""
        with self._lock:
            return self._invalidate_before(output_epoch)

    def invalidate_all(self) -> bool:
        """The same for every stream there is."""
        with self._lock:
            return self._invalidate_before(1 + max((one.output_epoch for one in self._streams.values()), default=-1))

    def reset(self) -> bool:
        """Forget every stream, report and epoch, as for a new connection; True when the device must be flushed."""
        with self._lock:
            sounding = self._handed.disown()
            self._streams.clear()
            self._waiting.clear()
            self._receipts.take()
            self._barrier = 0
            self._last_stream_id = 0
            self.statistics = RenderStatistics()
            return sounding

    def credit(self, stream_id: int) -> tuple[int, int] | None:
        """(accepted, submitted) samples of a live stream; None when it has ended."""
        with self._lock:
            stream = self._live(stream_id)
            if stream is None:
                return None
            return stream.accepted_samples, stream.to_stream(stream.submitted_device_samples)

    @property
    def has_streams(self) -> bool:
        with self._lock:
            return bool(self._streams)

    def take_reports(self) -> list[SpeakerReport]:
        """The receipts since the last call, in order."""
        with self._lock:
            return self._receipts.take()

    # -- the device's side -----------------------------------------------------------------------------------------

    def render(self, samples: int) -> RenderBlock:
        """Exactly `samples` for the device: what the gates let through, then silence."""
        with self._lock:
            out = bytearray()
            missing = samples
            starving: RenderStream | None = None
            while missing and self._waiting and self._waiting[0].may_render:
                stream = self._waiting[0]
                if not stream.queued_samples:
                    if stream.end_known:
                        self._waiting.popleft()
                        continue
                    starving = stream
                    break
                data = self._hand_out(stream, missing)
                out += data
                missing -= self._format.samples_in(len(data))
            if missing:
                self._hand_out_silence(missing, starving)
                out += bytes(self._format.bytes_for(missing))
            return RenderBlock(bytes(out), samples - missing)

    def presented(self, position_samples: int, now_ns: int) -> None:
        """Everything handed out before `position_samples` was heard by `now_ns`."""
        with self._lock:
            self._present(position_samples, now_ns)

    def flushed(self, position_samples: int, now_ns: int) -> None:
        """Everything handed out behind `position_samples` is dropped: stops are final, the rest is queued again."""
        with self._lock:
            self._present(position_samples, now_ns)
            for run, unheard in self._handed.take_back():
                self._requeue(run, unheard)
            for stream in [one for one in self._streams.values() if one.stopping]:
                self._report_stop(stream)

    # -- inside the lock -------------------------------------------------------------------------------------------

    def _invalidate_before(self, output_epoch: int) -> bool:
        self._barrier = max(self._barrier, output_epoch)
        needs_flush = False
        for stream in [one for one in self._streams.values() if one.output_epoch < self._barrier and not one.stopping]:
            stream.stopping = True
            stream.drop_queue()
            self._forget_waiting(stream)
            if self._handed.holds(stream):
                needs_flush = True
            else:
                self._report_stop(stream)
        return needs_flush

    def _live(self, stream_id: int) -> RenderStream | None:
        """The stream, None when it has ended; `RenderRefused` when it never was."""
        stream = self._streams.get(stream_id)
        if stream is None and not 0 < stream_id <= self._last_stream_id:
            raise RenderRefused("unknown_stream", f"stream {stream_id} was never opened")
        return None if stream is None or stream.stopping else stream

    def _stream(self, stream_id: int) -> RenderStream:
        stream = self._live(stream_id)
        if stream is None:
            raise RenderRefused("stream_ended", f"stream {stream_id} has ended; open another one")
        return stream

    def _hand_out(self, stream: RenderStream, samples: int) -> bytes:
        starts = stream.starts_next or stream.phase is StreamPhase.BUFFERING
        stream.phase = StreamPhase.RENDERING
        stream.starts_next = False
        data = stream.take(samples)
        self._handed.hand_out(stream, data, starts=starts)
        return data

    def _hand_out_silence(self, samples: int, starving: RenderStream | None) -> None:
        if starving is not None:
            starving.phase = StreamPhase.BUFFERING
            self.statistics.underruns += 1
        self._handed.hand_out_silence(samples, starves=starving)

    def _present(self, position: int, now_ns: int) -> None:
        self._receipts.now_ns = now_ns
        for run, samples in self._handed.heard_up_to(position):
            if run.starves is not None:
                self._receipts.starved(run.starves)
                run.starves = None
            if run.stream is not None:
                self._present_run(run, run.stream, samples, now_ns)

    def _present_run(self, run: HandedRun, stream: RenderStream, samples: int, now_ns: int) -> None:
        start = stream.to_stream(stream.played_device_samples)
        stream.mark_played(samples)
        if self._log is not None:
            end = stream.to_stream(stream.played_device_samples)
            self._log(RenderedSpan(stream.stream_id, stream.output_epoch, start, end, now_ns))
        if stream.stopping:
            return
        if run.starts:
            run.starts = False
            self._receipts.started(stream)
        else:
            self._receipts.progressed(stream)
        self._report_drain_if_whole(stream)

    def _requeue(self, run: HandedRun, unheard: bytes) -> None:
        if run.starves is not None:
            # It ran dry whether or not the silence behind it was heard.
            self._receipts.starved(run.starves)
        stream = run.stream
        if stream is None or stream.stopping:
            return
        stream.give_back(unheard)
        stream.phase = StreamPhase.RENDERING
        stream.starts_next = stream.starts_next or run.starts
        if stream not in self._waiting:
            self._waiting.appendleft(stream)

    def _forget_waiting(self, stream: RenderStream) -> None:
        if stream in self._waiting:
            self._waiting.remove(stream)

    def _report_drain_if_whole(self, stream: RenderStream) -> None:
        if stream.played_whole:
            self._forget_waiting(stream)
            del self._streams[stream.stream_id]
            self._receipts.drained(stream)

    def _report_stop(self, stream: RenderStream) -> None:
        stream.stopping = True
        del self._streams[stream.stream_id]
        self._receipts.stopped(stream)
