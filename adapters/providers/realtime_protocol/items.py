"""Items of a conversation, as they are sent."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pydantic import JsonValue

from ....engines.ports import Message

Item = dict[str, JsonValue]
_PARTS = {"user": "input_text", "system": "input_text", "assistant": "output_text"}


def message_item(role: str, text: str) -> Item:
    """What "user", "system" or "assistant" said."""
    return {"type": "message", "role": role, "content": [{"type": _PARTS[role], "text": text}]}


def output_item(call_id: str, output: str) -> Item:
    """What came of a call."""
    return {"type": "function_call_output", "call_id": call_id, "output": output}


def items_of(messages: Iterable[Message]) -> Iterator[Item]:
    """Everything that was committed. A turn without words leaves nothing, and a call without its outcome neither."""
    messages = tuple(messages)
    answered = {message.call_id for message in messages if message.role == "tool"}
    made: set[str] = set()
    for message in messages:
        if message.role == "tool":
            if message.call_id is not None and message.call_id in made:
                yield output_item(message.call_id, message.text)
            continue
        if message.text:
            yield message_item(message.role, message.text)
        for call in message.tool_calls:
            if call.call_id in answered:
                made.add(call.call_id)
                arguments = call.arguments_json
                yield {"type": "function_call", "call_id": call.call_id, "name": call.name, "arguments": arguments}


def as_text(messages: Iterable[Message]) -> str:
    """The same for a provider that takes no items of the past."""
    return "\n".join(f"{message.role}: {message.text}" for message in messages if message.text)
