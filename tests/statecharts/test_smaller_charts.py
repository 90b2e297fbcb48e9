"""The smaller charts as tables: from a state, a fact, to a state with these actions, and one outcome for ever."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from voicechart.statecharts import background_task as task
from voicechart.statecharts import recognition as hearing
from voicechart.statecharts import synthesis as speaking
from voicechart.statecharts import tool_call as tool
from voicechart.statecharts.actions import Action, Stamp
from voicechart.statecharts.background_task import BackgroundTask
from voicechart.statecharts.errors import ErrorScope, ScopedError
from voicechart.statecharts.facts import Fact
from voicechart.statecharts.recognition import Recognition
from voicechart.statecharts.synthesis import Synthesis
from voicechart.statecharts.tool_call import ToolCallLife
from voicechart.statecharts.values import ToolStatus

STAMP = Stamp(3, 7)
ERROR = ScopedError("lost", "test", ErrorScope.TURN, "scripted")

SmallChart = Recognition | Synthesis | ToolCallLife | BackgroundTask


def arrived(chart: SmallChart, facts: Sequence[Fact], state: str) -> tuple[Action, ...]:
    """The actions of the last fact, after the chart arrived in `state`."""
    actions: tuple[Action, ...] = ()
    for fact in facts:
        actions = chart.handle(fact)
    assert chart.state == state
    assert all(action.stamp == STAMP for action in actions)
    return actions


def names(actions: Sequence[Action]) -> list[str]:
    return [type(action).__name__ for action in actions]


READY, WRITTEN = hearing.RecognizerReady(at=0), hearing.AudioWritten(at=0)
FINISHED, HEARD = hearing.InputFinished(at=0), hearing.RecognizerEnded(at=0)
UNHEARD, UNWANTED = hearing.RecognizerErrored(at=0, error=ERROR), hearing.RecognitionCancelled(at=0)
OVERFLOWED = hearing.PreReadyOverflowed(at=0, held_ms=2_000)


@pytest.mark.parametrize(
    ("facts", "state", "actions"),
    [
        ([READY], "ready", ["ReleaseAudio"]),
        ([FINISHED], "connecting", []),
        ([FINISHED, READY], "finishing", ["ReleaseAudio", "FinishStream"]),
        ([OVERFLOWED], "failed", ["CancelStream", "ReportFailed"]),
        ([READY, OVERFLOWED], "ready", []),
        ([READY, WRITTEN], "streaming", []),
        ([READY, FINISHED], "finishing", ["FinishStream"]),
        ([READY, WRITTEN, FINISHED], "finishing", ["FinishStream"]),
        ([READY, WRITTEN, FINISHED, FINISHED], "finishing", []),
        ([READY, HEARD], "closed", ["ReportClosed"]),
        ([READY, WRITTEN, HEARD], "closed", ["ReportClosed"]),
        ([READY, FINISHED, HEARD], "closed", ["ReportClosed"]),
        ([UNHEARD], "failed", ["CancelStream", "ReportFailed"]),
        ([READY, UNHEARD], "failed", ["CancelStream", "ReportFailed"]),
        ([READY, WRITTEN, UNHEARD], "failed", ["CancelStream", "ReportFailed"]),
        ([READY, FINISHED, UNHEARD], "failed", ["CancelStream", "ReportFailed"]),
        ([UNWANTED], "closed", ["CancelStream"]),
        ([READY, UNWANTED], "closed", ["CancelStream"]),
        ([READY, WRITTEN, UNWANTED], "closed", ["CancelStream"]),
        ([READY, FINISHED, UNWANTED], "closed", ["CancelStream"]),
    ],
)
def test_a_recognition_releases_its_audio_whole_and_ends_once(
    facts: list[Fact], state: str, actions: list[str]
) -> None:
    assert names(arrived(Recognition("recognition-1", STAMP), facts, state)) == actions


def test_a_recognition_says_why_it_failed() -> None:
    [_, reported] = arrived(Recognition("recognition-1", STAMP), [UNHEARD], "failed")
    assert reported == hearing.ReportFailed(STAMP, "recognition-1", ERROR)
    [_, clipped] = arrived(Recognition("recognition-1", STAMP), [OVERFLOWED], "failed")
    assert isinstance(clipped, hearing.ReportFailed)
    assert clipped.error.code == "recognizer_not_ready"
    assert "within 2000 ms of speech" in clipped.error.message


SOUND = speaking.FirstAudioProduced(at=0, sample_rate_hz=22_050, channels=1)
WRITTEN_OUT, SAID = speaking.TextEnded(at=0), speaking.SynthesizerEnded(at=0, end_sample=4_410)
BROKEN, CALLED_OFF = speaking.SynthesizerErrored(at=0, end_sample=800, error=ERROR), speaking.SynthesisCancelled(at=0)


@pytest.mark.parametrize(
    ("facts", "state", "actions"),
    [
        ([SOUND], "speaking", [speaking.ReportAudioStarted(STAMP, "reply", 22_050, 1)]),
        ([SOUND, SOUND], "speaking", []),
        ([WRITTEN_OUT], "silent", [speaking.FinishText(STAMP, "reply")]),
        ([SOUND, WRITTEN_OUT], "finishing", [speaking.FinishText(STAMP, "reply")]),
        ([SAID], "ended", [speaking.ReportAudioEnded(STAMP, "reply", 4_410)]),
        ([SOUND, SAID], "ended", [speaking.ReportAudioEnded(STAMP, "reply", 4_410)]),
        ([SOUND, WRITTEN_OUT, SAID], "ended", [speaking.ReportAudioEnded(STAMP, "reply", 4_410)]),
        ([BROKEN], "failed", [speaking.ReportSynthesisFailed(STAMP, "reply", 800, ERROR)]),
        ([SOUND, BROKEN], "failed", [speaking.ReportSynthesisFailed(STAMP, "reply", 800, ERROR)]),
        ([SOUND, WRITTEN_OUT, BROKEN], "failed", [speaking.ReportSynthesisFailed(STAMP, "reply", 800, ERROR)]),
        ([CALLED_OFF], "cancelled", [speaking.StopSynthesizer(STAMP, "reply")]),
        ([SOUND, CALLED_OFF], "cancelled", [speaking.StopSynthesizer(STAMP, "reply")]),
        ([SOUND, WRITTEN_OUT, CALLED_OFF], "cancelled", [speaking.StopSynthesizer(STAMP, "reply")]),
    ],
)
def test_a_synthesis_reports_what_exists_and_is_called_off_from_its_start(
    facts: list[Fact], state: str, actions: list[Action]
) -> None:
    synthesis = Synthesis("reply", STAMP)
    assert list(arrived(synthesis, facts, state)) == actions
    assert synthesis.is_cancelled is (state == "cancelled")


APPROVED, REFUSED = tool.CallApproved(at=0), tool.CallRefused(at=0)
DONE, FAILED = tool.CallCompleted(at=0), tool.CallFailed(at=0)
DOUBTFUL, CANCELLED = tool.CallFailed(at=0, effect_unknown=True), tool.CallCancelled(at=0)
LATE = tool.CallTimedOut(at=0)


def outcome(status: ToolStatus) -> tool.ReportOutcome:
    return tool.ReportOutcome(STAMP, "call-1", status)


STOP = tool.StopTool(STAMP, "call-1")


@pytest.mark.parametrize(
    ("has_side_effects", "facts", "state", "actions"),
    [
        (True, [APPROVED], "running", [tool.RunTool(STAMP, "call-1")]),
        (True, [APPROVED, APPROVED], "running", []),
        (True, [REFUSED], "failed", [outcome(ToolStatus.FAILED)]),
        (True, [CANCELLED], "cancelled", [outcome(ToolStatus.CANCELLED)]),
        (True, [CANCELLED, APPROVED], "cancelled", []),
        (True, [APPROVED, DONE], "completed", [outcome(ToolStatus.COMPLETED)]),
        (True, [APPROVED, FAILED], "failed", [outcome(ToolStatus.FAILED)]),
        (True, [APPROVED, DOUBTFUL], "unknown", [outcome(ToolStatus.UNKNOWN)]),
        (True, [APPROVED, CANCELLED], "unknown", [STOP, outcome(ToolStatus.UNKNOWN)]),
        (True, [APPROVED, LATE], "unknown", [STOP, outcome(ToolStatus.UNKNOWN)]),
        (False, [APPROVED, CANCELLED], "cancelled", [STOP, outcome(ToolStatus.CANCELLED)]),
        (False, [APPROVED, LATE], "failed", [STOP, outcome(ToolStatus.FAILED)]),
        (False, [APPROVED, CANCELLED, DONE], "cancelled", []),
    ],
)
def test_a_tool_call_runs_once_and_its_outcome_stays(
    has_side_effects: bool, facts: list[Fact], state: str, actions: list[Action]
) -> None:
    call = ToolCallLife("call-1", STAMP, has_side_effects=has_side_effects)
    assert list(arrived(call, facts, state)) == actions


ADMITTED, HALF = task.TaskAdmitted(at=0), task.TaskProgressed(at=0, percent=50)
ENDED, BROKE = task.TaskCompleted(at=0), task.TaskFailed(at=0)
NAMED, RESTARTED = task.TaskCancelled(at=0), task.ProcessRestarted(at=0)
DOUBTED, TOO_LATE = task.TaskFailed(at=0, effect_unknown=True), task.TaskTimedOut(at=0)


def reported(status: ToolStatus) -> task.ReportTaskOutcome:
    return task.ReportTaskOutcome(STAMP, "task-1", status)


@pytest.mark.parametrize(
    ("facts", "state", "actions"),
    [
        ([ADMITTED], "running", [task.RunTask(STAMP, "task-1")]),
        ([NAMED], "cancelled", [reported(ToolStatus.CANCELLED)]),
        ([RESTARTED], "queued", []),
        ([RESTARTED, ADMITTED], "running", [task.RunTask(STAMP, "task-1")]),
        ([ADMITTED, HALF], "running", [task.ReportProgress(STAMP, "task-1", 50)]),
        ([ADMITTED, HALF, HALF], "running", []),
        ([ADMITTED, task.TaskProgressed(at=0, percent=101)], "running", []),
        ([ADMITTED, ENDED], "completed", [reported(ToolStatus.COMPLETED)]),
        ([ADMITTED, BROKE], "failed", [reported(ToolStatus.FAILED)]),
        ([ADMITTED, DOUBTED], "unknown", [reported(ToolStatus.UNKNOWN)]),
        ([ADMITTED, NAMED], "unknown", [task.StopTask(STAMP, "task-1"), reported(ToolStatus.UNKNOWN)]),
        ([ADMITTED, TOO_LATE], "unknown", [task.StopTask(STAMP, "task-1"), reported(ToolStatus.UNKNOWN)]),
        ([TOO_LATE], "queued", []),
        ([ADMITTED, RESTARTED], "unknown", [reported(ToolStatus.UNKNOWN)]),
        ([ADMITTED, RESTARTED, ADMITTED], "unknown", []),
    ],
)
def test_a_background_task_survives_a_restart_only_while_it_waits(
    facts: list[Fact], state: str, actions: list[Action]
) -> None:
    assert list(arrived(BackgroundTask("task-1", STAMP), facts, state)) == actions


@pytest.mark.parametrize(
    ("facts", "state", "actions"),
    [
        ([ADMITTED, NAMED], "cancelled", [task.StopTask(STAMP, "task-1"), reported(ToolStatus.CANCELLED)]),
        ([ADMITTED, TOO_LATE], "failed", [task.StopTask(STAMP, "task-1"), reported(ToolStatus.FAILED)]),
        ([ADMITTED, RESTARTED], "queued", []),
        ([ADMITTED, RESTARTED, ADMITTED], "running", [task.RunTask(STAMP, "task-1")]),
        ([ADMITTED, ENDED, RESTARTED], "completed", []),
    ],
)
def test_a_background_task_without_side_effects_leaves_no_doubt_and_may_begin_again(
    facts: list[Fact], state: str, actions: list[Action]
) -> None:
    harmless = BackgroundTask("task-1", STAMP, has_side_effects=False, resumable=True)
    assert list(arrived(harmless, facts, state)) == actions


EVERYTHING: list[tuple[Callable[[], SmallChart], list[Fact]]] = [
    (lambda: Recognition("r", STAMP), [READY, WRITTEN, FINISHED, HEARD, UNHEARD, UNWANTED, OVERFLOWED]),
    (lambda: Synthesis("s", STAMP), [SOUND, WRITTEN_OUT, SAID, BROKEN, CALLED_OFF]),
    (lambda: ToolCallLife("t", STAMP), [APPROVED, REFUSED, DONE, FAILED, DOUBTFUL, CANCELLED, LATE]),
    (lambda: BackgroundTask("b", STAMP), [ADMITTED, HALF, ENDED, BROKE, DOUBTED, NAMED, TOO_LATE, RESTARTED]),
]
FINAL = {"closed", "failed", "ended", "cancelled", "completed", "unknown"}


@pytest.mark.parametrize(("made", "facts"), EVERYTHING, ids=["recognition", "synthesis", "tool call", "task"])
def test_nothing_follows_an_outcome(made: Callable[[], SmallChart], facts: list[Fact]) -> None:
    for first in facts:
        for second in facts:
            chart = made()
            chart.handle(first)
            chart.handle(second)
            if chart.state in FINAL:
                there = chart.state
                assert all(chart.handle(fact) == () for fact in facts)
                assert chart.state == there
