"""Formats and frames: bounds at their edges, sample arithmetic without drift."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voicechart.audio import SPEECH_FORMAT, AudioFormat, AudioFormatError, AudioFrame

formats = st.builds(AudioFormat, st.integers(4_000, 192_000), st.integers(1, 8))


@pytest.mark.parametrize(("rate_hz", "channels"), [(4_000, 1), (192_000, 8)])
def test_the_outermost_formats_are_accepted(rate_hz: int, channels: int) -> None:
    assert AudioFormat(rate_hz, channels).bytes_per_sample == 2 * channels


@pytest.mark.parametrize(("rate_hz", "channels"), [(3_999, 1), (192_001, 1), (16_000, 0), (16_000, 9)])
def test_a_format_just_outside_the_bounds_is_refused(rate_hz: int, channels: int) -> None:
    with pytest.raises(AudioFormatError, match="outside"):
        AudioFormat(rate_hz, channels)


def test_a_frame_with_a_cut_sample_is_refused() -> None:
    with pytest.raises(AudioFormatError, match="cut a sample"):
        AudioFrame(bytes(6), AudioFormat(16_000, 2))


def test_a_frame_before_the_start_of_its_track_is_refused() -> None:
    with pytest.raises(AudioFormatError, match="sample -1"):
        AudioFrame(b"", SPEECH_FORMAT, -1)


@given(formats, st.integers(0, 10**12))
def test_nanoseconds_of_an_absolute_position_never_drift_by_more_than_one(format: AudioFormat, samples: int) -> None:
    duration_ns = format.duration_ns(samples)
    assert 0 <= samples * 1_000_000_000 - duration_ns * format.sample_rate_hz < format.sample_rate_hz


@given(formats, st.integers(0, 10_000_000))
def test_a_duration_in_milliseconds_leads_back_to_its_samples(format: AudioFormat, samples: int) -> None:
    assert format.samples_for_ms(format.duration_ms(samples)) == samples


@given(formats, st.integers(0, 50), st.integers(0, 10**9), st.data())
def test_a_split_frame_is_the_same_audio_at_the_same_positions(
    format: AudioFormat, samples: int, start_sample: int, data: st.DataObject
) -> None:
    frame = AudioFrame(bytes(i % 256 for i in range(format.bytes_for(samples))), format, start_sample)
    cut = data.draw(st.integers(0, samples))
    head, rest = frame.split_at(cut)
    assert head.data + rest.data == frame.data
    assert (head.start_sample, head.samples) == (start_sample, cut)
    assert (rest.start_sample, rest.end_sample) == (head.end_sample, frame.end_sample)


@pytest.mark.parametrize("cut", [-1, 3])
def test_a_split_outside_the_frame_is_refused(cut: int) -> None:
    with pytest.raises(AudioFormatError, match="2 samples cannot be split"):
        AudioFrame(bytes(4), SPEECH_FORMAT).split_at(cut)
