"""What is known of background tasks, and where it is kept so that a restart does not lose it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Protocol

from .ports import ToolRequest
from .tool import cleaned


class TaskState(StrEnum):
    """The states of the `BackgroundTask` chart, by their names there."""

    QUEUED = "queued"
    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"
    UNKNOWN = "unknown"

    @property
    def is_open(self) -> bool:
        """Something of it is still to come."""
        return self in (TaskState.QUEUED, TaskState.RUNNING)


@dataclass(frozen=True, slots=True)
class TaskRecord:
    """One background task. `task_id` is "" until a store has taken it in."""

    response_id: str
    """The reply whose call it was."""
    request: ToolRequest
    task_id: str = ""
    state: TaskState = TaskState.QUEUED
    starts: int = 0
    """How often it began to run; more than once only where it is resumable."""
    output: str = ""
    """What the model is told of it, once it has ended."""
    told: bool = False
    """The model was told of its end."""


class TaskStore(Protocol):
    """Keeps the tasks of one conversation. What was stored survives the process from the moment a method returns.

    Raises `PortError` for what cannot be kept; the conversation ends with it.
    """

    def add(self, task: TaskRecord) -> TaskRecord:
        """Take a new task in; returns it with its identity, which no other task of the store ever had."""
        ...

    def update(self, task: TaskRecord) -> None:
        """Replace what is known of a task."""
        ...

    def unsettled(self) -> tuple[TaskRecord, ...]:
        """Every task that is open, or of whose end the model was not told; the oldest first."""
        ...

    def take_cancellations(self) -> tuple[str, ...]:
        """Open tasks whose end somebody outside asked for since the last time."""
        ...


@dataclass
class MemoryTaskStore:
    """Keeps tasks as long as the process lives."""

    tasks: dict[str, TaskRecord] = field(default_factory=dict[str, TaskRecord])
    cancellations: list[str] = field(default_factory=list[str])

    def add(self, task: TaskRecord) -> TaskRecord:
        taken = replace(task, task_id=f"t{len(self.tasks) + 1}")
        self.tasks[taken.task_id] = taken
        return taken

    def update(self, task: TaskRecord) -> None:
        self.tasks[task.task_id] = task

    def unsettled(self) -> tuple[TaskRecord, ...]:
        return tuple(task for task in self.tasks.values() if task.state.is_open or not task.told)

    def take_cancellations(self) -> tuple[str, ...]:
        taken, self.cancellations = tuple(self.cancellations), []
        return taken


MAX_NOTED_CHARS = 2_048
"""Of one task in a note; the whole result stands with the call."""


def note_of(tasks: Iterable[TaskRecord]) -> str:
    """What the model is told of tasks that have ended, "" for none."""
    told = "\n".join(f"- {cleaned(output_with(task), MAX_NOTED_CHARS)}" for task in tasks)
    return f"Background tasks that have ended since the last turn:\n{told}" if told else ""


def output_with(task: TaskRecord) -> str:
    """How a task ended, in words for the model."""
    return f"task {task.task_id} ({task.request.name}) {task.state}: {task.output}"
