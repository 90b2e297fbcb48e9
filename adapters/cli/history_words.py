"""A conversation for people: what was heard is plain, what was not is struck out and in brackets."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime

from rich.table import Table
from rich.text import Text

from ...engines.history import Cut, Reply, ToolExchange, UserTurn
from ...statecharts.values import DeliveryStatus, PositionSource
from ..history import ConversationSummary, StoredRecord

HEARD, UNHEARD, MARK, FAULT = "green", "dim strike", "bold yellow", "bold red"


def conversation_heading(summary: ConversationSummary) -> Text:
    """One line: which conversation, how much, and since when."""
    counts = f"{summary.turns} turns, {summary.replies} replies"
    return Text(f"{summary.conversation_id}: {counts}, begun {_moment(summary.created_at)}", "bold")


def conversation_table(summaries: Sequence[ConversationSummary]) -> Table:
    """One row a conversation."""
    table = Table(box=None, padding=(0, 2, 0, 0))
    for column in ("conversation", "turns", "replies", "begun", "last"):
        table.add_column(column, header_style="dim", justify="right" if column in ("turns", "replies") else "left")
    for summary in summaries:
        last = "never" if summary.last_stored_at is None else _moment(summary.last_stored_at)
        table.add_row(
            summary.conversation_id, str(summary.turns), str(summary.replies), _moment(summary.created_at), last
        )
    return table


def record_table(stored: Iterable[StoredRecord]) -> Table:
    """One row a turn or a reply, and one a call of a tool."""
    table = Table(box=None, padding=(0, 2, 0, 0), show_header=False)
    table.add_column(style="dim", no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold", ratio=1)
    for entry in stored:
        record, moment = entry.record, _moment(entry.stored_at)
        if isinstance(record, UserTurn):
            table.add_row(moment, "user", Text(printable(record.text), "cyan"))
            continue
        for piece in reply_pieces(record):
            if isinstance(piece, ToolExchange):
                table.add_row("", Text("tool", "dim"), call_text(piece))
            else:
                table.add_row(moment, "assistant", piece)
    return table


def reply_pieces(reply: Reply) -> Iterator[Text | ToolExchange]:
    """What was heard, what became of the rest, and the rest; with the calls where they stand in what was heard."""
    delivery = reply.delivery
    heard = delivery.text if delivery is not None else ""
    offset = len(reply.generated) - len(reply.generated.lstrip())
    told = 0
    for call in reply.tools:
        place = max(told, min(call.text_position - offset, len(heard)))
        if before := heard[told:place].strip():
            yield Text(printable(before), HEARD)
        yield call
        told = place
    yield reply_text(reply, told)


def reply_text(reply: Reply, told: int = 0) -> Text:
    """The same without the calls, on one line; without the first `told` characters of what was heard."""
    return Text(" ").join(_pieces(reply, told))


def call_text(call: ToolExchange) -> Text:
    """What was called, with what, and what came of it: `clock({}) → completed: noon`."""
    said = Text(printable(f"{call.request.name}({call.request.arguments_json})"), "dim")
    said.append(" → ")
    said.append("still running" if call.status is None else call.status.value, "dim" if call.status else MARK)
    return said.append(printable(f": {call.output}" if call.output else ""), "dim")


def _pieces(reply: Reply, told: int) -> Iterator[Text]:
    generated, delivery = reply.generated.strip(), reply.delivery
    if delivery is None:
        yield Text("… still being said", MARK)
        yield from _unheard(generated)
        return
    heard = delivery.text.strip()
    if last := heard[told:].strip():
        yield Text(printable(last), HEARD)
    match delivery.status:
        case DeliveryStatus.DELIVERED:
            pass
        case DeliveryStatus.TEXT_ONLY:
            yield Text("(shown, not spoken)", MARK)
        case DeliveryStatus.INTERRUPTED:
            measured = delivery.source is PositionSource.MEASURED
            how = "✂ interrupted at this word" if delivery.cut is Cut.WORD else "✂ interrupted"
            yield Text(how if measured else f"{how} ({delivery.source.value} position)", MARK)
        case DeliveryStatus.UNKNOWN:
            yield Text("? how much of it was heard is unknown", MARK)
        case DeliveryStatus.FAILED:
            yield Text(f"✗ failed{f' ({printable(reply.reason)})' if reply.reason else ''}", FAULT)
    # What was heard is the beginning of what was written, unless the model's last word replaced that.
    yield from _unheard(generated.removeprefix(heard).strip())
    if not generated and not heard:
        yield Text("(nothing was written)", "dim")


def _unheard(text: str) -> Iterator[Text]:
    if text:
        yield Text("[not heard:", "dim") + Text(" ") + Text(printable(text), UNHEARD) + Text("]", "dim")


def printable(text: str) -> str:
    """Without what a terminal would obey: a model, or who speaks to it, must not move the cursor."""
    return "".join(character if character.isprintable() or character == "\n" else "�" for character in text)


def _moment(at: datetime) -> str:
    return f"{at.astimezone():%Y-%m-%d %H:%M:%S}"
