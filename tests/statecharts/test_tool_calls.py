"""Tool calls in the Generation region: dispatched once, settled once, bounded in time and number."""

from __future__ import annotations

import pytest

from voicechart.statecharts import GenerationPolicy, Policies
from voicechart.statecharts.actions import (
    CancelTools,
    ContinueGeneration,
    ExecuteTool,
    RecordToolOutcome,
)
from voicechart.statecharts.context import TimerKind
from voicechart.statecharts.published import ToolEnded, ToolStarted
from voicechart.statecharts.testing import HANDS_FREE, Reached, ScriptedConversation
from voicechart.statecharts.testing.script import CallDetails
from voicechart.statecharts.values import DeliveryStatus, Outcome, ToolStatus


def asked(**policy: object) -> ScriptedConversation:
    generation = GenerationPolicy(**policy)  # pyright: ignore[reportArgumentType]
    script = ScriptedConversation(Policies(generation=generation, interruption=HANDS_FREE)).opened()
    script.user_says("what time is it")
    return script


@pytest.mark.parametrize("state", ["waiting", "streaming", "tools"])
def test_a_whole_valid_approved_call_is_dispatched(reached: Reached, state: str) -> None:
    script = reached.everywhere()[state]
    script.model_calls_tool("call-9")
    assert script.conversation.configuration.generation == "tools"
    dispatched = script.record.of(ExecuteTool)[-1]
    assert (dispatched.call_id, dispatched.background) == ("call-9", False)
    assert dispatched.response_id == script.generation.response_id
    assert script.record.published(ToolStarted)[-1] == ToolStarted("tool", background=False)


@pytest.mark.parametrize("defect", [{"complete": False}, {"valid": False}, {"approved": False}])
def test_a_defective_call_never_runs_and_has_its_outcome_at_once(reached: Reached, defect: CallDetails) -> None:
    script = reached.waiting()
    script.model_calls_tool("call-1", **defect)
    assert script.conversation.configuration.generation == "waiting"
    assert script.record.tool_runs() == []
    assert script.record.tool_outcome_of("call-1") is ToolStatus.FAILED
    assert script.model_calls_tool("call-1") == (), "its identity is used up"


def test_a_call_announced_twice_runs_once(reached: Reached) -> None:
    script = reached.tools()
    assert script.model_calls_tool("call-1") == ()
    script.tool_ends("call-1")
    assert script.model_calls_tool("call-1") == ()
    assert script.record.tool_runs() == ["call-1"]


def test_the_model_goes_on_when_the_last_of_its_parallel_calls_has_ended(reached: Reached) -> None:
    script = reached.tools()
    script.model_calls_tool("call-2")
    script.model_waits_for_tools()
    script.tool_ends("call-2", ToolStatus.FAILED)
    assert script.record.of(ContinueGeneration) == []
    script.tool_ends("call-1")
    [go_on] = script.record.of(ContinueGeneration)
    assert go_on.attempt_id == script.generation.attempt_id
    assert script.conversation.configuration.generation == "waiting"
    assert script.record.tool_outcome_of("call-2") is ToolStatus.FAILED
    assert [told.status for told in script.record.published(ToolEnded)] == [ToolStatus.FAILED, ToolStatus.COMPLETED]


def test_the_model_goes_on_when_it_ends_its_step_after_its_calls_have_ended(reached: Reached) -> None:
    script = reached.tools()
    script.tool_ends("call-1")
    assert script.record.of(ContinueGeneration) == []
    script.model_waits_for_tools()
    assert len(script.record.of(ContinueGeneration)) == 1
    assert script.conversation.configuration.generation == "waiting"


def test_a_step_of_refused_calls_alone_goes_on_at_once(reached: Reached) -> None:
    script = reached.waiting()
    script.model_calls_tool("call-1", valid=False)
    script.model_waits_for_tools()
    assert len(script.record.of(ContinueGeneration)) == 1


def test_a_background_call_is_not_waited_for(reached: Reached) -> None:
    script = reached.waiting()
    script.model_calls_tool("timer", background=True)
    script.model_waits_for_tools()
    assert len(script.record.of(ContinueGeneration)) == 1


def test_a_waiting_model_is_bounded_by_its_tools_not_by_its_own_progress() -> None:
    script = asked(stall_ms=1_000, tool_ms=60_000)
    script.model_calls_tool("call-1")
    script.model_waits_for_tools()
    script.wait(59_999)
    assert script.conversation.configuration.generation == "tools"
    script.tool_ends("call-1")
    assert len(script.running(TimerKind.PROGRESS)) == 1


def test_a_call_that_meets_its_deadline_has_an_unknown_outcome_and_the_model_is_told() -> None:
    script = asked(tool_ms=500)
    script.model_calls_tool("call-1")
    script.model_waits_for_tools()
    script.wait(499)
    assert script.record.of(RecordToolOutcome) == []
    script.wait(1)
    assert script.record.tool_outcome_of("call-1") is ToolStatus.UNKNOWN
    assert len(script.record.of(ContinueGeneration)) == 1
    assert script.tool_ends("call-1") == (), "an outcome is final"


@pytest.mark.parametrize("ended_by", ["its call", "its deadline", "the model"])
def test_the_number_of_tool_steps_is_bounded(ended_by: str) -> None:
    script = asked(max_tool_steps=2, tool_ms=500)
    script.model_calls_tool("call-1")
    script.model_waits_for_tools()
    script.tool_ends("call-1")
    script.model_calls_tool("call-2")
    if ended_by == "the model":
        script.tool_ends("call-2")
        script.model_waits_for_tools()
    else:
        script.model_waits_for_tools()
        if ended_by == "its call":
            script.tool_ends("call-2")
        else:
            script.wait(500)
    assert script.conversation.configuration.generation == "failed"
    assert script.record.outcome_of(script.generation.response_id) is Outcome.FAILED
    assert script.record.tool_outcome_of("call-2") is not None
    assert script.record.tool_runs() == ["call-1", "call-2"]
    assert script.running(TimerKind.TOOL) == []


def test_an_interruption_cancels_foreground_calls_for_ever_and_leaves_the_background(reached: Reached) -> None:
    script = reached.tools()
    script.model_calls_tool("timer", background=True)
    script.user_presses_stop()
    [cancel] = script.record.of(CancelTools)
    assert cancel.call_ids == ("call-1",)
    assert script.record.tool_outcome_of("call-1") is ToolStatus.CANCELLED
    assert script.tool_ends("call-1") == ()
    assert script.record.tool_outcome_of("call-1") is ToolStatus.CANCELLED
    script.tool_ends("timer")
    assert script.record.tool_outcome_of("timer") is ToolStatus.COMPLETED


@pytest.mark.parametrize("then", ["while cancelling", "after it", "in the next reply"])
def test_background_work_ends_whenever_it_ends(reached: Reached, then: str) -> None:
    script = reached.waiting()
    script.model_calls_tool("timer", background=True)
    script.user_presses_stop()
    if then != "while cancelling":
        script.model_acknowledges_cancel()
    if then == "in the next reply":
        script.user_types("hello")
    leaves = script.leaves
    script.tool_ends("timer")
    assert script.record.tool_outcome_of("timer") is ToolStatus.COMPLETED
    assert script.leaves == leaves
    assert script.conversation.context.background == ()
    assert script.running(TimerKind.TOOL) == []


def test_a_call_under_the_identity_of_open_background_work_is_refused(reached: Reached) -> None:
    script = reached.waiting()
    script.model_calls_tool("timer", background=True)
    script.user_presses_stop()
    script.model_acknowledges_cancel()
    script.user_types("hello")
    script.model_calls_tool("timer")
    assert script.record.tool_runs() == ["timer"]


def test_a_failed_generation_cancels_its_open_calls(reached: Reached) -> None:
    script = reached.tools()
    script.model_fails()
    assert script.record.tool_outcome_of("call-1") is ToolStatus.CANCELLED
    assert script.conversation.configuration.generation == "failed"


def test_a_call_that_outlives_its_generation_is_cancelled_by_an_interruption(reached: Reached) -> None:
    script = reached.playing()
    script.model_calls_tool("call-1")
    script.model_finishes()
    script.audio_ends(48_000)
    script.user_presses_stop()
    assert script.record.tool_outcome_of("call-1") is ToolStatus.CANCELLED
    assert [cancel.call_ids for cancel in script.record.of(CancelTools)] == [("call-1",)]


def test_a_call_that_is_open_when_the_next_reply_begins_is_unknown(reached: Reached) -> None:
    script = reached.draining()
    script = reached.playing()
    script.model_calls_tool("call-1")
    script.model_finishes()
    script.audio_ends(48_000)
    script.speaker_drains(48_000)
    script.user_types("next")
    assert script.record.tool_outcome_of("call-1") is ToolStatus.UNKNOWN
    assert script.running(TimerKind.TOOL) == []


def test_a_tool_that_ended_is_kept_when_the_speech_about_it_is_cut(reached: Reached) -> None:
    script = reached.tools()
    script.tool_ends("call-1")
    script.model_waits_for_tools()
    script.reply_is_playing((16_000,))
    script.user_presses_stop()
    script.speaker_has_stopped(0)
    script.model_acknowledges_cancel()
    assert script.record.tool_outcome_of("call-1") is ToolStatus.COMPLETED
    assert script.record.deliveries() == [DeliveryStatus.INTERRUPTED]
    script.user_types("go on")
    assert script.record.tool_runs() == ["call-1"]


def test_the_end_of_an_unknown_call_means_nothing(reached: Reached) -> None:
    for state in ("waiting", "tools", "cancelling", "cancelled"):
        script = reached.everywhere()[state]
        assert script.tool_ends("never-asked-for") == ()
