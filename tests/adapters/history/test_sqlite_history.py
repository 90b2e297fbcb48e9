"""The durable history: what survives, what is settled after a crash, and what is refused."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voicechart.adapters.history import HistoryError, HistoryStore, SqliteHistory
from voicechart.adapters.history.schema import MIGRATIONS, SCHEMA_VERSION
from voicechart.engines.history import Cut, Delivery, Reply, ToolExchange, UserTurn
from voicechart.engines.ports import ToolRequest
from voicechart.statecharts.values import DeliveryStatus, Outcome, PositionSource, ToolStatus, TurnAuthority

TURN = UserTurn("turn-1", 1, "what time is it", TurnAuthority.VAD)
DELIVERY = Delivery(DeliveryStatus.INTERRUPTED, "It is", 1, 4_000, PositionSource.MEASURED, 1.0, 7, Cut.WORD)
CALL = ToolExchange(ToolRequest("call-1", "clock", "{}"), ToolStatus.COMPLETED, "noon", 7)
REPLY = Reply("response-1", "run-1", 2, "It is. Noon.", Outcome.CANCELLED, "interrupted", DELIVERY, (CALL,))

AS_VERSION_1 = Reply(
    "response-9",
    "run-9",
    9,
    "It is. Noon.",
    Outcome.CANCELLED,
    "interrupted",
    Delivery(DeliveryStatus.INTERRUPTED, "It is.", 1, 4_000, PositionSource.MEASURED, 1.0, 7),
    (ToolExchange(ToolRequest("call-9", "clock", "{}"), ToolStatus.COMPLETED, "noon"),),
)


def store_as_version_1(connection: sqlite3.Connection) -> None:
    """Word for word what version 1 of the schema writes."""
    at = "2025-01-01T00:00:00.000+00:00"
    connection.execute("INSERT OR IGNORE INTO conversations VALUES (?, ?, 1, 1)", ("kitchen", at))
    connection.execute(
        "INSERT INTO replies VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            *("kitchen", "response-9", "run-9", 9, "It is. Noon.", "cancelled", "interrupted"),
            *("interrupted", "It is.", 1, 4_000, "measured", 1.0, 7, at),
        ),
    )
    connection.execute(
        "INSERT INTO tool_calls VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        ("kitchen", "response-9", 0, "call-9", "clock", "{}", "completed", "noon"),
    )
    connection.commit()


def test_what_was_said_is_read_back_as_it_was_stored(path: Path) -> None:
    with HistoryStore(path) as store:
        history = SqliteHistory(store, "kitchen")
        history.store_turn(TURN)
        history.store_reply(REPLY)
    with HistoryStore(path) as store:
        assert store.records("kitchen") == (TURN, REPLY)


def test_records_come_in_the_order_in_which_they_were_said(path: Path) -> None:
    with HistoryStore(path) as store:
        history = SqliteHistory(store, "kitchen")
        history.store_turn(replace(TURN, turn_id="turn-2", position=3))
        history.store_reply(REPLY)
        history.store_turn(TURN)
        assert [record.position for record in history.records()] == [1, 2, 3]


def test_a_continued_turn_replaces_its_text_and_an_older_revision_does_not(path: Path) -> None:
    with HistoryStore(path) as store:
        history = SqliteHistory(store, "kitchen")
        history.store_turn(TURN)
        longer = replace(TURN, text="what time is it in Oslo", revision=2)
        history.store_turn(longer)
        history.store_turn(TURN)
        assert history.records() == (longer,)


def test_a_restart_never_reuses_an_epoch_or_a_position(path: Path) -> None:
    with HistoryStore(path) as store:
        first = SqliteHistory(store, "kitchen")
        first.store_turn(TURN)
        first.store_reply(REPLY)
        second = SqliteHistory(store, "kitchen")
    assert (first.start.session_epoch, first.start.output_epoch, first.start.position) == (1, 1, 0)
    assert second.start.session_epoch == second.start.output_epoch == 1_000_001
    assert second.start.position == 2


def test_a_crash_leaves_the_delivery_unknown_and_runs_nothing_again(path: Path) -> None:
    open_call = ToolExchange(ToolRequest("call-2", "lamp", "{}"))
    with HistoryStore(path) as store:
        crashed = SqliteHistory(store, "kitchen")
        crashed.store_turn(TURN)
        crashed.store_reply(Reply("response-1", "run-1", 2, "It is", tools=(open_call,)))
        restarted = SqliteHistory(store, "kitchen")
        _, reply = restarted.records()
    assert restarted.start.recovered_replies == 1
    assert isinstance(reply, Reply)
    assert (reply.outcome, reply.reason) == (Outcome.FAILED, "process_ended")
    assert reply.delivery is not None
    assert (reply.delivery.status, reply.delivery.text) == (DeliveryStatus.UNKNOWN, "")
    assert reply.tools[0].status is ToolStatus.UNKNOWN


def test_what_was_settled_before_a_crash_stays_as_it_was(path: Path) -> None:
    with HistoryStore(path) as store:
        SqliteHistory(store, "kitchen").store_reply(REPLY)
        restarted = SqliteHistory(store, "kitchen")
        assert restarted.start.recovered_replies == 0
        assert restarted.records() == (REPLY,)


def test_a_file_of_a_newer_version_is_refused_with_the_reason(path: Path) -> None:
    HistoryStore(path).close()
    connection = sqlite3.connect(path)
    connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION + 1}")
    connection.close()
    with pytest.raises(HistoryError, match=rf"knows version {SCHEMA_VERSION + 1}.* reads up to {SCHEMA_VERSION}"):
        HistoryStore(path)


def test_a_conversation_is_read_in_part_from_its_end(path: Path) -> None:
    with HistoryStore(path) as store:
        history = SqliteHistory(store, "kitchen")
        third = replace(TURN, turn_id="turn-2", position=3)
        for record in (TURN, third):
            history.store_turn(record)
        history.store_reply(REPLY)
        assert history.records(2) == (REPLY, third)
        assert history.records(3) == history.records(4) == (TURN, REPLY, third)
        assert history.records(0) == ()


def test_a_file_of_every_older_version_is_brought_up_to_date(tmp_path: Path) -> None:
    for version in range(SCHEMA_VERSION):
        path = tmp_path / f"{version}.sqlite3"
        connection = sqlite3.connect(path)
        for migration in MIGRATIONS[:version]:
            connection.executescript(migration.script)
            connection.execute(f"PRAGMA user_version = {migration.oldest_user}")
        connection.close()
        with HistoryStore(path) as store:
            history = SqliteHistory(store, "kitchen")
            history.store_turn(TURN)
            history.store_reply(REPLY)
            assert store.records("kitchen") == (TURN, REPLY)


def test_what_version_1_stored_is_read_by_the_present_one(path: Path) -> None:
    connection = sqlite3.connect(path)
    connection.executescript(MIGRATIONS[0].script + "PRAGMA user_version = 1;")
    store_as_version_1(connection)
    connection.close()
    with HistoryStore(path) as store:
        (reply,) = store.records("kitchen")
    assert reply == AS_VERSION_1


def test_version_1_still_writes_and_reads_a_file_of_the_present_one(path: Path) -> None:
    with HistoryStore(path) as store:
        history = SqliteHistory(store, "attic")
        history.store_reply(REPLY)
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA foreign_keys = ON")
    assert connection.execute("PRAGMA user_version").fetchone() == (1,), "version 1 refuses what is greater"
    store_as_version_1(connection)
    read = connection.execute(
        "SELECT delivered_text, delivered_units FROM replies WHERE conversation_id = 'attic'"
    ).fetchall()
    assert read == [("It is", 1)]
    connection.execute("DELETE FROM replies WHERE conversation_id = 'attic'")
    assert connection.execute("SELECT * FROM delivery_cuts").fetchall() == []
    assert connection.execute("SELECT * FROM call_positions").fetchall() == []
    connection.close()
    with HistoryStore(path) as store:
        assert store.records("kitchen") == (AS_VERSION_1,)


def test_a_newer_file_that_this_version_can_use_is_used_and_left_as_it_is(path: Path) -> None:
    HistoryStore(path).close()
    connection = sqlite3.connect(path)
    connection.executescript("ALTER TABLE delivery_cuts ADD COLUMN mood TEXT; UPDATE schema_version SET version = 9;")
    connection.close()
    with HistoryStore(path) as store:
        assert store.conversations() == ()
    connection = sqlite3.connect(path)
    assert connection.execute("SELECT version FROM schema_version").fetchone() == (9,)
    connection.close()


@pytest.mark.slow
def test_two_processes_that_open_an_old_file_at_once_both_get_the_present_one(path: Path) -> None:
    connection = sqlite3.connect(path, isolation_level=None)
    connection.executescript(MIGRATIONS[0].script + "PRAGMA user_version = 1;")
    connection.execute("BEGIN IMMEDIATE")
    code = "import sys, pathlib, voicechart.adapters.history as h; h.HistoryStore(pathlib.Path(sys.argv[1]))"
    openers = [subprocess.Popen([sys.executable, "-c", code, str(path)]) for _ in range(2)]
    connection.execute("COMMIT")
    assert [opener.wait(30) for opener in openers] == [0, 0]
    assert connection.execute("SELECT version FROM schema_version").fetchall() == [(SCHEMA_VERSION,)]
    connection.close()


def test_a_killed_writer_leaves_everything_that_it_had_stored(path: Path) -> None:
    script = f"""
import os, signal, sys
from pathlib import Path
from voicechart.adapters.history import HistoryStore, SqliteHistory
from voicechart.engines.history import UserTurn
from voicechart.statecharts.values import TurnAuthority
history = SqliteHistory(HistoryStore(Path({str(path)!r})), "kitchen")
for number in range(1, 40):
    history.store_turn(UserTurn(f"turn-{{number}}", number, "word " * number, TurnAuthority.VAD))
os.kill(os.getpid(), signal.SIGKILL)
"""
    assert subprocess.run([sys.executable, "-c", script], check=False, timeout=30).returncode == -9
    with HistoryStore(path) as store:
        assert len(store.records("kitchen")) == 39


@given(st.text(), st.text(), st.sampled_from(DeliveryStatus), st.one_of(st.none(), st.integers(0, 2**40)))
def test_any_text_and_any_delivery_survive(said: str, heard: str, status: DeliveryStatus, played: int | None) -> None:
    # A lone surrogate cannot come from a recogniser or a model over UTF-8, and SQLite has no way to keep one.
    said, heard = (text.encode("utf-8", "replace").decode() for text in (said, heard))
    delivery = Delivery(status, heard, 3, played, PositionSource.ESTIMATED, 0.5, 1)
    reply = replace(REPLY, generated=said, delivery=delivery)
    with HistoryStore(Path(":memory:")) as store:
        history = SqliteHistory(store, "kitchen")
        history.store_turn(replace(TURN, text=said))
        history.store_reply(reply)
        assert history.records() == (replace(TURN, text=said), reply)
