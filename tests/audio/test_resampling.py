"""Resampling: chunking changes nothing, positions are exact, the audio stays what it was."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from voicechart.audio import (
    SPEECH_FORMAT,
    AudioDiscontinuity,
    AudioFormat,
    AudioFormatError,
    AudioFrame,
    DownMix,
    ResamplingQuality,
    TrackResampler,
)

WIDE = AudioFormat(48_000)
RATES = st.sampled_from([4_000, 8_000, 11_025, 16_000, 16_001, 22_050, 24_000, 44_100, 48_000, 96_000, 192_000])
Pcm = npt.NDArray[np.int16]


def frame_of(samples: npt.ArrayLike, format: AudioFormat, start_sample: int = 0) -> AudioFrame:
    return AudioFrame(np.asarray(samples).astype("<i2").tobytes(), format, start_sample)


def tone(frequency_hz: float, format: AudioFormat, seconds: float = 0.5, amplitude: float = 10_000) -> AudioFrame:
    times = np.arange(round(seconds * format.sample_rate_hz)) / format.sample_rate_hz
    wave = np.rint(amplitude * np.sin(2 * np.pi * frequency_hz * times))
    return frame_of(np.repeat(wave[:, np.newaxis], format.channels, axis=1), format)


def noise(samples: int, format: AudioFormat, start_sample: int = 0) -> AudioFrame:
    values = np.random.default_rng(7).integers(-20_000, 20_000, (samples, format.channels))
    return frame_of(values, format, start_sample)


def convert(resampler: TrackResampler, frame: AudioFrame, sizes: list[int] | None = None) -> AudioFrame:
    """Feed the frame in pieces of `sizes` (the rest in one), flush, and join what came; fails where it has a hole."""
    out: list[AudioFrame | None] = []
    for size in sizes or []:
        piece, frame = frame.split_at(min(size, frame.samples))
        out.append(resampler.feed(piece))
    out += [resampler.feed(frame), resampler.flush()]
    frames = [piece for piece in out if piece is not None]
    position = frames[0].start_sample if frames else 0
    joined = AudioFrame(b"".join(piece.data for piece in frames), resampler.target, position)
    for piece in frames:
        assert piece.start_sample == position
        assert piece.samples > 0
        position = piece.end_sample
    return joined


def values_of(frame: AudioFrame) -> Pcm:
    return np.frombuffer(frame.data, "<i2").reshape(-1, frame.format.channels)


def level_db(frame: AudioFrame, reference: AudioFrame) -> float:
    """RMS of the middle of a frame relative to another's, so that the filter's edges do not count."""
    middle = [
        values_of(f)[len(values_of(f)) // 4 : -len(values_of(f)) // 4].astype(np.float64) for f in (frame, reference)
    ]
    rms = [float(np.sqrt(np.mean(part**2))) for part in middle]
    return 20 * float(np.log10((rms[0] + 1e-9) / rms[1]))


@given(RATES, RATES, st.integers(1, 3_000), st.lists(st.integers(0, 700), max_size=10), st.sampled_from([1, 2]))
def test_any_chunking_gives_bit_identical_audio(
    source_hz: int, target_hz: int, samples: int, sizes: list[int], channels: int
) -> None:
    source, target = AudioFormat(source_hz, channels), AudioFormat(target_hz, channels)
    frame = noise(samples, source)
    whole = convert(TrackResampler(source, target), frame)
    assert convert(TrackResampler(source, target), frame, sizes) == whole


@given(
    st.integers(4_000, 192_000),
    st.integers(4_000, 192_000),
    st.integers(0, 10**9),
    st.integers(0, 3_000),
    st.sampled_from(ResamplingQuality),
)
def test_a_run_occupies_exactly_its_rounded_positions(
    source_hz: int, target_hz: int, start_sample: int, samples: int, quality: ResamplingQuality
) -> None:
    resampler = TrackResampler(AudioFormat(source_hz), AudioFormat(target_hz), quality=quality)
    out = convert(resampler, noise(samples, resampler.source, start_sample))
    first, end = (
        (2 * edge * target_hz + source_hz) // (2 * source_hz) for edge in (start_sample, start_sample + samples)
    )
    assert out.samples == end - first
    if out.samples:
        assert out.start_sample == first


def test_ten_minutes_do_not_drift_by_a_sample() -> None:
    source, target = AudioFormat(22_050), AudioFormat(16_000)
    resampler, produced = TrackResampler(source, target), 0
    second = bytes(source.bytes_for(22_050))
    for index in range(600):
        if (out := resampler.feed(AudioFrame(second, source, index * 22_050))) is not None:
            assert out.start_sample == produced
            produced = out.end_sample
    tail = resampler.flush()
    assert tail is not None
    assert tail.end_sample == 600 * 16_000


@given(st.lists(st.integers(1, 900), min_size=1, max_size=8))
def test_runs_that_follow_each_other_in_the_input_follow_each_other_in_the_output(lengths: list[int]) -> None:
    resampler = TrackResampler(AudioFormat(22_050), SPEECH_FORMAT)
    position, produced = 0, 0
    for length in lengths:
        out = convert(resampler, noise(length, resampler.source, position))
        if out.samples:
            assert out.start_sample == produced
            produced = out.end_sample
        position += length
    assert produced == (2 * position * 16_000 + 22_050) // (2 * 22_050)


@pytest.mark.parametrize("quality", ResamplingQuality)
@pytest.mark.parametrize("rates_hz", [(22_050, 16_000), (48_000, 16_000), (16_000, 48_000), (22_050, 48_000)])
def test_a_tone_in_the_speech_band_keeps_its_level_and_its_phase(
    rates_hz: tuple[int, int], quality: ResamplingQuality
) -> None:
    source, target = map(AudioFormat, rates_hz)
    expected = tone(1_000, target)
    out = convert(TrackResampler(source, target, quality=quality), tone(1_000, source))
    difference = values_of(out).astype(np.int32) - values_of(expected)
    # ±1 is rounding: the source tone was rounded, and the result was rounded again.
    assert int(np.abs(difference[500:-500]).max()) <= 2


def test_a_tone_above_the_new_band_does_not_come_back_as_another_one() -> None:
    source = tone(9_500, WIDE)
    assert level_db(convert(TrackResampler(WIDE, SPEECH_FORMAT), source), source) < -70


def test_digital_silence_stays_digital_silence() -> None:
    out = convert(TrackResampler(AudioFormat(22_050), WIDE), AudioFrame(bytes(44_100), AudioFormat(22_050)))
    assert out.data == bytes(96_000)


def test_overshoot_is_limited_and_counted() -> None:
    resampler = TrackResampler(AudioFormat(24_000), WIDE)
    square = frame_of(np.tile(np.repeat([32_767, -32_768], 12), 500), resampler.source)
    out = values_of(convert(resampler, square))
    assert (int(out.min()), int(out.max())) == (-32_768, 32_767)
    assert resampler.clipped_samples > 0


def test_equal_formats_pass_through_without_delay_or_change() -> None:
    resampler = TrackResampler(SPEECH_FORMAT, SPEECH_FORMAT)
    frame = noise(320, SPEECH_FORMAT, 77)
    assert resampler.feed(frame) == frame
    assert resampler.flush() is None


@pytest.mark.parametrize("source_hz", [22_050, 24_000, 44_100, 48_000])
def test_the_default_quality_holds_back_at_most_22_ms(source_hz: int) -> None:
    source = AudioFormat(source_hz)
    resampler, produced, frame_samples = TrackResampler(source, SPEECH_FORMAT), 0, source_hz // 50
    for index in range(100):
        out = resampler.feed(AudioFrame(bytes(2 * frame_samples), source, index * frame_samples))
        produced += out.samples if out else 0
        assert (index + 1) * 20 - SPEECH_FORMAT.duration_ms(produced) <= 22


def test_one_channel_becomes_many_equal_ones() -> None:
    target = AudioFormat(48_000, 3)
    mono = convert(TrackResampler(SPEECH_FORMAT, WIDE), noise(800, SPEECH_FORMAT))
    out = convert(TrackResampler(SPEECH_FORMAT, target), noise(800, SPEECH_FORMAT))
    assert np.array_equal(values_of(out), np.repeat(values_of(mono), 3, axis=1))


@pytest.mark.parametrize(
    ("downmix", "expected"), [(DownMix.AVERAGE, [200, 0]), (DownMix.FIRST_CHANNEL, [100, -32_768])]
)
def test_many_channels_become_one_as_asked(downmix: DownMix, expected: list[int]) -> None:
    source = AudioFormat(16_000, 2)
    out = TrackResampler(source, SPEECH_FORMAT, downmix=downmix).feed(frame_of([100, 300, -32_768, 32_767], source))
    assert out == frame_of(expected, SPEECH_FORMAT)


def test_the_rate_and_the_channels_can_change_together() -> None:
    stereo = AudioFormat(48_000, 2)
    out = convert(TrackResampler(stereo, SPEECH_FORMAT, downmix=DownMix.FIRST_CHANNEL), tone(500, stereo))
    assert out == convert(TrackResampler(WIDE, SPEECH_FORMAT), tone(500, WIDE))


def test_folding_channels_is_never_implied() -> None:
    with pytest.raises(AudioFormatError, match="pass a DownMix"):
        TrackResampler(AudioFormat(16_000, 2), SPEECH_FORMAT)


def test_many_channels_do_not_become_a_different_many() -> None:
    with pytest.raises(AudioFormatError, match="go through one"):
        TrackResampler(AudioFormat(16_000, 2), AudioFormat(16_000, 3), downmix=DownMix.AVERAGE)


@pytest.mark.parametrize("wrong", [99, 101])
def test_a_frame_that_does_not_continue_is_refused_and_changes_nothing(wrong: int) -> None:
    resampler, untouched = (TrackResampler(WIDE, SPEECH_FORMAT) for _ in range(2))
    frame = noise(3_000, WIDE)
    head, rest = frame.split_at(100)
    resampler.feed(head)
    with pytest.raises(AudioDiscontinuity):
        resampler.feed(noise(10, WIDE, wrong))
    assert convert(resampler, rest) == convert(untouched, frame)


def test_another_format_is_refused() -> None:
    with pytest.raises(AudioFormatError):
        TrackResampler(WIDE, SPEECH_FORMAT).feed(noise(10, SPEECH_FORMAT))


@pytest.mark.parametrize("cut", ["flush", "reset"])
def test_nothing_of_a_former_run_is_heard_in_the_next(cut: str) -> None:
    resampler, fresh = (TrackResampler(WIDE, SPEECH_FORMAT) for _ in range(2))
    resampler.feed(noise(5_000, WIDE))
    if cut == "flush":
        resampler.flush()
    else:
        resampler.reset()
    following = tone(700, WIDE)
    assert convert(resampler, following) == convert(fresh, following)


@pytest.mark.parametrize("cut", ["flush", "reset"])
def test_after_a_deliberate_cut_an_unchanged_track_may_go_on_anywhere_too(cut: str) -> None:
    resampler = TrackResampler(SPEECH_FORMAT, SPEECH_FORMAT)
    resampler.feed(noise(10, SPEECH_FORMAT))
    with pytest.raises(AudioDiscontinuity):
        resampler.feed(noise(10, SPEECH_FORMAT, 50))
    if cut == "flush":
        resampler.flush()
    else:
        resampler.reset()
    assert resampler.feed(noise(10, SPEECH_FORMAT, 50)) == noise(10, SPEECH_FORMAT, 50)


def test_flushing_without_input_gives_nothing() -> None:
    resampler = TrackResampler(WIDE, SPEECH_FORMAT)
    assert resampler.flush() is None
    resampler.feed(noise(10, WIDE))
    assert resampler.flush() is not None
    assert resampler.flush() is None
