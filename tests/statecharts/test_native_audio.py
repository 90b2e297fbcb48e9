"""A model that hears the audio itself: turns need no words, and words that come late change nothing but the record."""

from __future__ import annotations

import pytest

from voicechart.statecharts import InterruptionPolicy, Policies, TurnPolicy
from voicechart.statecharts.actions import CancelRecognition, FinishRecognition, StartGeneration, StoreUserTurn
from voicechart.statecharts.capabilities import Capabilities, SpeakerCapabilities
from voicechart.statecharts.published import StreamError
from voicechart.statecharts.testing import ScriptedConversation
from voicechart.statecharts.values import InterruptionSource, TurnAuthority

NATIVE = Capabilities(
    speaker=SpeakerCapabilities(pause=True, measured_position=True), truncate_context=True, native_audio=True
)
BY_PROVIDER = Policies(
    turn=TurnPolicy(authority=TurnAuthority.ENGINE),
    interruption=InterruptionPolicy(frozenset(InterruptionSource), full_duplex=True, min_duration_ms=300),
)


@pytest.fixture
def script() -> ScriptedConversation:
    script = ScriptedConversation(BY_PROVIDER)
    script.opens()
    script.connects(NATIVE)
    return script


def stored(script: ScriptedConversation) -> list[tuple[str, int]]:
    return [(action.text, action.revision) for action in script.record.of(StoreUserTurn)]


def test_a_turn_is_committed_when_the_engine_ends_it_and_its_words_are_stored_when_they_come(
    script: ScriptedConversation,
) -> None:
    script.user_starts_speaking(authority=TurnAuthority.ENGINE)
    script.user_stops_speaking()
    assert len(script.record.of(StartGeneration)) == 1
    assert stored(script) == [("", 1)]
    script.understands("what time is it")
    assert stored(script) == [("", 1), ("what time is it", 2)]
    assert len(script.record.of(StartGeneration)) == 1


def test_words_may_still_come_when_the_turn_was_committed(script: ScriptedConversation) -> None:
    script.user_starts_speaking(authority=TurnAuthority.ENGINE)
    script.user_stops_speaking()
    assert script.record.of(FinishRecognition)
    assert not script.record.of(CancelRecognition)


def test_words_of_a_former_turn_amend_that_turn_and_not_the_one_being_spoken(script: ScriptedConversation) -> None:
    script.user_starts_speaking(authority=TurnAuthority.ENGINE)
    former = script.recognition_id
    script.user_stops_speaking()
    script.reply_is_playing(unit_ends=(16_000,), played_samples=8_000)
    script.user_starts_speaking(authority=TurnAuthority.ENGINE)
    script.understands("the first question", recognition_id=former)
    first, amended = script.record.of(StoreUserTurn)
    assert first.turn_id == amended.turn_id
    assert (amended.text, amended.revision, amended.position) == ("the first question", 2, first.position)
    turn = script.conversation.context.turn
    assert turn is not None
    assert turn.text == ""


def test_the_same_words_of_a_former_turn_are_stored_once(script: ScriptedConversation) -> None:
    script.user_starts_speaking(authority=TurnAuthority.ENGINE)
    former = script.recognition_id
    script.user_stops_speaking()
    script.reply_is_playing(unit_ends=(16_000,), played_samples=8_000)
    script.user_starts_speaking(authority=TurnAuthority.ENGINE)
    for _ in range(2):
        script.understands("the first question", recognition_id=former)
    assert stored(script) == [("", 1), ("the first question", 2)]


def test_a_failed_transcript_takes_nothing_back(script: ScriptedConversation) -> None:
    script.user_starts_speaking(authority=TurnAuthority.ENGINE)
    script.recognition_fails()
    assert script.record.published(StreamError)
    assert script.conversation.configuration.input_turn == "speech"
    script.user_stops_speaking()
    assert len(script.record.of(StartGeneration)) == 1


def test_only_the_last_former_turns_wait_for_their_words(script: ScriptedConversation) -> None:
    recognitions: list[str] = []
    for _ in range(6):
        script.user_starts_speaking(authority=TurnAuthority.ENGINE)
        recognitions.append(script.recognition_id)
        script.user_stops_speaking()
        script.model_acknowledges_cancel()
        script.wait(1_600)
    assert len(script.conversation.context.untranscribed) == 4
    before = len(script.record.of(StoreUserTurn))
    script.understands("too late", recognition_id=recognitions[0])
    assert len(script.record.of(StoreUserTurn)) == before


def test_without_native_audio_a_turn_without_words_is_still_discarded() -> None:
    script = ScriptedConversation(BY_PROVIDER)
    script.opens()
    script.connects(Capabilities())
    script.user_starts_speaking(authority=TurnAuthority.ENGINE)
    script.user_stops_speaking()
    script.recognition_ends()
    assert stored(script) == []
    assert script.conversation.configuration.input_turn == "discarded"


def test_in_writing_what_is_shown_counts_as_having_reached_the_user() -> None:
    script = ScriptedConversation()
    script.opens()
    script.connects(Capabilities(text_only=True))
    script.user_types("tell me a story")
    script.model_starts_writing()
    script.user_types("no, a poem")
    assert script.record.interruptions() == [InterruptionSource.CLIENT]
