"""Background tasks beside the history, in the same SQLite file and a table of their own.

A program that does not know the table leaves it alone. Every write is committed when it returns, as those of the
history are.
"""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from ...engines.ports import ToolRequest
from ...engines.task_store import TaskRecord, TaskState
from ..history import HistoryStore
from ..history.store import now, stored_form

_TABLE = """CREATE TABLE IF NOT EXISTS background_tasks (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    conversation_id TEXT NOT NULL,
    response_id TEXT NOT NULL,
    call_id TEXT NOT NULL,
    name TEXT NOT NULL,
    arguments_json TEXT NOT NULL,
    state TEXT NOT NULL,
    starts INTEGER NOT NULL,
    output TEXT NOT NULL,
    told INTEGER NOT NULL,
    cancel_requested INTEGER NOT NULL,
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL
) STRICT"""
_COLUMNS = "number, response_id, call_id, name, arguments_json, state, starts, output, told"
_OPEN = "state IN ('queued', 'running')"


@dataclass(frozen=True, slots=True)
class StoredTask:
    """A task as the file has it."""

    conversation_id: str
    task: TaskRecord
    cancel_requested: bool
    created_at: datetime
    updated_at: datetime


class TaskTable:
    """The tasks of every conversation of a file. All methods raise `HistoryError`."""

    def __init__(self, store: HistoryStore) -> None:
        """The table is made where there is none yet."""
        self._store = store
        with store.transaction() as connection:
            connection.execute(_TABLE)

    def tasks(self, conversation_id: str | None = None) -> tuple[StoredTask, ...]:
        """All of them, or those of one conversation; the oldest first."""
        with self._store.transaction() as connection:
            rows = connection.execute(
                f"""SELECT {_COLUMNS}, conversation_id, cancel_requested, created_at, updated_at
                    FROM background_tasks WHERE ?1 IS NULL OR conversation_id = ?1 ORDER BY number""",
                (conversation_id,),
            ).fetchall()
        return tuple(
            StoredTask(
                row[9],
                _task_of(row[:9]),
                bool(row[10]),
                datetime.fromisoformat(row[11]),
                datetime.fromisoformat(row[12]),
            )
            for row in rows
        )

    def request_cancellation(self, task_id: str) -> bool:
        """Ask whoever holds the conversation, now or next, to end a task. False: no such task is open."""
        with self._store.transaction() as connection:
            return bool(
                connection.execute(
                    f"UPDATE background_tasks SET cancel_requested = 1 WHERE number = ? AND {_OPEN}",
                    (_number_of(task_id),),
                ).rowcount
            )

    def prune(self, before: datetime, *, dry_run: bool = False) -> int:
        """Delete what ended before that moment, and overwrite it in the file. Returns how many."""
        where = f"NOT {_OPEN} AND updated_at < ?"
        with self._store.transaction() as connection:
            connection.execute("PRAGMA secure_delete = ON")
            if dry_run:
                sql = f"SELECT count(*) FROM background_tasks WHERE {where}"
                return int(connection.execute(sql, (stored_form(before),)).fetchone()[0])
            return connection.execute(f"DELETE FROM background_tasks WHERE {where}", (stored_form(before),)).rowcount


class SqliteTasks:
    """The tasks of one conversation. Implements `TaskStore`."""

    def __init__(self, store: HistoryStore, conversation_id: str) -> None:
        TaskTable(store)
        self._store = store
        self._conversation_id = conversation_id

    def add(self, task: TaskRecord) -> TaskRecord:
        """Its identity is "t" and a number that the file never gives again."""
        request = task.request
        with self._store.transaction() as connection:
            connection.execute(
                """INSERT INTO background_tasks (
                     conversation_id, response_id, call_id, name, arguments_json, state, starts, output, told,
                     cancel_requested, created_at, updated_at
                   ) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, 0, ?, ?)""",
                (
                    self._conversation_id,
                    task.response_id,
                    request.call_id,
                    request.name,
                    request.arguments_json,
                    task.state.value,
                    task.starts,
                    task.output,
                    task.told,
                    moment := now(),
                    moment,
                ),
            )
            (number,) = connection.execute("SELECT last_insert_rowid()").fetchone()
        return TaskRecord(task.response_id, request, f"t{number}", task.state, task.starts, task.output, task.told)

    def update(self, task: TaskRecord) -> None:
        with self._store.transaction() as connection:
            connection.execute(
                """UPDATE background_tasks SET state = ?, starts = ?, output = ?, told = ?, updated_at = ?
                   WHERE number = ? AND conversation_id = ?""",
                (
                    task.state.value,
                    task.starts,
                    task.output,
                    task.told,
                    now(),
                    _number_of(task.task_id),
                    self._conversation_id,
                ),
            )

    def unsettled(self) -> tuple[TaskRecord, ...]:
        return tuple(_task_of(row) for row in self._select(f"({_OPEN} OR NOT told)"))

    def take_cancellations(self) -> tuple[str, ...]:
        rows = self._select(f"cancel_requested AND {_OPEN}", "UPDATE background_tasks SET cancel_requested = 0")
        return tuple(f"t{row[0]}" for row in rows)

    def _select(self, where: str, then: str | None = None) -> list[Any]:
        """The rows of this conversation; `then` is done to the same ones."""
        of = f"WHERE conversation_id = ? AND {where}"
        with self._store.transaction() as connection:
            select = f"SELECT {_COLUMNS} FROM background_tasks {of} ORDER BY number"
            rows = connection.execute(select, (self._conversation_id,)).fetchall()
            if then is not None and rows:
                connection.execute(f"{then} {of}", (self._conversation_id,))
        return rows


def _task_of(row: tuple[Any, ...] | sqlite3.Row) -> TaskRecord:
    number, response_id, call_id, name, arguments_json, state, starts, output, told = row
    request = ToolRequest(call_id, name, arguments_json)
    return TaskRecord(response_id, request, f"t{number}", TaskState(state), starts, output, bool(told))


def _number_of(task_id: str) -> int:
    """-1 for what is no identity of a task."""
    number = task_id.removeprefix("t")
    return int(number) if number.isdecimal() and len(number) < 19 else -1
