"""Voice activity: hysteresis at its edges, exact positions, onsets and offsets that alternate."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voicechart.audio import (
    SPEECH_FORMAT,
    AudioDiscontinuity,
    AudioFormat,
    AudioFormatError,
    AudioFrame,
    AudioSettingsError,
    SpeechOffset,
    SpeechOngoing,
    SpeechOnset,
    VoiceActivity,
    VoiceActivityDetector,
    VoiceActivityError,
    VoiceActivitySettings,
)

HOP = 512


class ScriptedProbability:
    """Reads the probability (in thousandths) out of the hop's first sample; counts hops and resets."""

    def __init__(self) -> None:
        self.hops = 0
        self.resets = 0

    def __call__(self, pcm: bytes, /) -> float:
        assert len(pcm) == 2 * HOP
        self.hops += 1
        return int.from_bytes(pcm[:2], "little", signed=True) / 1_000

    def reset(self) -> None:
        self.resets += 1


def speech(*probabilities: float, start_sample: int = 0) -> AudioFrame:
    hops = (round(p * 1_000).to_bytes(2, "little", signed=True) + bytes(2 * HOP - 2) for p in probabilities)
    return AudioFrame(b"".join(hops), SPEECH_FORMAT, start_sample)


def detector(
    *,
    start_threshold: float = 0.5,
    stop_threshold: float = 0.35,
    min_speech_ms: int = 0,
    min_silence_ms: int = 0,
    ongoing_every_ms: int = 5_000,
) -> VoiceActivityDetector:
    settings = VoiceActivitySettings(
        start_threshold, stop_threshold, min_speech_ms, min_silence_ms, ongoing_every_ms=ongoing_every_ms
    )
    return VoiceActivityDetector(ScriptedProbability(), settings)


def test_speech_starts_at_the_threshold_and_not_just_below() -> None:
    assert detector().feed(speech(0.499)) == []
    assert detector().feed(speech(0.5)) == [SpeechOnset(0, HOP)]


def test_speech_ends_below_the_stop_threshold_and_not_at_it() -> None:
    assert detector().feed(speech(0.9, 0.35)) == [SpeechOnset(0, HOP)]
    assert detector().feed(speech(0.9, 0.349)) == [SpeechOnset(0, HOP), SpeechOffset(HOP, 32.0)]


def test_between_the_thresholds_things_stay_as_they_are() -> None:
    assert detector().feed(speech(0.4, 0.4)) == []
    assert detector(min_silence_ms=64).feed(speech(0.9, 0.4, 0.4, 0.4, 0.4)) == [SpeechOnset(0, HOP)]
    assert detector(min_silence_ms=64).feed(speech(0.9, 0.1, 0.4)) == [SpeechOnset(0, HOP), SpeechOffset(HOP, 64.0)]


@pytest.mark.parametrize(("min_speech_ms", "hops"), [(0, 1), (32, 1), (33, 2), (64, 2), (65, 3)])
def test_the_minimum_speech_counts_whole_hops(min_speech_ms: int, hops: int) -> None:
    vad = detector(min_speech_ms=min_speech_ms)
    assert vad.feed(speech(0, *[0.9] * (hops - 1))) == []
    assert vad.feed(speech(0.9, start_sample=hops * HOP)) == [SpeechOnset(HOP, (hops + 1) * HOP)]


@pytest.mark.parametrize(("min_silence_ms", "hops"), [(0, 1), (32, 1), (33, 2), (64, 2), (65, 3)])
def test_the_minimum_silence_counts_whole_hops(min_silence_ms: int, hops: int) -> None:
    vad = detector(min_silence_ms=min_silence_ms)
    assert vad.feed(speech(0.9, *[0.0] * (hops - 1))) == [SpeechOnset(0, HOP)]
    assert vad.feed(speech(0.0, start_sample=hops * HOP)) == [SpeechOffset(HOP, 32.0 * hops)]


def test_a_click_is_not_speech_and_does_not_count_for_the_next_one() -> None:
    vad = detector(min_speech_ms=64)
    assert vad.feed(speech(0.9, 0.1, 0.9, 0.1)) == []
    assert not vad.speaking
    assert vad.feed(speech(0.9, 0.9, start_sample=4 * HOP)) == [SpeechOnset(4 * HOP, 6 * HOP)]


def test_a_breath_is_not_an_end() -> None:
    vad = detector(min_silence_ms=96)
    assert vad.feed(speech(0.9, 0.1, 0.1, 0.9, 0.1, 0.1)) == [SpeechOnset(0, HOP)]
    assert vad.speaking
    assert vad.feed(speech(0.1, start_sample=6 * HOP)) == [SpeechOffset(4 * HOP, 96.0)]


def test_ongoing_speech_is_told_at_a_bounded_rate_and_not_during_silence() -> None:
    said = detector(min_silence_ms=500, ongoing_every_ms=100).feed(speech(*[0.9] * 10, *[0.1] * 4, 0.9))
    assert said == [
        SpeechOnset(0, HOP),
        SpeechOngoing(5 * HOP, 160.0),
        SpeechOngoing(9 * HOP, 288.0),
        SpeechOngoing(15 * HOP, 480.0),
    ]


def test_positions_are_those_of_the_capture_track() -> None:
    vad = detector()
    assert vad.feed(speech(0.1, 0.9, 0.1, start_sample=100_000)) == [
        SpeechOnset(100_000 + HOP, 100_000 + 2 * HOP),
        SpeechOffset(100_000 + 2 * HOP, 32.0),
    ]


@given(st.lists(st.floats(0, 1), max_size=30), st.lists(st.integers(1, 1_500), max_size=30))
def test_any_framing_says_the_same(probabilities: list[float], sizes: list[int]) -> None:
    frame = speech(*probabilities)
    whole = detector(min_speech_ms=64, min_silence_ms=64, ongoing_every_ms=100).feed(frame)
    vad = detector(min_speech_ms=64, min_silence_ms=64, ongoing_every_ms=100)
    said: list[VoiceActivity] = []
    for size in sizes:
        piece, frame = frame.split_at(min(size, frame.samples))
        said += vad.feed(piece)
    assert said + vad.feed(frame) == whole


@given(st.lists(st.floats(0, 1), max_size=80), st.integers(0, 200), st.integers(0, 200))
def test_onsets_and_offsets_alternate_and_every_promise_is_kept(
    probabilities: list[float], min_speech_ms: int, min_silence_ms: int
) -> None:
    vad = detector(min_speech_ms=min_speech_ms, min_silence_ms=min_silence_ms, ongoing_every_ms=100)
    said = vad.feed(speech(*probabilities))
    open_at: int | None = None
    position, told_at = 0, 0
    for activity in [*said, *vad.finish()]:
        match activity:
            case SpeechOnset(at_sample, known_at_sample):
                assert open_at is None
                assert position <= at_sample < known_at_sample
                assert (known_at_sample - at_sample) / 16 >= min_speech_ms
                open_at = position = at_sample
                told_at = known_at_sample
            case SpeechOngoing(at_sample, duration_ms):
                assert open_at is not None
                assert duration_ms == (at_sample - open_at) / 16
                assert (at_sample - told_at) / 16 >= 100
                position = told_at = at_sample
            case SpeechOffset(at_sample, silence_ms):
                assert open_at is not None
                assert open_at < at_sample
                assert position <= at_sample
                ends_the_track = at_sample + silence_ms * 16 == len(probabilities) * HOP
                assert silence_ms >= min_silence_ms or ends_the_track
                open_at, position = None, at_sample
    assert open_at is None
    assert not vad.speaking


def test_a_jump_is_refused_until_the_gap_is_told() -> None:
    probability = ScriptedProbability()
    vad = VoiceActivityDetector(probability, VoiceActivitySettings(min_speech_ms=0))
    vad.feed(speech(0.9))
    with pytest.raises(AudioDiscontinuity):
        vad.feed(speech(0.9, start_sample=2 * HOP))
    assert vad.gap()
    assert probability.resets == 1
    assert not vad.speaking
    assert vad.feed(speech(0.9, start_sample=2 * HOP)) == [SpeechOnset(2 * HOP, 3 * HOP)]


def test_a_gap_in_silence_breaks_nothing_but_forgets_half_a_hop_and_half_an_onset() -> None:
    vad = detector(min_speech_ms=64)
    vad.feed(speech(0.9))
    vad.feed(AudioFrame(bytes(600), SPEECH_FORMAT, HOP))
    assert not vad.gap()
    assert vad.feed(speech(0.9, start_sample=5_000)) == []


def test_the_end_of_the_track_ends_open_speech_where_it_was_last_heard() -> None:
    vad = detector(min_silence_ms=500)
    vad.feed(speech(0.9, 0.9, 0.1))
    assert vad.finish() == [SpeechOffset(2 * HOP, 32.0)]
    assert vad.finish() == []
    vad.feed(speech(0.9, start_sample=9))
    assert vad.finish() == [SpeechOffset(9 + HOP, 0.0)]


@pytest.mark.parametrize("probability", [-0.001, 1.001])
def test_a_probability_outside_its_range_is_an_error(probability: float) -> None:
    with pytest.raises(VoiceActivityError, match="not 0 to 1"):
        detector().feed(speech(probability))


def test_a_probability_that_is_no_number_is_an_error() -> None:
    class Broken(ScriptedProbability):
        def __call__(self, pcm: bytes, /) -> float:
            return float("nan")

    with pytest.raises(VoiceActivityError):
        VoiceActivityDetector(Broken()).feed(speech(0.5))


@pytest.mark.parametrize("format", [AudioFormat(8_000), AudioFormat(16_000, 2)])
def test_only_16_khz_mono_is_taken(format: AudioFormat) -> None:
    with pytest.raises(AudioFormatError):
        detector().feed(AudioFrame(bytes(2_048), format))


def test_the_outermost_settings_are_accepted() -> None:
    VoiceActivitySettings(1, 1, 2_000, 10_000, 5_000)
    VoiceActivitySettings(0.001, 0.001, 0, 0, 32)


@pytest.mark.parametrize(
    "wrong",
    [
        (1.001, 0.3, 0, 0, 100),
        (0.5, 0.501, 0, 0, 100),
        (0.5, 0.0, 0, 0, 100),
        (float("nan"), 0.3, 0, 0, 100),
        (0.5, 0.3, -1, 0, 100),
        (0.5, 0.3, 2_001, 0, 100),
        (0.5, 0.3, 0, -1, 100),
        (0.5, 0.3, 0, 10_001, 100),
        (0.5, 0.3, 0, 0, 31),
        (0.5, 0.3, 0, 0, 5_001),
    ],
)
def test_settings_just_outside_their_bounds_are_refused(wrong: tuple[float, float, int, int, int]) -> None:
    with pytest.raises(AudioSettingsError):
        VoiceActivitySettings(*wrong)
