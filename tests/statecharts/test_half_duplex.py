"""Half duplex: the microphone is shut while the reply is heard, and nobody is lost at the moment it opens."""

from __future__ import annotations

from voicechart.statecharts import Policies
from voicechart.statecharts.actions import StartRecognition, StoreUserTurn
from voicechart.statecharts.testing import ScriptedConversation
from voicechart.statecharts.values import TurnAuthority

END_SAMPLE = 22_050


def heard_to_its_last_word() -> ScriptedConversation:
    script = ScriptedConversation(policies=Policies()).opened()
    script.user_says("what time is it")
    script.wait(2_000)
    script.reply_is_playing((END_SAMPLE,))
    return script


def test_who_answers_before_the_last_word_is_heard_from_the_end_of_the_reply_on() -> None:
    script = heard_to_its_last_word()
    assert not script.user_starts_speaking(sample=1_000)
    assert not script.user_keeps_speaking(100)
    script.reply_is_drained(END_SAMPLE)
    assert any(isinstance(action, StartRecognition) for action in script.user_keeps_speaking(228))
    script.finishes_saying("yes please")
    assert script.record.of(StoreUserTurn)[-1].text == "yes please"


def test_who_spoke_and_stopped_while_the_reply_was_heard_opens_no_turn() -> None:
    script = heard_to_its_last_word()
    script.user_starts_speaking(sample=1_000)
    script.user_stops_speaking(TurnAuthority.VAD)
    script.reply_is_drained(END_SAMPLE)
    assert not any(isinstance(action, StartRecognition) for action in script.user_keeps_speaking(100))


def test_a_sign_of_speech_without_a_refused_onset_opens_no_turn() -> None:
    script = heard_to_its_last_word()
    script.reply_is_drained(END_SAMPLE)
    assert not any(isinstance(action, StartRecognition) for action in script.user_keeps_speaking(100))
