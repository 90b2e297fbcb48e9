"""The Playback region, row by row: from the first audio to the drain."""

from __future__ import annotations

from dataclasses import replace

import pytest

from voicechart.statecharts import Policies, TurnPolicy
from voicechart.statecharts.actions import (
    CancelGeneration,
    FinishOutput,
    OpenOutput,
    PausePlayback,
    RecordDelivery,
    ReleaseOutput,
    ResumePlayback,
    StopPlayback,
)
from voicechart.statecharts.context import TimerKind
from voicechart.statecharts.published import (
    AudioBegan,
    AudioFinished,
    PlaybackBegan,
    PlaybackCut,
    PlaybackFinished,
    PlaybackMoved,
    PlaybackPaused,
    PlaybackResumed,
    PlaybackStarved,
    StreamError,
)
from voicechart.statecharts.testing import HANDS_FREE, Reached, ScriptedConversation
from voicechart.statecharts.values import DeliveryStatus, Outcome, PositionSource

# -- opening -------------------------------------------------------------------------------------------------------


def test_the_first_audio_opens_a_stream_of_its_own_epoch(reached: Reached) -> None:
    script = reached.streaming()
    script.audio_starts()
    assert script.conversation.configuration.playback == "buffering"
    [opened] = script.record.of(OpenOutput)
    assert opened.output_epoch == script.generation.output_epoch
    assert opened.response_id == script.generation.response_id
    assert (opened.sample_rate_hz, opened.channels, opened.held) == (16_000, 1, False)
    assert opened.prebuffer_ms == script.conversation.policies.playback.prebuffer_ms
    assert [told.held for told in script.record.published(AudioBegan)] == [False]
    assert len(script.running(TimerKind.PLAYBACK)) == 1


@pytest.mark.parametrize("state", ["drained", "stopped"])
def test_the_next_reply_opens_a_new_stream(reached: Reached, state: str) -> None:
    script = reached.everywhere()[state]
    first = script.stream.stream_id
    script.user_types("and now")
    script.audio_starts()
    assert script.conversation.configuration.playback == "buffering"
    assert script.stream.stream_id == first + 1


@pytest.mark.parametrize("state", ["idle", "speech", "cancelling", "cancelled", "drained", "reconnecting"])
def test_audio_that_belongs_to_no_reply_opens_nothing(reached: Reached, state: str) -> None:
    script = reached.everywhere()[state]
    before = script.record.of(OpenOutput)
    for epoch in range(4):
        assert script.audio_starts(epoch) == ()
    assert script.record.of(OpenOutput) == before


# -- rendering -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("played", "begins"), [(0, False), (1, True), (None, True)])
def test_playing_needs_a_rendered_sample_or_a_speaker_that_cannot_count(
    reached: Reached, played: int | None, begins: bool
) -> None:
    script = reached.buffering()
    script.sound_begins(played)
    assert script.conversation.configuration.playback == ("playing" if begins else "buffering")
    assert len(script.record.published(PlaybackBegan)) == (1 if begins else 0)


def test_the_three_positions_are_told_apart_and_only_grow(reached: Reached) -> None:
    script = reached.playing()
    script.speaker_has_played(21_000, accepted_samples=30_000, submitted_samples=22_000)
    script.speaker_has_played(20_500, accepted_samples=29_000, submitted_samples=21_000)
    moved = script.record.published(PlaybackMoved)[-2:]
    assert [(m.accepted_samples, m.submitted_samples, m.played_samples) for m in moved] == [
        (30_000, 22_000, 21_000),
        (30_000, 22_000, 21_000),
    ]
    script.speaker_has_played(None, accepted_samples=31_000)
    last = script.record.published(PlaybackMoved)[-1]
    assert (last.accepted_samples, last.played_samples, last.source) == (31_000, 21_000, PositionSource.MEASURED)


def test_playback_begins_once(reached: Reached) -> None:
    script = reached.playing()
    script.speaker_runs_dry(24_000)
    script.sound_begins(24_001)
    assert len(script.record.published(PlaybackBegan)) == 1


@pytest.mark.parametrize("state", ["buffering", "playing", "paused", "draining"])
def test_a_receipt_of_another_stream_means_nothing(reached: Reached, state: str) -> None:
    script = reached.everywhere()[state]
    leaves = script.leaves
    for told in (
        script.sound_begins,
        script.speaker_has_played,
        script.speaker_runs_dry,
        script.speaker_drains,
        script.speaker_has_stopped,
    ):
        assert told(30_000, stream_id=99) == ()
    assert script.leaves == leaves


def test_an_underrun_buffers_again_and_is_counted(reached: Reached) -> None:
    script = reached.playing()
    script.speaker_runs_dry(24_000)
    assert script.conversation.configuration.playback == "buffering"
    script.sound_begins(24_000)
    assert script.conversation.configuration.playback == "buffering", "nothing new was rendered"
    script.sound_begins(24_001)
    script.speaker_runs_dry(30_000)
    assert [told.underruns for told in script.record.published(PlaybackStarved)] == [1, 2]


def test_running_dry_at_the_known_end_is_no_underrun(reached: Reached) -> None:
    script = reached.draining()
    script.speaker_runs_dry(48_000)
    assert script.conversation.configuration.playback == "draining"
    assert script.record.published(PlaybackStarved) == []


# -- the end -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("state", ["buffering", "playing"])
def test_the_end_of_the_audio_is_a_barrier_that_is_then_drained(reached: Reached, state: str) -> None:
    script = reached.everywhere()[state]
    script.audio_ends(48_000)
    assert script.conversation.configuration.playback == "draining"
    [barrier] = script.record.of(FinishOutput)
    assert (barrier.stream_id, barrier.end_sample) == (script.stream.stream_id, 48_000)
    assert [told.end_sample for told in script.record.published(AudioFinished)] == [48_000]
    assert script.audio_ends(48_000) == (), "there is one end"


def test_a_short_reply_begins_and_drains_without_ever_being_in_between(reached: Reached) -> None:
    script = reached.buffering()
    script.model_finishes()
    script.audio_ends(800)
    script.sound_begins(1)
    assert script.conversation.configuration.playback == "draining"
    script.speaker_drains(800)
    assert script.conversation.configuration.playback == "drained"
    assert len(script.record.published(PlaybackBegan)) == 1
    assert script.record.deliveries() == [DeliveryStatus.DELIVERED]


def test_a_drained_reply_is_delivered_with_everything_its_receipt_confirms(reached: Reached) -> None:
    script = reached.draining()
    script.speaker_drains(48_000)
    [delivery] = script.record.of(RecordDelivery)
    assert (delivery.status, delivery.units, delivery.played_samples) == (DeliveryStatus.DELIVERED, 3, 48_000)
    assert (delivery.source, delivery.confidence) == (PositionSource.MEASURED, 1.0)
    assert [told.played_samples for told in script.record.published(PlaybackFinished)] == [48_000]
    assert script.running(TimerKind.PLAYBACK) == []


def test_a_drain_without_a_position_means_the_end_by_estimate(reached: Reached) -> None:
    script = reached.draining()
    script.speaker_drains(None)
    [delivery] = script.record.of(RecordDelivery)
    assert (delivery.units, delivery.played_samples, delivery.source) == (3, 48_000, PositionSource.ESTIMATED)


def test_a_speaker_that_never_tells_a_position_can_still_deliver(reached: Reached) -> None:
    script = reached.streaming()
    script.audio_starts()
    script.unit_is_synthesized(0, 0, 16_000)
    script.sound_begins(None)
    for _ in range(5):
        script.wait(script.conversation.policies.playback.stall_ms - 1)
        script.model_goes_on()
        script.speaker_has_played(None)
    script.model_finishes()
    script.audio_ends(16_000)
    script.speaker_drains(None)
    assert script.record.deliveries() == [DeliveryStatus.DELIVERED]


@pytest.mark.parametrize(("played", "units"), [(15_999, 0), (16_000, 1), (31_999, 1), (32_000, 2)])
def test_a_unit_is_confirmed_exactly_when_its_last_sample_was_rendered(
    reached: Reached, played: int, units: int
) -> None:
    script = reached.playing()
    script.user_presses_stop()
    script.speaker_has_stopped(played)
    assert script.record.delivery_of(script.generation.response_id).units == units


def test_a_unit_announced_twice_counts_once(reached: Reached) -> None:
    script = reached.playing()
    script.unit_is_synthesized(0, 0, 16_000)
    script.user_presses_stop()
    script.speaker_has_stopped(16_000)
    assert script.record.delivery_of(script.generation.response_id).units == 1


def test_a_reply_with_nothing_to_say_is_text_only(reached: Reached) -> None:
    script = reached.streaming()
    script.model_finishes()
    script.audio_ends(0)
    assert script.record.deliveries() == [DeliveryStatus.TEXT_ONLY]
    assert script.conversation.configuration.playback == "idle"
    assert not script.timers


@pytest.mark.parametrize("before", ["idle", "drained", "stopped"])
@pytest.mark.parametrize("what", ["nothing to say", "a synthesis that fails", "no audio in time"])
def test_a_reply_that_ends_without_audio_is_settled_from_every_resting_state(
    reached: Reached, before: str, what: str
) -> None:
    script = reached.everywhere()[before]
    if before == "stopped":
        script.speaker_has_stopped(20_000)
    script.user_types("hello")
    script.model_starts_writing()
    script.model_finishes()
    if what == "nothing to say":
        script.audio_ends(0)
    elif what == "a synthesis that fails":
        script.synthesis_fails(0)
    else:
        script.wait(script.conversation.policies.generation.first_audio_ms)
    expected = DeliveryStatus.TEXT_ONLY if what == "nothing to say" else DeliveryStatus.FAILED
    delivery = script.record.delivery_of(script.generation.response_id)
    assert (delivery.status, delivery.units, delivery.played_samples) == (expected, 0, 0)
    assert len(script.record.published(StreamError)) == (1 if what == "a synthesis that fails" else 0)
    assert not script.timers


def test_text_of_a_failed_generation_is_not_called_text_only(reached: Reached) -> None:
    script = reached.streaming()
    script.model_fails()
    script.audio_ends(0)
    assert script.record.deliveries() == [DeliveryStatus.FAILED]


@pytest.mark.parametrize("state", ["buffering", "playing"])
def test_a_synthesis_that_breaks_off_plays_what_exists_and_claims_no_more(reached: Reached, state: str) -> None:
    script = reached.everywhere()[state]
    script.synthesis_fails(24_000)
    assert script.conversation.configuration.playback == "draining"
    assert [told.error.code for told in script.record.published(StreamError)] == ["voice_lost"]
    script.model_finishes()
    script.speaker_drains(24_000)
    assert script.record.deliveries() == [DeliveryStatus.FAILED]


# -- pausing -------------------------------------------------------------------------------------------------------


def pausing(state: str) -> ScriptedConversation:
    """A pause-first conversation in `state`, paused by the first sound of the user."""
    script = ScriptedConversation(Policies(interruption=replace(HANDS_FREE, pause_first=True))).opened()
    script.user_says("tell me a story")
    script.reply_is_playing((16_000, 32_000), played_samples=8_000)
    if state == "buffering":
        script.speaker_runs_dry(16_000)
    script.user_starts_speaking()
    return script


@pytest.mark.parametrize("state", ["playing", "buffering"])
def test_a_suspected_interruption_pauses_and_a_rejected_one_resumes_where_it_was(state: str) -> None:
    script = pausing(state)
    assert script.conversation.configuration.playback == "paused"
    assert len(script.record.of(PausePlayback)) == len(script.record.published(PlaybackPaused)) == 1
    script.user_stops_speaking()
    script.recognition_ends()
    assert script.conversation.configuration.playback == state
    assert len(script.record.of(ResumePlayback)) == len(script.record.published(PlaybackResumed)) == 1


@pytest.mark.parametrize("end", ["the audio", "the synthesis"])
def test_an_end_that_comes_during_the_pause_is_drained_afterwards(end: str) -> None:
    script = pausing("playing")
    script.model_finishes()
    if end == "the audio":
        script.audio_ends(32_000)
    else:
        script.synthesis_fails(32_000)
    assert script.conversation.configuration.playback == "paused"
    assert len(script.record.of(FinishOutput)) == 1
    script.user_stops_speaking()
    script.recognition_ends()
    assert script.conversation.configuration.playback == "draining"
    script.speaker_drains(32_000)
    expected = DeliveryStatus.DELIVERED if end == "the audio" else DeliveryStatus.FAILED
    assert script.record.deliveries() == [expected]


def test_receipts_during_the_pause_are_noted(reached: Reached) -> None:
    script = reached.paused()
    script.speaker_has_played(20_400)
    script.speaker_runs_dry(20_500)
    assert script.conversation.configuration.playback == "paused"
    assert script.record.published(PlaybackMoved)[-1].played_samples == 20_500


def test_a_paused_speaker_is_not_broken_for_standing_still(reached: Reached) -> None:
    script = reached.paused()
    for _ in range(3):
        script.wait(1_500)
        script.hears("mhm")
        script.speaker_has_played(20_000)
    assert script.record.of(StopPlayback) == []


# -- breaking ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("state", ["buffering", "playing", "paused", "draining"])
@pytest.mark.parametrize("how", ["fails", "stops by itself"])
def test_a_speaker_that_breaks_ends_the_reply_with_what_it_had_confirmed(
    reached: Reached, state: str, how: str
) -> None:
    script = reached.everywhere()[state]
    epoch = script.conversation.context.output_epoch
    if how == "fails":
        script.speaker_breaks()
    else:
        script.speaker_has_stopped(None if state == "buffering" else 33_000)
    assert script.conversation.configuration.playback == "stopped"
    assert script.conversation.context.output_epoch == epoch + 1
    script.record.assert_silenced_before(RecordDelivery)
    delivery = script.record.delivery_of(script.generation.response_id)
    assert delivery.status is DeliveryStatus.FAILED
    assert delivery.units == (0 if state == "buffering" else 1 if how == "fails" else 2)
    assert [told.reason for told in script.record.published(PlaybackCut)] == ["speaker_failed"]
    assert script.record.interruptions() == []
    completed = script.conversation.configuration.generation == "completed"
    assert len(script.record.of(CancelGeneration)) == (0 if completed else 1)
    assert script.running(TimerKind.STOP_RECEIPT) == []


def test_a_failure_of_an_older_stream_means_nothing(reached: Reached) -> None:
    script = reached.playing()
    assert script.speaker_breaks(0) == ()
    assert script.conversation.configuration.playback == "playing"


@pytest.mark.parametrize("state", ["playing", "draining"])
def test_an_active_stream_without_progress_is_broken_after_its_deadline(reached: Reached, state: str) -> None:
    script = reached.everywhere()[state]
    stall_ms = script.conversation.policies.playback.stall_ms
    script.wait(stall_ms - 1)
    script.speaker_has_played(20_000)
    assert script.conversation.configuration.playback == state, "no progress, but in time"
    script.wait(1)
    assert script.conversation.configuration.playback == "stopped"
    assert script.record.deliveries() == [DeliveryStatus.FAILED]
    assert [told.error.code for told in script.record.published(StreamError)] == ["playback_stalled"]


def test_a_stream_that_waits_for_the_model_is_not_broken(reached: Reached) -> None:
    script = reached.buffering()
    for _ in range(3):
        script.wait(script.conversation.policies.playback.stall_ms)
        script.model_goes_on()
    assert script.conversation.configuration.playback == "buffering"
    script.model_finishes()
    script.wait(script.conversation.policies.playback.stall_ms)
    assert script.conversation.configuration.playback == "stopped", "nothing more is to be waited for"


def test_a_held_stream_is_not_broken_and_is_released_even_at_its_end() -> None:
    turn = TurnPolicy(max_hold_ms=30_000)
    script = ScriptedConversation(Policies(turn=turn, interruption=HANDS_FREE)).opened()
    script.user_says("tell me a story")
    script.wait(2_000)
    script.user_starts_speaking()
    script.audio_starts()
    script.model_finishes()
    script.audio_ends(16_000)
    assert script.conversation.configuration.playback == "draining"
    for _ in range(3):
        script.wait(script.conversation.policies.playback.stall_ms)
        script.user_keeps_speaking(script.now_ns // 1_000_000)
    assert script.conversation.configuration.playback == "draining"
    script.user_stops_speaking()
    script.recognition_ends()
    assert len(script.record.of(ReleaseOutput)) == 1
    script.speaker_drains(16_000)
    assert script.record.deliveries() == [DeliveryStatus.DELIVERED]


def test_a_broken_speaker_lets_the_next_reply_begin(reached: Reached) -> None:
    script = reached.draining()
    script.speaker_breaks()
    script.user_types("and now")
    assert script.record.answers()[-1] == ("and now",)
    assert script.record.outcome_of(script.record.replies()[0]) is Outcome.COMPLETED
