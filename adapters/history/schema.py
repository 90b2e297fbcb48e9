"""The schema, its version, and how an older file becomes a present one.

Each step of `MIGRATIONS` brings a file from one version to the next, in one transaction. A file of a newer version is
refused: its writer knew something that this reader does not.
"""

from __future__ import annotations

import sqlite3

from .errors import HistoryError

_VERSION_1 = """
CREATE TABLE conversations (
    conversation_id TEXT PRIMARY KEY,
    created_at TEXT NOT NULL,
    next_session_epoch INTEGER NOT NULL,
    next_output_epoch INTEGER NOT NULL
) STRICT;
CREATE TABLE turns (
    conversation_id TEXT NOT NULL REFERENCES conversations ON DELETE CASCADE,
    turn_id TEXT NOT NULL,
    position INTEGER NOT NULL,
    text TEXT NOT NULL,
    authority TEXT NOT NULL,
    revision INTEGER NOT NULL,
    stored_at TEXT NOT NULL,
    PRIMARY KEY (conversation_id, turn_id)
) STRICT;
CREATE TABLE replies (
    conversation_id TEXT NOT NULL REFERENCES conversations ON DELETE CASCADE,
    response_id TEXT NOT NULL,
    run_id TEXT NOT NULL,
    position INTEGER NOT NULL,
    generated TEXT NOT NULL,
    outcome TEXT,
    reason TEXT NOT NULL,
    delivery_status TEXT,
    delivered_text TEXT,
    delivered_units INTEGER,
    played_samples INTEGER,
    position_source TEXT,
    position_confidence REAL,
    delivered_at_ns INTEGER,
    stored_at TEXT NOT NULL,
    PRIMARY KEY (conversation_id, response_id)
) STRICT;
CREATE TABLE tool_calls (
    conversation_id TEXT NOT NULL,
    response_id TEXT NOT NULL,
    ordinal INTEGER NOT NULL,
    call_id TEXT NOT NULL,
    name TEXT NOT NULL,
    arguments_json TEXT NOT NULL,
    status TEXT,
    output TEXT NOT NULL,
    PRIMARY KEY (conversation_id, response_id, ordinal),
    FOREIGN KEY (conversation_id, response_id) REFERENCES replies ON DELETE CASCADE
) STRICT;
CREATE INDEX turns_by_position ON turns (conversation_id, position);
CREATE INDEX replies_by_position ON replies (conversation_id, position);
"""

MIGRATIONS: tuple[str, ...] = (_VERSION_1,)
"""Step n brings version n to version n + 1."""

SCHEMA_VERSION = len(MIGRATIONS)


def bring_up_to_date(connection: sqlite3.Connection, path: str) -> None:
    """Create or migrate. Raises `HistoryError` for a file of a newer version."""
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if version > SCHEMA_VERSION:
        raise HistoryError(
            "history_newer",
            f"{path} has schema version {version}, this voicechart reads up to {SCHEMA_VERSION}: use a newer one",
        )
    for number in range(version, SCHEMA_VERSION):
        connection.executescript(f"BEGIN;\n{MIGRATIONS[number]}\nPRAGMA user_version = {number + 1};\nCOMMIT;")
