"""The InputTurn region after the commit: continuation, late segments, waiting turns, typed text."""

from __future__ import annotations

import pytest

from voicechart.statecharts import Policies, TurnPolicy
from voicechart.statecharts.actions import CancelGeneration, CancelRecognition, StoreUserTurn, TranscribeRecording
from voicechart.statecharts.context import TimerKind
from voicechart.statecharts.published import SpeechBegan, StreamError, TurnCommitted, TurnDiscarded, TurnDropped
from voicechart.statecharts.testing import HANDS_FREE, Reached, ScriptedConversation
from voicechart.statecharts.values import InterruptionSource, Outcome, TurnAuthority


def with_turn(**policy: object) -> ScriptedConversation:
    turn = TurnPolicy(**policy)  # pyright: ignore[reportArgumentType]
    return ScriptedConversation(Policies(turn=turn, interruption=HANDS_FREE)).opened()


# -- continuation --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("silence_ms", "continues"), [(0, True), (1_500, True), (1_501, False)])
def test_speech_continues_a_committed_turn_up_to_the_edge_of_its_window(
    reached: Reached, silence_ms: int, continues: bool
) -> None:
    script = reached.waiting()
    script.wait(silence_ms)
    script.user_starts_speaking()
    assert script.record.published(SpeechBegan)[-1].continues_turn is continues
    assert (script.conversation.configuration.generation == "cancelling") is continues
    script.finishes_saying("in Paris")
    expected = ["what time is it in Paris"] if continues else ["what time is it", "in Paris"]
    assert script.record.committed_turns() == expected


def test_a_continued_turn_is_stored_again_under_its_identity_with_the_next_revision(reached: Reached) -> None:
    script = reached.waiting()
    script.user_starts_speaking()
    script.finishes_saying("in Paris")
    first, second = script.record.of(StoreUserTurn)
    assert (first.turn_id, first.position, first.revision) == (second.turn_id, second.position, 1)
    assert (second.revision, second.text) == (2, "what time is it in Paris")
    assert [told.revision for told in script.record.published(TurnCommitted)] == [1, 2]


def test_a_reply_that_was_heard_is_not_taken_back_by_more_speech(reached: Reached) -> None:
    script = reached.playing()
    script.user_starts_speaking()
    assert script.record.published(SpeechBegan)[-1].continues_turn is False
    assert script.conversation.configuration.playback == "playing"


def test_a_reply_whose_tool_was_dispatched_is_not_taken_back(reached: Reached) -> None:
    script = reached.tools()
    script.user_starts_speaking()
    assert script.record.published(SpeechBegan)[-1].continues_turn is False
    assert script.record.of(CancelGeneration) == []


@pytest.mark.parametrize("loss", ["noise", "gap", "failure", "timed out", "cleared", "connection", "closing"])
def test_whatever_becomes_of_a_continuation_the_committed_turn_stands(reached: Reached, loss: str) -> None:
    script = reached.waiting()
    script.user_starts_speaking()
    script.hears("in", "2")
    if loss == "noise":
        script.hears("", "2")
        script.user_stops_speaking()
        script.recognition_ends()
    elif loss == "gap":
        script.audio_is_lost(5_000)
    elif loss == "failure":
        script.recognition_fails()
    elif loss == "timed out":
        script.wait(script.conversation.policies.turn.input_timeout_ms)
    elif loss == "cleared":
        script.user_clears()
    elif loss == "connection":
        script.connection_breaks()
    else:
        script.closes()
    assert script.conversation.configuration.input_turn == "committed"
    assert script.record.published(TurnDiscarded) == []
    assert len(script.record.of(StoreUserTurn)) == 1
    if loss == "closing":
        script.model_acknowledges_cancel()
        assert [dropped.reason for dropped in script.record.published(TurnDropped)] == ["closed"]
        return
    if script.conversation.configuration.generation == "cancelling":
        script.model_acknowledges_cancel()
    if script.conversation.configuration.connection == "reconnecting":
        script.connects()
    assert script.record.answers() == [("what time is it",)] * 2


def test_an_incomplete_continuation_is_withdrawn_after_its_deadline(reached: Reached) -> None:
    script = reached.waiting()
    script.user_starts_speaking()
    script.hears("in Pa")
    script.user_stops_speaking()
    script.model_acknowledges_cancel()
    script.wait(script.conversation.policies.turn.finalization_ms)
    assert script.record.committed_turns() == ["what time is it"]
    assert script.record.answers() == [("what time is it",)] * 2


def test_a_failed_fallback_after_a_continuation_leaves_the_committed_turn(reached: Reached) -> None:
    script = reached.waiting()
    script.user_starts_speaking()
    script.recognition_fails(1_000)
    script.recognition_fails(1_000)
    script.model_acknowledges_cancel()
    assert script.record.committed_turns() == ["what time is it"]
    assert script.record.answers() == [("what time is it",)] * 2


@pytest.mark.parametrize("max_restarts", [0, 1, 3])
def test_a_reply_is_restarted_at_most_so_often_and_then_spoken_over_the_user(max_restarts: int) -> None:
    script = with_turn(max_restarts=max_restarts)
    script.user_says("tell me a story")
    for _ in range(max_restarts + 2):
        script.user_starts_speaking()
        if script.conversation.configuration.generation == "cancelling":
            script.model_acknowledges_cancel()
        script.user_stops_speaking()
        script.recognition_ends()
    assert len(script.record.replies()) == 1 + max_restarts
    script.user_starts_speaking()
    assert script.conversation.configuration.generation == "waiting"


def test_after_the_last_restart_the_reply_is_asked_for_although_the_user_has_the_floor() -> None:
    script = with_turn(max_restarts=1)
    script.user_says("tell me a story")
    script.user_starts_speaking()
    script.model_acknowledges_cancel()
    assert script.conversation.configuration.input_turn == "speech"
    assert len(script.record.replies()) == 2


def test_while_restarts_are_left_the_reply_waits_for_the_user_to_finish() -> None:
    script = with_turn(max_restarts=2)
    script.user_says("tell me a story")
    script.user_starts_speaking()
    script.model_acknowledges_cancel()
    assert len(script.record.replies()) == 1
    script.finishes_saying("about a king")
    assert script.record.answers()[-1] == ("tell me a story about a king",)


# -- late segments -------------------------------------------------------------------------------------------------


def endpointed() -> ScriptedConversation:
    """Committed by the recogniser, which is still open."""
    script = with_turn(authority=TurnAuthority.RECOGNIZER)
    script.user_starts_speaking()
    script.understands("book a table", "1")
    script.user_stops_speaking()
    return script


def test_a_late_segment_takes_back_an_unheard_reply_and_joins() -> None:
    script = endpointed()
    first = script.generation
    script.understands("for two", "2")
    assert script.conversation.configuration.generation == "cancelling"
    assert script.conversation.context.output_epoch == first.output_epoch + 1
    assert script.record.of(StoreUserTurn)[-1].revision == 2
    script.recognition_ends()
    script.model_acknowledges_cancel()
    assert script.record.answers()[-1] == ("book a table for two",)


def test_a_late_segment_joins_a_turn_that_still_waits_without_touching_anything_else() -> None:
    script = endpointed()
    script.understands("for two", "2")
    epoch = script.conversation.context.output_epoch
    script.understands("at eight", "3")
    assert script.conversation.context.output_epoch == epoch
    script.model_acknowledges_cancel()
    assert script.record.answers()[-1] == ("book a table for two at eight",)


def test_a_late_segment_of_a_reply_that_is_heard_begins_the_next_turn() -> None:
    script = endpointed()
    script.reply_is_playing((16_000,))
    script.understands("for two", "2")
    assert script.conversation.configuration.playback == "playing"
    script.recognition_ends()
    script.reply_is_drained(16_000)
    script.wait(2_000)
    script.user_starts_speaking()
    script.understands("please")
    script.user_stops_speaking()
    assert script.record.committed_turns() == ["book a table", "for two please"]


@pytest.mark.parametrize("text", ["", "   "])
def test_an_empty_late_segment_takes_nothing_back(text: str) -> None:
    script = endpointed()
    script.understands(text, "2")
    assert script.conversation.configuration.generation == "waiting"
    assert script.record.committed_turns() == ["book a table"]


def test_a_late_segment_that_was_carried_is_not_carried_twice() -> None:
    script = endpointed()
    script.reply_is_playing((16_000,))
    script.understands("for two", "2")
    assert script.understands("for two", "2") == ()
    assert len(script.conversation.context.carried) == 1


@pytest.mark.parametrize("how", ["ends", "fails"])
def test_a_recognition_that_is_over_after_the_commit_is_only_noted(how: str) -> None:
    script = endpointed()
    if how == "ends":
        script.recognition_ends()
    else:
        script.recognition_fails()
    turn = script.conversation.context.turn
    assert turn is not None
    assert turn.open_recognitions == ()
    assert script.conversation.configuration.input_turn == "committed"


def test_a_recognition_that_is_open_when_the_next_turn_begins_still_belongs_to_the_user() -> None:
    script = endpointed()
    late = script.recognition_id
    script.reply_is_playing((16_000,))
    script.reply_is_drained(16_000)
    script.wait(2_000)
    script.user_starts_speaking()
    script.understands("for two", "2", recognition_id=late)
    script.understands("please", "1")
    script.user_stops_speaking()
    assert script.record.committed_turns() == ["book a table"]
    script.recognition_ends(late)
    script.recognition_ends()
    assert script.record.committed_turns() == ["book a table", "for two please"]


def test_a_recogniser_that_fails_behind_its_committed_turn_is_not_silent_about_it() -> None:
    script = endpointed()
    script.recognition_fails(recorded_ms=1_000)
    assert [told.error.code for told in script.record.published(StreamError)] == ["recognizer_lost"]
    assert script.record.committed_turns() == ["book a table"]


def test_a_late_final_of_what_was_committed_stands_before_the_continuation() -> None:
    script = endpointed()
    late = script.recognition_id
    script.user_starts_speaking()
    script.understands("please", "1")
    script.understands("for two", "2", recognition_id=late)
    script.user_stops_speaking()
    script.recognition_ends(late)
    script.recognition_ends()
    assert script.record.committed_turns() == ["book a table for two please"]


def test_a_late_final_is_committed_although_the_continuation_came_to_nothing() -> None:
    script = endpointed()
    late = script.recognition_id
    script.user_starts_speaking()
    script.understands("for two", "2", recognition_id=late)
    script.user_stops_speaking()
    script.recognition_ends(late)
    script.recognition_ends()
    assert script.record.committed_turns() == ["book a table for two"]


@pytest.mark.parametrize("recorded_ms", [0, 1_000])
def test_a_failure_of_what_had_been_committed_takes_no_word_of_it_back(recorded_ms: int) -> None:
    script = endpointed()
    late = script.recognition_id
    script.user_starts_speaking()
    script.recognition_fails(recorded_ms=recorded_ms, recognition_id=late)
    assert [told.error.code for told in script.record.published(StreamError)] == ["recognizer_lost"]
    script.understands("please", "1")
    script.user_stops_speaking()
    assert script.record.committed_turns() == ["book a table please"]
    assert not script.record.of(TranscribeRecording)


@pytest.mark.parametrize("how", ["incomplete", "lost audio", "failed"])
def test_words_of_a_continuation_are_not_dropped_in_silence(how: str) -> None:
    script = ScriptedConversation().opened()
    script.user_says("book a table")
    script.user_starts_speaking()
    script.hears("and then")
    if how == "incomplete":
        script.user_stops_speaking()
        script.recognition_ends()
    elif how == "lost audio":
        script.audio_is_lost(500)
    else:
        script.recognition_fails(recorded_ms=0)
    told = [error.error.code for error in script.record.published(StreamError)]
    assert told == ["recognizer_lost" if how == "failed" else "continuation_lost"]
    assert not script.record.published(TurnDiscarded)


def test_a_turn_that_its_limit_ended_is_not_continued() -> None:
    script = ScriptedConversation(Policies(turn=TurnPolicy(max_turn_words=2))).opened()
    script.user_starts_speaking()
    script.understands("one two three")
    script.user_starts_speaking()
    script.recognition_ends()
    assert script.record.committed_turns() == ["one two three"]
    script.user_starts_speaking()
    script.finishes_saying("four")
    assert script.record.committed_turns() == ["one two three", "four"]


# -- waiting for admission -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("merge", [True, False])
def test_a_turn_that_waits_is_joined_or_replaced_by_the_next_as_the_policy_says(merge: bool) -> None:
    script = with_turn(merge_pending=merge)
    script.user_types("tell me a story")
    script.reply_is_playing((16_000,))
    script.user_types("stop")
    script.user_types("what time is it")
    script.speaker_has_stopped(0)
    script.model_acknowledges_cancel()
    assert script.record.answers()[-1] == (("stop", "what time is it") if merge else ("what time is it",))
    dropped = [dropped.reason for dropped in script.record.published(TurnDropped)]
    assert dropped == ([] if merge else ["replaced"])


def test_a_turn_that_is_finished_while_an_uninterruptible_moment_lasts_is_answered_afterwards() -> None:
    script = with_turn(max_restarts=0)
    script.user_says("tell me a story")
    script.wait(2_000)
    script.user_says("and a joke")
    assert len(script.record.replies()) == 1
    script.reply_is_playing((16_000,))
    script.reply_is_drained(16_000)
    assert script.record.answers() == [("tell me a story",), ("and a joke",)]


# -- typed text ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("state", ["idle", "drained", "discarded"])
def test_typed_text_is_a_turn_committed_on_arrival(reached: Reached, state: str) -> None:
    script = reached.everywhere()[state]
    script.user_types("  what day is it ")
    assert script.conversation.configuration.input_turn == "committed"
    stored = script.record.of(StoreUserTurn)[-1]
    assert (stored.text, stored.authority) == ("what day is it", TurnAuthority.CLIENT)
    assert script.record.answers()[-1] == ("what day is it",)


@pytest.mark.parametrize("text", ["", " \n"])
def test_empty_typed_text_means_nothing(script: ScriptedConversation, text: str) -> None:
    assert script.user_types(text) == ()
    assert script.conversation.context.ignored == 1


def test_typed_text_supersedes_a_reply_nobody_has_heard(reached: Reached) -> None:
    script = reached.streaming()
    first = script.generation
    script.user_types("and in Paris")
    assert script.record.interruptions() == []
    script.model_acknowledges_cancel()
    assert script.record.answers()[-1] == ("what time is it", "and in Paris")
    assert script.record.outcome_of(first.response_id) is Outcome.CANCELLED


@pytest.mark.parametrize("state", ["speech", "hypothesis"])
def test_text_typed_while_the_user_speaks_waits_beside_the_open_turn(reached: Reached, state: str) -> None:
    script = reached.everywhere()[state]
    script.user_types("in words please")
    assert script.conversation.configuration.input_turn == state
    assert script.record.committed_turns() == ["in words please"]
    assert script.record.replies() == [], "the user has the floor"
    script.finishes_saying("what time is it")
    assert script.record.answers() == [("in words please", "what time is it")]


def test_text_typed_while_the_user_makes_a_noise_is_answered_when_it_ends(reached: Reached) -> None:
    script = reached.speech()
    script.user_types("hello")
    script.user_stops_speaking()
    script.recognition_ends()
    assert script.record.answers() == [("hello",)]


def test_text_typed_while_a_reply_is_heard_and_the_user_speaks_interrupts(reached: Reached) -> None:
    script = reached.playing()
    script.user_starts_speaking()
    script.user_types("stop")
    assert script.record.interruptions() == [InterruptionSource.CLIENT]
    assert script.conversation.configuration.input_turn == "speech"
    assert script.conversation.configuration.playback == "stopped"


def test_typed_text_ends_the_recognition_of_a_committed_turn() -> None:
    script = endpointed()
    script.user_types("never mind")
    assert len(script.record.of(CancelRecognition)) == 1
    assert script.understands("for two", "2") == ()


def test_speech_does_not_continue_a_typed_turn(script: ScriptedConversation) -> None:
    script.user_types("tell me a story")
    script.user_starts_speaking()
    assert script.record.published(SpeechBegan)[-1].continues_turn is False
    assert script.conversation.configuration.generation == "waiting"


# -- the floor -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("max_hold_ms", [1, 3_000])
def test_the_first_audio_is_held_while_the_user_speaks_and_at_most_so_long(max_hold_ms: int) -> None:
    script = with_turn(max_hold_ms=max_hold_ms)
    script.user_says("tell me a story")
    script.wait(2_000)
    script.user_starts_speaking()
    script.model_starts_writing()
    script.audio_starts()
    script.frame("once")
    assert len(script.running(TimerKind.HOLD)) == 1
    script.wait(max_hold_ms - 0.001)
    assert script.ear.heard == []
    script.wait(0.001)
    assert script.ear.heard == ["once"]
    assert script.running(TimerKind.HOLD) == []
