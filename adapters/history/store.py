"""The file that holds many conversations: opened, listed, exported, pruned."""

from __future__ import annotations

import sqlite3
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ...engines.history import Record, Reply, UserTurn
from .errors import HistoryError
from .rows import reply_of, turn_of
from .schema import bring_up_to_date

BUSY_TIMEOUT_MS = 2_000
"""How long another process may hold the write lock."""


@dataclass(frozen=True, slots=True)
class ConversationSummary:
    """One conversation of the file."""

    conversation_id: str
    created_at: datetime
    last_stored_at: datetime | None
    turns: int
    replies: int


class HistoryStore:
    """A history file. Close it, or use it as a context manager.

    Writes are committed before they return. With WAL and `synchronous = NORMAL` a committed write survives the death of
    the process at any moment; the last ones may be lost with the power, never torn.
    """

    def __init__(self, path: Path) -> None:
        """Open or create. Raises `HistoryError`."""
        self.path = path
        try:
            self._connection = sqlite3.connect(path, isolation_level=None, timeout=BUSY_TIMEOUT_MS / 1_000)
            self._connection.execute("PRAGMA journal_mode = WAL")
            self._connection.execute("PRAGMA synchronous = NORMAL")
            self._connection.execute("PRAGMA foreign_keys = ON")
            bring_up_to_date(self._connection, str(path))
        except sqlite3.Error as error:
            raise HistoryError(f"{path} cannot be opened as a history: {error}") from error

    def __enter__(self) -> HistoryStore:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Closing again changes nothing."""
        self._connection.close()

    @contextmanager
    def transaction(self) -> Generator[sqlite3.Connection]:
        """All of it or nothing. Raises `HistoryError` for what SQLite refuses."""
        try:
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._connection
            except BaseException:
                self._connection.execute("ROLLBACK")
                raise
            self._connection.execute("COMMIT")
        except sqlite3.Error as error:
            raise HistoryError(f"{self.path} could not be written: {error}") from error

    def conversations(self) -> tuple[ConversationSummary, ...]:
        """Every conversation, newest first."""
        rows = self._read(
            """SELECT conversation_id, created_at,
                      (SELECT max(stored_at) FROM (
                         SELECT stored_at FROM turns t WHERE t.conversation_id = c.conversation_id UNION ALL
                         SELECT stored_at FROM replies r WHERE r.conversation_id = c.conversation_id)),
                      (SELECT count(*) FROM turns t WHERE t.conversation_id = c.conversation_id),
                      (SELECT count(*) FROM replies r WHERE r.conversation_id = c.conversation_id)
               FROM conversations c ORDER BY created_at DESC, conversation_id"""
        )
        return tuple(
            ConversationSummary(
                conversation_id,
                datetime.fromisoformat(created_at),
                datetime.fromisoformat(last) if last else None,
                turns,
                replies,
            )
            for conversation_id, created_at, last, turns, replies in rows
        )

    def records(self, conversation_id: str) -> tuple[Record, ...]:
        """Everything of one conversation, in the order in which it was said."""
        turns = [
            turn_of(row)
            for row in self._read(
                "SELECT turn_id, position, text, authority, revision FROM turns WHERE conversation_id = ?",
                conversation_id,
            )
        ]
        calls: dict[str, list[tuple[str, str, str, str | None, str]]] = {}
        for response_id, *call in self._read(
            """SELECT response_id, call_id, name, arguments_json, status, output FROM tool_calls
               WHERE conversation_id = ? ORDER BY response_id, ordinal""",
            conversation_id,
        ):
            calls.setdefault(response_id, []).append((call[0], call[1], call[2], call[3], call[4]))
        replies = [
            reply_of(row, tuple(calls.get(row[0], ())))
            for row in self._read(
                """SELECT response_id, run_id, position, generated, outcome, reason, delivery_status, delivered_text,
                          delivered_units, played_samples, position_source, position_confidence, delivered_at_ns
                   FROM replies WHERE conversation_id = ?""",
                conversation_id,
            )
        ]
        both: list[UserTurn | Reply] = [*turns, *replies]
        return tuple(sorted(both, key=lambda record: record.position))

    def prune(self, before: datetime) -> int:
        """Delete conversations in which nothing happened since `before`; returns how many."""
        old = [
            summary.conversation_id
            for summary in self.conversations()
            if (summary.last_stored_at or summary.created_at) < before
        ]
        with self.transaction() as connection:
            connection.executemany("DELETE FROM conversations WHERE conversation_id = ?", [(name,) for name in old])
        return len(old)

    def _read(self, sql: str, *parameters: str) -> list[tuple[Any, ...]]:
        try:
            return self._connection.execute(sql, parameters).fetchall()
        except sqlite3.Error as error:
            raise HistoryError(f"{self.path} could not be read: {error}") from error


def now() -> str:
    """The wall clock, in UTC, as it is stored."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")
