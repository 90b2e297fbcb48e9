"""What goes wrong in the field, kinds 1 to 8: facts in, actions and record out, on a virtual clock.

The conversation is hands-free: speech may interrupt. Sentences are one second of 16 kHz audio.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from voicechart.statecharts import Policies, TurnPolicy
from voicechart.statecharts.actions import (
    CancelGeneration,
    CancelSynthesis,
    Connect,
    Disconnect,
    OpenOutput,
    RecordInterruption,
    StartGeneration,
)
from voicechart.statecharts.context import TimerKind
from voicechart.statecharts.testing import HANDS_FREE, ScriptedConversation
from voicechart.statecharts.values import DeliveryStatus, InterruptionSource, Outcome

if TYPE_CHECKING:
    from collections.abc import Callable

FIVE_SENTENCES = (16_000, 32_000, 48_000, 64_000, 80_000)


def test_01_nothing_of_an_interrupted_reply_is_heard_in_the_next(script: ScriptedConversation) -> None:
    script.user_says("tell me a story")
    story = script.generation
    script.reply_is_playing(FIVE_SENTENCES, played_samples=40_000)
    for sentence in ("one", "two", "half of three"):
        script.frame(sentence)

    script.user_starts_speaking()
    script.hears("stop")
    script.frame("rest of three", story.output_epoch)
    script.finishes_saying("stop and count to two")
    script.speaker_has_stopped(40_000)
    script.frame("four", story.output_epoch)
    script.model_acknowledges_cancel(story.attempt_id)
    script.reply_is_playing((16_000, 32_000))
    script.frame("uno")
    script.frame("five", story.output_epoch)
    script.frame("due")
    script.reply_is_drained(32_000)

    assert script.ear.heard == ["one", "two", "half of three", "uno", "due"]
    assert script.ear.dropped == ["rest of three", "four", "five"]
    told, counted = script.record.replies()
    assert script.record.delivery_of(told).status is DeliveryStatus.INTERRUPTED
    assert script.record.delivery_of(told).units == 2
    assert script.record.delivery_of(counted).status is DeliveryStatus.DELIVERED
    assert script.record.delivery_of(counted).units == 2


@pytest.mark.parametrize("synthesis_has_reported", [False, True])
def test_02_synthesis_is_cancelled_although_nothing_of_it_was_rendered(
    script: ScriptedConversation, synthesis_has_reported: bool
) -> None:
    script.user_says("tell me a story")
    story = script.generation
    script.model_starts_writing()
    if synthesis_has_reported:
        script.audio_starts()

    script.user_presses_stop()

    script.record.assert_silenced_before(CancelSynthesis)
    [cancel] = script.record.of(CancelSynthesis)
    assert cancel.response_id == story.response_id
    assert cancel.before_epoch == story.output_epoch + 1
    opened_before = len(script.record.of(OpenOutput))
    script.audio_starts(story.output_epoch)
    script.frame("the rest", story.output_epoch)
    assert len(script.record.of(OpenOutput)) == opened_before
    assert script.ear.heard == []
    assert script.ear.dropped == ["the rest"]


def test_03_a_reply_cut_at_its_first_frame_has_delivered_no_text(script: ScriptedConversation) -> None:
    script.user_says("how are you")
    script.reply_is_playing((16_000, 32_000))
    script.reply_is_drained(32_000)
    script.user_says("tell me a story")
    story = script.generation
    script.model_starts_writing()
    script.audio_starts()
    script.sound_begins(320)

    script.user_presses_stop()
    script.speaker_has_stopped(320)

    delivery = script.record.delivery_of(story.response_id)
    assert (delivery.status, delivery.units, delivery.played_samples) == (DeliveryStatus.INTERRUPTED, 0, 320)


def receipt_without_a_position(script: ScriptedConversation) -> None:
    script.speaker_has_stopped(None)


def no_receipt_within_its_deadline(script: ScriptedConversation) -> None:
    script.wait(script.conversation.policies.playback.stop_receipt_ms)


@pytest.mark.parametrize("what_comes", [receipt_without_a_position, no_receipt_within_its_deadline])
def test_04_an_unknown_played_position_is_recorded_as_unknown(
    script: ScriptedConversation, what_comes: Callable[[ScriptedConversation], None]
) -> None:
    script.user_says("tell me a story")
    story = script.generation
    script.reply_is_playing(FIVE_SENTENCES, played_samples=20_000)
    script.user_presses_stop()
    assert script.record.deliveries() == []

    what_comes(script)

    delivery = script.record.delivery_of(story.response_id)
    assert delivery.status is DeliveryStatus.UNKNOWN
    assert delivery.played_samples is None
    assert delivery.units == 1, "what an earlier receipt confirmed stays confirmed, and nothing more"


def test_05_speech_right_after_the_commit_continues_the_turn_and_its_reply_is_heard(
    script: ScriptedConversation,
) -> None:
    script.user_says("my name is John")
    first = script.generation
    script.wait(300)
    script.user_starts_speaking()
    script.finishes_saying("Doe")
    script.model_acknowledges_cancel(first.attempt_id)

    assert script.record.committed_turns() == ["my name is John Doe"]
    assert script.record.answers() == [("my name is John",), ("my name is John Doe",)]
    script.model_starts_writing()
    script.audio_starts()
    assert script.leaves == "ready | committed | streaming | buffering"
    script.sound_begins(0)
    assert script.leaves == "ready | committed | streaming | buffering", "nothing has been rendered"
    script.sound_begins(1)
    assert script.leaves == "ready | committed | streaming | playing"
    script.frame("hello John Doe")
    assert script.ear.heard == ["hello John Doe"]


@pytest.mark.parametrize("silence_ms", [300, 1_501], ids=["inside the window", "after the window"])
def test_06_a_cough_before_the_reply_does_not_cost_the_answer(script: ScriptedConversation, silence_ms: int) -> None:
    script.user_says("what time is it")
    script.wait(silence_ms)

    script.makes_a_noise()
    for attempt_id in script.record.cancelled_attempts():
        script.model_acknowledges_cancel(attempt_id)
    script.reply_is_playing((16_000,))
    script.reply_is_drained(16_000)

    assert script.record.committed_turns() == ["what time is it"]
    assert script.record.answers()[-1] == ("what time is it",)
    assert script.record.delivery_of(script.generation.response_id).status is DeliveryStatus.DELIVERED
    assert script.record.interruptions() == []


def a_noise(script: ScriptedConversation) -> None:
    script.makes_a_noise()


def another_sentence(script: ScriptedConversation) -> None:
    script.user_says("and another thing")


@pytest.mark.parametrize("silence_ms", [300, 2_000], ids=["inside the window", "after the window"])
@pytest.mark.parametrize("announcement", [a_noise, another_sentence])
def test_07_repeated_starts_of_turn_restart_the_reply_a_bounded_number_of_times(
    script: ScriptedConversation, announcement: Callable[[ScriptedConversation], None], silence_ms: int
) -> None:
    script.user_says("tell me a story")
    for _ in range(10):
        script.wait(silence_ms)
        announcement(script)
        if script.conversation.configuration.generation == "cancelling":
            script.model_acknowledges_cancel()

    restarts = script.conversation.policies.turn.max_restarts
    assert len(script.record.answers()) <= 1 + restarts
    assert script.record.answers()[-1][0].startswith("tell me a story")
    script.reply_is_playing((16_000,))
    script.frame("once upon a time")
    script.reply_is_drained(16_000)
    assert script.ear.heard == ["once upon a time"]
    if announcement is another_sentence:
        script.reply_is_playing((16_000,))
        script.reply_is_drained(16_000)
    answered = " ".join(text for answer in script.record.answers() for text in answer)
    assert all(turn in answered for turn in script.record.committed_turns())


def test_07_a_recogniser_that_never_ends_its_turn_does_not_make_the_device_mute() -> None:
    turn = TurnPolicy(max_restarts=0, max_hold_ms=1_000)
    script = ScriptedConversation(Policies(turn=turn, interruption=HANDS_FREE)).opened()
    script.user_says("tell me a story")
    script.wait(300)
    script.user_starts_speaking()
    script.model_starts_writing()
    script.audio_starts()
    script.frame("once upon a time")
    assert script.ear.heard == [], "the user has the floor"
    script.wait(1_000)
    assert script.ear.heard == ["once upon a time"]


def test_08_the_next_response_waits_for_the_acknowledgement(script: ScriptedConversation) -> None:
    old = interrupted_by_words(script)
    assert script.leaves == "ready | committed | cancelling | stopped"
    assert script.generation == old, "nothing was started while the old one may still be active"

    script.model_acknowledges_cancel(old.attempt_id)

    assert script.record.outcome_of(old.response_id) is Outcome.CANCELLED
    assert script.record.answers()[-1] == ("stop and count",)


def test_08_the_next_response_waits_for_the_terminal(script: ScriptedConversation) -> None:
    old = interrupted_by_words(script)

    script.model_finishes(old.attempt_id)

    assert script.record.outcome_of(old.response_id) is Outcome.CANCELLED
    assert script.record.answers()[-1] == ("stop and count",)


def test_08_without_either_the_next_response_waits_for_the_time_out_and_a_reconnect(
    script: ScriptedConversation,
) -> None:
    old = interrupted_by_words(script)
    script.wait(script.conversation.policies.generation.cancel_ack_ms - 1)
    assert script.leaves == "ready | committed | cancelling | stopped"

    script.wait(1)

    script.record.assert_in_order(Disconnect, Connect)
    assert script.conversation.configuration.connection == "reconnecting"
    assert script.generation == old
    script.connects()
    assert script.record.answers()[-1] == ("stop and count",)
    assert script.running(TimerKind.CANCEL_ACK) == []


def interrupted_by_words(script: ScriptedConversation) -> StartGeneration:
    """A reply that is playing is interrupted by a finished turn; its cancel is on the way."""
    script.user_says("tell me a story")
    old = script.generation
    script.reply_is_playing(FIVE_SENTENCES, played_samples=20_000)
    script.user_says("stop and count")
    script.speaker_has_stopped(20_000)
    assert [a.source for a in script.record.of(RecordInterruption)] == [InterruptionSource.SPEECH]
    assert script.record.of(CancelGeneration)[0].attempt_id == old.attempt_id
    return old
