"""BackgroundTask: work that outlives the speech that asked for it.

Theory of operation. A task waits in a queue that survives a restart, runs once, and ends once. Interrupting speech does
not touch it: cancelling speech is not cancelling a task. After a crash a task that was running is `unknown`, because
nobody can tell what it did, and it is not run again - unless it says that running it twice does no harm, then it waits
again; one that was still queued goes on waiting. Stopped or failed midway, a task with side effects is `unknown` too.
"""

# ruff: noqa: E501 - transition lines are the rows of a table

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from .actions import Action, Stamp
from .chart import Chart, ChartDefinition, Selection
from .declaration import Compound, State
from .facts import Fact
from .values import ToolStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskAdmitted(Fact):
    """A worker is free for it."""

    event: ClassVar[str] = "task_admitted"


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskProgressed(Fact):
    event: ClassVar[str] = "task_progressed"
    percent: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskCompleted(Fact):
    event: ClassVar[str] = "task_completed"


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskFailed(Fact):
    """`effect_unknown`: nobody can tell whether the side effect happened."""

    event: ClassVar[str] = "task_failed"
    effect_unknown: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskTimedOut(Fact):
    event: ClassVar[str] = "task_timed_out"


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskCancelled(Fact):
    """Asked for by name; never implied by an interruption."""

    event: ClassVar[str] = "task_cancelled"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessRestarted(Fact):
    """The process that held the task began anew."""

    event: ClassVar[str] = "process_restarted"


@dataclass(frozen=True, slots=True)
class RunTask(Action):
    task_id: str


@dataclass(frozen=True, slots=True)
class StopTask(Action):
    task_id: str


@dataclass(frozen=True, slots=True)
class ReportProgress(Action):
    task_id: str
    percent: int


@dataclass(frozen=True, slots=True)
class ReportTaskOutcome(Action):
    task_id: str
    status: ToolStatus


@dataclass(slots=True)
class TaskContext:
    """What one task remembers."""

    task_id: str
    stamp: Stamp
    has_side_effects: bool = True
    resumable: bool = False
    """It may begin again after a restart."""
    percent: int = 0


class BackgroundTaskChart(ChartDefinition):
    """The declaration."""

    context: TaskContext

    class background_task(Compound, name="Background task"):
        """From the queue to an outcome."""

        queued = State("queued", initial=True)
        running = State("running")
        completed = State("completed")
        failed = State("failed")
        cancelled = State("cancelled")
        unknown = State("unknown")

        # fmt: off
        running.from_(queued, event="task_admitted", on="run_task")
        cancelled.from_(queued, event="task_cancelled", on="report_cancelled")
        queued.to(None, event="process_restarted")
        running.to(None, event="task_progressed", cond="is_further", on="report_progress")
        completed.from_(running, event="task_completed", on="report_completed")
        unknown.from_(running, event="task_failed", cond="effect_is_unknown", on="report_unknown")
        failed.from_(running, event="task_failed", on="report_failed")
        unknown.from_(running, event="task_cancelled task_timed_out", cond="may_have_had_an_effect", on=["stop_task", "report_unknown"])
        cancelled.from_(running, event="task_cancelled", on=["stop_task", "report_cancelled"])
        failed.from_(running, event="task_timed_out", on=["stop_task", "report_failed"])
        queued.from_(running, event="process_restarted", cond="may_run_again")
        unknown.from_(running, event="process_restarted", on="report_unknown")
        # fmt: on

    def is_further(self) -> bool:
        fact = self.fact
        return isinstance(fact, TaskProgressed) and self.context.percent < fact.percent <= 100

    def effect_is_unknown(self) -> bool:
        fact = self.fact
        return isinstance(fact, TaskFailed) and fact.effect_unknown

    def may_have_had_an_effect(self) -> bool:
        return self.context.has_side_effects

    def may_run_again(self) -> bool:
        return self.context.resumable

    def run_task(self) -> None:
        self.emit(RunTask(self.context.stamp, self.context.task_id))

    def stop_task(self) -> None:
        self.emit(StopTask(self.context.stamp, self.context.task_id))

    def report_progress(self) -> None:
        fact = self.fact
        assert isinstance(fact, TaskProgressed)
        self.context.percent = fact.percent
        self.emit(ReportProgress(self.context.stamp, self.context.task_id, fact.percent))

    def report_completed(self) -> None:
        self._report(ToolStatus.COMPLETED)

    def report_failed(self) -> None:
        self._report(ToolStatus.FAILED)

    def report_cancelled(self) -> None:
        self._report(ToolStatus.CANCELLED)

    def report_unknown(self) -> None:
        self._report(ToolStatus.UNKNOWN)

    def _report(self, status: ToolStatus) -> None:
        self.emit(ReportTaskOutcome(self.context.stamp, self.context.task_id, status))


class BackgroundTask(Chart[TaskContext]):
    """A running background-task chart."""

    def __init__(
        self,
        task_id: str,
        stamp: Stamp,
        *,
        has_side_effects: bool = True,
        resumable: bool = False,
        selection: Selection = "indexed",
    ) -> None:
        super().__init__(BackgroundTaskChart(TaskContext(task_id, stamp, has_side_effects, resumable), selection))

    @property
    def state(self) -> str:
        """The active state."""
        return self.leaves[0]
