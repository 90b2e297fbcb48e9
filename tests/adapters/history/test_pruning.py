"""Forgetting: what is old goes, what is young stays with its question, and epochs are never used again."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from voicechart.adapters.history import HistoryStore, Pruned, SqliteHistory, prune
from voicechart.engines.history import Reply, ToolExchange, UserTurn
from voicechart.engines.ports import ToolRequest
from voicechart.statecharts.values import TurnAuthority

TURN = UserTurn("turn-1", 1, "what time is it", TurnAuthority.VAD)
REPLY = Reply("response-1", "run-1", 2, "It is noon.", tools=(ToolExchange(ToolRequest("call-1", "clock", "{}")),))
BEGINNING = datetime(2025, 1, 1, tzinfo=UTC)


def day(number: int) -> datetime:
    return BEGINNING + timedelta(days=number)


def write_back(store: HistoryStore, days: dict[int, int]) -> None:
    """Pretend that the record at a position was written on that day."""
    with store.transaction() as connection:
        for position, number in days.items():
            for table in ("turns", "replies"):
                connection.execute(
                    f"UPDATE {table} SET stored_at = ? WHERE position = ?",
                    (day(number).isoformat(timespec="milliseconds"), position),
                )


def store_exchanges(history: SqliteHistory, count: int) -> None:
    for number in range(count):
        history.store_turn(replace(TURN, turn_id=f"turn-{number}", position=2 * number + 1))
        history.store_reply(replace(REPLY, response_id=f"response-{number}", position=2 * number + 2))


def positions(store: HistoryStore, conversation: str = "kitchen") -> list[int]:
    return [record.position for record in store.records(conversation)]


def test_the_old_beginning_of_a_conversation_is_deleted_and_its_calls_with_it(path: Path) -> None:
    with HistoryStore(path) as store:
        store_exchanges(SqliteHistory(store, "kitchen"), 3)
        write_back(store, {1: 1, 2: 1, 3: 5, 4: 5, 5: 9, 6: 9})
        assert prune(store, day(5)) == Pruned(1, 1, 1)
        assert positions(store) == [3, 4, 5, 6]
        with store.transaction() as connection:
            assert connection.execute("SELECT count(*) FROM tool_calls").fetchone() == (2,)


def test_what_was_written_at_the_very_moment_stays(path: Path) -> None:
    with HistoryStore(path) as store:
        store_exchanges(SqliteHistory(store, "kitchen"), 1)
        write_back(store, {1: 5, 2: 5})
        assert prune(store, day(5)) == Pruned(0, 0, 0)
        assert prune(store, day(5) + timedelta(milliseconds=1)) == Pruned(1, 1, 1)


def test_the_question_of_a_young_reply_stays_however_old_it_is(path: Path) -> None:
    with HistoryStore(path) as store:
        store_exchanges(SqliteHistory(store, "kitchen"), 2)
        write_back(store, {1: 1, 2: 1, 3: 1, 4: 9})
        assert prune(store, day(5)) == Pruned(1, 1, 1)
        assert positions(store) == [3, 4]


def test_a_dry_run_counts_the_same_and_deletes_nothing(path: Path) -> None:
    with HistoryStore(path) as store:
        for name in ("kitchen", "garden"):
            store_exchanges(SqliteHistory(store, name), 2)
        write_back(store, {1: 1, 2: 1, 3: 1, 4: 1})
        assert prune(store, day(5), dry_run=True) == Pruned(2, 4, 4)
        assert positions(store) == [1, 2, 3, 4]
        assert prune(store, day(5)) == Pruned(2, 4, 4)
        assert positions(store) == []


def test_a_forgotten_conversation_never_uses_its_epochs_again(path: Path) -> None:
    with HistoryStore(path) as store:
        store_exchanges(SqliteHistory(store, "kitchen"), 1)
        prune(store, datetime.now(UTC) + timedelta(days=1))
        (summary,) = store.conversations()
        assert (summary.turns, summary.replies, summary.last_stored_at) == (0, 0, None)
        start = SqliteHistory(store, "kitchen").start
        assert (start.session_epoch, start.position) == (1_000_001, 0)


def test_a_conversation_that_is_going_on_can_be_pruned_beside_it(path: Path) -> None:
    with HistoryStore(path) as daemon, HistoryStore(path) as operator:
        history = SqliteHistory(daemon, "kitchen")
        store_exchanges(history, 1)
        prune(operator, datetime.now(UTC) + timedelta(days=1))
        history.store_turn(replace(TURN, turn_id="turn-9", position=9))
        assert positions(operator) == [9]


def test_nothing_of_what_was_forgotten_is_left_in_the_files(path: Path) -> None:
    secret = "the name of the neighbour"
    with HistoryStore(path) as store:
        SqliteHistory(store, "kitchen").store_turn(replace(TURN, text=secret * 500))
    assert secret.encode() in path.read_bytes()
    with HistoryStore(path) as store:
        prune(store, datetime.now(UTC) + timedelta(days=1))
        for file in path.parent.iterdir():
            assert secret.encode() not in file.read_bytes()


@given(st.lists(st.integers(0, 9), min_size=1, max_size=12), st.integers(0, 10))
def test_what_is_young_stays_and_what_stays_is_the_end(days: list[int], cutoff: int) -> None:
    with HistoryStore(Path(":memory:")) as store:
        store_exchanges(SqliteHistory(store, "kitchen"), len(days) // 2 + 1)
        everything = positions(store)
        written = {position: days[(position - 1) % len(days)] for position in everything}
        write_back(store, written)
        prune(store, day(cutoff))
        left = positions(store)
        assert left == everything[len(everything) - len(left) :]
        assert {position for position in everything if written[position] >= cutoff} <= set(left)
        assert not left or isinstance(store.records("kitchen")[0], UserTurn)
