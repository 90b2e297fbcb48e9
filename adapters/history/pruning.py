"""Forgetting: the old beginning of every conversation is deleted, and overwritten in the file.

A conversation of a device has no end, so that what is old is its beginning, not the whole. It is cut before a turn of
the user: the context of a model never begins with an answer. The conversation itself stays on record, with the epochs
it has used: none may ever be used twice.
"""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from datetime import datetime

from .errors import history_error
from .store import HistoryStore, stored_form


@dataclass(frozen=True, slots=True)
class Pruned:
    """What was deleted, or would be."""

    conversations: int
    """Of how many conversations."""
    turns: int
    replies: int


def prune(store: HistoryStore, before: datetime, *, dry_run: bool = False) -> Pruned:
    """Delete what was last written before that moment. Raises `HistoryError`.

    One transaction a conversation, so that a daemon that writes to the same file never waits long.
    """
    pruned = Pruned(0, 0, 0)
    for summary in store.conversations():
        with store.transaction() as connection:
            turns, replies = _prune_one(connection, summary.conversation_id, stored_form(before), dry_run)
        if turns or replies:
            pruned = Pruned(pruned.conversations + 1, pruned.turns + turns, pruned.replies + replies)
    if pruned.conversations and not dry_run:
        _empty_the_log(store)
    return pruned


def _prune_one(connection: sqlite3.Connection, conversation_id: str, before: str, dry_run: bool) -> tuple[int, int]:
    # Deleted text would otherwise stay readable in the file until its page is used again.
    connection.execute("PRAGMA secure_delete = ON")
    where = {"name": conversation_id, "before": before}
    (first_kept,) = connection.execute(
        """SELECT min(position) FROM (
             SELECT position FROM turns WHERE conversation_id = :name AND stored_at >= :before UNION ALL
             SELECT position FROM replies WHERE conversation_id = :name AND stored_at >= :before)""",
        where,
    ).fetchone()
    if first_kept is not None:
        (asked,) = connection.execute(
            "SELECT max(position) FROM turns WHERE conversation_id = :name AND position <= :kept",
            {"name": conversation_id, "kept": first_kept},
        ).fetchone()
        first_kept = first_kept if asked is None else asked
    counts: list[int] = []
    for table in ("turns", "replies"):
        condition = "conversation_id = :name AND (:kept IS NULL OR position < :kept)"
        sql = f"SELECT count(*) FROM {table} WHERE {condition}" if dry_run else f"DELETE FROM {table} WHERE {condition}"
        result = connection.execute(sql, {"name": conversation_id, "kept": first_kept})
        counts.append(result.fetchone()[0] if dry_run else result.rowcount)
    return counts[0], counts[1]


def _empty_the_log(store: HistoryStore) -> None:
    """The write-ahead log holds what was deleted, too. Where somebody is reading, the next one to close empties it."""
    try:
        connection = sqlite3.connect(store.path, isolation_level=None)
        try:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        finally:
            connection.close()
    except sqlite3.Error as error:
        raise history_error(f"{store.path} could not be written", error) from error
