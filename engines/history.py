"""What was said and what was heard: the records that the model's next context is made of.

The chart decides what goes in, and where it stands: a reply stands where its *playback* began. Here the text belonging
to those decisions is kept. What the model sees of an interrupted reply is what was delivered, and a marker.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from itertools import groupby
from typing import Protocol

from ..statecharts.values import DeliveryStatus, Outcome, PositionSource, ToolStatus, TurnAuthority
from .ports import Message, ToolRequest
from .reports import ProviderState

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
    text_position: int = 0
    """Characters of the reply's generated text that stand before it."""


class Cut(StrEnum):
    """Where the delivered text of a reply ends."""

    UNIT = "unit"
    """After the last unit of speech that a receipt confirmed."""
    WORD = "word"
    """After the last word that was played, as the synthesiser's word times and a measured position tell."""


@dataclass(frozen=True, slots=True)
class Delivery:
    """What reached the user's ear. `text`: whole confirmed units of speech, or up to a word of the next; no guess."""

    status: DeliveryStatus
    text: str
    units: int
    played_samples: int | None
    source: PositionSource
    confidence: float
    at_ns: int
    cut: Cut = Cut.UNIT


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
    """The durable memory of a conversation. Methods return at once; `flush` waits until everything is durable.

    What is stored must survive the death of the process from the moment the method returns. Raises `PortError` for what
    cannot be kept; the conversation ends with it.
    """

    def store_turn(self, turn: UserTurn) -> None:
        """Add a turn, or replace the text of the same `turn_id`."""
        ...

    def store_reply(self, reply: Reply) -> None:
        """Add a reply, or replace everything known of the same `response_id`."""
        ...

    def records(self, latest: int | None = None) -> tuple[Record, ...]:
        """Everything, or the `latest` records, in the order in which it was said."""
        ...

    async def flush(self) -> None:
        """Return when everything stored so far is durable. May run beside the other methods."""
        ...


@dataclass
class MemoryHistory:
    """A history that lives as long as the process."""

    turns: dict[str, UserTurn] = field(default_factory=dict[str, UserTurn])
    replies: dict[str, Reply] = field(default_factory=dict[str, Reply])

    def store_turn(self, turn: UserTurn) -> None:
        self.turns[turn.turn_id] = turn

    def store_reply(self, reply: Reply) -> None:
        self.replies[reply.response_id] = reply

    def records(self, latest: int | None = None) -> tuple[Record, ...]:
        both: list[Record] = [*self.turns.values(), *self.replies.values()]
        ordered = sorted(both, key=lambda record: record.position)
        return tuple(ordered if latest is None else ordered[max(0, len(ordered) - latest) :])

    async def flush(self) -> None:
        """Nothing to wait for."""


@dataclass(frozen=True, slots=True)
class ContextLimits:
    """How much of the history a model is shown: a device's conversation never ends."""

    records: int = 200
    chars: int = 48_000
    """Of everything but the system prompt. One Chinese character may be a token, four Latin letters are about one."""

    def __post_init__(self) -> None:
        """Raises ValueError for a limit that would hide the present question."""
        if self.records < 1 or self.chars < 1:
            raise ValueError("a context holds at least one record and one character")


def latest_within(records: Sequence[Record], limits: ContextLimits) -> tuple[Record, ...]:
    """The newest records that fit, beginning with a turn of the user; the newest turn whatever its length."""
    first, left = len(records), limits.chars
    newest_turn = max((place for place, record in enumerate(records) if isinstance(record, UserTurn)), default=first)
    for place in range(len(records) - 1, max(-1, len(records) - 1 - limits.records), -1):
        left -= sum(len(message.text) for message in messages_of((records[place],)))
        if left < 0 and place < newest_turn:
            break
        if isinstance(records[place], UserTurn):
            first = place
    return tuple(records[first:])


def messages_of(records: Iterable[Record], system: str | None = None) -> tuple[Message, ...]:
    """The context the model sees: committed turns, and replies as they were delivered."""
    messages: list[Message] = []
    if system:
        messages.append(Message("system", system))
    for record in records:
        if isinstance(record, UserTurn):
            messages.append(Message("user", record.text))
        else:
            messages.extend(_messages_of_reply(record))
    return tuple(messages)


def _messages_of_reply(reply: Reply) -> Iterator[Message]:
    """What was heard, with the calls where they stand in it; a call in what was not heard stands at its end."""
    text, marker = _heard(reply)
    # The heard text begins where the generated one has its first letter.
    offset = 0 if reply.generated.startswith(text) else len(reply.generated) - len(reply.generated.lstrip())
    told = 0
    for position, calls in groupby(reply.tools, key=lambda call: call.text_position):
        place = max(told, min(position - offset, len(text)))
        yield from messages_of_calls(tuple(calls), text[told:place].strip())
        told = place
    rest = _marked(text[told:] if not told else text[told:].strip(), marker)
    if rest:
        yield Message("assistant", rest)


def heard_text(reply: Reply) -> str:
    """What the model may believe it said."""
    return _marked(*_heard(reply))


def _heard(reply: Reply) -> tuple[str, str]:
    """What was heard, and the marker behind it."""
    delivery = reply.delivery
    if delivery is None:
        return "", UNKNOWN_MARKER if reply.generated else ""
    match delivery.status:
        case DeliveryStatus.DELIVERED | DeliveryStatus.TEXT_ONLY:
            return reply.generated, ""
        case DeliveryStatus.UNKNOWN:
            return delivery.text, UNKNOWN_MARKER
        case DeliveryStatus.INTERRUPTED | DeliveryStatus.FAILED:
            unheard = not delivery.text and not delivery.played_samples
            return ("", "") if unheard else (delivery.text, INTERRUPTED_MARKER)


def with_tool_output(reply: Reply, call_id: str, status: ToolStatus, output: str) -> Reply:
    """The same reply, with the outcome of one of its calls."""
    return replace(
        reply,
        tools=tuple(
            replace(exchange, status=status, output=output) if exchange.request.call_id == call_id else exchange
            for exchange in reply.tools
        ),
    )


def with_later_output(reply: Reply, call_id: str, output: str) -> Reply:
    """The same reply, with something more that is known of a call that has its outcome."""

    def with_more(call: ToolExchange) -> ToolExchange:
        return replace(call, output=f"{call.output}\n{output}".strip()) if call.request.call_id == call_id else call

    return replace(reply, tools=tuple(map(with_more, reply.tools)))


def with_note(messages: tuple[Message, ...], note: str) -> tuple[Message, ...]:
    """A context in which the model is told something before it answers the last thing that the user said."""
    if not note:
        return messages
    asked = max((place for place, message in enumerate(messages) if message.role == "user"), default=len(messages))
    return (*messages[:asked], Message("system", note), *messages[asked:])


def _marked(text: str, marker: str) -> str:
    return f"{text} {marker}".strip() if marker else text


def messages_of_calls(
    calls: Sequence[ToolExchange], text: str = "", provider_state: ProviderState | None = None
) -> list[Message]:
    """Calls with the text before them and what the provider wants back with them, and their outcomes; every call has
    one, a cancelled one too.
    """
    if not calls:
        return []
    requests = tuple(call.request for call in calls)
    asked = Message("assistant", text, tool_calls=requests, provider_state=provider_state)
    return [asked, *(Message("tool", _outcome_of(call), call_id=call.request.call_id) for call in calls)]


def _outcome_of(call: ToolExchange) -> str:
    if call.status is None:
        return "(still running)"
    return call.output or f"({call.status})"
