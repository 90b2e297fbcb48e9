"""What goes wrong in the field, kinds 17 to 24: facts in, actions and record out, on a virtual clock."""

from __future__ import annotations

import pytest

from voicechart.statecharts import Policies, TurnPolicy
from voicechart.statecharts.actions import (
    CancelGeneration,
    OpenOutput,
    ReleaseOutput,
    StartGeneration,
    StopPlayback,
)
from voicechart.statecharts.context import TimerKind
from voicechart.statecharts.published import ResponseTerminal, StreamError
from voicechart.statecharts.testing import HANDS_FREE, ScriptedConversation
from voicechart.statecharts.values import DeliveryStatus, Outcome, PositionSource


def test_17_the_record_holds_what_was_rendered_not_what_was_accepted(script: ScriptedConversation) -> None:
    """The flush itself, and what a device cannot take back, are tested with the speakers: tests/adapters/board."""
    script.user_says("tell me a story")
    story = script.generation
    script.reply_is_playing((8_000, 16_000))
    script.speaker_has_played(7_000, accepted_samples=13_400, submitted_samples=7_800)

    script.user_presses_stop()
    assert script.record.deliveries() == [], "the position is not guessed before the receipt"
    script.speaker_has_stopped(7_800, source=PositionSource.ESTIMATED, confidence=0.8)

    delivery = script.record.delivery_of(story.response_id)
    assert (delivery.played_samples, delivery.units) == (7_800, 0)
    assert (delivery.source, delivery.confidence) == (PositionSource.ESTIMATED, 0.8)
    assert script.running(TimerKind.STOP_RECEIPT) == []


def test_18_an_old_frame_after_the_new_reply_has_begun_is_dropped_and_an_old_fact_counted(
    script: ScriptedConversation,
) -> None:
    """The gate itself is tested in tests/engines, the last one before the device in tests/adapters/board."""
    script.user_says("tell me a story")
    story = script.generation
    script.reply_is_playing((16_000,), played_samples=2_000)
    script.user_says("what time is it")
    [stop] = script.record.of(StopPlayback)
    assert stop.before_epoch == story.output_epoch + 1
    assert stop.stamp.output_epoch == stop.before_epoch
    script.speaker_has_stopped(2_000)
    script.model_acknowledges_cancel()
    script.reply_is_playing((16_000,), played_samples=2_000)
    script.frame("it is noon")
    ignored, leaves = script.conversation.context.ignored, script.leaves

    script.frame("story", story.output_epoch)
    script.audio_starts(story.output_epoch)
    script.unit_is_synthesized(7, 0, 100, story.output_epoch)
    script.audio_ends(100, story.output_epoch)
    script.model_starts_writing(story.attempt_id)

    assert script.ear.heard == ["it is noon"]
    assert script.ear.dropped == ["story"]
    assert script.conversation.context.ignored == ignored + 4
    assert script.leaves == leaves
    assert all(entry.actions == () for entry in script.record.entries[-4:])


def resumed_while_the_model_thinks(script: ScriptedConversation) -> StartGeneration:
    """Beyond the continuation window, the user speaks again; 125 ms later the first audio of the reply exists."""
    script.user_says("tell me a story")
    script.wait(script.conversation.policies.turn.continuation_window_ms + 1)
    script.model_starts_writing()
    script.user_starts_speaking()
    script.wait(125)
    script.audio_starts()
    script.frame("once upon a time")
    return script.generation


def test_19_the_first_audio_waits_while_the_user_speaks_and_is_released_after_a_noise(
    script: ScriptedConversation,
) -> None:
    resumed_while_the_model_thinks(script)
    assert script.stream.held
    assert script.ear.heard == []

    script.user_stops_speaking()
    script.recognition_ends()

    assert len(script.record.of(ReleaseOutput)) == 1
    assert script.ear.heard == ["once upon a time"]


def test_19_words_of_the_user_replace_the_held_reply(script: ScriptedConversation) -> None:
    held = resumed_while_the_model_thinks(script)
    script.finishes_saying("make it a short one")
    script.speaker_has_stopped(0)
    script.model_acknowledges_cancel(held.attempt_id)

    assert script.ear.heard == []
    assert script.ear.dropped == ["once upon a time"]
    assert script.record.of(ReleaseOutput) == []
    assert script.record.answers()[-1] == ("tell me a story", "make it a short one")
    assert script.record.interruptions() == [], "nobody heard anything that could be interrupted"
    assert script.record.delivery_of(held.response_id).units == 0


def test_19_a_held_reply_waits_for_a_bounded_time(script: ScriptedConversation) -> None:
    resumed_while_the_model_thinks(script)
    hold_ms = script.conversation.policies.turn.max_hold_ms
    script.wait(hold_ms - 1)
    assert script.ear.heard == []
    script.wait(1)
    assert script.ear.heard == ["once upon a time"]


def test_19_inside_the_continuation_window_the_reply_is_cancelled_instead(script: ScriptedConversation) -> None:
    script.user_says("tell me a story")
    reply = script.generation
    script.wait(500)
    script.user_starts_speaking()
    script.wait(125)
    script.audio_starts(reply.output_epoch)
    script.frame("once upon a time", reply.output_epoch)

    assert script.leaves == "ready | speech | cancelling | idle"
    assert script.ear.dropped == ["once upon a time"]
    assert script.record.of(OpenOutput) == []


def test_19_without_a_hold_by_policy_the_reply_may_speak_at_once() -> None:
    script = ScriptedConversation(Policies(turn=TurnPolicy(max_hold_ms=0), interruption=HANDS_FREE)).opened()
    resumed_while_the_model_thinks(script)
    assert not script.stream.held
    assert script.ear.heard == ["once upon a time"]


def test_20_a_response_that_appears_after_it_was_given_up_is_dropped_and_cancelled_by_its_identity(
    script: ScriptedConversation,
) -> None:
    """Cancelling a provider's own late response by the provider's identity is tested with the providers."""
    script.user_says("tell me a story")
    given_up = script.generation
    script.wait(script.conversation.policies.generation.stall_ms)
    [cancel] = script.record.of(CancelGeneration)
    assert (cancel.response_id, cancel.attempt_id) == (given_up.response_id, given_up.attempt_id)
    script.wait(script.conversation.policies.generation.cancel_ack_ms)
    script.connects()
    assert script.generation.attempt_id != given_up.attempt_id
    leaves, epoch = script.leaves, script.conversation.context.output_epoch

    script.model_starts_writing(given_up.attempt_id)
    script.audio_starts(given_up.output_epoch)
    script.frame("too late", given_up.output_epoch)
    script.model_finishes(given_up.attempt_id)

    assert script.leaves == leaves
    assert script.conversation.context.output_epoch == epoch
    assert script.record.of(OpenOutput) == []
    assert script.ear.dropped == ["too late"]
    assert script.record.outcome_of(given_up.response_id) is Outcome.CANCELLED
    assert script.record.answers() == [("tell me a story",), ("tell me a story",)]


def test_21_a_superseded_reply_is_invalid_at_once_whether_or_not_its_cancel_is_acknowledged(
    script: ScriptedConversation,
) -> None:
    script.user_says("tell me a story")
    superseded = script.generation
    script.model_starts_writing()
    script.wait(2_000)
    script.user_says("no, tell me a joke")
    assert script.leaves == "ready | committed | cancelling | idle", "nobody has acknowledged anything"

    script.audio_starts(superseded.output_epoch)
    script.frame("once upon a time", superseded.output_epoch)
    script.wait(script.conversation.policies.generation.cancel_ack_ms)
    script.frame("there was", superseded.output_epoch)
    script.connects()
    script.frame("a king", superseded.output_epoch)

    assert script.ear.dropped == ["once upon a time", "there was", "a king"]
    assert script.record.of(OpenOutput) == []
    [terminal] = script.record.published(ResponseTerminal)
    assert (terminal.outcome, terminal.acknowledged) == (Outcome.CANCELLED, False)
    assert script.record.answers()[-1] == ("tell me a story", "no, tell me a joke")


def test_22_a_sentence_without_audio_is_not_delivered_and_nothing_is_spoken_again(
    script: ScriptedConversation,
) -> None:
    script.user_says("tell me three things")
    reply = script.generation
    script.reply_is_playing((16_000, 32_000), played_samples=8_000)
    script.model_finishes()
    script.synthesis_fails(32_000)
    script.speaker_drains(32_000)
    script.wait(60_000)

    delivery = script.record.delivery_of(reply.response_id)
    assert (delivery.status, delivery.units) == (DeliveryStatus.FAILED, 2)
    assert [failure.error.code for failure in script.record.published(StreamError)] == ["voice_lost"]
    assert script.record.of(StartGeneration) == [reply]
    assert len(script.record.of(OpenOutput)) == 1


def test_22_a_sentence_that_broke_off_in_its_middle_is_not_delivered(script: ScriptedConversation) -> None:
    script.user_says("tell me two things")
    script.reply_is_playing((16_000, 32_000), played_samples=8_000)
    script.synthesis_fails(31_999)
    script.speaker_drains(31_999)
    assert script.record.delivery_of(script.generation.response_id).units == 1


@pytest.mark.parametrize("first", ["completion", "interruption"])
def test_23_interruption_and_completion_in_either_order_give_one_delivery_and_one_terminal(
    script: ScriptedConversation, first: str
) -> None:
    script.user_says("tell me a story")
    reply = script.generation
    script.reply_is_playing((16_000,), played_samples=8_000)
    script.audio_ends(16_000)
    if first == "completion":
        script.model_finishes()
        script.user_presses_stop()
    else:
        script.user_presses_stop()
        script.model_finishes()
    script.model_acknowledges_cancel(reply.attempt_id)
    script.speaker_has_stopped(8_000)
    script.speaker_has_stopped(16_000)
    script.wait(60_000)

    expected = Outcome.COMPLETED if first == "completion" else Outcome.CANCELLED
    assert script.record.outcome_of(reply.response_id) is expected
    assert script.record.delivery_of(reply.response_id).status is DeliveryStatus.INTERRUPTED
    assert len(script.record.published(ResponseTerminal)) == 1


@pytest.mark.parametrize("first", ["the last sample", "the interruption"])
def test_23_interruption_and_the_last_sample_in_either_order_give_one_delivery(
    script: ScriptedConversation, first: str
) -> None:
    script.user_says("tell me a story")
    reply = script.generation
    script.reply_is_playing((16_000,), played_samples=15_000)
    script.model_finishes()
    script.audio_ends(16_000)
    if first == "the last sample":
        script.speaker_drains(16_000)
        script.user_presses_stop()
    else:
        script.user_presses_stop()
        script.speaker_drains(16_000)
    script.wait(60_000)

    delivery = script.record.delivery_of(reply.response_id)
    assert (delivery.status, delivery.units) == (DeliveryStatus.DELIVERED, 1), "it was heard to its end"
    assert len(script.record.interruptions()) == (0 if first == "the last sample" else 1)


def test_24_the_cut_reply_stands_before_the_turn_that_cut_it(script: ScriptedConversation) -> None:
    script.user_says("tell me a story")
    script.reply_is_playing((16_000, 32_000), played_samples=20_000)
    script.user_says("what time is it")
    script.model_acknowledges_cancel()
    script.reply_is_playing((16_000,))
    script.speaker_has_stopped(20_000, stream_id=script.streams[0].stream_id)
    script.reply_is_drained(16_000)

    assert script.record.history() == [
        "user: tell me a story",
        "assistant: 1 interrupted",
        "user: what time is it",
        "assistant: 1 delivered",
    ]


def test_24_a_reply_stands_where_its_playback_began_not_where_its_generation_did() -> None:
    script = ScriptedConversation(Policies(turn=TurnPolicy(max_restarts=0), interruption=HANDS_FREE)).opened()
    script.user_says("tell me a story")
    script.model_starts_writing()
    script.wait(2_000)
    script.user_says("and then a joke")
    script.reply_is_playing((16_000,))
    script.reply_is_drained(16_000)
    script.reply_is_playing((16_000,))
    script.reply_is_drained(16_000)
    assert script.record.history() == [
        "user: tell me a story",
        "user: and then a joke",
        "assistant: 1 delivered",
        "assistant: 1 delivered",
    ]
