"""A virtual acoustic path: what a virtual loudspeaker plays, a virtual microphone hears later and fainter.

Everything is placed by the time at which the devices' own clocks say that it sounded, never by when a task ran: the
delay is exact to a sample unless the loudspeaker's task is late by more than the delay.
"""

from __future__ import annotations

from collections import deque

import numpy as np
from numpy.typing import NDArray

from ...audio.errors import AudioSettingsError
from ...audio.formats import AudioFormat, AudioFrame
from ...audio.resampling import DownMix, ResamplingQuality, TrackResampler

MAX_HELD_MS = 5_000
"""What nobody listens to is forgotten."""

SAME_TRACK_NS = 1_000_000
"""A block that begins further from the end of the last one begins a track of its own: the loudspeaker lost time."""


class EchoPath:
    """From one virtual loudspeaker to one virtual microphone.

    `gain_db` is the level at the microphone relative to what is played (-90 to 0), `delay_ms` 20 to 2,000: less than a
    frame of the microphone could not be heard in time. Raises `AudioSettingsError` outside the bounds.
    """

    def __init__(self, microphone: AudioFormat, *, gain_db: float, delay_ms: float) -> None:
        if not (-90 <= gain_db <= 0 and 20 <= delay_ms <= 2_000):
            raise AudioSettingsError(
                f"an echo of {gain_db} dB after {delay_ms} ms is outside -90–0 dB and 20–2000 ms; choose others"
            )
        self._format = microphone
        self._gain = 10 ** (gain_db / 20)
        self._delay_ns = round(delay_ms * 1_000_000)
        self._resampler: TrackResampler | None = None
        self._fed_samples = 0
        self._shift = 0
        self._ends_at_ns = 0
        self._pieces: deque[tuple[int, NDArray[np.float64]]] = deque()
        """Where each begins on the microphone's time line, in samples since the clock's zero."""

    def play(self, data: bytes, audio_format: AudioFormat, ended_at_ns: int) -> None:
        """This block sounded until `ended_at_ns`."""
        samples = audio_format.samples_in(len(data))
        began_at_ns = ended_at_ns - audio_format.duration_ns(samples)
        if self._resampler is None or abs(began_at_ns - self._ends_at_ns) > SAME_TRACK_NS:
            self._resampler = TrackResampler(
                audio_format, self._format, quality=ResamplingQuality.HIGH, downmix=DownMix.AVERAGE
            )
            self._fed_samples = 0
            self._shift = self._place(began_at_ns + self._delay_ns)
        self._ends_at_ns = ended_at_ns
        frame = self._resampler.feed(AudioFrame(data, audio_format, self._fed_samples))
        self._fed_samples += samples
        if frame is not None:
            pcm = np.frombuffer(frame.data, "<i2").astype(np.float64)[:: self._format.channels]
            self._pieces.append((self._shift + frame.start_sample, pcm * self._gain))

    def mix(self, data: bytes, audio_format: AudioFormat, began_at_ns: int) -> bytes:
        """`data`, captured from `began_at_ns` on, with what is heard of the loudspeaker meanwhile."""
        heard = np.frombuffer(data, "<i2").astype(np.float64).reshape(-1, audio_format.channels)
        start = self._place(began_at_ns)
        end = start + len(heard)
        forgotten = start - audio_format.samples_for_ms(MAX_HELD_MS)
        for place, pcm in self._pieces:
            low, high = max(place, start), min(place + len(pcm), end)
            if low < high:
                heard[low - start : high - start] += pcm[low - place : high - place, None]
        while self._pieces and self._pieces[0][0] + len(self._pieces[0][1]) <= max(start, forgotten):
            self._pieces.popleft()
        return np.clip(np.rint(heard), -32_768, 32_767).astype("<i2").tobytes()

    def _place(self, at_ns: int) -> int:
        return round(at_ns * self._format.sample_rate_hz / 1_000_000_000)
