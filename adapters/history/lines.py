"""The exported form: JSON Lines, one record a line, in the order in which it was said.

A conversation begins with a line of its own. The shape is stable: fields may be added to version 1, none is renamed or
given another meaning. Unknown fields must be ignored by readers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Literal

from pydantic import BaseModel, ConfigDict

from ...engines.history import Cut, Delivery, Reply, ToolExchange, UserTurn, heard_text
from ...statecharts.values import DeliveryStatus, Outcome, PositionSource, ToolStatus, TurnAuthority
from .store import ConversationSummary, StoredRecord


class _Line(BaseModel):
    model_config = ConfigDict(frozen=True)

    version: Literal[1] = 1
    conversation_id: str


class ConversationLine(_Line):
    """Before the records of each conversation."""

    kind: Literal["conversation"] = "conversation"
    created_at: datetime


class _RecordLine(_Line):
    position: int
    """Where it stands in the conversation; grows, with gaps."""
    stored_at: datetime
    """When it was last written, UTC."""


class TurnLine(_RecordLine):
    """A committed turn of the user."""

    kind: Literal["turn"] = "turn"
    turn_id: str
    text: str
    authority: TurnAuthority
    """Who said that the turn had ended; `client` for typed text."""
    revision: int
    """1, or more when the user went on and the turn was committed again."""


class DeliveryFields(BaseModel):
    """What reached the user's ear."""

    model_config = ConfigDict(frozen=True)

    status: DeliveryStatus
    text: str
    """Whole confirmed units of speech, and the words after them where `cut` is `word`."""
    units: int
    played_samples: int | None
    """None: nobody knows."""
    source: PositionSource
    confidence: float
    cut: Cut


class CallFields(BaseModel):
    """A call of a tool, and what came of it."""

    model_config = ConfigDict(frozen=True)

    call_id: str
    name: str
    arguments_json: str
    status: ToolStatus | None
    """None: still running."""
    output: str
    text_position: int
    """Characters of `generated` that stand before it."""


class ReplyLine(_RecordLine):
    """A response of the assistant."""

    kind: Literal["reply"] = "reply"
    response_id: str
    run_id: str
    generated: str
    """Everything the model wrote."""
    heard: str
    """What the model is told that it said: what was delivered, and a marker where it was interrupted."""
    outcome: Outcome | None
    """None: still being made."""
    reason: str
    delivery: DeliveryFields | None
    """None: still being played."""
    tools: tuple[CallFields, ...]


HistoryLine = ConversationLine | TurnLine | ReplyLine


def history_lines(conversation: ConversationSummary, stored: Iterable[StoredRecord]) -> Iterator[HistoryLine]:
    """The lines of one conversation."""
    name = conversation.conversation_id
    yield ConversationLine(conversation_id=name, created_at=conversation.created_at)
    for entry in stored:
        record = entry.record
        if isinstance(record, UserTurn):
            yield _turn_line(name, entry.stored_at, record)
        else:
            yield _reply_line(name, entry.stored_at, record)


def _turn_line(conversation_id: str, stored_at: datetime, turn: UserTurn) -> TurnLine:
    return TurnLine(
        conversation_id=conversation_id,
        position=turn.position,
        stored_at=stored_at,
        turn_id=turn.turn_id,
        text=turn.text,
        authority=turn.authority,
        revision=turn.revision,
    )


def _reply_line(conversation_id: str, stored_at: datetime, reply: Reply) -> ReplyLine:
    return ReplyLine(
        conversation_id=conversation_id,
        position=reply.position,
        stored_at=stored_at,
        response_id=reply.response_id,
        run_id=reply.run_id,
        generated=reply.generated,
        heard=heard_text(reply),
        outcome=reply.outcome,
        reason=reply.reason,
        delivery=_delivery_fields(reply.delivery),
        tools=tuple(_call_fields(call) for call in reply.tools),
    )


def _delivery_fields(delivery: Delivery | None) -> DeliveryFields | None:
    if delivery is None:
        return None
    return DeliveryFields(
        status=delivery.status,
        text=delivery.text,
        units=delivery.units,
        played_samples=delivery.played_samples,
        source=delivery.source,
        confidence=delivery.confidence,
        cut=delivery.cut,
    )


def _call_fields(call: ToolExchange) -> CallFields:
    return CallFields(
        call_id=call.request.call_id,
        name=call.request.name,
        arguments_json=call.request.arguments_json,
        status=call.status,
        output=call.output,
        text_position=call.text_position,
    )
