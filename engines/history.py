"""What was said and what was heard: the records that the model's next context is made of.

The chart decides what goes in, and where it stands: a reply stands where its *playback* began. Here the text belonging
to those decisions is kept. What the model sees of an interrupted reply is what was delivered, and a marker.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Protocol

from ..statecharts.values import DeliveryStatus, Outcome, PositionSource, ToolStatus, TurnAuthority
from .ports import Message, ToolRequest

INTERRUPTED_MARKER = "[interrupted by the user]"
UNKNOWN_MARKER = "[interrupted; how much was heard is unknown]"


@dataclass(frozen=True, slots=True)
class UserTurn:
    """A committed turn of the user."""

    turn_id: str
    position: int
    text: str
    authority: TurnAuthority
    revision: int = 1


@dataclass(frozen=True, slots=True)
class ToolExchange:
    """A call of the model and what came of it."""

    request: ToolRequest
    status: ToolStatus | None = None
    output: str = ""


@dataclass(frozen=True, slots=True)
class Delivery:
    """What reached the user's ear. `text`: whole confirmed units of speech, never a guess."""

    status: DeliveryStatus
    text: str
    units: int
    played_samples: int | None
    source: PositionSource
    confidence: float
    at_ns: int


@dataclass(frozen=True, slots=True)
class Reply:
    """A response of the assistant."""

    response_id: str
    run_id: str
    position: int
    generated: str = ""
    outcome: Outcome | None = None
    reason: str = ""
    delivery: Delivery | None = None
    tools: tuple[ToolExchange, ...] = ()


Record = UserTurn | Reply


class History(Protocol):
    """The durable memory of a conversation. Methods return at once; `flush` waits until everything is durable."""

    def store_turn(self, turn: UserTurn) -> None:
        """Add a turn, or replace the text of the same `turn_id`."""
        ...

    def store_reply(self, reply: Reply) -> None:
        """Add a reply, or replace everything known of the same `response_id`."""
        ...

    def records(self) -> tuple[Record, ...]:
        """Everything, in the order in which it was said."""
        ...

    async def flush(self) -> None: ...


@dataclass
class MemoryHistory:
    """A history that lives as long as the process."""

    turns: dict[str, UserTurn] = field(default_factory=dict[str, UserTurn])
    replies: dict[str, Reply] = field(default_factory=dict[str, Reply])

    def store_turn(self, turn: UserTurn) -> None:
        self.turns[turn.turn_id] = turn

    def store_reply(self, reply: Reply) -> None:
        self.replies[reply.response_id] = reply

    def records(self) -> tuple[Record, ...]:
        both: list[Record] = [*self.turns.values(), *self.replies.values()]
        return tuple(sorted(both, key=lambda record: record.position))

    async def flush(self) -> None:
        """Nothing to wait for."""


def messages_of(
    records: tuple[Record, ...], system: str | None = None, *, continuing: Reply | None = None
) -> tuple[Message, ...]:
    """The context the model sees: committed turns, and replies as they were delivered.

    `continuing` is the reply that is being made: it comes last, with what it wrote and called so far.
    """
    messages: list[Message] = []
    if system:
        messages.append(Message("system", system))
    for record in records:
        if isinstance(record, UserTurn):
            messages.append(Message("user", record.text))
        elif continuing is None or record.response_id != continuing.response_id:
            messages.extend(_tool_messages(record))
            text = heard_text(record)
            if text:
                messages.append(Message("assistant", text))
    if continuing is not None:
        if continuing.generated:
            messages.append(Message("assistant", continuing.generated))
        messages.extend(_tool_messages(continuing))
    return tuple(messages)


def heard_text(reply: Reply) -> str:
    """What the model may believe it said."""
    delivery = reply.delivery
    if delivery is None:
        return UNKNOWN_MARKER if reply.generated else ""
    match delivery.status:
        case DeliveryStatus.DELIVERED | DeliveryStatus.TEXT_ONLY:
            return reply.generated
        case DeliveryStatus.UNKNOWN:
            return _marked(delivery.text, UNKNOWN_MARKER)
        case DeliveryStatus.INTERRUPTED | DeliveryStatus.FAILED:
            unheard = not delivery.text and not delivery.played_samples
            return "" if unheard else _marked(delivery.text, INTERRUPTED_MARKER)


def with_tool_output(reply: Reply, call_id: str, status: ToolStatus, output: str) -> Reply:
    """The same reply, with the outcome of one of its calls."""
    return replace(
        reply,
        tools=tuple(
            replace(exchange, status=status, output=output) if exchange.request.call_id == call_id else exchange
            for exchange in reply.tools
        ),
    )


def _marked(text: str, marker: str) -> str:
    return f"{text} {marker}".strip()


def _tool_messages(reply: Reply) -> list[Message]:
    """Calls and their outcomes; every call has one, a cancelled one too."""
    settled = [exchange for exchange in reply.tools if exchange.status is not None]
    if not settled:
        return []
    calls = Message("assistant", "", tool_calls=tuple(exchange.request for exchange in settled))
    results = [
        Message("tool", exchange.output or f"({exchange.status})", call_id=exchange.request.call_id)
        for exchange in settled
    ]
    return [calls, *results]
