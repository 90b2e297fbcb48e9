"""The file that holds many conversations: opened, listed, read."""

from __future__ import annotations

import os
import sqlite3
import sys
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ...engines.history import Record
from .errors import HistoryError, history_error
from .ownership import Ownership
from .rows import reply_of, turn_of
from .schema import bring_up_to_date

BUSY_TIMEOUT_MS = 2_000
"""How long another process may hold the write lock."""
IN_MEMORY = Path(":memory:")


@dataclass(frozen=True, slots=True)
class ConversationSummary:
    """One conversation of the file."""

    conversation_id: str
    created_at: datetime
    last_stored_at: datetime | None
    turns: int
    replies: int


@dataclass(frozen=True, slots=True)
class StoredRecord:
    """A record and when it was last written, in UTC."""

    record: Record
    stored_at: datetime


class HistoryStore:
    """A history file. Close it, or use it as a context manager.

    Writes are committed before they return. With WAL and `synchronous = NORMAL` a committed write survives the death of
    the process at any moment; what was not flushed may be lost with the power, never torn. The file is the user's own:
    nobody else may read it.
    """

    def __init__(self, path: Path, *, create: bool = True) -> None:
        """Open, or create unless `create` is False. Raises `HistoryError`."""
        self.path = path
        self._ownership = Ownership(path)
        if not create and not path.exists():
            raise HistoryError("history_missing", f"there is no history at {path}: nothing was remembered there yet")
        try:
            if path != IN_MEMORY:
                os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
            self._connection = sqlite3.connect(path, isolation_level=None, timeout=BUSY_TIMEOUT_MS / 1_000)
        except OSError as error:
            raise HistoryError("history_unreachable", f"{path} cannot be opened: {error.strerror}") from error
        except sqlite3.Error as error:
            raise history_error(f"{path} cannot be opened as a history", error) from error
        try:
            self._connection.execute("PRAGMA journal_mode = WAL")
            self._connection.execute("PRAGMA synchronous = NORMAL")
            self._connection.execute("PRAGMA foreign_keys = ON")
            bring_up_to_date(self._connection, str(path))
        except sqlite3.Error as error:
            self._connection.close()
            raise history_error(f"{path} cannot be opened as a history", error) from error
        except HistoryError:
            self._connection.close()
            raise

    def __enter__(self) -> HistoryStore:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the file and of every conversation held. Closing again changes nothing."""
        self._connection.close()
        self._ownership.close()

    def hold(self, conversation_id: str) -> None:
        """Keep other processes from beginning that conversation, until `close`. Raises `HistoryError`."""
        ((number,),) = self._read("SELECT rowid FROM conversations WHERE conversation_id = ?", conversation_id)
        if self.path != IN_MEMORY:
            self._ownership.take(number, conversation_id)

    def serve_conversation(self, busy_ms: int) -> None:
        """From now on writes wait no longer than `busy_ms` for another process, and leave what is slow to `sync`."""
        self._connection.execute(f"PRAGMA busy_timeout = {busy_ms}")
        self._connection.execute("PRAGMA wal_autocheckpoint = 0")

    def sync(self) -> None:
        """Make everything committed safe from the loss of power. May take long; runs in any thread.

        Raises `HistoryError`.
        """
        if self.path == IN_MEMORY:
            return
        try:
            connection = sqlite3.connect(self.path, isolation_level=None, timeout=BUSY_TIMEOUT_MS / 1_000)
            try:
                connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
            finally:
                connection.close()
        except sqlite3.Error as error:
            raise history_error(f"{self.path} could not be written", error) from error

    @contextmanager
    def transaction(self) -> Generator[sqlite3.Connection]:
        """All of it or nothing. Raises `HistoryError` for what SQLite refuses."""
        try:
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._connection
                self._connection.execute("COMMIT")
            except BaseException:
                # A full disk makes SQLite roll back by itself.
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise
        except sqlite3.Error as error:
            raise history_error(f"{self.path} could not be written", error) from error

    def conversations(self) -> tuple[ConversationSummary, ...]:
        """Every conversation, the one in which something was said last first."""
        rows = self._read(
            """SELECT conversation_id, created_at,
                      (SELECT max(stored_at) FROM (
                         SELECT stored_at FROM turns t WHERE t.conversation_id = c.conversation_id UNION ALL
                         SELECT stored_at FROM replies r WHERE r.conversation_id = c.conversation_id)) AS last,
                      (SELECT count(*) FROM turns t WHERE t.conversation_id = c.conversation_id),
                      (SELECT count(*) FROM replies r WHERE r.conversation_id = c.conversation_id)
               FROM conversations c ORDER BY coalesce(last, created_at) DESC, conversation_id"""
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

    def records(self, conversation_id: str, latest: int | None = None) -> tuple[Record, ...]:
        """Of one conversation everything, or the `latest` records, in the order in which it was said."""
        return tuple(stored.record for stored in self.stored(conversation_id, latest))

    def stored(self, conversation_id: str, latest: int | None = None) -> tuple[StoredRecord, ...]:
        """The same, with the times."""
        since = self._position_of(conversation_id, latest)
        turns = [
            StoredRecord(turn_of(tuple(row)), datetime.fromisoformat(stored_at))
            for stored_at, *row in self._read(
                """SELECT stored_at, turn_id, position, text, authority, revision FROM turns
                   WHERE conversation_id = ? AND position >= ?""",
                conversation_id,
                since,
            )
        ]
        calls: dict[str, list[tuple[Any, ...]]] = {}
        for response_id, *call in self._read(
            """SELECT response_id, call_id, name, arguments_json, status, output, text_position
               FROM tool_calls JOIN replies USING (conversation_id, response_id)
               LEFT JOIN call_positions USING (conversation_id, response_id, ordinal)
               WHERE conversation_id = ? AND position >= ? ORDER BY response_id, ordinal""",
            conversation_id,
            since,
        ):
            calls.setdefault(response_id, []).append(tuple(call))
        replies = [
            StoredRecord(reply_of(tuple(row), tuple(calls.get(row[0], ()))), datetime.fromisoformat(stored_at))
            for stored_at, *row in self._read(
                """SELECT stored_at, response_id, run_id, position, generated, outcome, reason, delivery_status,
                          delivered_text, delivered_units, played_samples, position_source, position_confidence,
                          delivered_at_ns, cut
                   FROM replies LEFT JOIN delivery_cuts USING (conversation_id, response_id)
                   WHERE conversation_id = ? AND position >= ?""",
                conversation_id,
                since,
            )
        ]
        return tuple(sorted((*turns, *replies), key=lambda stored: stored.record.position))

    def _position_of(self, conversation_id: str, latest: int | None) -> int:
        """Where the `latest` records begin."""
        if latest is None:
            return 0
        rows = self._read(
            """SELECT position FROM (
                 SELECT position FROM turns WHERE conversation_id = ? UNION ALL
                 SELECT position FROM replies WHERE conversation_id = ?)
               ORDER BY position DESC LIMIT ?""",
            conversation_id,
            conversation_id,
            latest,
        )
        return rows[-1][0] if rows else sys.maxsize

    def _read(self, sql: str, *parameters: str | int) -> list[tuple[Any, ...]]:
        try:
            return self._connection.execute(sql, parameters).fetchall()
        except sqlite3.Error as error:
            raise history_error(f"{self.path} could not be read", error) from error


def stored_form(moment: datetime) -> str:
    """A moment as the file has it: texts that sort as their moments do."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds")


def now() -> str:
    """The wall clock, as it is stored."""
    return stored_form(datetime.now(UTC))
