"""A virtual microphone in real time: silence or low noise, and recordings spoken into it at chosen moments."""

from __future__ import annotations

from collections import deque
from pathlib import Path

import anyio
import numpy as np
from anyio.abc import TaskStatus

from ...audio.formats import SPEECH_FORMAT, AudioFormat, AudioFrame
from ...audio.resampling import DownMix, ResamplingQuality, TrackResampler
from ...audio.wav_reader import read_wav
from ...engines.clock import LoopClock
from ...engines.ports import Clock
from .devices import CaptureSink, DeviceLost
from .echo_path import EchoPath


class Utterance:
    """A recording on its way into the microphone. Positions are in samples of the device's track."""

    def __init__(self, data: bytes, silence_samples: int) -> None:
        self.data = data
        self.silence_samples = silence_samples
        self.start_sample: int | None = None
        """None until it begins."""
        self.end_sample: int | None = None
        """None until it is spoken whole."""
        self._spoken = anyio.Event()

    async def wait_spoken(self) -> None:
        """Return when its last sample was captured."""
        await self._spoken.wait()

    def mark_spoken(self, end_sample: int) -> None:
        """Told by the microphone."""
        self.end_sample = end_sample
        self._spoken.set()


class WavMicrophone:
    """Captures frames of `frame_ms` at absolute deadlines, whatever is said or not.

    `noise_rms` is the level of the background noise in PCM16 steps (0: digital silence, and speech passes unchanged);
    the noise is the same for the same `seed`. `echo`: it hears a virtual loudspeaker.
    """

    def __init__(
        self,
        audio_format: AudioFormat = SPEECH_FORMAT,
        *,
        frame_ms: int = 20,
        noise_rms: float = 0.0,
        seed: int = 0,
        echo: EchoPath | None = None,
        clock: Clock | None = None,
    ) -> None:
        self.format = audio_format
        self._frame_samples = audio_format.samples_for_ms(frame_ms)
        self._noise_rms = noise_rms
        self._echo = echo
        self._random = np.random.default_rng(seed)
        self._clock = clock or LoopClock()
        self._waiting: deque[Utterance] = deque()
        self._spoken_bytes = 0
        self._position = 0
        self._ends_when_silent = False
        self._vanished = False

    def say(self, speech: AudioFrame, *, after_silence_ms: int = 0) -> Utterance:
        """Speak a recording of any format next, behind what is still being said and `after_silence_ms`."""
        utterance = Utterance(self._converted(speech), self.format.samples_for_ms(after_silence_ms))
        self._waiting.append(utterance)
        return utterance

    def say_file(self, path: Path, *, after_silence_ms: int = 0) -> Utterance:
        """Speak a WAV file. Raises `AudioReadError`."""
        return self.say(read_wav(path), after_silence_ms=after_silence_ms)

    def end_when_silent(self) -> None:
        """The recording ends once everything that was to be said has been said."""
        self._ends_when_silent = True

    def vanish(self) -> None:
        """Be unplugged."""
        self._vanished = True

    async def run(self, sink: CaptureSink, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Capture until cancelled, or until the recording ends. Raises `DeviceLost` after `vanish`."""
        start_ns, samples = self._clock.now_ns(), 0
        task_status.started()
        while not (self._ends_when_silent and not self._waiting):
            captured_at_ns = start_ns + self.format.duration_ns(samples)
            samples += self._frame_samples
            await self._clock.sleep_until(start_ns + self.format.duration_ns(samples))
            if self._vanished:
                raise DeviceLost("device_vanished", "the microphone was unplugged; plug it in and start the service")
            sink.captured(self._next_frame(captured_at_ns), captured_at_ns)

    def _next_frame(self, captured_at_ns: int) -> bytes:
        data = bytearray()
        size = self.format.bytes_for(self._frame_samples)
        while len(data) < size and self._waiting:
            data += self._speak(self._waiting[0], size - len(data))
        data += bytes(size - len(data))
        self._position += self._frame_samples
        heard = bytes(data) if self._echo is None else self._echo.mix(bytes(data), self.format, captured_at_ns)
        return self._with_noise(heard) if self._noise_rms else heard

    def _speak(self, utterance: Utterance, room_bytes: int) -> bytes:
        silence = min(utterance.silence_samples, self.format.samples_in(room_bytes))
        if silence:
            utterance.silence_samples -= silence
            return bytes(self.format.bytes_for(silence))
        frame_end = self._position + self._frame_samples
        if utterance.start_sample is None:
            utterance.start_sample = frame_end - self.format.samples_in(room_bytes)
        piece = utterance.data[self._spoken_bytes : self._spoken_bytes + room_bytes]
        self._spoken_bytes += len(piece)
        if self._spoken_bytes == len(utterance.data):
            self._spoken_bytes = 0
            self._waiting.popleft()
            utterance.mark_spoken(frame_end - self.format.samples_in(room_bytes - len(piece)))
        return piece

    def _with_noise(self, data: bytes) -> bytes:
        samples = np.frombuffer(data, "<i2").astype(np.float64)
        noisy = np.rint(samples + self._random.normal(0.0, self._noise_rms, len(samples)))
        return np.clip(noisy, -32_768, 32_767).astype("<i2").tobytes()

    def _converted(self, speech: AudioFrame) -> bytes:
        whole = AudioFrame(speech.data, speech.format)
        if whole.format == self.format:
            return whole.data
        resampler = TrackResampler(whole.format, self.format, quality=ResamplingQuality.HIGH, downmix=DownMix.AVERAGE)
        return b"".join(frame.data for frame in (resampler.feed(whole), resampler.flush()) if frame is not None)
