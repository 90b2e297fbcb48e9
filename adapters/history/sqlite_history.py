"""One conversation in the durable store: the `History` port.

Beginning a conversation that is in the store already is a restart. What a crash left open is settled then, and nothing
of it is played or run again: a reply without an outcome failed, a delivery without a record is `unknown`, and so is a
tool call without an outcome. Epochs are reserved ahead, so that none is used twice however the process ended.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...engines.history import Record, Reply, UserTurn
from ...statecharts.values import DeliveryStatus, Outcome, PositionSource, ToolStatus
from .rows import reply_values
from .store import HistoryStore, now

EPOCHS_PER_START = 1_000_000
"""Epochs that one start may use up. At an interruption a second that is eleven days."""

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


class SqliteHistory:
    """Raises `HistoryError` when the store refuses."""

    def __init__(self, store: HistoryStore, conversation_id: str) -> None:
        self._store = store
        self._conversation_id = conversation_id
        self.start = self._begin()

    def store_turn(self, turn: UserTurn) -> None:
        """Durable when it returns."""
        with self._store.transaction() as connection:
            connection.execute(
                """INSERT INTO turns VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET
                   position = excluded.position, text = excluded.text, revision = excluded.revision,
                   stored_at = excluded.stored_at WHERE excluded.revision >= revision""",
                (
                    self._conversation_id,
                    turn.turn_id,
                    turn.position,
                    turn.text,
                    turn.authority,
                    turn.revision,
                    now(),
                ),
            )

    def store_reply(self, reply: Reply) -> None:
        """Durable when it returns."""
        with self._store.transaction() as connection:
            connection.execute(
                """INSERT INTO replies VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET
                   position = excluded.position, generated = excluded.generated, outcome = excluded.outcome,
                   reason = excluded.reason, delivery_status = excluded.delivery_status,
                   delivered_text = excluded.delivered_text, delivered_units = excluded.delivered_units,
                   played_samples = excluded.played_samples, position_source = excluded.position_source,
                   position_confidence = excluded.position_confidence, delivered_at_ns = excluded.delivered_at_ns,
                   stored_at = excluded.stored_at""",
                reply_values(self._conversation_id, reply, now()),
            )
            connection.executemany(
                """INSERT INTO tool_calls VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET
                   status = excluded.status, output = excluded.output""",
                [
                    (
                        self._conversation_id,
                        reply.response_id,
                        ordinal,
                        exchange.request.call_id,
                        exchange.request.name,
                        exchange.request.arguments_json,
                        exchange.status,
                        exchange.output,
                    )
                    for ordinal, exchange in enumerate(reply.tools)
                ],
            )

    def records(self) -> tuple[Record, ...]:
        return self._store.records(self._conversation_id)

    async def flush(self) -> None:
        """Every write was committed when it returned."""

    def _begin(self) -> ConversationStart:
        name = self._conversation_id
        with self._store.transaction() as connection:
            connection.execute("INSERT OR IGNORE INTO conversations VALUES (?, ?, 1, 1)", (name, now()))
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
