"""The exported form, field by field: readers outside depend on it."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

from voicechart.adapters.history import HistoryStore, SqliteHistory, StoredRecord, history_lines
from voicechart.adapters.history.store import ConversationSummary
from voicechart.engines.history import Cut, Delivery, Reply, ToolExchange, UserTurn
from voicechart.engines.ports import ToolRequest
from voicechart.statecharts.values import DeliveryStatus, Outcome, PositionSource, ToolStatus, TurnAuthority

AT = datetime(2025, 3, 1, 12, 0, 0, 250_000, tzinfo=UTC)
SUMMARY = ConversationSummary("kitchen", AT, AT, 1, 1)
TURN = UserTurn("turn-1", 1, "wie spät ist es", TurnAuthority.VAD, 2)
CALL = ToolExchange(ToolRequest("call-1", "clock", '{"zone": "CET"}'), ToolStatus.COMPLETED, "noon", 6)
DELIVERY = Delivery(DeliveryStatus.INTERRUPTED, "It is.", 1, 4_000, PositionSource.MEASURED, 1.0, 7, Cut.WORD)
REPLY = Reply("response-1", "run-1", 2, "It is. Noon.", Outcome.CANCELLED, "interrupted", DELIVERY, (CALL,))


def lines(*records: UserTurn | Reply) -> list[dict[str, object]]:
    stored = [StoredRecord(record, AT) for record in records]
    return [json.loads(line.model_dump_json()) for line in history_lines(SUMMARY, stored)]


def test_a_conversation_begins_with_a_line_of_its_own() -> None:
    assert lines() == [
        {
            "version": 1,
            "conversation_id": "kitchen",
            "kind": "conversation",
            "created_at": "2025-03-01T12:00:00.250000Z",
        }
    ]


def test_a_turn_is_a_line() -> None:
    assert lines(TURN)[1] == {
        "version": 1,
        "conversation_id": "kitchen",
        "kind": "turn",
        "position": 1,
        "stored_at": "2025-03-01T12:00:00.250000Z",
        "turn_id": "turn-1",
        "text": "wie spät ist es",
        "authority": "vad",
        "revision": 2,
    }


def test_a_reply_is_a_line_with_what_was_written_and_what_was_heard() -> None:
    assert lines(REPLY)[1] == {
        "version": 1,
        "conversation_id": "kitchen",
        "kind": "reply",
        "position": 2,
        "stored_at": "2025-03-01T12:00:00.250000Z",
        "response_id": "response-1",
        "run_id": "run-1",
        "generated": "It is. Noon.",
        "heard": "It is. [interrupted by the user]",
        "outcome": "cancelled",
        "reason": "interrupted",
        "delivery": {
            "status": "interrupted",
            "text": "It is.",
            "units": 1,
            "played_samples": 4_000,
            "source": "measured",
            "confidence": 1.0,
            "cut": "word",
        },
        "tools": [
            {
                "call_id": "call-1",
                "name": "clock",
                "arguments_json": '{"zone": "CET"}',
                "status": "completed",
                "output": "noon",
                "text_position": 6,
            }
        ],
    }


def test_a_reply_that_is_being_made_has_no_outcome_and_no_delivery() -> None:
    call = ToolExchange(ToolRequest("call-1", "clock", "{}"))
    (line,) = lines(Reply("response-1", "run-1", 2, tools=(call,)))[1:]
    assert (line["outcome"], line["delivery"], line["heard"]) == (None, None, "")
    assert line["tools"] == [
        {
            "call_id": "call-1",
            "name": "clock",
            "arguments_json": "{}",
            "status": None,
            "output": "",
            "text_position": 0,
        }
    ]


def test_a_stored_record_knows_when_it_was_written(path: Path) -> None:
    before = datetime.now(UTC)
    with HistoryStore(path) as store:
        SqliteHistory(store, "kitchen").store_turn(TURN)
        (stored,) = store.stored("kitchen")
    assert stored.record == TURN
    assert abs((stored.stored_at - before).total_seconds()) < 3_600
    assert stored.stored_at.tzinfo is not None
