"""Metrics of turns: every milestone from its own fact, and nothing that did not happen."""

from __future__ import annotations

from dataclasses import fields

import pytest

from voicechart.engines.metrics import KEPT, MetricsObserver
from voicechart.engines.turn_metrics import Milestones, TurnMetrics
from voicechart.statecharts.actions import ContinueGeneration
from voicechart.statecharts.facts import TurnEnded
from voicechart.statecharts.policies import InterruptionPolicy, Policies
from voicechart.statecharts.testing import ScriptedConversation, scripted_error
from voicechart.statecharts.values import DeliveryStatus, InterruptionSource, Outcome, TurnAuthority

MS = 1_000_000
EVERYTHING = Policies(interruption=InterruptionPolicy(sources=frozenset(InterruptionSource), full_duplex=True))


class Measured:
    """A scripted conversation and the metrics of its finished turns."""

    def __init__(self) -> None:
        self.script = ScriptedConversation(EVERYTHING).opened()
        self.observer = MetricsObserver()
        self.script.conversation.observe(self.observer)

    def taken(self) -> TurnMetrics:
        (metrics,) = self.observer.take()
        return metrics

    def at(self, ms: int) -> None:
        """Let time pass until then."""
        self.script.wait(ms - self.script.now_ns / MS)

    def user_asks(self, text: str = "what time is it") -> None:
        """From 100 ms, when speech is detected, to 1000 ms, when the turn is accepted; speech ends at 700 ms."""
        script = self.script
        self.at(100)
        script.user_starts_speaking()
        self.at(400)
        script.hears("what")
        self.at(500)
        script.hears(text)
        self.at(900)
        script.understands(text)
        script.tell(TurnEnded(at=script.now_ns, authority=TurnAuthority.VAD, speech_ended_at=700 * MS))
        self.at(1_000)
        script.recognition_ends()

    def reply_plays(self) -> None:
        """From 1200 ms, the first text, to 1600 ms, when 4000 of 16000 samples were heard."""
        script = self.script
        self.at(1_200)
        script.model_starts_writing()
        self.at(1_250)
        self.observer.note_unit(script.generation.response_id, script.now_ns)
        self.at(1_300)
        script.audio_starts()
        script.unit_is_synthesized(0, 0, 16_000)
        self.at(1_400)
        script.sound_begins()
        self.at(1_600)
        script.speaker_has_played(4_000, accepted_samples=12_000)


def in_ms(milestones: Milestones) -> dict[str, float]:
    """Those that happened."""
    values = ((field.name, getattr(milestones, field.name)) for field in fields(milestones))
    return {name: value / MS for name, value in values if value is not None}


HEARD = {
    "speech_started": 100,
    "first_transcript": 400,
    "last_speech": 700,
    "final_transcript": 900,
    "turn_accepted": 1_000,
    "model_request": 1_000,
}
SPOKEN = {"first_text": 1_200, "first_unit": 1_250, "first_pcm": 1_300, "first_rendered": 1_400}


def test_a_delivered_turn_has_every_milestone_but_those_of_an_interruption() -> None:
    measured = Measured()
    measured.user_asks()
    measured.reply_plays()
    measured.at(1_700)
    measured.script.model_finishes()
    measured.at(1_800)
    measured.script.audio_ends(16_000)
    assert measured.observer.take() == ()
    measured.at(2_400)
    measured.script.speaker_drains(16_000)
    metrics = measured.taken()
    assert in_ms(metrics.milestones) == HEARD | SPOKEN | {
        "generation_ended": 1_700,
        "last_pcm": 1_800,
        "last_rendered": 2_400,
    }
    assert (metrics.outcome, metrics.delivery, metrics.units) == (Outcome.COMPLETED, DeliveryStatus.DELIVERED, 1)
    assert not metrics.interrupted
    assert metrics.turn_id == measured.script.generation.turn_ids[0]
    assert metrics.response_id == measured.script.generation.response_id


def test_durations_count_from_the_end_of_the_users_speech() -> None:
    measured = Measured()
    measured.user_asks()
    measured.reply_plays()
    measured.script.model_finishes()
    measured.script.audio_ends(16_000)
    measured.at(2_400)
    measured.script.speaker_drains(16_000)
    metrics = measured.taken()
    assert metrics.first_transcript_ms == 300
    assert metrics.final_transcript_ms == 200
    assert metrics.turn_accepted_ms == 300
    assert metrics.model_request_ms == 300
    assert metrics.first_text_ms == 500
    assert metrics.first_unit_ms == 550
    assert metrics.first_pcm_ms == 600
    assert metrics.first_rendered_ms == 700
    assert metrics.generation_ms == 600
    assert metrics.playback_ms == 1_000
    assert metrics.interruption_stop_ms is None
    assert metrics.interruption_acknowledgement_ms is None


def test_the_peak_of_the_queue_comes_from_the_receipts() -> None:
    measured = Measured()
    measured.user_asks()
    measured.reply_plays()
    measured.script.speaker_has_played(8_000, accepted_samples=14_000)
    measured.script.reply_is_drained(16_000)
    assert measured.taken().peak_queue_ms == 500.0


def test_without_a_played_position_the_queue_is_unknown_and_not_empty() -> None:
    measured = Measured()
    script = measured.script
    script.user_types("hello")
    script.model_starts_writing()
    script.audio_starts()
    script.sound_begins(None)
    script.speaker_has_played(None, accepted_samples=8_000)
    script.model_finishes()
    script.audio_ends(8_000)
    script.speaker_drains(None)
    metrics = measured.taken()
    assert metrics.peak_queue_ms is None
    assert metrics.milestones.first_rendered is not None


def test_underruns_are_those_of_the_reply() -> None:
    measured = Measured()
    for expected in (2, 0):
        measured.script.user_types("hello")
        measured.script.reply_is_playing((16_000,))
        for played in range(expected):
            measured.script.speaker_runs_dry(1_000 * (played + 1))
            measured.script.sound_begins(1_000 * (played + 1) + 1)
        measured.script.reply_is_drained(16_000)
        assert measured.taken().underruns == expected


def test_an_interrupted_turn_is_finished_when_the_speaker_and_the_model_have_both_confirmed() -> None:
    measured = Measured()
    measured.user_asks()
    measured.reply_plays()
    measured.at(1_650)
    measured.script.user_presses_stop()
    measured.at(1_660)
    measured.script.speaker_has_stopped(5_000)
    assert measured.observer.take() == ()
    measured.at(1_900)
    measured.script.model_acknowledges_cancel()
    metrics = measured.taken()
    assert in_ms(metrics.milestones) == HEARD | SPOKEN | {
        "generation_ended": 1_900,
        "last_rendered": 1_660,
        "interruption_accepted": 1_650,
        "local_stop": 1_660,
        "remote_acknowledgement": 1_900,
    }
    assert (metrics.outcome, metrics.delivery, metrics.units) == (Outcome.CANCELLED, DeliveryStatus.INTERRUPTED, 0)
    assert metrics.interrupted
    assert metrics.interruption_stop_ms == 10
    assert metrics.interruption_acknowledgement_ms == 250


def test_the_model_may_confirm_before_the_speaker() -> None:
    measured = Measured()
    measured.user_asks()
    measured.reply_plays()
    measured.script.user_presses_stop()
    measured.at(1_650)
    measured.script.model_acknowledges_cancel()
    assert measured.observer.take() == ()
    measured.at(1_700)
    measured.script.speaker_has_stopped(5_000)
    metrics = measured.taken()
    assert (metrics.interruption_stop_ms, metrics.interruption_acknowledgement_ms) == (100, 50)


def test_what_is_never_confirmed_leaves_no_milestone() -> None:
    measured = Measured()
    measured.user_asks()
    measured.reply_plays()
    measured.script.user_presses_stop()
    measured.script.wait(10_000)
    metrics = measured.taken()
    assert metrics.milestones.local_stop is None
    assert metrics.milestones.remote_acknowledgement is None
    assert (metrics.interruption_stop_ms, metrics.interruption_acknowledgement_ms) == (None, None)
    assert metrics.delivery is DeliveryStatus.UNKNOWN


def test_an_interruption_after_generation_has_nobody_to_acknowledge_it() -> None:
    measured = Measured()
    measured.user_asks()
    measured.reply_plays()
    measured.script.model_finishes()
    measured.script.user_presses_stop()
    measured.at(1_620)
    measured.script.speaker_has_stopped(5_000)
    metrics = measured.taken()
    assert metrics.outcome is Outcome.COMPLETED
    assert metrics.interrupted
    assert metrics.interruption_stop_ms == 20
    assert metrics.interruption_acknowledgement_ms is None


def test_an_acknowledgement_belongs_to_the_reply_that_was_cancelled_and_not_to_the_next_one() -> None:
    measured = Measured()
    measured.user_asks()
    measured.reply_plays()
    script = measured.script
    script.user_types("stop, and tell me the date")
    script.speaker_has_stopped(5_000)
    measured.at(1_700)
    # Acknowledging admits the waiting turn in the same macrostep.
    script.model_acknowledges_cancel()
    assert measured.taken().milestones.remote_acknowledgement == 1_700 * MS
    measured.at(1_800)
    script.reply_is_playing((16_000,))
    script.reply_is_drained(16_000)
    second = measured.taken()
    assert second.milestones.remote_acknowledgement is None
    assert not second.interrupted


def test_typed_text_has_no_milestones_of_hearing_and_counts_from_its_acceptance() -> None:
    measured = Measured()
    measured.at(100)
    measured.script.user_types("hello")
    measured.at(300)
    measured.script.model_starts_writing()
    measured.script.audio_starts()
    measured.at(450)
    measured.script.sound_begins()
    measured.script.reply_is_drained(16_000)
    metrics = measured.taken()
    assert in_ms(metrics.milestones) == {
        "turn_accepted": 100,
        "model_request": 100,
        "first_text": 300,
        "first_pcm": 300,
        "generation_ended": 450,
        "last_pcm": 450,
        "first_rendered": 450,
        "last_rendered": 450,
    }
    assert metrics.turn_accepted_ms == 0
    assert metrics.first_transcript_ms is None
    assert metrics.final_transcript_ms is None
    assert metrics.first_rendered_ms == 350


def test_a_reply_that_is_never_spoken_has_no_milestones_of_sound() -> None:
    measured = Measured()
    measured.script.user_types("hello")
    measured.at(200)
    measured.script.model_starts_writing()
    measured.script.model_finishes()
    measured.script.audio_ends(0)
    metrics = measured.taken()
    assert metrics.delivery is DeliveryStatus.TEXT_ONLY
    assert metrics.first_text_ms == 200
    assert metrics.first_pcm_ms is None
    assert metrics.first_rendered_ms is None
    assert metrics.playback_ms is None
    assert metrics.peak_queue_ms is None


def test_a_reply_that_fails_before_anything_was_said_has_a_request_and_an_end() -> None:
    measured = Measured()
    measured.script.user_types("hello")
    measured.at(500)
    measured.script.model_fails(scripted_error("refused", retryable=False))
    metrics = measured.taken()
    assert (metrics.outcome, metrics.delivery) == (Outcome.FAILED, DeliveryStatus.FAILED)
    assert in_ms(metrics.milestones) == {"turn_accepted": 0, "model_request": 0, "generation_ended": 500}
    assert metrics.generation_ms == 500
    assert metrics.first_text_ms is None


def test_a_second_attempt_belongs_to_the_same_reply() -> None:
    measured = Measured()
    measured.script.user_types("hello")
    first = measured.script.generation
    measured.script.model_fails()
    measured.at(3_000)
    assert measured.script.generation.attempt_id != first.attempt_id
    measured.script.reply_is_playing((16_000,))
    measured.script.reply_is_drained(16_000)
    metrics = measured.taken()
    assert metrics.milestones.model_request == 0
    assert metrics.first_text_ms == 3_000


def test_a_step_after_a_tool_belongs_to_the_same_reply() -> None:
    measured = Measured()
    script = measured.script
    script.user_types("what time is it")
    script.model_calls_tool("call-1")
    script.model_waits_for_tools()
    measured.at(100)
    script.tool_ends("call-1")
    measured.at(300)
    (step,) = script.record.of(ContinueGeneration)
    script.model_starts_writing(step.attempt_id)
    script.audio_starts()
    script.sound_begins()
    script.model_finishes(step.attempt_id)
    script.audio_ends(16_000)
    script.speaker_drains(16_000)
    assert measured.taken().first_text_ms == 300


def test_a_turn_that_goes_on_keeps_its_beginning_and_takes_its_new_end() -> None:
    measured = Measured()
    measured.user_asks("my name is John")
    script = measured.script
    measured.at(1_100)
    script.user_starts_speaking()
    measured.at(1_300)
    script.understands("Doe", "2")
    script.tell(TurnEnded(at=script.now_ns, authority=TurnAuthority.VAD, speech_ended_at=1_250 * MS))
    script.recognition_ends()
    script.model_acknowledges_cancel()
    superseded = measured.taken()
    script.reply_is_playing((16_000,))
    script.reply_is_drained(16_000)
    answered = measured.taken()
    assert superseded.turn_id == answered.turn_id
    assert superseded.milestones.last_speech == 700 * MS
    assert in_ms(answered.milestones) | {
        "speech_started": 100,
        "first_transcript": 400,
        "last_speech": 1_250,
        "final_transcript": 1_300,
        "turn_accepted": 1_300,
    } == in_ms(answered.milestones)


def test_a_reply_to_several_turns_has_the_moments_of_the_last_one() -> None:
    measured = Measured()
    script = measured.script
    script.user_starts_speaking()
    script.hears("hello")
    script.user_types("what time is it")
    measured.at(800)
    script.finishes_saying("hello")
    script.model_starts_writing()
    script.model_finishes()
    script.audio_ends(0)
    *_, last = script.generation.turn_ids
    metrics = measured.taken()
    assert len(script.generation.turn_ids) == 2
    assert metrics.turn_id == last
    assert in_ms(metrics.milestones)["turn_accepted"] == (800 if metrics.milestones.speech_started is not None else 0)


def test_stale_frames_are_counted_for_the_reply_that_they_were_made_for() -> None:
    measured = Measured()
    script = measured.script
    script.user_types("tell me a story")
    script.reply_is_playing((16_000,))
    epoch = script.generation.output_epoch
    script.user_presses_stop()
    for _ in range(3):
        measured.observer.note_stale(epoch)
    measured.observer.note_stale(epoch - 1)
    script.speaker_has_stopped(5_000)
    script.model_acknowledges_cancel()
    assert measured.taken().stale_frames == 3


def test_a_reply_that_shares_its_epoch_with_the_one_before_it_has_its_own_moments() -> None:
    measured = Measured()
    script = measured.script
    epochs: set[int] = set()
    for at in (1_000, 2_000):
        script.user_types("hello")
        measured.at(at)
        script.reply_is_playing((16_000,))
        script.reply_is_drained(16_000)
        epochs.add(script.generation.output_epoch)
        assert measured.taken().milestones.first_pcm == at * MS
    assert len(epochs) == 1


def test_facts_that_meant_nothing_leave_no_milestone() -> None:
    measured = Measured()
    script = measured.script
    script.user_types("hello")
    script.model_starts_writing("attempt-of-nobody")
    script.audio_starts(output_epoch=0)
    script.hears("nobody", recognition_id="recognition-of-nobody")
    script.model_finishes()
    script.audio_ends(0)
    metrics = measured.taken()
    assert metrics.first_text_ms is None
    assert metrics.first_pcm_ms is None
    assert metrics.milestones.first_transcript is None


def test_turns_that_are_never_answered_do_not_pile_up() -> None:
    measured = Measured()
    for _ in range(3 * KEPT):
        measured.script.makes_a_noise()
    measured.script.user_types("hello")
    measured.script.model_starts_writing()
    measured.script.model_finishes()
    measured.script.audio_ends(0)
    assert measured.taken().turn_accepted_ms == 0


@pytest.mark.parametrize("ends", [True, False])
def test_a_conversation_that_is_closed_finishes_what_it_was_saying(ends: bool) -> None:
    measured = Measured()
    measured.user_asks()
    measured.reply_plays()
    measured.script.closes()
    if ends:
        measured.script.speaker_has_stopped(5_000)
        measured.script.model_acknowledges_cancel()
    else:
        measured.script.wait(60_000)
    metrics = measured.taken()
    assert metrics.outcome is not Outcome.COMPLETED
    assert metrics.delivery is not DeliveryStatus.DELIVERED
