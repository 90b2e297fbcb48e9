"""One conversation in the durable store: the `History` port.

Beginning a conversation that is in the store already is a restart. What a crash left open is settled then, and nothing
of it is played or run again: a reply without an outcome failed, a delivery without a record is `unknown`, and so is a
tool call without an outcome. Epochs are reserved ahead, so that none is used twice however the process ended.

A write is committed when it returns, without waiting for the disk: it survives the process, not yet the power. `flush`
waits for the disk, in a thread, so that no sound waits for it. What the store refuses is kept here and tried again with
every later write; a conversation ends when that happens, and its last `flush` says what could not be kept.
"""

from __future__ import annotations

from dataclasses import dataclass

import anyio
import anyio.to_thread

from ...engines.history import Record, Reply, UserTurn
from ...statecharts import Conversation, IdSource, Policies
from ...statecharts.values import DeliveryStatus, Outcome, PositionSource, ToolStatus
from .errors import HistoryError
from .rows import call_values, cut_values, position_values, reply_values, turn_values
from .store import HistoryStore, now

EPOCHS_PER_START = 1_000_000
"""Epochs that one start may use up. At an interruption a second that is eleven days."""
PATIENCE_MS = 200
"""How long a write may wait for another process. Everything stands still meanwhile; the speaker's queue covers it."""
CRASHED = "process_ended"


@dataclass(frozen=True, slots=True)
class ConversationStart:
    """What a `Conversation` must begin with so that nothing of an earlier start is reused."""

    conversation_id: str
    session_epoch: int
    output_epoch: int
    position: int
    """The last history position taken."""
    recovered_replies: int
    """Replies that the former process left open and that were settled now."""


def conversation_after(
    start: ConversationStart, conversation_id: str, *, policies: Policies, ids: IdSource
) -> Conversation:
    """A fresh chart that begins behind everything that an earlier start used. `ids` must differ from start to start."""
    return Conversation(
        conversation_id,
        policies=policies,
        ids=ids,
        session_epoch=start.session_epoch,
        output_epoch=start.output_epoch,
        position=start.position,
    )


class SqliteHistory:
    """Raises `HistoryError` when the store refuses, and when another process holds the conversation."""

    def __init__(self, store: HistoryStore, conversation_id: str) -> None:
        self._store = store
        self._conversation_id = conversation_id
        self._unwritten: dict[str, Record] = {}
        self._one_flush = anyio.Lock()
        self.start = self._begin()
        store.serve_conversation(PATIENCE_MS)

    @property
    def store(self) -> HistoryStore:
        """The file."""
        return self._store

    def store_turn(self, turn: UserTurn) -> None:
        """Committed when it returns."""
        self._write(turn.turn_id, turn)

    def store_reply(self, reply: Reply) -> None:
        """Committed when it returns."""
        self._write(reply.response_id, reply)

    def records(self, latest: int | None = None) -> tuple[Record, ...]:
        return self._store.records(self._conversation_id, latest)

    async def flush(self) -> None:
        """Safe from the loss of power when it returns. Raises `HistoryError` that says what could not be kept."""
        if self._unwritten:
            try:
                self._write_out()
            except HistoryError as refused:
                turns = sum(isinstance(record, UserTurn) for record in self._unwritten.values())
                lost = f"{turns} turns and {len(self._unwritten) - turns} replies could not be kept"
                raise HistoryError(refused.error.code, f"{lost}: {refused.error.message}") from refused
        async with self._one_flush:
            await anyio.to_thread.run_sync(self._store.sync)

    def _write(self, identity: str, record: Record) -> None:
        # Behind what waits already, and in the place of its own former version.
        self._unwritten.pop(identity, None)
        self._unwritten[identity] = record
        self._write_out()

    def _write_out(self) -> None:
        """Everything that waits, or nothing of it."""
        name = self._conversation_id
        with self._store.transaction() as connection:
            for record in self._unwritten.values():
                if isinstance(record, UserTurn):
                    connection.execute(_STORE_TURN, turn_values(name, record, now()))
                else:
                    connection.execute(_STORE_REPLY, reply_values(name, record, now()))
                    connection.executemany(_STORE_CALL, call_values(name, record))
                    connection.executemany(_STORE_POSITION, position_values(name, record))
                    connection.executemany(_STORE_CUT, cut_values(name, record))
        self._unwritten.clear()

    def _begin(self) -> ConversationStart:
        name = self._conversation_id
        with self._store.transaction() as connection:
            connection.execute("INSERT OR IGNORE INTO conversations VALUES (?, ?, 1, 1)", (name, now()))
        self._store.hold(name)
        with self._store.transaction() as connection:
            session_epoch, output_epoch = connection.execute(
                """UPDATE conversations SET next_session_epoch = next_session_epoch + ?,
                   next_output_epoch = next_output_epoch + ? WHERE conversation_id = ?
                   RETURNING next_session_epoch - ?, next_output_epoch - ?""",
                (EPOCHS_PER_START, EPOCHS_PER_START, name, EPOCHS_PER_START, EPOCHS_PER_START),
            ).fetchone()
            recovered = connection.execute(
                """UPDATE replies SET
                     outcome = coalesce(outcome, ?),
                     reason = CASE WHEN outcome IS NULL THEN ? ELSE reason END,
                     delivery_status = coalesce(delivery_status, ?),
                     delivered_text = coalesce(delivered_text, ''), delivered_units = coalesce(delivered_units, 0),
                     position_source = coalesce(position_source, ?),
                     position_confidence = coalesce(position_confidence, 0),
                     delivered_at_ns = coalesce(delivered_at_ns, 0)
                   WHERE conversation_id = ? AND (outcome IS NULL OR delivery_status IS NULL)""",
                (Outcome.FAILED, CRASHED, DeliveryStatus.UNKNOWN, PositionSource.UNKNOWN, name),
            ).rowcount
            connection.execute(
                "UPDATE tool_calls SET status = ? WHERE conversation_id = ? AND status IS NULL",
                (ToolStatus.UNKNOWN, name),
            )
            (position,) = connection.execute(
                """SELECT max(coalesce((SELECT max(position) FROM turns WHERE conversation_id = :name), 0),
                              coalesce((SELECT max(position) FROM replies WHERE conversation_id = :name), 0))""",
                {"name": name},
            ).fetchone()
        return ConversationStart(name, session_epoch, output_epoch, position, recovered)


_STORE_TURN = """INSERT INTO turns VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET
    position = excluded.position, text = excluded.text, revision = excluded.revision, stored_at = excluded.stored_at
    WHERE excluded.revision >= revision"""
_STORE_REPLY = """INSERT INTO replies VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET
    position = excluded.position, generated = excluded.generated, outcome = excluded.outcome,
    reason = excluded.reason, delivery_status = excluded.delivery_status, delivered_text = excluded.delivered_text,
    delivered_units = excluded.delivered_units, played_samples = excluded.played_samples,
    position_source = excluded.position_source, position_confidence = excluded.position_confidence,
    delivered_at_ns = excluded.delivered_at_ns, stored_at = excluded.stored_at"""
_STORE_CALL = """INSERT INTO tool_calls VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET
    status = excluded.status, output = excluded.output"""
_STORE_POSITION = """INSERT INTO call_positions VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE SET
    text_position = excluded.text_position"""
_STORE_CUT = "INSERT INTO delivery_cuts VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET cut = excluded.cut"
