"""A store that refuses: which error it is, what the operator reads, and that nothing is lost silently."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import anyio
import pytest

from voicechart.adapters.history import HistoryError, HistoryStore, SqliteHistory
from voicechart.engines.history import Reply, UserTurn
from voicechart.statecharts.errors import ErrorScope
from voicechart.statecharts.values import TurnAuthority

TURN = UserTurn("turn-1", 1, "what time is it", TurnAuthority.VAD)
REPLY = Reply("response-1", "run-1", 2, "It is noon.")


@contextmanager
def locked(path: Path) -> Generator[None]:
    """As if another process were writing all the time."""
    blocker = sqlite3.connect(path, isolation_level=None)
    blocker.execute("BEGIN IMMEDIATE")
    try:
        yield
    finally:
        blocker.execute("ROLLBACK")
        blocker.close()


def fill(store: HistoryStore) -> None:
    """As if the disk were full: the file may not grow by one page."""
    with store.transaction() as connection:
        (pages,) = connection.execute("PRAGMA page_count").fetchone()
        connection.execute(f"PRAGMA max_page_count = {pages}")


def test_a_locked_store_refuses_with_a_typed_error_and_keeps_what_it_refused_for_later(path: Path) -> None:
    with HistoryStore(path) as store:
        history = SqliteHistory(store, "kitchen")
        with locked(path), pytest.raises(HistoryError, match="another process holds it") as refused:
            history.store_turn(TURN)
        error = refused.value.error
        assert (error.code, error.stage, error.scope) == ("history_locked", "history", ErrorScope.SESSION)
        assert history.records() == ()
        history.store_reply(REPLY)
        assert history.records() == (TURN, REPLY)


def test_of_a_refused_record_only_the_newest_form_is_kept(path: Path) -> None:
    longer = replace(TURN, text="what time is it in Oslo", revision=2)
    with HistoryStore(path) as store:
        history = SqliteHistory(store, "kitchen")
        with locked(path):
            for turn in (TURN, longer):
                with pytest.raises(HistoryError):
                    history.store_turn(turn)
        history.store_reply(REPLY)
        assert history.records() == (longer, REPLY)


def test_what_was_refused_is_tried_again_by_the_last_flush(path: Path) -> None:
    with HistoryStore(path) as store:
        history = SqliteHistory(store, "kitchen")
        with locked(path), pytest.raises(HistoryError):
            history.store_turn(TURN)
        anyio.run(history.flush)
    with HistoryStore(path) as store:
        assert store.records("kitchen") == (TURN,)


def test_a_full_disk_is_named_and_the_last_flush_says_what_could_not_be_kept(path: Path) -> None:
    long = replace(TURN, text="word " * 20_000)
    with HistoryStore(path) as store:
        history = SqliteHistory(store, "kitchen")
        fill(store)
        with pytest.raises(HistoryError, match=r"disk is full: make room") as refused:
            history.store_turn(long)
        assert refused.value.error.code == "history_full"
        with pytest.raises(HistoryError):
            history.store_reply(REPLY)
        with pytest.raises(HistoryError, match="1 turns and 1 replies could not be kept") as lost:
            anyio.run(history.flush)
        assert lost.value.error.code == "history_full"
    with HistoryStore(path) as store:
        # Whole and readable, without what did not fit.
        assert store.records("kitchen") == ()


def test_a_flush_makes_everything_safe_that_was_committed(path: Path) -> None:
    with HistoryStore(path) as store:
        history = SqliteHistory(store, "kitchen")
        history.store_turn(TURN)
        anyio.run(history.flush)
        # The main file alone, as after a loss of power that took the write-ahead log's unsynced tail.
        copy = path.with_name("copy.sqlite3")
        copy.write_bytes(path.read_bytes())
    with HistoryStore(copy) as store:
        assert store.records("kitchen") == (TURN,)


def test_a_flush_that_the_disk_refuses_raises_a_typed_error(path: Path) -> None:
    with HistoryStore(path) as store:
        history = SqliteHistory(store, "kitchen")
        history.store_turn(TURN)
        path.rename(path.with_name("gone"))
        path.mkdir()
        with pytest.raises(HistoryError, match="its folder must exist") as refused:
            anyio.run(history.flush)
        assert refused.value.error.code == "history_unreachable"
        path.rmdir()


HOLDER = """
import sys
from pathlib import Path
from voicechart.adapters.history import HistoryStore, SqliteHistory
history = SqliteHistory(HistoryStore(Path(sys.argv[1])), "kitchen")
print("held", flush=True)
sys.stdin.read()
"""


def test_a_conversation_that_another_process_holds_is_not_begun_and_another_one_is(path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdin is not None
        assert holder.stdout.readline() == "held\n"
        with HistoryStore(path) as store:
            with pytest.raises(HistoryError, match=r"'kitchen' in history\.sqlite3 is held by another process") as held:
                SqliteHistory(store, "kitchen")
            assert held.value.error.code == "history_in_use"
            assert SqliteHistory(store, "garden").start.session_epoch == 1
            holder.stdin.close()
            holder.wait(30)
            # The refused beginning used up nothing.
            assert SqliteHistory(store, "kitchen").start.session_epoch == 1_000_001


def test_nobody_else_may_read_what_was_said(path: Path) -> None:
    with HistoryStore(path) as store:
        SqliteHistory(store, "kitchen").store_turn(TURN)
        modes = {file.name: file.stat().st_mode & 0o777 for file in path.parent.iterdir()}
    assert set(modes.values()) == {0o600}
    assert {"history.sqlite3", "history.sqlite3-wal", "history.sqlite3-owners"} <= set(modes)


def test_a_store_that_is_only_to_be_read_is_not_created(path: Path) -> None:
    with pytest.raises(HistoryError, match="there is no history at") as missing:
        HistoryStore(path, create=False)
    assert missing.value.error.code == "history_missing"
    assert not path.exists()


def test_a_file_that_is_no_database_is_refused(path: Path) -> None:
    path.write_text("these are not the records you are looking for" * 100)
    with pytest.raises(HistoryError, match="no history file") as refused:
        HistoryStore(path)
    assert refused.value.error.code == "history_damaged"


def test_a_folder_that_does_not_exist_is_named(tmp_path: Path) -> None:
    with pytest.raises(HistoryError, match="nowhere/history cannot be opened: No such file") as refused:
        HistoryStore(tmp_path / "nowhere" / "history")
    assert refused.value.error.code == "history_unreachable"


def test_a_closed_store_says_so_and_closing_again_changes_nothing(path: Path) -> None:
    store = HistoryStore(path)
    store.close()
    store.close()
    with pytest.raises(HistoryError, match="could not be read") as refused:
        store.conversations()
    assert refused.value.error.code == "history_failed"
