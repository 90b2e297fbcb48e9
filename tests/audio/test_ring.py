"""The pre-roll ring loses exactly what it says, and says exactly what it loses."""

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
    PreRoll,
    PreRollAudio,
)


def track(start_sample: int, samples: int) -> AudioFrame:
    data = b"".join(
        (position % 65_536).to_bytes(2, "little") for position in range(start_sample, start_sample + samples)
    )
    return AudioFrame(data, SPEECH_FORMAT, start_sample)


def joined(audio: PreRollAudio) -> AudioFrame:
    """One frame of consecutive ones; fails when they are not."""
    first = audio.frames[0]
    position = first.start_sample
    for frame in audio.frames:
        assert frame.start_sample == position
        position = frame.end_sample
    return AudioFrame(b"".join(frame.data for frame in audio.frames), first.format, first.start_sample)


def test_the_ring_holds_its_capacity_to_the_sample() -> None:
    ring = PreRoll(SPEECH_FORMAT, capacity_ms=10)
    assert ring.append(track(0, 160)) == 0
    assert ring.append(track(160, 1)) == 1
    assert (ring.held_samples, ring.held_ms, ring.lost_samples) == (160, 10.0, 1)
    assert joined(ring.since(0)) == track(1, 160)


def test_a_frame_longer_than_the_ring_leaves_its_end() -> None:
    ring = PreRoll(SPEECH_FORMAT, capacity_ms=1)
    assert ring.append(track(0, 100)) == 84
    assert joined(ring.since(0)) == track(84, 16)


def test_two_seconds_are_the_default() -> None:
    assert PreRoll(SPEECH_FORMAT).capacity_samples == 32_000


@given(
    st.integers(0, 10**6),
    st.lists(st.one_of(st.integers(0, 120), st.just("drain")), max_size=20),
    st.integers(-50, 600),
)
def test_what_is_given_and_what_is_missing_add_up(
    start_sample: int, operations: list[int | str], asked_offset: int
) -> None:
    ring = PreRoll(SPEECH_FORMAT, capacity_ms=5)
    capacity, end, drained_to, overwritten = 80, start_sample, start_sample, 0
    for operation in operations:
        if isinstance(operation, int):
            overwritten += ring.append(track(end, operation))
            end += operation
        else:
            drained = ring.drain()
            held = min(capacity, end - drained_to)
            assert drained.missing_samples == overwritten == end - drained_to - held
            if held:
                assert joined(drained) == track(end - held, held)
            assert ring.held_samples == ring.lost_samples == 0
            drained_to, overwritten = end, 0
        assert ring.held_samples == min(capacity, end - drained_to)
        assert ring.lost_samples == overwritten == end - drained_to - ring.held_samples
    asked = max(0, start_sample + asked_offset)
    audio = ring.since(asked)
    expected_from = min(max(asked, end - ring.held_samples), end)
    assert audio.missing_samples == max(0, (end - ring.held_samples) - max(asked, drained_to))
    if expected_from < end:
        assert joined(audio) == track(expected_from, end - expected_from)
    else:
        assert audio.frames == ()


def test_frames_come_out_in_a_size_that_bounded_queues_take() -> None:
    ring = PreRoll(SPEECH_FORMAT)
    ring.append(track(0, 32_000))
    assert {frame.samples for frame in ring.drain().frames} == {320}


def test_an_empty_ring_gives_nothing_and_misses_nothing() -> None:
    ring = PreRoll(SPEECH_FORMAT)
    assert ring.since(5) == ring.drain() == PreRollAudio((), 0)


def test_reading_since_a_sample_keeps_the_ring_as_it_was() -> None:
    ring = PreRoll(SPEECH_FORMAT)
    ring.append(track(0, 500))
    assert ring.since(100) == ring.since(100)
    assert ring.held_samples == 500


def test_a_capture_gap_is_refused_until_the_ring_is_cleared() -> None:
    ring = PreRoll(SPEECH_FORMAT)
    ring.append(track(0, 100))
    with pytest.raises(AudioDiscontinuity, match="expected sample 100 next and got sample 101"):
        ring.append(track(101, 10))
    assert ring.held_samples == 100
    assert ring.clear() == 100
    ring.append(track(101, 10))
    assert ring.since(0) == PreRollAudio((track(101, 10),), 0)


def test_draining_does_not_hide_a_gap() -> None:
    ring = PreRoll(SPEECH_FORMAT)
    ring.append(track(0, 100))
    ring.drain()
    with pytest.raises(AudioDiscontinuity):
        ring.append(track(200, 10))


def test_another_format_is_refused() -> None:
    with pytest.raises(AudioFormatError):
        PreRoll(SPEECH_FORMAT).append(AudioFrame(bytes(4), AudioFormat(48_000)))


@pytest.mark.parametrize("capacity_ms", [1, 30_000])
def test_the_outermost_capacities_are_accepted(capacity_ms: int) -> None:
    assert PreRoll(SPEECH_FORMAT, capacity_ms).capacity_samples == 16 * capacity_ms


@pytest.mark.parametrize("capacity_ms", [0, 30_001])
def test_a_capacity_just_outside_the_bounds_is_refused(capacity_ms: int) -> None:
    with pytest.raises(AudioSettingsError, match="outside 1–30000 ms"):
        PreRoll(SPEECH_FORMAT, capacity_ms)
