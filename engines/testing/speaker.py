"""A speaker that renders on the playback clock, tells what it rendered, and misbehaves as its script says."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field

import anyio

from ...audio.formats import AudioFrame
from ...audio.playback_clock import PlaybackClock
from ...statecharts.capabilities import SpeakerCapabilities
from ...statecharts.errors import ScopedError
from ...statecharts.values import PositionSource
from ..clock import LoopClock
from ..ports import OutputOpening
from ..reports import (
    PlaybackPosition,
    PortError,
    RenderingDrained,
    RenderingProgressed,
    RenderingStarted,
    RenderingStarved,
    RenderingStopped,
    SpeakerLost,
    SpeakerReport,
)
from .script import refusal

PROGRESS_MS = 100

_Receipt = RenderingStarted | RenderingProgressed | RenderingStarved | RenderingDrained | RenderingStopped


@dataclass(frozen=True, slots=True)
class SpeakerScript:
    """How one scripted speaker behaves."""

    open_error: ScopedError | None = None
    write_error: ScopedError | None = None
    """Every write fails with it."""
    open_after_ms: float = 0.0
    stands_still: bool = False
    """It takes audio and never renders any."""
    receipts: bool = True
    """False: it says nothing about streams."""
    stop_receipts: bool = True
    """False: a stop is never confirmed."""
    stop_receipt_after_ms: float = 0.0
    knows_position: bool = True
    pause: bool = True
    max_queue_ms: int = 1_000
    write_deadline_ms: int = 5_000


@dataclass
class ScriptedOutput:
    """One stream as the speaker has it."""

    opening: OutputOpening
    clock: PlaybackClock
    pcm: bytearray = field(default_factory=bytearray)
    heard_samples: int = 0
    """Rendered, as of the last look at the clock."""
    held: bool = False
    paused: bool = False
    end_sample: int | None = None
    rendering: bool = False
    announced: bool = False
    """It was told that samples are being rendered, since the last time it ran dry."""
    told_samples: int = 0
    stop_due_ns: int | None = None
    over: bool = False

    @property
    def written_samples(self) -> int:
        return len(self.pcm) // self.opening.format.bytes_per_sample

    @property
    def heard_pcm(self) -> bytes:
        """Exactly the samples that were rendered."""
        return bytes(self.pcm[: self.opening.format.bytes_for(self.heard_samples)])


class ScriptedSpeaker:
    """Streams render beside each other, each in real time from its prebuffer on. Receipts are made inside `reports`."""

    def __init__(self, script: SpeakerScript | None = None) -> None:
        self._script = script or SpeakerScript()
        self._clock = LoopClock()
        self._barrier = 0
        self._changed = anyio.Event()
        self._lost: ScopedError | None = None
        self.closed = False
        self.outputs: dict[int, ScriptedOutput] = {}
        """Every stream that was ever opened, by its id."""
        self.stops: list[tuple[int, int, str]] = []
        """When (ns), before which epoch, and why playback was stopped."""
        self.stale_frames = 0
        self.peak_queued_ms = 0.0

    @property
    def capabilities(self) -> SpeakerCapabilities:
        script = self._script
        return SpeakerCapabilities(
            pause=script.pause, measured_position=script.knows_position, max_queue_ms=script.max_queue_ms
        )

    async def open(self, opening: OutputOpening) -> None:
        await anyio.sleep(self._script.open_after_ms / 1_000)
        self._check_usable()
        if self._script.open_error is not None:
            raise PortError(self._script.open_error)
        output = ScriptedOutput(opening, PlaybackClock(opening.format), held=opening.held)
        self.outputs[opening.stream_id] = output
        if opening.output_epoch < self._barrier:
            self._stop(output)
        self._notify()

    async def write(self, stream_id: int, output_epoch: int, frame: AudioFrame) -> None:
        await anyio.lowlevel.checkpoint()
        self._check_usable()
        if self._script.write_error is not None:
            raise PortError(self._script.write_error)
        output = self.outputs[stream_id]
        limit = output.opening.format.samples_for_ms(self._script.max_queue_ms)
        while output_epoch >= self._barrier and self._queued(output) + frame.samples > limit:
            room_ns = output.clock.due_at_ns(output.written_samples + frame.samples - limit)
            with anyio.move_on_after(self._script.write_deadline_ms / 1_000) as waiting:
                await self._until(room_ns, self._changed)
            self._check_usable()
            if waiting.cancelled_caught and not (output.held or output.paused):
                raise refusal("speaker_stalled", "playback", "no room was made within the deadline")
        if output_epoch < self._barrier:
            self.stale_frames += 1
            return
        if frame.start_sample != output.written_samples or output.end_sample is not None:
            raise refusal("not_contiguous", "playback", f"stream {stream_id} goes on at {output.written_samples}")
        output.pcm += frame.data
        output.clock.submit(frame.samples, self._clock.now_ns())
        queued_ms = output.opening.format.duration_ms(self._queued(output))
        self.peak_queued_ms = max(self.peak_queued_ms, queued_ms)
        self._notify()

    async def finish(self, stream_id: int, end_sample: int) -> None:
        self._check_usable()
        output = self.outputs[stream_id]
        if output.opening.output_epoch < self._barrier:
            return
        if end_sample != output.written_samples:
            raise refusal(
                "end_mismatch", "playback", f"{output.written_samples} samples were written, not {end_sample}"
            )
        output.end_sample = end_sample
        self._notify()

    def invalidate_before(self, output_epoch: int, reason: str) -> None:
        self.stops.append((self._clock.now_ns(), output_epoch, reason))
        self._barrier = max(self._barrier, output_epoch)
        for output in self.outputs.values():
            if output.opening.output_epoch < self._barrier and output.stop_due_ns is None and not output.over:
                self._stop(output)
        self._notify()

    def pause(self, stream_id: int) -> None:
        output = self.outputs[stream_id]
        output.paused = True
        self._heard(output)
        output.clock.pause(self._clock.now_ns())
        self._notify()

    def resume(self, stream_id: int) -> None:
        output = self.outputs[stream_id]
        output.paused = False
        if output.rendering:
            output.clock.resume(self._clock.now_ns())
        self._notify()

    def release(self, stream_id: int) -> None:
        self.outputs[stream_id].held = False
        self._notify()

    def lose(self, error: ScopedError) -> None:
        """Be gone from here on."""
        self._lost = error
        self._notify()

    async def reports(self) -> AsyncIterator[SpeakerReport]:
        while True:
            now_ns, changed = self._clock.now_ns(), self._changed
            for output in list(self.outputs.values()):
                for report in self._due(output, now_ns):
                    yield report
            if self._lost is not None:
                yield SpeakerLost(self._lost)
                return
            if self.closed:
                return
            await self._until(self._next_due(), changed)

    async def aclose(self) -> None:
        self.closed = True
        self._notify()

    # -- inside ----------------------------------------------------------------------------------------------------

    def _check_usable(self) -> None:
        if self._lost is not None:
            raise PortError(self._lost)
        if self.closed:
            raise refusal("closed", "playback", "the speaker is closed; open a new one")

    def _queued(self, output: ScriptedOutput) -> int:
        return output.written_samples - self._heard(output)

    def _heard(self, output: ScriptedOutput) -> int:
        if output.stop_due_ns is None and not output.over:
            output.heard_samples = output.clock.rendered_samples(self._clock.now_ns())
        return output.heard_samples

    def _stop(self, output: ScriptedOutput) -> None:
        self._heard(output)
        output.clock.pause(self._clock.now_ns())
        output.stop_due_ns = self._clock.now_ns() + int(self._script.stop_receipt_after_ms * 1_000_000)

    def _due(self, output: ScriptedOutput, now_ns: int) -> Iterator[SpeakerReport]:
        """What is to be told of this stream by now."""
        if output.over:
            return
        if output.stop_due_ns is not None:
            if now_ns >= output.stop_due_ns:
                output.over = True
                if self._script.stop_receipts:
                    yield from self._told(output, RenderingStopped)
            return
        self._begin_if_ready(output, now_ns)
        heard = self._heard(output)
        if output.rendering and not output.paused and heard == output.written_samples:
            output.over = output.end_sample is not None
            output.rendering = output.announced = False
            output.clock.pause(now_ns)
            yield from self._told(output, RenderingDrained if output.over else RenderingStarved)
        elif heard > output.told_samples and not output.announced:
            output.announced = True
            yield from self._told(output, RenderingStarted)
        elif heard - output.told_samples >= output.opening.format.samples_for_ms(PROGRESS_MS):
            yield from self._told(output, RenderingProgressed)

    def _told(self, output: ScriptedOutput, kind: type[_Receipt]) -> Iterator[SpeakerReport]:
        output.told_samples = output.heard_samples
        if self._script.receipts:
            yield kind(output.opening.stream_id, output.opening.output_epoch, self._position(output))

    def _begin_if_ready(self, output: ScriptedOutput, now_ns: int) -> None:
        if output.rendering or output.held or output.paused or self._script.stands_still:
            return
        waiting = output.written_samples - output.heard_samples
        enough = waiting >= output.opening.format.samples_for_ms(output.opening.prebuffer_ms)
        if output.end_sample is not None or (waiting and enough):
            output.rendering = True
            output.clock.resume(now_ns)

    def _position(self, output: ScriptedOutput) -> PlaybackPosition:
        knows = self._script.knows_position
        return PlaybackPosition(
            accepted_samples=output.written_samples,
            submitted_samples=output.heard_samples,
            played_samples=output.heard_samples if knows else None,
            source=PositionSource.MEASURED if knows else PositionSource.UNKNOWN,
            confidence=1.0 if knows else 0.0,
        )

    def _next_due(self) -> int | None:
        """When something is to be told: the first sample, the next tenth of a second, the end."""
        dues: list[int] = []
        for output in self.outputs.values():
            if output.over:
                continue
            if output.stop_due_ns is not None:
                dues.append(output.stop_due_ns)
                continue
            if output.written_samples == output.told_samples and output.end_sample is None:
                continue
            step = output.opening.format.samples_for_ms(PROGRESS_MS) if output.announced else 1
            due = output.clock.due_at_ns(min(output.written_samples, output.told_samples + step))
            if due is not None:
                dues.append(due)
        return min(dues, default=None)

    async def _until(self, due_ns: int | None, changed: anyio.Event) -> None:
        if due_ns is None:
            await changed.wait()
            return
        with anyio.move_on_after(max(0, due_ns - self._clock.now_ns()) / 1_000_000_000):
            await changed.wait()

    def _notify(self) -> None:
        self._changed.set()
        self._changed = anyio.Event()
