"""Between rows of the store and the records of a conversation."""

from __future__ import annotations

from typing import Any

from ...engines.history import Cut, Delivery, Reply, ToolExchange, UserTurn
from ...engines.ports import ToolRequest
from ...statecharts.values import DeliveryStatus, Outcome, PositionSource, ToolStatus, TurnAuthority


def turn_of(row: tuple[Any, ...]) -> UserTurn:
    """From turn_id, position, text, authority, revision."""
    turn_id, position, text, authority, revision = row
    return UserTurn(turn_id, position, text, TurnAuthority(authority), revision)


def reply_of(row: tuple[Any, ...], calls: tuple[tuple[Any, ...], ...]) -> Reply:
    """From the columns of `replies`, conversation and storing time apart, and its cut.

    `calls`: call_id, name, arguments_json, status, output, text_position of each.
    """
    response_id, run_id, position, generated, outcome, reason, *delivery = row
    return Reply(
        response_id,
        run_id,
        position,
        generated,
        Outcome(outcome) if outcome else None,
        reason,
        _delivery_of(delivery),
        tuple(
            ToolExchange(
                ToolRequest(call_id, name, arguments), ToolStatus(status) if status else None, output, position or 0
            )
            for call_id, name, arguments, status, output, position in calls
        ),
    )


def _delivery_of(columns: list[Any]) -> Delivery | None:
    status, text, units, played, source, confidence, at_ns, cut = columns
    if status is None:
        return None
    return Delivery(
        DeliveryStatus(status), text, units, played, PositionSource(source), confidence, at_ns, Cut(cut or Cut.UNIT)
    )


def turn_values(conversation_id: str, turn: UserTurn, stored_at: str) -> tuple[Any, ...]:
    """All columns of `turns`."""
    return (conversation_id, turn.turn_id, turn.position, turn.text, turn.authority, turn.revision, stored_at)


def call_values(conversation_id: str, reply: Reply) -> list[tuple[Any, ...]]:
    """All columns of `tool_calls`, a row a call."""
    return [
        (
            conversation_id,
            reply.response_id,
            ordinal,
            exchange.request.call_id,
            exchange.request.name,
            exchange.request.arguments_json,
            exchange.status,
            exchange.output,
        )
        for ordinal, exchange in enumerate(reply.tools)
    ]


def cut_values(conversation_id: str, reply: Reply) -> list[tuple[Any, ...]]:
    """All columns of `delivery_cuts`; no row is a cut after a unit."""
    if reply.delivery is None or reply.delivery.cut is Cut.UNIT:
        return []
    return [(conversation_id, reply.response_id, reply.delivery.cut)]


def position_values(conversation_id: str, reply: Reply) -> list[tuple[Any, ...]]:
    """All columns of `call_positions`, a row a call; no row is the beginning of the text."""
    return [
        (conversation_id, reply.response_id, ordinal, call.text_position)
        for ordinal, call in enumerate(reply.tools)
        if call.text_position
    ]


def reply_values(conversation_id: str, reply: Reply, stored_at: str) -> tuple[Any, ...]:
    """All columns of `replies`."""
    delivery = reply.delivery
    return (
        conversation_id,
        reply.response_id,
        reply.run_id,
        reply.position,
        reply.generated,
        reply.outcome,
        reply.reason,
        delivery.status if delivery else None,
        delivery.text if delivery else None,
        delivery.units if delivery else None,
        delivery.played_samples if delivery else None,
        delivery.source if delivery else None,
        delivery.confidence if delivery else None,
        delivery.at_ns if delivery else None,
        stored_at,
    )
