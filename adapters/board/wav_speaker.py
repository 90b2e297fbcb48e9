"""A virtual loudspeaker in real time that records what was really rendered. It can misbehave, for tests."""

from __future__ import annotations

from collections import deque
from enum import Enum
from pathlib import Path

import anyio
from anyio.abc import TaskStatus

from ...audio.errors import AudioWriteError
from ...audio.formats import AudioFormat, AudioFrame
from ...audio.wav_writer import MAX_DATA_BYTES, WavWriter
from ...engines.clock import LoopClock
from ...engines.ports import Clock
from ...statecharts.values import PositionSource
from .devices import DeviceLost, RenderBlock, RenderSource
from .echo_path import EchoPath
from .notification import Notification

DEFAULT_SPEAKER_FORMAT = AudioFormat(24_000)
LATE_QUANTA = 4
"""A device that is this far behind has lost the time, as hardware does, instead of playing the backlog in a burst."""

FLUSH_MS = 200
"""What the recording of a killed process may lack."""


class Recording(Enum):
    """What the WAV file holds."""

    RENDERED = "rendered"
    """Exactly the samples of streams that were rendered; the silence between them is left out."""
    ALIGNED = "aligned"
    """Everything the device played, silence included: sample n was heard n samples after the start."""


class WavSpeaker:
    """Renders in quanta of `quantum_ms` at absolute deadlines and writes them to `path` (None: keeps nothing).

    `hardware_ms` is what the device holds between taking and sounding; `takes_back` False makes a device that cannot
    drop it on a flush. `speed` is how fast it plays (0.5: half as fast as it should). `max_data_bytes` bounds the file,
    as a full disk does: `DeviceLost`. `echo` is how a virtual microphone hears it. The played position is measured.
    """

    position_source = PositionSource.MEASURED
    position_confidence = 1.0

    def __init__(
        self,
        path: Path | None = None,
        audio_format: AudioFormat = DEFAULT_SPEAKER_FORMAT,
        *,
        recording: Recording = Recording.RENDERED,
        quantum_ms: int = 5,
        hardware_ms: int = 0,
        takes_back: bool = True,
        speed: float = 1.0,
        max_data_bytes: int = MAX_DATA_BYTES,
        echo: EchoPath | None = None,
        clock: Clock | None = None,
    ) -> None:
        self.format = audio_format
        self._echo = echo
        self._speed = speed
        self._path = path
        self._recording = recording
        self._quantum_samples = audio_format.samples_for_ms(quantum_ms)
        self._hardware_quanta = hardware_ms // quantum_ms
        self._takes_back = takes_back
        self._max_data_bytes = max_data_bytes
        self._clock = clock or LoopClock()
        self._writer: WavWriter | None = None
        self._source: RenderSource | None = None
        self._held: deque[RenderBlock] = deque()
        self._taken = 0
        self._heard = 0
        self._stalled = False
        self._vanished = False
        self._changed = Notification()

    async def run(self, source: RenderSource, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Render until cancelled. Raises `DeviceLost` after `vanish` and when the recording cannot be written."""
        self._source = source
        try:
            if self._path is not None:
                self._writer = WavWriter(
                    self._path, self.format, flush_ms=FLUSH_MS, max_data_bytes=self._max_data_bytes
                )
            task_status.started()
            await self._render_in_real_time(source)
        except AudioWriteError as error:
            raise DeviceLost("recording_failed", str(error)) from error
        finally:
            self._source = None
            self._close_recording()

    def flush(self) -> None:
        """Drop what the device holds, or, where it cannot, admit that all of it will be heard."""
        if self._source is None:
            return
        now_ns = self._clock.now_ns()
        if self._takes_back:
            self._held.clear()
            heard, self._heard = self._heard, self._taken
            self._source.flushed(heard, now_ns)
        else:
            self._source.flushed(self._taken, now_ns)

    # -- misbehaviour ----------------------------------------------------------------------------------------------

    def stall(self) -> None:
        """Stand still until `go_on`, as a device whose interrupts stopped."""
        self._stalled = True

    def go_on(self) -> None:
        """End a stall; the time it took is lost."""
        self._stalled = False
        self._changed.notify()

    def vanish(self) -> None:
        """Be unplugged."""
        self._vanished = True
        self._changed.notify()

    # -- inside ----------------------------------------------------------------------------------------------------

    async def _render_in_real_time(self, source: RenderSource) -> None:
        anchor_ns, samples = self._clock.now_ns(), 0
        while True:
            samples += self._quantum_samples
            due_ns = anchor_ns + round(self.format.duration_ns(samples) / self._speed)
            await self._clock.sleep_until(due_ns)
            while self._stalled and not self._vanished:
                await self._changed.wait()
            if self._vanished:
                raise DeviceLost("device_vanished", "the loudspeaker was unplugged; plug it in and start the service")
            now_ns = self._clock.now_ns()
            if now_ns - due_ns > LATE_QUANTA * self.format.duration_ns(self._quantum_samples):
                anchor_ns, samples = now_ns, 0
            self._render_quantum(source, now_ns, due_ns)

    def _render_quantum(self, source: RenderSource, now_ns: int, due_ns: int) -> None:
        self._held.append(source.render(self._quantum_samples))
        self._taken += self._quantum_samples
        if len(self._held) <= self._hardware_quanta:
            return
        block = self._held.popleft()
        self._record(block)
        if self._echo is not None:
            self._echo.play(block.data, self.format, due_ns)
        self._heard += self._quantum_samples
        source.presented(self._heard, now_ns)

    def _record(self, block: RenderBlock) -> None:
        if self._writer is None:
            return
        data = block.data
        if self._recording is Recording.RENDERED:
            data = data[: self.format.bytes_for(block.sounding_samples)]
        if data:
            self._writer.write(AudioFrame(data, self.format))

    def _close_recording(self) -> None:
        if self._writer is None:
            return
        try:
            self._writer.close()
        except AudioWriteError as error:
            raise DeviceLost("recording_failed", str(error)) from error
        finally:
            self._writer = None
