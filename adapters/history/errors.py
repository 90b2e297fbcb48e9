"""Errors of the durable history. Each says what to do."""

from __future__ import annotations

import sqlite3

from ...engines.reports import PortError
from ...statecharts.errors import ErrorScope, ScopedError


class HistoryError(PortError):
    """The store cannot be used, or refused. A conversation that cannot remember ends with it."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(ScopedError(code, "history", ErrorScope.SESSION, message))


_ADVICE: dict[int, tuple[str, str]] = {
    sqlite3.SQLITE_FULL: ("history_full", "the disk is full: make room, or prune with `voicechart history prune`"),
    sqlite3.SQLITE_BUSY: ("history_locked", "another process holds it: end what writes to it, then start again"),
    sqlite3.SQLITE_READONLY: ("history_read_only", "it may only be read: give this user the right to write it"),
    sqlite3.SQLITE_PERM: ("history_read_only", "give this user the right to read and write it"),
    sqlite3.SQLITE_CANTOPEN: (
        "history_unreachable",
        "its folder must exist, and this user must be able to write there",
    ),
    sqlite3.SQLITE_CORRUPT: ("history_damaged", "the file is damaged: put it aside, and restore a copy or begin anew"),
    sqlite3.SQLITE_NOTADB: ("history_damaged", "this is no history file: put it aside, or name another one"),
    sqlite3.SQLITE_IOERR: ("history_failed", "the disk failed: look at the system's log"),
}
_PRIMARY = 0xFF
"""The lowest byte of SQLite's extended result codes (sqlite.org/rescode.html) is the primary one."""


def history_error(what: str, error: sqlite3.Error) -> HistoryError:
    """What SQLite says, in the operator's words. `what`: which file, and what could not be done with it."""
    number: int | None = getattr(error, "sqlite_errorcode", None)
    code, advice = _ADVICE.get((number or 0) & _PRIMARY, ("history_failed", "see what SQLite says"))
    return HistoryError(code, f"{what} ({error}): {advice}")
