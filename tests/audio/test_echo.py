"""The echo of a probe: its delay and level are found, in noise and in a room, and silence is no proof."""

from __future__ import annotations

import math

import numpy as np
import pytest

from voicechart.audio.echo import (
    HIGH_HZ,
    LEAD_MS,
    PROBE_MS,
    EchoMeasurement,
    measure_echo,
    probe,
    top_hz,
)
from voicechart.audio.errors import AudioSettingsError
from voicechart.audio.formats import AudioFormat, AudioFrame

RATE = 16_000
FORMAT = AudioFormat(RATE)
PEAK_DBFS = -12.0
SILENT = RATE // 2
TOP = top_hz(FORMAT)


def captured(
    *, gain_db: float | None, delay: int = 800, noise_rms: float = 3.0, tail: tuple[float, ...] = ()
) -> AudioFrame:
    """Half a second of noise, then the probe as a room with these later reflections would return it."""
    played = np.frombuffer(probe(FORMAT, peak_dbfs=PEAK_DBFS, highest_hz=TOP).data, "<i2").astype(np.float64)
    heard = np.random.default_rng(7).normal(0.0, noise_rms, SILENT + len(played) + RATE)
    if gain_db is not None:
        for number, share in enumerate((1.0, *tail)):
            start = SILENT + delay + number * 160
            heard[start : start + len(played)] += played * share * 10 ** (gain_db / 20)
    return AudioFrame(np.clip(np.rint(heard), -32_768, 32_767).astype("<i2").tobytes(), FORMAT)


def measured(frame: AudioFrame) -> EchoMeasurement:
    return measure_echo(frame, SILENT, peak_dbfs=PEAK_DBFS, highest_hz=TOP)


@pytest.mark.parametrize("gain_db", [-6.0, -20.0, -40.0, -55.0])
@pytest.mark.parametrize("delay", [160, 801, 5_000])
def test_delay_and_level_of_an_echo_are_found(gain_db: float, delay: int) -> None:
    found = measured(captured(gain_db=gain_db, delay=delay))
    assert found.delay_samples == SILENT + delay + RATE * LEAD_MS // 1_000
    assert found.linear_return_db == pytest.approx(gain_db, abs=0.7)


def test_an_echo_below_the_noise_is_still_found() -> None:
    found = measured(captured(gain_db=-50.0, noise_rms=60.0))
    assert found.linear_return_db == pytest.approx(-50.0, abs=1.5)
    assert found.delay_samples is not None


def test_the_energy_of_all_reflections_counts() -> None:
    found = measured(captured(gain_db=-30.0, tail=(0.7, 0.5)))
    assert found.linear_return_db == pytest.approx(-30 + 10 * math.log10(1 + 0.49 + 0.25), abs=1.0)


def test_without_an_echo_the_noise_floor_is_the_bound() -> None:
    found = measured(captured(gain_db=None))
    assert found.delay_samples is None
    assert found.is_bound
    assert found.echo_return_db == pytest.approx(found.noise_floor_dbfs - found.played_dbfs)
    assert found.noise_floor_dbfs == pytest.approx(20 * math.log10(3 / 32_768), abs=1.0)


def test_what_is_no_image_of_the_probe_counts_by_its_energy() -> None:
    """A canceller leaves distorted rests: noise while the probe plays, and none before."""
    frame = captured(gain_db=None)
    pcm = np.frombuffer(frame.data, "<i2").astype(np.float64)
    pcm[SILENT:] += np.random.default_rng(3).normal(0.0, 300.0, len(pcm) - SILENT)
    found = measured(AudioFrame(np.rint(pcm).astype("<i2").tobytes(), FORMAT))
    assert found.residual_return_db is not None
    expected = 20 * math.log10(300 / 32_768) - found.played_dbfs
    assert found.echo_return_db == pytest.approx(expected, abs=1.0)


def test_clipping_is_counted() -> None:
    frame = captured(gain_db=0.0)
    loud = np.clip(np.frombuffer(frame.data, "<i2").astype(np.int32) * 8, -32_768, 32_767).astype("<i2")
    assert measured(AudioFrame(loud.tobytes(), FORMAT)).clipped_samples > 100
    assert measured(frame).clipped_samples == 0


def test_digital_silence_has_no_noise_floor() -> None:
    assert measured(captured(gain_db=None, noise_rms=0.0)).noise_floor_dbfs == -math.inf


def test_too_little_audio_is_refused() -> None:
    short = AudioFrame(bytes(2 * RATE), FORMAT)
    with pytest.raises(AudioSettingsError, match="too little"):
        measured(short)


@pytest.mark.parametrize("peak_dbfs", [-61.0, -5.0])
def test_a_probe_outside_its_bounds_is_refused(peak_dbfs: float) -> None:
    with pytest.raises(AudioSettingsError):
        probe(FORMAT, peak_dbfs=peak_dbfs, highest_hz=TOP)


@pytest.mark.parametrize(("rate", "channels"), [(8_000, 1), (24_000, 1), (48_000, 2)])
def test_a_probe_is_as_long_and_as_loud_as_it_should_be_in_every_format(rate: int, channels: int) -> None:
    audio_format = AudioFormat(rate, channels)
    frame = probe(audio_format, peak_dbfs=-20.0, highest_hz=top_hz(audio_format))
    assert frame.samples == rate * PROBE_MS // 1_000
    peak = np.max(np.abs(np.frombuffer(frame.data, "<i2").astype(np.int32)))
    assert 20 * math.log10(peak / 32_768) == pytest.approx(-20.0, abs=0.2)


def test_the_probe_stays_in_the_band_that_both_ends_carry() -> None:
    assert top_hz(AudioFormat(8_000), AudioFormat(48_000)) == 3_200.0
    assert top_hz(AudioFormat(48_000)) == HIGH_HZ
