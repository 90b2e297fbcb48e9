"""The public test kit: time, the ear, the record."""

from __future__ import annotations

import pytest

from voicechart.statecharts.actions import (
    CancelGeneration,
    CancelSynthesis,
    OpenOutput,
    PausePlayback,
    ReleaseOutput,
    ResumePlayback,
    Stamp,
    StopPlayback,
)
from voicechart.statecharts.context import TimerKind
from voicechart.statecharts.facts import TimerFired
from voicechart.statecharts.testing import Ear, Reached, ScriptedConversation
from voicechart.statecharts.values import Outcome, ToolStatus

STAMP = Stamp(1, 1)


def opened(epoch: int, *, held: bool = False) -> OpenOutput:
    return OpenOutput(STAMP, epoch, epoch, "response", 16_000, 1, 80, held)


def test_time_passes_timer_by_timer_each_at_its_own_moment(reached: Reached) -> None:
    script = reached.cancelling()
    script.wait(60_000)
    fired = [entry.fact for entry in script.record.entries if isinstance(entry.fact, TimerFired)]
    assert [fact.at for fact in fired] == sorted(fact.at for fact in fired)
    assert fired[0].at == script.conversation.policies.generation.cancel_ack_ms * 1_000_000
    assert script.now_ns == 60_000_000_000


def test_a_timer_falls_due_at_its_moment_and_not_before(reached: Reached) -> None:
    script = reached.speech()
    due_ms = script.conversation.policies.turn.input_timeout_ms
    script.wait(due_ms - 0.001)
    assert len(script.running(TimerKind.INPUT)) == 1
    script.wait(0.001)
    assert script.running(TimerKind.INPUT) == []


def test_cancelling_a_timer_that_does_not_run_is_noticed() -> None:
    script = ScriptedConversation()
    script.opens()
    script.timers.clear()
    with pytest.raises(AssertionError, match="is cancelled but does not run"):
        script.connects()


def test_the_ear_hears_the_open_epoch_and_drops_an_older_one_for_good() -> None:
    ear = Ear()
    ear.receive("early", 1)
    assert ear.heard == []
    ear.obey(opened(1))
    ear.receive("now", 1)
    ear.receive("future", 2)
    assert ear.heard == ["early", "now"]
    ear.obey(StopPlayback(STAMP, 2, "asked_for"))
    ear.receive("late", 1)
    ear.obey(opened(2))
    assert ear.heard == ["early", "now", "future"]
    assert ear.dropped == ["late"]


def test_the_ear_waits_while_a_stream_is_held_or_paused() -> None:
    ear = Ear()
    ear.obey(opened(1, held=True))
    ear.receive("held", 1)
    assert ear.heard == []
    ear.obey(ReleaseOutput(STAMP, 9))
    assert ear.heard == [], "another stream was released"
    ear.obey(ReleaseOutput(STAMP, 1))
    ear.obey(PausePlayback(STAMP, 1))
    ear.receive("paused", 1)
    assert ear.heard == ["held"]
    ear.obey(ResumePlayback(STAMP, 1))
    assert ear.heard == ["held", "paused"]


def test_the_record_complains_in_sentences(reached: Reached) -> None:
    script = reached.playing()
    response_id = script.generation.response_id
    with pytest.raises(AssertionError, match="has 0 records of its delivery, not one"):
        script.record.delivery_of(response_id)
    with pytest.raises(AssertionError, match="has 0 records of its terminal outcome"):
        script.record.outcome_of(response_id)
    with pytest.raises(AssertionError, match="has 0 records of its outcome"):
        script.record.tool_outcome_of("call-1")
    with pytest.raises(AssertionError, match="nothing stopped the speaker"):
        script.record.assert_silenced_before(CancelGeneration)
    script.user_presses_stop()
    script.record.assert_silenced_before(CancelGeneration)
    with pytest.raises(AssertionError, match="there is no OpenOutput"):
        script.record.assert_silenced_before(OpenOutput)
    with pytest.raises(AssertionError, match="expected CancelSynthesis, StopPlayback, found StopPlayback"):
        script.record.assert_in_order(CancelSynthesis, StopPlayback)


def test_every_reached_conversation_is_where_its_name_says(reached: Reached) -> None:
    for name, script in reached.everywhere().items():
        assert name in script.leaves.split(" | "), f"{name}: {script.leaves}"


def test_the_record_keeps_what_is_asked_about(reached: Reached) -> None:
    script = reached.tools()
    script.tool_ends("call-1")
    script.model_waits_for_tools()
    script.reply_is_playing((16_000,))
    script.reply_is_drained(16_000)
    assert script.record.tool_runs() == ["call-1"]
    assert script.record.tool_outcome_of("call-1") is ToolStatus.COMPLETED
    assert script.record.outcome_of(script.generation.response_id) is Outcome.COMPLETED
    assert script.record.history() == ["user: what time is it", "assistant: 1 delivered"]
    assert script.record.cancelled_attempts() == []
