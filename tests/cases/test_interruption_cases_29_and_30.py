"""What goes wrong in the field, kinds 29 and 30: facts in, actions and record out, on a virtual clock."""

from __future__ import annotations

from dataclasses import replace

import pytest

from voicechart.statecharts import Policies
from voicechart.statecharts.actions import Stamp, StartRecognition, TranscribeRecording
from voicechart.statecharts.published import FallbackStarted, InterruptionRejected
from voicechart.statecharts.recognition import (
    CancelStream,
    FinishStream,
    InputFinished,
    PreReadyOverflowed,
    Recognition,
    RecognizerReady,
    ReleaseAudio,
    ReportFailed,
)
from voicechart.statecharts.testing import HANDS_FREE, ScriptedConversation


def test_29_recognition_begins_where_the_speech_began_not_where_it_was_noticed(script: ScriptedConversation) -> None:
    """That the pre-roll reaches the recogniser whole is tested with the ring (tests/audio) and in tests/engines."""
    script.wait(1_000)
    script.user_starts_speaking(sample=12_480)
    [start] = script.record.of(StartRecognition)
    assert start.sample == 12_480


def test_29_until_the_recogniser_is_ready_everything_waits_and_then_goes_in_before_its_end() -> None:
    recognition = Recognition("recognition-1", Stamp(1, 1))
    assert recognition.handle(InputFinished(at=0)) == ()
    actions = recognition.handle(RecognizerReady(at=1))
    assert [type(action) for action in actions] == [ReleaseAudio, FinishStream]


def test_29_a_pre_roll_that_cannot_be_kept_whole_fails_and_is_never_sent_clipped() -> None:
    recognition = Recognition("recognition-1", Stamp(1, 1))
    actions = recognition.handle(PreReadyOverflowed(at=0, held_ms=2_000))
    assert [type(action) for action in actions] == [CancelStream, ReportFailed]
    assert recognition.handle(RecognizerReady(at=1)) == ()


def test_29_a_recogniser_that_fails_is_replaced_by_the_whole_recording(script: ScriptedConversation) -> None:
    script.user_starts_speaking(sample=12_480)
    failed = script.recognition_id
    script.recognition_fails(recorded_ms=1_500)

    [whole] = script.record.of(TranscribeRecording)
    assert whole.failed_recognition_id == failed
    assert [said.recorded_ms for said in script.record.published(FallbackStarted)] == [1_500]
    script.finishes_saying("what time is it")
    assert script.record.committed_turns() == ["what time is it"]


def two_words_needed() -> ScriptedConversation:
    """A story is playing; "ok" is an ordinary word, and one word is too few."""
    interruption = replace(HANDS_FREE, min_words=2, backchannels=frozenset())
    script = ScriptedConversation(Policies(interruption=interruption)).opened()
    script.user_says("tell me a story")
    script.reply_is_playing((16_000, 32_000))
    script.model_finishes()
    return script


@pytest.mark.parametrize("turns", ["one turn", "a turn each"])
def test_30_refused_words_expire_and_never_add_up(turns: str) -> None:
    script = two_words_needed()
    for number in range(3):
        if turns == "a turn each" or number == 0:
            script.user_starts_speaking()
        script.hears("ok", segment=str(number))
        if turns == "a turn each":
            script.finishes_saying("ok", segment=str(number))
        for _ in range(10):
            script.wait(1_000)
            script.speaker_has_played(2 + script.now_ns // 100_000_000)
    script.finishes_saying("ok", segment="last")

    assert script.record.interruptions() == []
    assert script.conversation.configuration.playback == "playing"
    assert script.record.committed_turns() == ["tell me a story"]
    assert {rejected.reason for rejected in script.record.published(InterruptionRejected)} == {"too_few_words"}


@pytest.mark.parametrize(("pause_ms", "interrupts"), [(3_000, True), (3_001, False)])
def test_30_words_count_together_only_within_their_window(pause_ms: int, interrupts: bool) -> None:
    script = two_words_needed()
    script.user_starts_speaking()
    script.understands("ok", segment="1")
    script.wait(pause_ms)
    script.hears("stop", segment="2")
    assert (script.conversation.configuration.playback == "stopped") is interrupts
