"""The Messages wire: what is sent, and the events that come back.

Shapes: `anthropic.types.RawMessageStreamEvent` and `message_create_params` of the vendor's SDK (anthropic 2.14.0).
`ping` and `error` are told by the name of the server-sent event, and are in no union there; here, as in the events
themselves, they are told by `type`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence

from pydantic import BaseModel, ConfigDict, JsonValue, TypeAdapter

from .....engines.ports import GenerationRequest, Message, ToolDefinition
from ...generation import parameters_of

KIND = "anthropic"
RESERVED = frozenset({"model", "messages", "system", "stream", "tools", "max_tokens"})

JsonObject = dict[str, JsonValue]
_BLOCKS = TypeAdapter(list[JsonObject])


class _Wire(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)


class TokenUsage(_Wire):
    """Cumulative: the later number replaces the earlier. `input_tokens` leaves out what came from a cache."""

    input_tokens: int | None = None
    cache_creation_input_tokens: int | None = None
    cache_read_input_tokens: int | None = None
    output_tokens: int | None = None


class MessageHead(_Wire):
    usage: TokenUsage | None = None


class ContentBlock(_Wire):
    """What a block begins with; text and thinking begin empty, and a tool's `input` with {}."""

    type: str
    text: str | None = None
    thinking: str | None = None
    signature: str | None = None
    data: str | None = None
    """Of "redacted_thinking"."""
    id: str | None = None
    name: str | None = None
    input: JsonValue = None


class Delta(_Wire):
    """Of a block (then with `type`), or of the message."""

    type: str | None = None
    text: str | None = None
    thinking: str | None = None
    signature: str | None = None
    partial_json: str | None = None
    stop_reason: str | None = None


class ErrorBody(_Wire):
    type: JsonValue = None


class Event(_Wire):
    """Any event: which fields are there depends on `type`."""

    type: str
    message: MessageHead | None = None
    index: int | None = None
    content_block: ContentBlock | None = None
    delta: Delta | None = None
    usage: TokenUsage | None = None
    error: ErrorBody | None = None


def request_body(
    request: GenerationRequest, *, model: str, max_tokens: int, extra: Mapping[str, JsonValue]
) -> JsonObject:
    """The JSON body of a streamed message: everything that the system says goes before the conversation.

    Raises `ValueError` for a tool schema that is no JSON object.
    """
    body: JsonObject = {
        **extra,
        "model": model,
        "max_tokens": max_tokens,
        "messages": [*_turns(message for message in request.messages if message.role != "system")],
        "stream": True,
    }
    system = "\n\n".join(message.text for message in request.messages if message.role == "system")
    if system:
        body["system"] = system
    if request.tools:
        body["tools"] = [_tool(tool) for tool in request.tools]
    return body


def replayed(blocks: Sequence[JsonObject]) -> str | None:
    """The blocks of a message as they must go back, in their order; None when nothing of it is signed."""
    signed = any(block["type"] in ("thinking", "redacted_thinking") for block in blocks)
    return json.dumps(blocks, ensure_ascii=False) if signed else None


def _turns(messages: Iterable[Message]) -> list[JsonObject]:
    """User and assistant in turn: all tool results of a step belong into one message, and texts are never empty."""
    turns: list[tuple[str, list[JsonValue]]] = []
    for message in messages:
        role = "assistant" if message.role == "assistant" else "user"
        blocks = _blocks(message)
        if not blocks:
            continue
        if turns and turns[-1][0] == role:
            turns[-1][1].extend(blocks)
        else:
            turns.append((role, [*blocks]))
    return [{"role": role, "content": blocks} for role, blocks in turns]


def _blocks(message: Message) -> list[JsonObject]:
    if message.role == "tool":
        return [{"type": "tool_result", "tool_use_id": message.call_id, "content": message.text}]
    state = message.provider_state
    if state is not None and state.provider == KIND:
        blocks = _BLOCKS.validate_json(state.content_json)
        calls = {str(block["id"]) for block in blocks if block["type"] == "tool_use"}
        if calls == {call.call_id for call in message.tool_calls}:
            return blocks
    said: list[JsonObject] = [{"type": "text", "text": message.text}] if message.text.strip() else []
    return [
        *said,
        *(
            {
                "type": "tool_use",
                "id": call.call_id,
                "name": call.name,
                "input": json.loads(call.arguments_json or "{}"),
            }
            for call in message.tool_calls
        ),
    ]


def _tool(tool: ToolDefinition) -> JsonObject:
    return {"name": tool.name, "description": tool.description, "input_schema": parameters_of(tool)}
