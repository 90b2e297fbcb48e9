"""What goes wrong in the field, kinds 9 to 16: facts in, actions and record out, on a virtual clock."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from voicechart.statecharts import Policies, TurnPolicy
from voicechart.statecharts.actions import (
    CancelGeneration,
    CancelSynthesis,
    FinishRecognition,
    PausePlayback,
    RecordInterruption,
    ResumePlayback,
    StopPlayback,
    TruncateContext,
)
from voicechart.statecharts.capabilities import Capabilities, SpeakerCapabilities
from voicechart.statecharts.published import InterruptionRejected, TurnDiscarded
from voicechart.statecharts.testing import HANDS_FREE, ScriptedConversation
from voicechart.statecharts.values import DeliveryStatus, InterruptionSource, Outcome, PositionSource, TurnAuthority

if TYPE_CHECKING:
    from collections.abc import Callable

REALTIME = Capabilities(speaker=SpeakerCapabilities(pause=True), truncate_context=True)


def provider_endpointing() -> ScriptedConversation:
    """A recogniser that ends turns by itself, and may think of a second segment afterwards."""
    turn = TurnPolicy(authority=TurnAuthority.RECOGNIZER)
    script = ScriptedConversation(Policies(turn=turn, interruption=HANDS_FREE)).opened()
    script.user_starts_speaking()
    script.understands("book a table", "1")
    script.user_stops_speaking()
    assert script.record.committed_turns() == ["book a table"]
    assert len(script.record.of(FinishRecognition)) == 1, "the recognition may still say something"
    script.wait(400)
    return script


def test_09_a_late_second_final_joins_the_committed_turn() -> None:
    script = provider_endpointing()
    first = script.generation
    script.understands("for two", "2")
    script.model_acknowledges_cancel(first.attempt_id)

    assert script.record.committed_turns() == ["book a table for two"]
    assert script.record.answers() == [("book a table",), ("book a table for two",)]
    assert script.record.outcome_of(first.response_id) is Outcome.CANCELLED


def test_09_a_late_second_final_never_runs_a_tool_twice_and_begins_the_next_turn() -> None:
    script = provider_endpointing()
    script.model_calls_tool("booking")
    script.understands("for two", "2")
    script.recognition_ends()
    script.tool_ends("booking")
    script.model_waits_for_tools()
    script.reply_is_playing((16_000,))
    script.reply_is_drained(16_000)

    assert script.record.tool_runs() == ["booking"]
    assert script.record.committed_turns() == ["book a table"]
    assert script.record.answers() == [("book a table",)]
    script.user_starts_speaking()
    script.understands("please")
    script.user_stops_speaking()
    assert script.record.committed_turns() == ["book a table", "for two please"]
    assert script.record.tool_runs() == ["booking"]


@pytest.mark.parametrize("again", ["while the turn is open", "after its commit"])
def test_10_the_same_final_twice_without_an_item_id_is_one_turn(again: str) -> None:
    turn = TurnPolicy(authority=TurnAuthority.RECOGNIZER)
    script = ScriptedConversation(Policies(turn=turn, interruption=HANDS_FREE)).opened()
    script.user_starts_speaking()
    script.understands("hello there", segment=None)
    if again == "while the turn is open":
        script.understands("hello there", segment=None)
        script.user_stops_speaking()
    else:
        script.user_stops_speaking()
        script.understands("hello there", segment=None)
    script.recognition_ends()

    assert script.record.committed_turns() == ["hello there"]
    assert script.record.answers() == [("hello there",)]


def test_10_a_word_really_said_twice_is_kept_twice(script: ScriptedConversation) -> None:
    script.user_starts_speaking()
    script.understands("no", segment=None, samples=(0, 8_000))
    script.understands("no", segment=None, samples=(9_000, 16_000))
    script.user_stops_speaking()
    script.recognition_ends()
    assert script.record.committed_turns() == ["no no"]


def test_11_a_typed_message_interrupts_speech_as_a_spoken_one_does(script: ScriptedConversation) -> None:
    script.user_says("tell me a story")
    story = script.generation
    script.reply_is_playing((16_000, 32_000), played_samples=20_000)
    script.frame("one")

    script.user_types("what is the time")

    script.record.assert_in_order(StopPlayback, CancelGeneration, CancelSynthesis, RecordInterruption)
    assert script.record.interruptions() == [InterruptionSource.CLIENT]
    script.frame("two", story.output_epoch)
    script.speaker_has_stopped(20_000)
    script.model_acknowledges_cancel(story.attempt_id)
    assert script.ear.heard == ["one"]
    assert script.record.answers()[-1] == ("what is the time",)
    assert script.record.delivery_of(story.response_id).units == 1


def test_12_barge_in_after_generation_ended_stops_playback_and_cancels_no_provider() -> None:
    script = ScriptedConversation(capabilities=REALTIME).opened()
    script.user_says("tell me a story")
    story = script.generation
    script.reply_is_playing((16_000, 32_000))
    script.model_finishes()
    script.audio_ends(32_000)
    script.speaker_has_played(20_000)
    assert script.leaves == "ready | committed | completed | draining"

    script.user_starts_speaking()
    script.hears("stop")

    assert script.leaves == "ready | hypothesis | completed | stopped"
    script.record.assert_silenced_before(TruncateContext)
    assert script.record.of(CancelGeneration) == []
    [cut] = script.record.of(TruncateContext)
    assert (cut.response_id, cut.played_samples, cut.source) == (story.response_id, 20_000, PositionSource.MEASURED)
    script.finishes_saying("stop it")
    assert script.record.answers()[-1] == ("stop it",), "nothing has to be waited for"
    script.speaker_has_stopped(20_160)
    assert script.record.delivery_of(story.response_id).played_samples == 20_160
    assert script.record.outcome_of(story.response_id) is Outcome.COMPLETED


def nothing_was_ever_said(script: ScriptedConversation) -> None:
    assert script.record.replies() == []


def a_reply_was_heard_to_its_end(script: ScriptedConversation) -> None:
    script.user_says("hello")
    script.reply_is_playing((16_000,))
    script.reply_is_drained(16_000)


@pytest.mark.parametrize("silence", [nothing_was_ever_said, a_reply_was_heard_to_its_end])
def test_13_speech_to_a_silent_assistant_interrupts_nothing(silence: Callable[[ScriptedConversation], None]) -> None:
    script = ScriptedConversation(capabilities=REALTIME).opened()
    silence(script)
    epoch = script.conversation.context.output_epoch

    script.user_presses_stop()
    script.user_says("please stop talking now")

    assert script.record.interruptions() == []
    assert script.record.of(StopPlayback) == []
    assert script.record.of(TruncateContext) == []
    assert DeliveryStatus.INTERRUPTED not in script.record.deliveries()
    assert script.conversation.context.output_epoch == epoch
    assert script.record.answers()[-1] == ("please stop talking now",)


def paused_story() -> ScriptedConversation:
    """A reply is playing; the user makes a sound; the speaker pauses."""
    policies = Policies(interruption=replace(HANDS_FREE, pause_first=True))
    script = ScriptedConversation(policies).opened()
    script.user_says("tell me a story")
    script.reply_is_playing((16_000, 32_000), played_samples=20_000)
    script.frame("one")
    script.user_starts_speaking()
    script.frame("two")
    assert script.leaves == "ready | speech | streaming | paused"
    assert script.ear.heard == ["one"]
    return script


def test_14_after_a_backchannel_the_paused_reply_resumes_once_where_it_stopped() -> None:
    script = paused_story()
    script.hears("mhm")
    script.understands("mhm")
    script.user_stops_speaking()
    script.recognition_ends()

    assert script.leaves == "ready | discarded | streaming | playing"
    assert script.ear.heard == ["one", "two"]
    assert len(script.record.of(PausePlayback)) == len(script.record.of(ResumePlayback)) == 1
    assert script.record.interruptions() == []
    assert [rejected.reason for rejected in script.record.published(InterruptionRejected)] == ["backchannel"]
    assert [discarded.reason for discarded in script.record.published(TurnDiscarded)] == ["interjection"]
    script.reply_is_drained(32_000)
    assert script.record.deliveries() == [DeliveryStatus.DELIVERED]


def test_14_without_any_words_the_paused_reply_resumes_once_after_the_false_alarm_time() -> None:
    script = paused_story()
    false_alarm_ms = script.conversation.policies.interruption.false_alarm_ms
    script.wait(false_alarm_ms - 1)
    assert script.conversation.configuration.playback == "paused"
    script.wait(1)
    assert script.conversation.configuration.playback == "playing"
    script.user_keeps_speaking(false_alarm_ms + 500)
    script.user_stops_speaking()
    script.recognition_ends()

    assert script.conversation.configuration.playback == "playing"
    assert len(script.record.of(PausePlayback)) == len(script.record.of(ResumePlayback)) == 1
    assert script.ear.heard == ["one", "two"]


def test_14_a_finished_noise_resumes_the_paused_reply_at_once() -> None:
    script = paused_story()
    script.user_stops_speaking()
    script.recognition_ends()
    assert script.leaves == "ready | discarded | streaming | playing"
    assert len(script.record.of(ResumePlayback)) == 1


def test_14_real_words_after_the_pause_interrupt() -> None:
    script = paused_story()
    script.hears("mhm but")
    assert script.leaves == "ready | hypothesis | cancelling | stopped"
    assert script.ear.dropped == ["two"]
    assert script.record.of(ResumePlayback) == []


def test_15_playback_goes_on_by_itself_after_a_gap_in_synthesis(script: ScriptedConversation) -> None:
    script.user_says("tell me a story")
    script.reply_is_playing((16_000,), played_samples=8_000)
    script.frame("one")
    script.speaker_runs_dry(16_000)
    assert script.leaves == "ready | committed | streaming | buffering"

    script.wait(6_000)
    script.unit_is_synthesized(1, 16_000, 32_000)
    script.frame("two")
    script.sound_begins(16_001)

    assert script.leaves == "ready | committed | streaming | playing"
    assert script.ear.heard == ["one", "two"]
    script.reply_is_drained(32_000)
    assert script.record.delivery_of(script.generation.response_id).units == 2
    assert script.record.of(StopPlayback) == []


def test_16_a_reply_generated_far_ahead_of_the_sound_is_stopped_without_waiting(script: ScriptedConversation) -> None:
    """That at most the configured second is queued is tested with the queues: tests/audio and tests/engines."""
    script.user_says("tell me a story")
    story = script.generation
    script.reply_is_playing(tuple(range(16_000, 176_000, 16_000)))
    script.model_finishes()
    script.audio_ends(160_000)
    script.speaker_has_played(8_000, accepted_samples=24_000, submitted_samples=9_600)
    before = script.now_ns

    script.user_presses_stop()

    assert isinstance(script.record.last[0], StopPlayback)
    assert script.leaves == "ready | committed | completed | stopped"
    assert script.now_ns == before
    script.speaker_has_stopped(9_600)
    delivery = script.record.delivery_of(story.response_id)
    assert (delivery.status, delivery.played_samples, delivery.units) == (DeliveryStatus.INTERRUPTED, 9_600, 0)
