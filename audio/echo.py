"""How much of a loudspeaker a microphone hears: a test signal, and what a recording of it tells. Pure numpy.

The signal is a second of noise, so that an echo canceller has something to learn from, and then a sweep of two seconds,
which is measured. From what was captured the impulse response of the path is estimated: its peak tells the delay, its
energy the level of the echo, whatever else is heard. What the microphone hears beyond its noise floor is told too,
because a canceller may leave an echo that is no linear image of the signal any more.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .errors import AudioSettingsError
from .formats import AudioFormat, AudioFrame

Samples = NDArray[np.float64]

LEAD_MS, SWEEP_MS = 1_000, 2_000
PROBE_MS = LEAD_MS + SWEEP_MS
LOW_HZ, HIGH_HZ = 200.0, 7_000.0
FADE_MS = 20
RESPONSE_BEFORE_MS, RESPONSE_AFTER_MS = 5, 150
"""What of the impulse response belongs to the echo: an ordinary room has fallen silent by then."""

MAX_DELAY_MS = 2_000
FOUND_DB = 17.0
"""A peak so far above the mean of the response's noise is an echo: among 100,000 samples chance alone reaches 14 dB."""

HEARD_DB = 1.0
"""So much more energy than the noise floor is heard."""

FULL_SCALE = 32_768.0
CLIPPED = 32_766


@dataclass(frozen=True, slots=True)
class EchoMeasurement:
    """What the microphone heard of the probe. Levels of a whole signal in dBFS, relative ones in dB."""

    delay_samples: int | None
    """From the first captured sample to the first of the sweep's echo; None: there is none to be found."""
    linear_return_db: float | None
    """The echo's linear part relative to what was played; None where it was not found."""
    residual_return_db: float | None
    """Everything heard beyond the noise floor while the sweep played; None where nothing was."""
    noise_floor_dbfs: float
    """-inf for digital silence."""
    played_dbfs: float
    clipped_samples: int

    @property
    def echo_return_db(self) -> float:
        """The worse of both; where neither was found, what the noise floor may hide."""
        found = [level for level in (self.linear_return_db, self.residual_return_db) if level is not None]
        return max(found) if found else self.noise_floor_dbfs - self.played_dbfs

    @property
    def is_bound(self) -> bool:
        """No echo was found: the true one is at most `echo_return_db`."""
        return self.linear_return_db is None and self.residual_return_db is None


def top_hz(*formats: AudioFormat) -> float:
    """How high the probe may go so that every one of these carries it."""
    return min(HIGH_HZ, *(0.4 * one.sample_rate_hz for one in formats))


def probe(audio_format: AudioFormat, *, peak_dbfs: float, highest_hz: float) -> AudioFrame:
    """The test signal, on every channel. `peak_dbfs` -60 to -6. Raises `AudioSettingsError` outside."""
    if not -60 <= peak_dbfs <= -6:
        raise AudioSettingsError(f"a probe of {peak_dbfs} dBFS is outside -60–-6")
    rate = audio_format.sample_rate_hz
    peak = 10 ** (peak_dbfs / 20)
    lead = _faded(_noise(rate, highest_hz), rate)
    mono = np.concatenate((lead * peak / np.max(np.abs(lead)), sweep(rate, highest_hz) * peak))
    pcm = np.rint(mono * (FULL_SCALE - 1)).astype("<i2")
    return AudioFrame(np.repeat(pcm[:, None], audio_format.channels, axis=1).tobytes(), audio_format)


def sweep(rate_hz: int, highest_hz: float) -> Samples:
    """The measured part, with a peak of 1: a sine that climbs, evenly in octaves, from `LOW_HZ`."""
    seconds = np.arange(rate_hz * SWEEP_MS // 1_000) / rate_hz
    total = SWEEP_MS / 1_000
    octaves = np.log(highest_hz / LOW_HZ)
    phase = 2 * np.pi * LOW_HZ * total / octaves * (np.exp(seconds / total * octaves) - 1)
    return _faded(np.sin(phase), rate_hz)


def measure_echo(captured: AudioFrame, silent_samples: int, *, peak_dbfs: float, highest_hz: float) -> EchoMeasurement:
    """What `captured` holds of the probe. Its first `silent_samples` are from before anything was played.

    The first channel is measured. Raises `AudioSettingsError` when there is too little of either.
    """
    rate = captured.format.sample_rate_hz
    pcm = np.frombuffer(captured.data, "<i2").reshape(-1, captured.format.channels)[:, 0]
    signal = pcm.astype(np.float64) / FULL_SCALE
    reference = sweep(rate, highest_hz) * 10 ** (peak_dbfs / 20)
    if silent_samples < rate // 10 or len(signal) < silent_samples + len(reference):
        raise AudioSettingsError("too little was captured to measure an echo: is the microphone running?")
    noise_energy = float(np.mean(signal[:silent_samples] ** 2))
    played_dbfs = _db(float(np.mean(reference**2)))
    response, norm = _response(signal, reference)
    # What stands before anything was played can only be noise.
    floor = float(np.mean(response[:silent_samples] ** 2)) + 1e-30
    peak = silent_samples + int(np.argmax(np.abs(response[silent_samples:])))
    delay = peak if 10 * np.log10(response[peak] ** 2 / floor + 1e-30) >= FOUND_DB else None
    linear = None
    if delay is not None:
        before, after = rate * RESPONSE_BEFORE_MS // 1_000, rate * RESPONSE_AFTER_MS // 1_000
        window = response[max(0, delay - before) : delay + after]
        energy = float(np.sum(window**2) - len(window) * floor)
        linear = _db(max(energy, float(response[delay] ** 2)) / norm)
    start = delay if delay is not None else silent_samples
    during = float(np.mean(signal[start : start + len(reference)] ** 2))
    heard = during > noise_energy * 10 ** (HEARD_DB / 10) and during > 0
    residual = _db(during - noise_energy) - played_dbfs if heard else None
    clipped = int(np.sum(np.abs(pcm.astype(np.int32)) >= CLIPPED))
    return EchoMeasurement(delay, linear, residual, _db(noise_energy), played_dbfs, clipped)


def _response(signal: Samples, reference: Samples) -> tuple[Samples, float]:
    """The impulse response from reference to signal, and the energy that a response of 1 would have in this band."""
    size = 1 << (len(signal) + len(reference)).bit_length()
    spectrum = np.fft.rfft(reference, size)
    power = np.abs(spectrum) ** 2
    regular = power + 1e-3 * float(np.max(power))
    response = np.fft.irfft(np.fft.rfft(signal, size) * np.conj(spectrum) / regular, size)
    norm = float(np.sum(np.fft.irfft(power / regular, size) ** 2))
    return response[: len(signal)], norm


def _noise(rate_hz: int, highest_hz: float) -> Samples:
    """The same noise every time, in the band of the sweep."""
    size = rate_hz * LEAD_MS // 1_000
    white = np.fft.rfft(np.random.default_rng(1).standard_normal(size))
    hertz = np.fft.rfftfreq(size, 1 / rate_hz)
    return np.fft.irfft(np.where((hertz >= LOW_HZ) & (hertz <= highest_hz), white, 0), size)


def _faded(signal: Samples, rate_hz: int) -> Samples:
    size = rate_hz * FADE_MS // 1_000
    ramp = np.sin(np.linspace(0, np.pi / 2, size)) ** 2
    faded = signal.copy()
    faded[:size] *= ramp
    faded[-size:] *= ramp[::-1]
    return faded


def _db(energy: float) -> float:
    return float(10 * np.log10(energy)) if energy > 0 else float("-inf")
