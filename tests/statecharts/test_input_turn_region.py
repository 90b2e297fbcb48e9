"""The InputTurn region, row by row: from the first sound to the commit or the discard."""

from __future__ import annotations

from dataclasses import replace

import pytest

from voicechart.statecharts import InterruptionPolicy, Policies, TurnPolicy
from voicechart.statecharts.actions import (
    CancelRecognition,
    FinishRecognition,
    StartRecognition,
    StoreUserTurn,
    TranscribeRecording,
)
from voicechart.statecharts.context import TimerKind
from voicechart.statecharts.published import (
    FallbackStarted,
    SegmentFrozen,
    SpeechBegan,
    StreamDiscontinuity,
    StreamError,
    TranscriptChanged,
    TurnCommitted,
    TurnDiscarded,
    TurnExceeded,
)
from voicechart.statecharts.testing import HANDS_FREE, Reached, ScriptedConversation
from voicechart.statecharts.values import TurnAuthority


def with_turn(**policy: object) -> ScriptedConversation:
    turn = TurnPolicy(**policy)  # pyright: ignore[reportArgumentType]
    return ScriptedConversation(Policies(turn=turn, interruption=HANDS_FREE)).opened()


def discard_reasons(script: ScriptedConversation) -> list[str]:
    return [discarded.reason for discarded in script.record.published(TurnDiscarded)]


# -- opening -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("state", ["idle", "drained", "discarded"])
def test_speech_opens_a_new_turn_and_its_recognition(reached: Reached, state: str) -> None:
    script = reached.everywhere()[state]
    script.wait(5_000)
    known = {action.turn_id for action in script.record.of(StartRecognition)}
    script.user_starts_speaking(sample=320)
    assert script.conversation.configuration.input_turn == "speech"
    start = script.record.of(StartRecognition)[-1]
    assert start.turn_id not in known
    assert start.sample == 320
    assert script.record.published(SpeechBegan)[-1].continues_turn is False
    assert len(script.running(TimerKind.INPUT)) == len(script.running(TimerKind.TURN_LIMIT)) == 1


def test_a_second_start_within_an_open_turn_means_nothing(reached: Reached) -> None:
    script = reached.speech()
    ignored = script.conversation.context.ignored
    assert script.user_starts_speaking() == ()
    assert script.conversation.context.ignored == ignored + 1


@pytest.mark.parametrize(
    ("configured", "heard", "opens"),
    [
        (TurnAuthority.VAD, TurnAuthority.VAD, True),
        (TurnAuthority.VAD, TurnAuthority.MANUAL, False),
        (TurnAuthority.MANUAL, TurnAuthority.MANUAL, True),
        (TurnAuthority.MANUAL, TurnAuthority.VAD, False),
        (TurnAuthority.RECOGNIZER, TurnAuthority.VAD, True),
        (TurnAuthority.SEMANTIC, TurnAuthority.VAD, True),
        (TurnAuthority.ENGINE, TurnAuthority.VAD, True),
    ],
)
def test_the_button_opens_turns_where_it_is_configured_and_voice_activity_elsewhere(
    configured: TurnAuthority, heard: TurnAuthority, opens: bool
) -> None:
    script = with_turn(authority=configured)
    script.user_starts_speaking(authority=heard)
    assert (script.conversation.configuration.input_turn == "speech") is opens


def test_a_board_without_echo_cancellation_does_not_listen_to_itself() -> None:
    script = ScriptedConversation(Policies(interruption=InterruptionPolicy())).opened()
    script.user_says("tell me a story")
    script.reply_is_playing((16_000,), played_samples=8_000)
    script.wait(2_000)
    assert script.user_starts_speaking() == ()
    script.reply_is_drained(16_000)
    script.user_starts_speaking()
    assert script.conversation.configuration.input_turn == "speech"


# -- hypotheses ----------------------------------------------------------------------------------------------------


def test_a_hypothesis_is_replaced_by_a_newer_one_and_retracted_by_an_empty_one(reached: Reached) -> None:
    script = reached.speech()
    script.hears("what")
    script.hears("what time")
    turn = script.conversation.context.turn
    assert turn is not None
    assert turn.text == "what time"
    script.hears("")
    turn = script.conversation.context.turn
    assert turn is not None
    assert turn.text == ""
    assert script.conversation.configuration.input_turn == "hypothesis"
    assert [changed.text for changed in script.record.published(TranscriptChanged)] == ["what", "what time", ""]


def test_a_stale_or_foreign_hypothesis_changes_nothing(reached: Reached) -> None:
    script = reached.speech()
    script.hears("what time", revision=5)
    ignored = script.conversation.context.ignored
    assert script.hears("wat", revision=5) == ()
    assert script.hears("wat", revision=4) == ()
    assert script.hears("other", revision=9, recognition_id="recognition-of-another-turn") == ()
    assert script.conversation.context.ignored == ignored + 3


def test_a_frozen_segment_stays_as_it_is(reached: Reached) -> None:
    script = reached.speech()
    script.understands("what time")
    assert script.hears("what tile") == ()
    assert script.understands("what tile") == ()
    assert [frozen.text for frozen in script.record.published(SegmentFrozen)] == ["what time"]


def test_segments_keep_the_order_of_speaking_whatever_is_frozen_first(reached: Reached) -> None:
    script = reached.speech()
    script.hears("what time", "1")
    script.hears("is it", "2")
    script.understands("is it now", "2")
    script.understands("what time", "1")
    script.user_stops_speaking()
    script.recognition_ends()
    assert script.record.committed_turns() == ["what time is it now"]


def test_a_final_without_identity_freezes_the_open_hypothesis(reached: Reached) -> None:
    script = reached.hypothesis()
    script.understands("what time is it", segment=None)
    script.user_stops_speaking()
    script.recognition_ends()
    assert script.record.committed_turns() == ["what time is it"]


# -- ending --------------------------------------------------------------------------------------------------------


def test_an_ended_turn_waits_for_its_transcript_and_is_committed_with_it(reached: Reached) -> None:
    script = reached.hypothesis()
    script.user_stops_speaking()
    assert script.conversation.configuration.input_turn == "hypothesis"
    assert len(script.record.of(FinishRecognition)) == 1
    assert len(script.running(TimerKind.FINALIZATION)) == 1
    assert script.running(TimerKind.INPUT) == []
    script.understands("what time is it")
    assert script.record.committed_turns() == []
    script.recognition_ends()
    assert script.conversation.configuration.input_turn == "committed"
    [stored] = script.record.of(StoreUserTurn)
    assert (stored.text, stored.authority, stored.revision) == ("what time is it", TurnAuthority.VAD, 1)
    assert [committed.text for committed in script.record.published(TurnCommitted)] == ["what time is it"]
    assert script.running(TimerKind.FINALIZATION) == []


def test_a_turn_whose_recogniser_closed_early_is_committed_when_it_ends(reached: Reached) -> None:
    script = reached.speech()
    script.understands("what time is it")
    script.recognition_ends()
    assert script.record.committed_turns() == []
    script.user_stops_speaking()
    assert script.record.committed_turns() == ["what time is it"]
    assert script.record.of(FinishRecognition) == []


def test_sound_after_the_end_of_a_turn_prolongs_nothing(reached: Reached) -> None:
    script = reached.hypothesis()
    script.user_stops_speaking()
    script.user_keeps_speaking(2_000)
    assert script.running(TimerKind.INPUT) == []
    assert len(script.running(TimerKind.FINALIZATION)) == 1


def test_an_ended_turn_without_words_is_discarded(reached: Reached) -> None:
    script = reached.speech()
    script.user_stops_speaking()
    script.recognition_ends()
    assert script.conversation.configuration.input_turn == "discarded"
    assert discard_reasons(script) == ["no_words"]
    assert script.record.replies() == []


@pytest.mark.parametrize("other", [a for a in TurnAuthority if a is not TurnAuthority.VAD])
def test_only_the_configured_authority_ends_a_turn(reached: Reached, other: TurnAuthority) -> None:
    script = reached.hypothesis()
    script.understands("what time is it")
    assert script.user_stops_speaking(other) == ()
    assert script.conversation.configuration.input_turn == "hypothesis"
    assert script.record.of(FinishRecognition) == []


@pytest.mark.parametrize(
    ("final", "hypothesis", "reason"),
    [
        ("", "", "no_words"),
        ("", "what", "incomplete_transcript"),
        ("what time", "is", "incomplete_transcript"),
    ],
)
def test_a_transcript_that_stays_incomplete_is_given_up_after_its_deadline(
    reached: Reached, final: str, hypothesis: str, reason: str
) -> None:
    script = reached.speech()
    if final:
        script.understands(final, "1")
    if hypothesis:
        script.hears(hypothesis, "2")
    script.user_stops_speaking()
    script.wait(script.conversation.policies.turn.finalization_ms - 1)
    assert discard_reasons(script) == []
    script.wait(1)
    assert discard_reasons(script) == [reason]
    assert len(script.record.of(CancelRecognition)) == 1


def test_a_transcript_that_is_whole_is_committed_when_the_recogniser_never_closes(reached: Reached) -> None:
    script = reached.speech()
    script.understands("what time is it")
    script.user_stops_speaking()
    script.wait(script.conversation.policies.turn.finalization_ms)
    assert script.record.committed_turns() == ["what time is it"]
    assert len(script.record.of(CancelRecognition)) == 1


def test_a_recogniser_that_ends_turns_commits_at_once_with_its_last_segment() -> None:
    script = with_turn(authority=TurnAuthority.RECOGNIZER)
    script.user_starts_speaking()
    script.understands("what time is it")
    script.user_stops_speaking()
    assert script.record.committed_turns() == ["what time is it"]


def test_a_recogniser_that_ends_turns_with_an_open_hypothesis_is_waited_for() -> None:
    script = with_turn(authority=TurnAuthority.RECOGNIZER)
    script.user_starts_speaking()
    script.understands("what time", "1")
    script.hears("is it", "2")
    script.user_stops_speaking()
    assert script.record.committed_turns() == []
    script.understands("is it", "2")
    script.recognition_ends()
    assert script.record.committed_turns() == ["what time is it"]


def test_push_to_talk_is_started_committed_and_cleared_by_the_button_alone() -> None:
    script = with_turn(authority=TurnAuthority.MANUAL)
    script.user_starts_speaking()
    script.hears("what time")
    script.user_stops_speaking(TurnAuthority.VAD)
    assert script.conversation.configuration.input_turn == "hypothesis"
    script.finishes_saying("what time is it")
    assert script.record.committed_turns() == ["what time is it"]

    script.wait(5_000)
    script.user_starts_speaking()
    script.hears("oh never mind")
    script.user_clears()
    assert discard_reasons(script) == ["cleared"]
    assert script.record.committed_turns() == ["what time is it"]


@pytest.mark.parametrize(("words", "exceeds"), [("one two three", False), ("one two three four", True)])
def test_a_turn_of_too_many_words_is_ended_for_the_user(words: str, exceeds: bool) -> None:
    script = with_turn(max_turn_words=3)
    script.user_starts_speaking()
    script.hears(words)
    script.hears(words + " more" if exceeds else words)
    assert [told.limit for told in script.record.published(TurnExceeded)] == (["words"] if exceeds else [])
    assert (len(script.record.of(FinishRecognition)) == 1) is exceeds
    if exceeds:
        script.understands(words)
        script.recognition_ends()
        assert script.record.committed_turns() == [words]


def test_a_turn_that_never_pauses_is_ended_for_the_user() -> None:
    script = with_turn(max_turn_ms=5_000)
    script.user_starts_speaking()
    for _ in range(4):
        script.wait(1_000)
        script.hears("and then")
    script.wait(999)
    assert script.record.published(TurnExceeded) == []
    script.wait(1)
    assert [told.limit for told in script.record.published(TurnExceeded)] == ["duration"]
    script.understands("and then")
    script.recognition_ends()
    assert script.record.committed_turns() == ["and then"]
    assert [told.limit for told in script.record.published(TurnExceeded)] == ["duration"]


def test_a_limit_that_finds_nothing_to_wait_for_commits_at_once_and_says_so() -> None:
    script = with_turn(max_turn_ms=5_000)
    script.user_starts_speaking()
    script.understands("one two")
    script.recognition_ends()
    script.wait(5_000)
    assert [told.limit for told in script.record.published(TurnExceeded)] == ["duration"]
    assert script.conversation.configuration.input_turn == "committed"


@pytest.mark.parametrize("limit", ["words", "duration"])
def test_a_limit_waits_for_a_recogniser_that_may_have_heard_more(limit: str) -> None:
    script = with_turn(authority=TurnAuthority.RECOGNIZER, max_turn_words=3, max_turn_ms=5_000)
    script.user_starts_speaking()
    script.understands("one two three four" if limit == "words" else "one two")
    if limit == "duration":
        script.wait(5_000)
    assert [told.limit for told in script.record.published(TurnExceeded)] == [limit]
    assert script.conversation.configuration.input_turn == "hypothesis"
    script.understands("and five", "2")
    script.recognition_ends()
    assert script.record.committed_turns()[0].endswith("and five")


@pytest.mark.parametrize("authority", [TurnAuthority.VAD, TurnAuthority.RECOGNIZER])
def test_a_fallback_takes_the_place_of_what_failed_and_is_finished_in_the_same_step(authority: TurnAuthority) -> None:
    script = with_turn(authority=authority)
    script.user_starts_speaking()
    script.hears("one")
    first = script.recognition_id
    script.user_stops_speaking()
    script.user_starts_speaking()
    script.understands("two", "1")
    second = script.recognition_id
    script.user_stops_speaking()
    script.recognition_fails(recorded_ms=1_000, recognition_id=first)
    script.record.assert_in_order(TranscribeRecording, FinishRecognition)
    script.understands("one", "1")
    script.recognition_ends()
    script.recognition_ends(second)
    assert script.record.committed_turns() == ["one two"]


def test_finals_of_one_recognition_stand_in_the_order_of_their_times(reached: Reached) -> None:
    script = reached.speech()
    script.understands("three", "3", samples=(32_000, 48_000))
    script.understands("one", "1", samples=(0, 16_000))
    script.understands("two", "2", samples=(16_000, 32_000))
    script.user_stops_speaking()
    script.recognition_ends()
    assert script.record.committed_turns() == ["one two three"]


def test_a_final_without_identity_is_told_again_although_the_next_hypothesis_is_open(reached: Reached) -> None:
    script = reached.speech()
    script.understands("no", None, samples=(0, 8_000))
    script.hears("no way", "2")
    script.understands("no", None, samples=(0, 8_000))
    script.understands("no way", "2", samples=(8_000, 16_000))
    script.user_stops_speaking()
    script.recognition_ends()
    assert script.record.committed_turns() == ["no no way"]


def test_speech_before_the_transcript_is_complete_resumes_the_turn(reached: Reached) -> None:
    script = reached.speech()
    script.hears("my name is John")
    script.user_stops_speaking()
    first = script.recognition_id
    script.user_starts_speaking(sample=16_000)
    assert script.running(TimerKind.FINALIZATION) == []
    assert script.record.published(SpeechBegan)[-1].continues_turn
    assert len({action.turn_id for action in script.record.of(StartRecognition)}) == 1
    script.understands("my name is John", recognition_id=first)
    script.recognition_ends(first)
    assert script.record.committed_turns() == []
    script.finishes_saying("Doe")
    assert script.record.committed_turns() == ["my name is John Doe"]


# -- losses --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("lost_ms", "survives"), [(200, True), (201, False)])
def test_a_gap_beyond_the_bound_invalidates_the_turn_and_every_gap_is_told(
    reached: Reached, lost_ms: int, survives: bool
) -> None:
    script = reached.hypothesis()
    script.audio_is_lost(lost_ms)
    assert [gap.lost_ms for gap in script.record.published(StreamDiscontinuity)] == [lost_ms]
    assert discard_reasons(script) == ([] if survives else ["discontinuity"])
    assert len(script.record.of(CancelRecognition)) == (0 if survives else 1)


@pytest.mark.parametrize("recorded_ms", [1, 30_000])
def test_a_failed_recognition_is_replaced_by_the_bounded_recording_and_that_is_said(
    reached: Reached, recorded_ms: int
) -> None:
    script = reached.hypothesis()
    failed = script.recognition_id
    script.recognition_fails(recorded_ms)
    [whole] = script.record.of(TranscribeRecording)
    assert whole.failed_recognition_id == failed
    assert [told.recorded_ms for told in script.record.published(FallbackStarted)] == [recorded_ms]
    turn = script.conversation.context.turn
    assert turn is not None
    assert turn.text == "", "what the failed one had guessed is withdrawn"
    script.finishes_saying("what time is it")
    assert script.record.committed_turns() == ["what time is it"]


@pytest.mark.parametrize("recorded_ms", [0, 30_001])
def test_without_a_bounded_recording_the_turn_is_discarded_with_the_error(reached: Reached, recorded_ms: int) -> None:
    script = reached.hypothesis()
    script.recognition_fails(recorded_ms)
    assert discard_reasons(script) == ["recognizer_lost"]
    assert [told.error.code for told in script.record.published(StreamError)] == ["recognizer_lost"]
    assert script.record.of(TranscribeRecording) == []


def test_the_fallback_is_tried_once(reached: Reached) -> None:
    script = reached.hypothesis()
    script.recognition_fails(1_000)
    script.recognition_fails(1_000)
    assert discard_reasons(script) == ["recognizer_lost"]
    assert len(script.record.of(TranscribeRecording)) == 1


def test_a_fallback_after_the_end_of_the_turn_has_a_deadline_of_its_own(reached: Reached) -> None:
    script = reached.hypothesis()
    script.user_stops_speaking()
    script.wait(4_000)
    script.recognition_fails(1_000)
    assert [a.recognition_id for a in script.record.of(FinishRecognition)][-1] == script.recognition_id
    script.wait(4_000)
    script.understands("what time is it")
    script.recognition_ends()
    assert script.record.committed_turns() == ["what time is it"]


def test_a_failure_of_a_recognition_that_is_not_open_means_nothing(reached: Reached) -> None:
    script = reached.hypothesis()
    assert script.recognition_fails(1_000, recognition_id="another") == ()
    assert script.recognition_ends("another") == ()


@pytest.mark.parametrize("sign_of_life", ["words", "sound", None])
def test_a_turn_in_which_nothing_happens_is_given_up(reached: Reached, sign_of_life: str | None) -> None:
    script = reached.speech()
    timeout_ms = script.conversation.policies.turn.input_timeout_ms
    script.wait(timeout_ms - 1)
    if sign_of_life == "words":
        script.hears("well")
    elif sign_of_life == "sound":
        script.user_keeps_speaking(timeout_ms - 1)
    script.wait(1)
    assert discard_reasons(script) == ([] if sign_of_life else ["timed_out"])
    script.wait(timeout_ms - 1)
    assert discard_reasons(script) == ["timed_out"]
    assert len(script.record.of(CancelRecognition)) == 1


def test_closing_discards_what_was_being_said(reached: Reached) -> None:
    script = reached.hypothesis()
    script.closes()
    assert discard_reasons(script) == ["closed"]
    assert len(script.record.of(CancelRecognition)) == 1


def test_words_that_do_not_count_while_a_reply_is_heard_are_an_interjection() -> None:
    script = ScriptedConversation(Policies(interruption=replace(HANDS_FREE, min_words=2))).opened()
    script.user_says("tell me a story")
    script.reply_is_playing((16_000,), played_samples=8_000)
    script.user_says("nice")
    assert discard_reasons(script) == ["interjection"]
    assert script.record.committed_turns() == ["tell me a story"]
