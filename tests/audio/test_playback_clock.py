"""The playback clock: exact to the sample, whatever is paused and whenever more comes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voicechart.audio import AudioFormat, PlaybackClock, PlaybackClockError

MS = 1_000_000
RATES = st.sampled_from([8_000, 16_000, 22_050, 24_000, 44_100, 48_000, 192_000])


def started(samples: int, rate_hz: int = 16_000) -> PlaybackClock:
    clock = PlaybackClock(AudioFormat(rate_hz))
    clock.submit(samples, 0)
    clock.resume(0)
    return clock


def test_a_sample_counts_from_the_nanosecond_at_which_it_is_over() -> None:
    clock = started(16)
    assert [clock.rendered_samples(now) for now in (0, 62_499, 62_500, 124_999, 125_000)] == [0, 0, 1, 1, 2]


def test_nothing_is_rendered_before_the_start() -> None:
    clock = PlaybackClock(AudioFormat(16_000))
    clock.submit(100, 5)
    assert not clock.running
    assert clock.rendered_samples(10**12) == 0


def test_the_position_never_passes_what_was_submitted() -> None:
    clock = started(160)
    assert not clock.is_dry(10 * MS - 1)
    assert clock.is_dry(10 * MS)
    assert clock.rendered_samples(10**15) == 160


def test_what_is_submitted_to_a_dry_clock_starts_then() -> None:
    clock = started(160)
    clock.submit(160, 30 * MS)
    assert clock.rendered_samples(30 * MS) == 160
    assert clock.rendered_samples(31 * MS) == 176


def test_what_is_submitted_in_time_follows_without_a_hole() -> None:
    clock = started(160)
    clock.submit(160, 10 * MS)
    assert clock.rendered_samples(15 * MS) == 240


def test_a_pause_holds_the_position_and_its_fraction() -> None:
    clock = started(160, 44_100)
    for at_ns in range(0, 1_000_000, 1_000):
        clock.pause(at_ns)
        clock.resume(at_ns)
    assert clock.rendered_samples(1_000_000) == 44
    clock.pause(1_000_000)
    assert clock.rendered_samples(10**12) == 44
    clock.resume(10**12)
    assert clock.rendered_samples(10**12 + 1_000_000) == 88


def test_pausing_or_resuming_twice_changes_nothing() -> None:
    clock = started(1_600)
    clock.resume(5 * MS)
    assert clock.rendered_samples(10 * MS) == 160
    clock.pause(10 * MS)
    clock.pause(20 * MS)
    assert clock.rendered_samples(30 * MS) == 160


def test_a_due_time_is_known_only_for_submitted_samples_of_a_running_clock() -> None:
    clock = PlaybackClock(AudioFormat(16_000))
    clock.submit(160, 0)
    assert clock.due_at_ns(160) is None
    clock.resume(7 * MS)
    assert clock.due_at_ns(160) == 17 * MS
    assert clock.due_at_ns(161) is None
    clock.pause(8 * MS)
    assert clock.due_at_ns(160) is None


def test_time_that_runs_backwards_is_an_error() -> None:
    clock = started(160)
    clock.submit(1, 100)
    with pytest.raises(PlaybackClockError, match="backwards by 1 ns"):
        clock.rendered_samples(99)
    with pytest.raises(PlaybackClockError, match="backwards"):
        clock.pause(99)


def test_a_negative_number_of_samples_is_an_error() -> None:
    with pytest.raises(PlaybackClockError, match="-1"):
        PlaybackClock(AudioFormat(16_000)).submit(-1, 0)


steps = st.tuples(
    st.integers(0, 30 * MS), st.one_of(st.sampled_from(["pause", "resume", "look"]), st.integers(0, 1_000))
)


@given(RATES, st.lists(steps, max_size=40))
def test_any_history_is_exact_and_never_runs_backwards(rate_hz: int, history: list[tuple[int, str | int]]) -> None:
    clock = PlaybackClock(AudioFormat(rate_hz))
    # The reference: time played so far in units of 1 / (rate × 10⁹) s, so that nothing is ever rounded.
    now_ns, played, submitted, running, last = 0, 0, 0, False, 0
    for elapsed_ns, step in history:
        now_ns += elapsed_ns
        if running:
            # A dry clock stops at the whole nanosecond at or after its last sample.
            end = -(-submitted * 10**9 // rate_hz) * rate_hz
            played = min(played + elapsed_ns * rate_hz, end)
        match step:
            case "pause":
                clock.pause(now_ns)
                running = False
            case "resume":
                clock.resume(now_ns)
                running = True
            case int(samples):
                clock.submit(samples, now_ns)
                submitted += samples
            case _:
                pass
        rendered = clock.rendered_samples(now_ns)
        assert rendered == played // 10**9
        assert last <= rendered <= submitted == clock.submitted_samples
        assert clock.running == running
        last = rendered


@given(RATES, st.integers(1, 10**9), st.integers(0, 10**12))
def test_a_due_time_is_the_first_nanosecond_that_has_the_sample(rate_hz: int, sample: int, start_ns: int) -> None:
    clock = PlaybackClock(AudioFormat(rate_hz))
    clock.submit(sample, start_ns)
    clock.resume(start_ns)
    due_at_ns = clock.due_at_ns(sample)
    assert due_at_ns is not None
    assert clock.rendered_samples(due_at_ns) == sample
    assert clock.rendered_samples(due_at_ns - 1) == sample - 1
