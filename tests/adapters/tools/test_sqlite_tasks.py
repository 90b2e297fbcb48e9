"""Background tasks in the history's file: they are there after a restart, and each belongs to its conversation."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from voicechart.adapters.history import HistoryStore
from voicechart.adapters.tools import SqliteTasks, TaskTable
from voicechart.engines.ports import ToolRequest
from voicechart.engines.task_store import MemoryTaskStore, TaskRecord, TaskState, TaskStore

CALL = TaskRecord("response-1", ToolRequest("c1", "read", '{"page": 1}'))


@pytest.fixture(params=["sqlite", "memory"])
def tasks(request: pytest.FixtureRequest, tmp_path: Path) -> Generator[TaskStore]:
    if request.param == "memory":
        yield MemoryTaskStore()
        return
    with HistoryStore(tmp_path / "history.db") as store:
        yield SqliteTasks(store, "kitchen")


def test_a_task_is_given_an_identity_and_is_kept_as_it_is(tasks: TaskStore) -> None:
    first, second = tasks.add(CALL), tasks.add(CALL)
    assert first == replace(CALL, task_id="t1")
    assert second.task_id == "t2"
    assert tasks.unsettled() == (first, second)


def test_a_task_is_unsettled_until_it_has_ended_and_the_model_knows(tasks: TaskStore) -> None:
    task = tasks.add(CALL)
    for change in (
        {"state": TaskState.RUNNING, "starts": 1},
        {"state": TaskState.COMPLETED, "output": "page 1 â奥"},
    ):
        task = replace(task, **change)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
        tasks.update(task)
        assert tasks.unsettled() == (task,)
    tasks.update(replace(task, told=True))
    assert tasks.unsettled() == ()


def test_after_a_restart_everything_is_there_and_no_identity_is_used_again(tmp_path: Path) -> None:
    with HistoryStore(tmp_path / "history.db") as store:
        tasks = SqliteTasks(store, "kitchen")
        running = replace(tasks.add(CALL), state=TaskState.RUNNING, starts=1)
        tasks.update(running)
        queued = tasks.add(CALL)
    with HistoryStore(tmp_path / "history.db") as store:
        assert SqliteTasks(store, "kitchen").unsettled() == (running, queued)
        table = TaskTable(store)
        for task in (running, queued):
            SqliteTasks(store, "kitchen").update(replace(task, state=TaskState.UNKNOWN, told=True))
        assert table.prune(datetime.now(UTC) + timedelta(seconds=1)) == 2
        assert SqliteTasks(store, "kitchen").add(CALL).task_id == "t3"


def test_a_conversation_sees_and_changes_its_own_tasks_only(tmp_path: Path) -> None:
    with HistoryStore(tmp_path / "history.db") as store:
        kitchen, attic = SqliteTasks(store, "kitchen"), SqliteTasks(store, "attic")
        task = kitchen.add(CALL)
        attic.update(replace(task, state=TaskState.FAILED))
        assert kitchen.unsettled() == (task,)
        assert attic.unsettled() == ()
        assert [stored.conversation_id for stored in TaskTable(store).tasks()] == ["kitchen"]
        assert TaskTable(store).tasks("attic") == ()


def test_a_cancellation_is_asked_for_by_anybody_and_taken_once_by_who_holds_the_conversation(tmp_path: Path) -> None:
    with HistoryStore(tmp_path / "history.db") as store, HistoryStore(tmp_path / "history.db") as outside:
        tasks = SqliteTasks(store, "kitchen")
        task = tasks.add(CALL)
        assert TaskTable(outside).request_cancellation("t1")
        assert SqliteTasks(store, "attic").take_cancellations() == ()
        assert tasks.take_cancellations() == ("t1",)
        assert tasks.take_cancellations() == ()
        tasks.update(replace(task, state=TaskState.CANCELLED))
        assert not TaskTable(outside).request_cancellation("t1")


@pytest.mark.parametrize("name", ["", "t", "t9", "1; DROP TABLE turns", "t" + "9" * 40, "tx"])
def test_a_name_that_no_open_task_has_cancels_nothing(tmp_path: Path, name: str) -> None:
    with HistoryStore(tmp_path / "history.db") as store:
        SqliteTasks(store, "kitchen").add(CALL)
        assert not TaskTable(store).request_cancellation(name)


def test_only_what_ended_long_ago_is_forgotten(tmp_path: Path) -> None:
    with HistoryStore(tmp_path / "history.db") as store:
        tasks = SqliteTasks(store, "kitchen")
        tasks.add(CALL)
        tasks.update(replace(tasks.add(CALL), state=TaskState.COMPLETED))
        table, later = TaskTable(store), datetime.now(UTC) + timedelta(seconds=1)
        assert table.prune(datetime.now(UTC) - timedelta(hours=1)) == 0
        assert table.prune(later, dry_run=True) == 1
        assert table.prune(later) == 1
        assert [stored.task.task_id for stored in table.tasks()] == ["t1"]


def test_a_history_without_tasks_is_left_as_it_was_until_one_is_kept(tmp_path: Path) -> None:
    with HistoryStore(tmp_path / "history.db") as store:
        assert store.conversations() == ()
        assert TaskTable(store).tasks() == ()
