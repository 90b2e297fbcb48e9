"""The board's real devices through PortAudio.

PortAudio calls back on its own thread; what it tells is picked up every `POLL_MS` on the event loop. Stopping is
`abort`, not silence from the callback: on a null sink of a sound server abort was silent within 11 ms, zeros from the
callback within 59 ms, because they wait behind what the server holds.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

import anyio
import anyio.to_thread
from anyio.abc import TaskStatus

from ...audio.formats import SPEECH_FORMAT, AudioFormat
from ...statecharts.values import PositionSource
from .devices import CaptureSink, DeviceLost, RenderSource
from .notification import Notification
from .portaudio_library import CallbackFlags, OutputBuffer, PortAudio, RawStream, StreamTimes, load_portaudio

POLL_MS = 10
BLOCK_MS = 10
STALL_DEADLINE_MS = 10_000
"""Without a callback for so long the device is given up. A sound server's idle source was seen to take 2 s."""
DEFAULT_OUTPUT_FORMAT = AudioFormat(48_000)
DeviceName = int | str | None
"""PortAudio's index, part of a name, or None for the system's default."""


@dataclass(frozen=True, slots=True)
class _Block:
    """A block that the callback handed out, and when its first sample sounds, in seconds of the stream's clock."""

    start: int
    samples: int
    sounds_at: float


class PortAudioSpeaker:
    """A loudspeaker. `latency_ms` is what PortAudio is asked to hold; the device decides what it really is.

    The played position is estimated from PortAudio's time of the converter, which does not know what a sound server
    behind it adds.
    """

    position_source = PositionSource.ESTIMATED
    position_confidence = 0.8

    def __init__(
        self, device: DeviceName = None, audio_format: AudioFormat = DEFAULT_OUTPUT_FORMAT, *, latency_ms: int = 40
    ) -> None:
        self.format = audio_format
        self._device = device
        self._latency_ms = latency_ms
        self._source: RenderSource | None = None
        self._blocks: deque[_Block] = deque()
        self._taken = 0
        self._flush_wanted = False
        self._changed = Notification()

    async def run(self, source: RenderSource, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Render until cancelled. Raises `DeviceLost` where PortAudio or the device is missing, or stops."""
        portaudio = await anyio.to_thread.run_sync(load_portaudio)
        self._source = source
        stream = await _open(portaudio, lambda: self._make_stream(portaudio))
        try:
            task_status.started()
            watch = _Watch(stream, "loudspeaker")
            while True:
                with anyio.move_on_after(POLL_MS / 1_000):
                    await self._changed.wait()
                if self._flush_wanted:
                    await self._abort(portaudio, stream, source)
                watch.check(self._taken)
                source.presented(self._heard_by(stream.time), time.monotonic_ns())
        finally:
            self._source = None
            await _close(stream)

    def flush(self) -> None:
        """Abort at once, on a thread of its own; the receipts follow when it is silent."""
        self._flush_wanted = True
        self._changed.notify()

    def _make_stream(self, portaudio: PortAudio) -> RawStream:
        return portaudio.RawOutputStream(
            samplerate=self.format.sample_rate_hz,
            blocksize=self.format.samples_for_ms(BLOCK_MS),
            device=self._device,
            channels=self.format.channels,
            dtype="int16",
            latency=self._latency_ms / 1_000,
            callback=self._fill,
        )

    def _fill(self, out: OutputBuffer, samples: int, times: StreamTimes, flags: CallbackFlags) -> None:
        source = self._source
        out[:] = source.render(samples).data if source is not None else bytes(self.format.bytes_for(samples))
        # Where the host tells no time the requested latency is the best guess.
        sounds_at = times.outputBufferDacTime or times.currentTime + self._latency_ms / 1_000
        self._blocks.append(_Block(self._taken, samples, sounds_at))
        self._taken += samples

    async def _abort(self, portaudio: PortAudio, stream: RawStream, source: RenderSource) -> None:
        self._flush_wanted = False
        try:
            await anyio.to_thread.run_sync(stream.abort)
            # No callback runs now. Whatever was due by now may have been heard; nothing else ever will be.
            heard = self._heard_by(stream.time)
            self._blocks.clear()
            source.flushed(heard, time.monotonic_ns())
            await anyio.to_thread.run_sync(stream.start)
        except portaudio.PortAudioError as error:
            raise DeviceLost("device_vanished", f"the loudspeaker did not stop cleanly: {error}") from error

    def _heard_by(self, now: float) -> int:
        """The device position that sounds at stream time `now`."""
        heard = self._blocks[0].start if self._blocks else self._taken
        while self._blocks:
            block = self._blocks[0]
            sounding = round((now - block.sounds_at) * self.format.sample_rate_hz)
            heard = block.start + min(max(sounding, 0), block.samples)
            if sounding < block.samples:
                break
            self._blocks.popleft()
        return heard


class PortAudioMicrophone:
    """A microphone."""

    def __init__(
        self, device: DeviceName = None, audio_format: AudioFormat = SPEECH_FORMAT, *, latency_ms: int = 40
    ) -> None:
        self.format = audio_format
        self._device = device
        self._latency_ms = latency_ms
        self._captured: deque[_CapturedBlock] = deque()
        self._total = 0

    async def run(self, sink: CaptureSink, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Capture until cancelled. Raises `DeviceLost` where PortAudio or the device is missing, or stops."""
        portaudio = await anyio.to_thread.run_sync(load_portaudio)
        stream = await _open(portaudio, lambda: self._make_stream(portaudio))
        try:
            task_status.started()
            watch = _Watch(stream, "microphone")
            expected: float | None = None
            while True:
                await anyio.sleep(POLL_MS / 1_000)
                watch.check(self._total)
                monotonic_offset = time.monotonic() - stream.time
                while self._captured:
                    block = self._captured.popleft()
                    lost = self._lost_before(block, expected)
                    sink.captured(block.data, round((block.at + monotonic_offset) * 1e9), lost)
                    expected = block.at + self._duration_s(block)
        finally:
            await _close(stream)

    def _make_stream(self, portaudio: PortAudio) -> RawStream:
        return portaudio.RawInputStream(
            samplerate=self.format.sample_rate_hz,
            blocksize=self.format.samples_for_ms(BLOCK_MS),
            device=self._device,
            channels=self.format.channels,
            dtype="int16",
            latency=self._latency_ms / 1_000,
            callback=self._take,
        )

    def _take(self, data: bytes, samples: int, times: StreamTimes, flags: CallbackFlags) -> None:
        at = times.inputBufferAdcTime or times.currentTime - self._latency_ms / 1_000
        self._captured.append(_CapturedBlock(bytes(data), at, flags.input_overflow))
        self._total += samples

    def _lost_before(self, block: _CapturedBlock, expected: float | None) -> int:
        """PortAudio tells that something was lost, not how much: the clock tells, and at least a block was."""
        if not block.overflowed or expected is None:
            return 0
        by_clock = round((block.at - expected) * self.format.sample_rate_hz)
        return max(by_clock, self.format.samples_in(len(block.data)))

    def _duration_s(self, block: _CapturedBlock) -> float:
        return self.format.samples_in(len(block.data)) / self.format.sample_rate_hz


@dataclass(frozen=True, slots=True)
class _CapturedBlock:
    data: bytes
    at: float
    overflowed: bool


class _Watch:
    """Notices a stream that stopped by itself or calls back no more."""

    def __init__(self, stream: RawStream, what: str) -> None:
        self._stream = stream
        self._what = what
        self._last_count = -1
        self._last_change = anyio.current_time()

    def check(self, count: int) -> None:
        now = anyio.current_time()
        if count != self._last_count:
            self._last_count, self._last_change = count, now
        stalled = (now - self._last_change) * 1_000 > STALL_DEADLINE_MS
        if stalled or not self._stream.active:
            raise DeviceLost(
                "device_vanished", f"the {self._what} stopped; check that it is plugged in and start the service again"
            )


async def _open(portaudio: PortAudio, make: Callable[[], RawStream]) -> RawStream:
    def open_and_start() -> RawStream:
        stream = make()
        stream.start()
        return stream

    try:
        return await anyio.to_thread.run_sync(open_and_start)
    except (portaudio.PortAudioError, ValueError) as error:
        # ValueError is sounddevice's answer to a name that no device, or more than one, has.
        raise DeviceLost(
            "device_missing",
            f"PortAudio cannot open the device: {error}. List the devices with `python -m sounddevice`, and name one "
            "that takes this rate and number of channels.",
        ) from error


async def _close(stream: RawStream) -> None:
    with anyio.CancelScope(shield=True):
        await anyio.to_thread.run_sync(stream.abort)
        await anyio.to_thread.run_sync(stream.close)
