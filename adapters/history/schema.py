"""The schema, its version, and how an older file becomes a present one.

Each step of `MIGRATIONS` brings a file from one version to the next, and says how old a program may be to go on using
the file. What an older one can do without stands in a table of its own: its writes name no columns, and would fail on a
table with one more. `PRAGMA user_version` holds that oldest version, which is what version 1 looks at, and the table
`schema_version` the file's own. A file that is too new for this program is refused.
"""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass

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

_VERSION_2 = """
CREATE TABLE schema_version (version INTEGER NOT NULL) STRICT;
INSERT INTO schema_version VALUES (1);
CREATE TABLE delivery_cuts (
    conversation_id TEXT NOT NULL,
    response_id TEXT NOT NULL,
    cut TEXT NOT NULL,
    PRIMARY KEY (conversation_id, response_id),
    FOREIGN KEY (conversation_id, response_id) REFERENCES replies ON DELETE CASCADE
) STRICT;
CREATE TABLE call_positions (
    conversation_id TEXT NOT NULL,
    response_id TEXT NOT NULL,
    ordinal INTEGER NOT NULL,
    text_position INTEGER NOT NULL,
    PRIMARY KEY (conversation_id, response_id, ordinal),
    FOREIGN KEY (conversation_id, response_id, ordinal) REFERENCES tool_calls ON DELETE CASCADE
) STRICT;
"""


@dataclass(frozen=True, slots=True)
class Migration:
    """One step. `script`: statements, each ended by a semicolon, without one inside."""

    script: str
    oldest_user: int
    """The oldest version of this program that can read and write the file afterwards."""


MIGRATIONS: tuple[Migration, ...] = (Migration(_VERSION_1, 1), Migration(_VERSION_2, 1))
"""Step n brings version n to version n + 1."""

SCHEMA_VERSION = len(MIGRATIONS)


def bring_up_to_date(connection: sqlite3.Connection, path: str) -> None:
    """Create or migrate; a newer file that this program can use stays as it is. Raises `HistoryError` for another."""
    (oldest_user,) = connection.execute("PRAGMA user_version").fetchone()
    if oldest_user > SCHEMA_VERSION:
        raise HistoryError(
            "history_newer",
            f"{path} has schema version {version_of(connection)} and needs a voicechart that knows version "
            f"{oldest_user}; this one reads up to {SCHEMA_VERSION}: use a newer one",
        )
    if version_of(connection) >= SCHEMA_VERSION:
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        # Another process may have done it while this one waited.
        for migration in MIGRATIONS[version_of(connection) :]:
            _migrate(connection, migration)
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def version_of(connection: sqlite3.Connection) -> int:
    """The schema version of the file; 0 for an empty one."""
    if connection.execute("SELECT 1 FROM sqlite_schema WHERE name = 'schema_version'").fetchone():
        (version,) = connection.execute("SELECT version FROM schema_version").fetchone()
    else:
        (version,) = connection.execute("PRAGMA user_version").fetchone()
    return int(version)


def _migrate(connection: sqlite3.Connection, migration: Migration) -> None:
    for statement in migration.script.split(";"):
        connection.execute(statement)
    connection.execute(f"PRAGMA user_version = {migration.oldest_user}")
    if connection.execute("SELECT 1 FROM sqlite_schema WHERE name = 'schema_version'").fetchone():
        connection.execute("UPDATE schema_version SET version = version + 1")
