"""A microphone that captures what the test lets it hear, and voice activity that takes every sound for speech."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator

import anyio

from ...audio.formats import SPEECH_FORMAT, AudioFormat, AudioFrame
from ...statecharts.errors import ScopedError
from ..reports import ButtonUsed, Captured, CaptureEnded, CaptureGap, DeviceButton, MicrophoneReport

FRAME_MS = 20


class ScriptedMicrophone:
    """Frames of 20 ms. `hear` gives them at once, `listen` in their time; both continue the track."""

    def __init__(self, audio_format: AudioFormat = SPEECH_FORMAT) -> None:
        self._format = audio_format
        self._waiting: deque[MicrophoneReport] = deque()
        self._changed = anyio.Event()
        self._position = 0
        self.closed = False

    @property
    def format(self) -> AudioFormat:
        return self._format

    @property
    def position(self) -> int:
        """Samples captured or lost so far."""
        return self._position

    def hear(self, duration_ms: int, value: int = 0) -> None:
        """Capture `duration_ms` in which every sample is `value`; 0 is silence."""
        left = self._format.samples_for_ms(duration_ms)
        while left:
            samples = min(left, self._format.samples_for_ms(FRAME_MS))
            data = value.to_bytes(2, "little", signed=True) * samples * self._format.channels
            frame = AudioFrame(data, self._format, self._position)
            self._position = frame.end_sample
            left -= samples
            self._put(Captured(frame))

    async def listen(self, duration_ms: int, value: int = 0) -> None:
        """The same, as time passes."""
        for _ in range(0, duration_ms, FRAME_MS):
            await anyio.sleep(FRAME_MS / 1_000)
            self.hear(FRAME_MS, value)

    def lose(self, duration_ms: int, *, announced: bool = True) -> None:
        """Lose so much; with `announced` False the next frame simply stands further on."""
        lost_samples = self._format.samples_for_ms(duration_ms)
        self._position += lost_samples
        if announced:
            self._put(CaptureGap(lost_samples, "the script says so"))

    def press(self, button: DeviceButton) -> None:
        """A button of the device is used behind what was captured so far."""
        self._put(ButtonUsed(button))

    def end(self, error: ScopedError | None = None) -> None:
        """The recording is over, or the device failed."""
        self._put(CaptureEnded(error))

    async def reports(self) -> AsyncIterator[MicrophoneReport]:
        while True:
            while self._waiting:
                report = self._waiting.popleft()
                yield report
                if isinstance(report, CaptureEnded):
                    return
            await self._changed.wait()

    async def aclose(self) -> None:
        if not self.closed:
            self.closed = True
            self.end()

    def _put(self, report: MicrophoneReport) -> None:
        self._waiting.append(report)
        self._changed.set()
        self._changed = anyio.Event()


class SoundIsSpeech:
    """Judges every hop with a sample other than 0 to be speech."""

    def __call__(self, pcm: bytes, /) -> float:
        return 1.0 if any(pcm) else 0.0

    def reset(self) -> None:
        """There is nothing to forget."""
