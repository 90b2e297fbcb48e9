"""Announcements: said as they are, after the user was served, each with one outcome."""

from __future__ import annotations

import pytest

from voicechart.statecharts import InterruptionPolicy, PlaybackPolicy, Policies
from voicechart.statecharts.actions import (
    CancelGeneration,
    SettleAnnouncement,
    StartAnnouncement,
    StartGeneration,
    StopPlayback,
)
from voicechart.statecharts.capabilities import Capabilities
from voicechart.statecharts.published import AnnouncementBegan, AnnouncementEnded, InterruptionAccepted
from voicechart.statecharts.testing import HANDS_FREE, ScriptedConversation
from voicechart.statecharts.values import AnnouncementOutcome, DeliveryStatus

PLAYED, INTERRUPTED, DROPPED = AnnouncementOutcome.PLAYED, AnnouncementOutcome.INTERRUPTED, AnnouncementOutcome.DROPPED


def settled(script: ScriptedConversation) -> list[tuple[int, AnnouncementOutcome, str]]:
    return [(a.number, a.outcome, a.reason) for a in script.record.of(SettleAnnouncement)]


def started(script: ScriptedConversation) -> list[str]:
    return [action.text for action in script.record.of(StartAnnouncement)]


def is_heard(script: ScriptedConversation) -> None:
    """What was asked for last is spoken and heard to its end."""
    script.reply_is_playing(unit_ends=(16_000,), played_samples=8_000)
    script.reply_is_drained(16_000)


def test_a_text_is_said_as_it_is_and_told_as_played_when_it_was_heard_to_its_end() -> None:
    script = ScriptedConversation().opened()
    script.is_asked_to_say("the tea is ready")
    assert started(script) == ["the tea is ready"]
    assert not script.record.of(StartGeneration)
    script.reply_is_playing(unit_ends=(16_000,), played_samples=8_000)
    script.audio_ends(16_000)
    script.speaker_drains(16_000)
    assert settled(script) == [(1, PLAYED, "")]
    assert script.record.deliveries() == [DeliveryStatus.DELIVERED]


def test_an_announcement_waits_for_the_end_of_a_reply() -> None:
    script = ScriptedConversation().opened()
    script.user_types("hello")
    script.is_asked_to_say("the tea is ready")
    assert started(script) == []
    script.reply_is_playing(unit_ends=(16_000,), played_samples=8_000)
    script.model_finishes()
    script.audio_ends(16_000)
    assert started(script) == []
    script.speaker_drains(16_000)
    assert started(script) == ["the tea is ready"]


def test_the_user_is_answered_before_a_notification() -> None:
    script = ScriptedConversation().opened()
    script.user_starts_speaking()
    script.is_asked_to_say("the tea is ready")
    assert started(script) == []
    script.finishes_saying("what time is it")
    script.recognition_ends()
    assert script.record.of(StartGeneration)
    assert started(script) == []


def test_a_notification_follows_when_what_was_heard_came_to_nothing() -> None:
    script = ScriptedConversation().opened()
    script.user_starts_speaking()
    script.is_asked_to_say("the tea is ready")
    script.user_stops_speaking()
    script.recognition_ends()
    assert started(script) == ["the tea is ready"]


def test_one_that_interrupts_silences_the_reply_and_goes_before_a_turn_that_waits() -> None:
    script = ScriptedConversation().opened()
    script.user_types("tell me a story")
    script.reply_is_playing(unit_ends=(16_000,), played_samples=8_000)
    script.is_asked_to_say("the milk boils over", interrupts=True)
    assert script.record.of(StopPlayback)
    script.record.assert_silenced_before(CancelGeneration)
    script.user_types("and then?")
    script.model_acknowledges_cancel()
    assert started(script) == ["the milk boils over"]
    assert len(script.record.of(StartGeneration)) == 1
    is_heard(script)
    assert len(script.record.of(StartGeneration)) == 2


def test_an_unheard_reply_makes_way_and_is_asked_for_again_behind_the_announcement() -> None:
    script = ScriptedConversation().opened()
    script.user_types("tell me a story")
    script.is_asked_to_say("the milk boils over", interrupts=True)
    assert not script.record.published(InterruptionAccepted)
    script.model_acknowledges_cancel()
    assert started(script) == ["the milk boils over"]
    is_heard(script)
    first, again = script.record.of(StartGeneration)
    assert first.turn_ids == again.turn_ids


def test_where_no_client_may_interrupt_it_waits_and_the_refusal_is_told() -> None:
    policies = Policies(interruption=InterruptionPolicy(sources=frozenset()))
    script = ScriptedConversation(policies).opened()
    script.user_types("tell me a story")
    script.reply_is_playing(unit_ends=(16_000,), played_samples=8_000)
    script.is_asked_to_say("the milk boils over", interrupts=True)
    assert not script.record.of(StopPlayback)
    script.model_finishes()
    script.audio_ends(16_000)
    script.speaker_drains(16_000)
    assert started(script) == ["the milk boils over"]


def test_an_interrupted_announcement_is_told_as_interrupted_with_what_was_heard() -> None:
    script = ScriptedConversation(Policies(interruption=HANDS_FREE)).opened()
    script.is_asked_to_say("one. two.")
    script.reply_is_playing(unit_ends=(8_000, 16_000), played_samples=9_000)
    script.user_starts_speaking()
    script.hears("stop it")
    assert settled(script) == []
    script.speaker_has_stopped(10_000)
    assert settled(script) == [(1, INTERRUPTED, "interrupted")]
    assert script.record.delivery_of(script.record.of(StartAnnouncement)[0].response_id).units == 1


def test_an_uninterruptible_announcement_is_heard_to_its_end() -> None:
    script = ScriptedConversation(Policies(interruption=HANDS_FREE)).opened()
    script.is_asked_to_say("the emergency exit is behind you", interruptible=False)
    script.reply_is_playing(unit_ends=(16_000,), played_samples=8_000)
    script.user_starts_speaking()
    script.hears("stop it")
    assert not script.record.of(StopPlayback)
    script.audio_ends(16_000)
    script.speaker_drains(16_000)
    assert settled(script) == [(1, PLAYED, "")]


def test_an_unheard_announcement_makes_way_for_a_typed_message_and_is_said_after_its_answer() -> None:
    script = ScriptedConversation().opened()
    script.is_asked_to_say("the tea is ready")
    script.user_types("hello")
    assert settled(script) == []
    assert len(script.record.of(StartGeneration)) == 1
    is_heard(script)
    assert started(script) == ["the tea is ready", "the tea is ready"]
    is_heard(script)
    assert settled(script) == [(1, PLAYED, "")]


def test_one_that_was_taken_back_and_then_withdrawn_has_one_outcome() -> None:
    """Found by the explorer: the receipt of the stopped stream told a second one."""
    script = ScriptedConversation().opened()
    number = script.is_asked_to_say("the tea is ready")
    script.audio_starts()
    script.user_types("hello")
    script.announcement_is_withdrawn(number)
    assert settled(script) == [(1, DROPPED, "withdrawn")]
    script.speaker_has_stopped(0)
    assert settled(script) == [(1, DROPPED, "withdrawn")]


def test_what_waits_behind_one_that_was_called_off_unheard_is_said() -> None:
    """Found by the explorer: nobody looked whether anything waited."""
    script = ScriptedConversation().opened()
    script.is_asked_to_say("one")
    script.is_asked_to_say("two")
    script.user_presses_stop()
    assert started(script) == ["one", "two"]
    assert settled(script) == [(1, DROPPED, "interrupted")]


def test_they_are_said_in_the_order_of_asking_but_those_that_interrupt_first() -> None:
    script = ScriptedConversation().opened()
    script.user_starts_speaking()
    script.is_asked_to_say("one")
    script.is_asked_to_say("two")
    script.is_asked_to_say("now", interrupts=True)
    script.user_clears()
    is_heard(script)
    is_heard(script)
    assert started(script) == ["now", "one", "two"]


def test_one_more_than_may_wait_is_dropped_and_told() -> None:
    script = ScriptedConversation(Policies(playback=PlaybackPolicy(max_announcements=2))).opened()
    script.user_starts_speaking()
    for text in ("one", "two", "three"):
        script.is_asked_to_say(text)
    assert settled(script) == [(3, DROPPED, "too_many")]


@pytest.mark.parametrize("text", ["", "  \n"])
def test_nothing_to_say_is_dropped(text: str) -> None:
    script = ScriptedConversation().opened()
    script.is_asked_to_say(text)
    assert settled(script) == [(1, DROPPED, "nothing_to_say")]


def test_what_waits_at_the_end_is_dropped_and_told() -> None:
    script = ScriptedConversation().opened()
    script.user_starts_speaking()
    script.is_asked_to_say("the tea is ready")
    script.closes()
    assert (1, DROPPED, "closed") in settled(script)


def test_one_asked_for_before_the_session_is_ready_is_said_when_it_is() -> None:
    script = ScriptedConversation()
    script.opens()
    script.is_asked_to_say("good morning")
    assert started(script) == []
    script.connects(Capabilities())
    assert started(script) == ["good morning"]


def test_a_private_one_says_so_to_whoever_keeps_records() -> None:
    script = ScriptedConversation().opened()
    script.is_asked_to_say("your insurance wrote", recorded=False)
    assert [action.recorded for action in script.record.of(StartAnnouncement)] == [False]
    assert [payload.private for payload in script.record.published(AnnouncementBegan)] == [True]
    is_heard(script)
    assert [payload.private for payload in script.record.published(AnnouncementEnded)] == [True]


def test_a_lost_connection_brings_an_unheard_announcement_back_once_it_is_ready_again() -> None:
    script = ScriptedConversation().opened()
    script.is_asked_to_say("the tea is ready")
    script.connection_breaks()
    assert settled(script) == []
    script.connects()
    assert started(script) == ["the tea is ready", "the tea is ready"]
