"""Background tasks: calls that outlive the reply, the interruption and the process that began them.

A call in the background ends at once: the model is told that its task is queued. The task waits for a free place, runs
once and ends once, through the `BackgroundTask` chart; cancelling speech does not touch it. Every state is stored when
it is reached, so that a restart knows what was queued, which goes on, and what was running, which nobody can tell the
end of - unless the tool says that it may begin again. The end of a task is told to the model with the next turn, and
where the tool has words for it a notification may be asked for.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace

import anyio

from ..statecharts.actions import Action, Stamp
from ..statecharts.background_task import (
    BackgroundTask,
    ProcessRestarted,
    ReportTaskOutcome,
    RunTask,
    StopTask,
    TaskAdmitted,
    TaskCancelled,
    TaskCompleted,
    TaskFailed,
    TaskTimedOut,
)
from ..statecharts.facts import Fact
from .engine import Desk
from .port_calls import origin_of
from .ports import ToolRequest
from .public_events import TaskUpdated
from .task_store import MemoryTaskStore, TaskRecord, TaskState, TaskStore, note_of
from .tool import Tool, ToolError, as_text, cleaned
from .tool_arguments import ArgumentsRefused

logger = logging.getLogger(__name__)

LOOK_FOR_CANCELLATIONS_NS = 1_000_000_000
MAX_NOTED_TASKS = 8
"""In one turn; the others are told with the next."""
ACCEPTED = "accepted as task {}: it goes on in the background, and its result comes with a later turn"


@dataclass(frozen=True, slots=True)
class TaskLimits:
    """How much goes on in the background. A result is as long as that of any tool at most."""

    open_tasks: int = 32
    """Queued and running."""
    running_tasks: int = 2
    run_ms: int = 3_600_000
    """Of a task whose tool has no deadline of its own."""
    starts: int = 3
    """How often a resumable task may begin: one that ends the process must not do so for ever."""

    def __post_init__(self) -> None:
        """Raises ValueError for a queue that never moves."""
        if min(self.open_tasks, self.running_tasks, self.run_ms, self.starts) < 1:
            raise ValueError("every limit of background tasks is at least 1")


@dataclass
class _OpenTask:
    record: TaskRecord
    tool: Tool | None
    """None: there is no such tool any more."""
    life: BackgroundTask
    scope: anyio.CancelScope


class BackgroundTasks:
    """The background tasks of one session. `notify`: says these words to the user as soon as it fits."""

    def __init__(
        self,
        store: TaskStore | None = None,
        *,
        limits: TaskLimits | None = None,
        notify: Callable[[str], object] | None = None,
    ) -> None:
        self._store = store or MemoryTaskStore()
        self._limits = limits or TaskLimits()
        self.notify = notify
        """May be set later: a session is made after its tasks."""
        self._open: dict[str, _OpenTask] = {}
        self._untold: dict[str, TaskRecord] = {}
        self._desk: Desk | None = None
        self._remember: Callable[[TaskRecord], None] = _forget
        self._watching = False

    def attach(self, desk: Desk, tools: tuple[Tool, ...], remember: Callable[[TaskRecord], None]) -> None:
        """Begin: settle what a former process left, and go on with what waits. Called once.

        `remember` is told of every task that has ended.
        """
        self._desk, self._remember = desk, remember
        by_name = {tool.name: tool for tool in tools}
        left = self._store.unsettled()
        for record in left:
            if record.state.is_open:
                self._take_up(record, by_name.get(record.request.name))
            else:
                self._untold[record.task_id] = record
        self._admit()

    def queue(self, response_id: str, request: ToolRequest, tool: Tool) -> str:
        """Take a call over; returns what the model is told of it. Raises `ToolError` when there is no room."""
        if len(self._open) >= self._limits.open_tasks:
            raise ToolError(f"refused: {self._limits.open_tasks} background tasks are open; wait for one to end")
        task = self._begin(self._store.add(TaskRecord(response_id, request)), tool)
        self._publish(task.record)
        self._admit()
        return ACCEPTED.format(task.record.task_id)

    def cancel(self, task_id: str) -> bool:
        """End a task by its name. False: no such task is open."""
        task = self._open.get(task_id)
        if task is None:
            return False
        self._tell(task, TaskCancelled(at=self._now), "it was cancelled")
        return True

    def take_note(self) -> str:
        """What the model has to be told, once; "" for nothing."""
        ended = list(self._untold.values())[:MAX_NOTED_TASKS]
        for record in ended:
            del self._untold[record.task_id]
            self._store.update(replace(record, told=True))
        return note_of(ended)

    # -- beginning -------------------------------------------------------------------------------------------------

    def _begin(self, record: TaskRecord, tool: Tool | None) -> _OpenTask:
        context = self.desk.conversation.context
        life = BackgroundTask(
            record.task_id,
            Stamp(context.session_epoch, context.output_epoch),
            has_side_effects=tool is None or tool.has_side_effects,
            resumable=tool is not None and tool.resumable and record.starts < self._limits.starts,
        )
        task = _OpenTask(record, tool, life, anyio.CancelScope())
        self._open[record.task_id] = task
        if not self._watching:
            self._watching = True
            self.desk.start_task(self._look_for_cancellations, name="cancellations of background tasks")
        return task

    def _take_up(self, record: TaskRecord, tool: Tool | None) -> None:
        """A task of a former process."""
        task = self._begin(record, tool)
        if record.state is TaskState.RUNNING:
            # It ran in the former process: here its chart is brought to where that one was, and nothing is run.
            task.life.handle(TaskAdmitted(at=self._now))
        self._tell(task, ProcessRestarted(at=self._now), "the process ended while it ran; what it did is not known")
        if task.life.state == TaskState.QUEUED:
            task.record = replace(record, state=TaskState.QUEUED)
            self._save(task.record)

    def _admit(self) -> None:
        """Start what waits, as far as there are free places."""
        running = sum(task.record.state is TaskState.RUNNING for task in self._open.values())
        for task in tuple(self._open.values()):
            if task.record.state is TaskState.QUEUED and running < self._limits.running_tasks:
                running += 1
                task.record = replace(task.record, state=TaskState.RUNNING, starts=task.record.starts + 1)
                # Stored before it runs: what may have begun must never look as if it had not.
                self._save(task.record)
                self._tell(task, TaskAdmitted(at=self._now))

    # -- running ---------------------------------------------------------------------------------------------------

    async def _run(self, task: _OpenTask) -> None:
        with task.scope:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._end_in_time, task)
                await self._call(task)
                tasks.cancel_scope.cancel()

    async def _call(self, task: _OpenTask) -> None:
        tool, request = task.tool, task.record.request
        if tool is None:
            self._tell(task, TaskFailed(at=self._now), f"there is no tool named {request.name!r} any more")
            return
        try:
            said = as_text(await tool.run(tool.form.parse(request.arguments_json or "{}")))
        except ArgumentsRefused as refused:
            self._tell(task, TaskFailed(at=self._now), cleaned(f"the tool takes other arguments now: {refused}"))
        except ToolError as failure:
            unknown = failure.effect_unknown
            self._tell(task, TaskFailed(at=self._now, effect_unknown=unknown), cleaned(str(failure)))
        except Exception as failure:
            logger.error("the background tool %s failed: %s", tool.name, origin_of(failure))
            fact = TaskFailed(at=self._now, effect_unknown=tool.has_side_effects)
            self._tell(task, fact, f"the tool failed ({type(failure).__name__})")
        else:
            self._tell(task, TaskCompleted(at=self._now), said)

    async def _end_in_time(self, task: _OpenTask) -> None:
        tool = task.tool
        timeout_ms = self._limits.run_ms if tool is None or tool.timeout_ms is None else tool.timeout_ms
        await self.desk.clock.sleep_until(self._now + timeout_ms * 1_000_000)
        self._tell(task, TaskTimedOut(at=self._now), f"it did not end within {timeout_ms / 1_000:g} s")

    async def _look_for_cancellations(self) -> None:
        """Asked for from outside this process, as by the command line."""
        clock = self.desk.clock
        while self._open:
            for task_id in self._store.take_cancellations():
                self.cancel(task_id)
            await clock.sleep_until(clock.now_ns() + LOOK_FOR_CANCELLATIONS_NS)
        self._watching = False

    # -- ending ----------------------------------------------------------------------------------------------------

    def _end(self, task: _OpenTask, state: TaskState, output: str) -> None:
        del self._open[task.record.task_id]
        task.record = replace(task.record, state=state, output=output)
        self._save(task.record)
        self._untold[task.record.task_id] = task.record
        self._remember(task.record)
        announce = task.tool.announce if task.tool is not None else None
        if self.notify is not None and announce is not None and state is TaskState.COMPLETED:
            self._announce(announce, output, self.notify)
        self._admit()

    def _announce(self, announce: Callable[[str], str], output: str, notify: Callable[[str], object]) -> None:
        try:
            notify(announce(output))
        except Exception as failure:
            logger.error("a finished background task could not be told to the user: %s", origin_of(failure))

    # -- the chart, the store, the public --------------------------------------------------------------------------

    @property
    def desk(self) -> Desk:
        """The session; there from `attach` on."""
        assert self._desk is not None
        return self._desk

    @property
    def _now(self) -> int:
        return self.desk.clock.now_ns()

    def _tell(self, task: _OpenTask, fact: Fact, output: str = "") -> None:
        for action in task.life.handle(fact):
            self._carry_out(task, action, output)

    def _carry_out(self, task: _OpenTask, action: Action, output: str) -> None:
        match action:
            case RunTask():
                self.desk.start_task(self._run, task, name=f"background task {task.record.task_id}")
            case StopTask():
                task.scope.cancel()
            case ReportTaskOutcome(status=status):
                self._end(task, TaskState(status.value), output)
            case _:
                raise AssertionError(f"{type(action).__name__} is not decided by the BackgroundTask chart")

    def _save(self, record: TaskRecord) -> None:
        self._store.update(record)
        self._publish(record)

    def _publish(self, record: TaskRecord) -> None:
        self.desk.publish(
            TaskUpdated(record.task_id, record.request.name, record.state.value),
            response_id=record.response_id,
            call_id=record.request.call_id,
        )


def _forget(task: TaskRecord) -> None:
    """Nobody remembers."""
