"""The Responses wire: what is sent, and the events that come back.

Shapes: `openai.types.responses.ResponseStreamEvent` and `response_create_params` of the vendor's SDK (openai 3.57.0).
Nothing is left with the provider (`store` is false): every request holds the whole context, and reasoning goes back as
the encrypted item that `response.output_item.done` had.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import takewhile

from pydantic import BaseModel, ConfigDict, JsonValue, TypeAdapter

from .....engines.ports import GenerationRequest, Message, ToolDefinition
from ...generation import parameters_of

KIND = "openai-responses"
RESERVED = frozenset({"model", "input", "instructions", "stream", "store", "tools", "previous_response_id"})
REPLAYED_KEYS = ("id", "type", "summary", "content", "encrypted_content")
"""Of a reasoning item (`ResponseReasoningItemParam`)."""

JsonObject = dict[str, JsonValue]
_ITEMS = TypeAdapter(list[JsonObject])


class _Wire(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)


class Part(_Wire):
    """A part of a message: `text` of "output_text", `refusal` of "refusal"."""

    type: str = ""
    text: str | None = None
    refusal: str | None = None


class Item(BaseModel):
    """A message, a function call, a reasoning item, or something that nobody here asked for."""

    model_config = ConfigDict(extra="allow", frozen=True)

    type: str
    id: str | None = None
    call_id: str | None = None
    name: str | None = None
    arguments: str | None = None
    content: Sequence[Part] | None = None


class TokenUsage(_Wire):
    input_tokens: int | None = None
    output_tokens: int | None = None


class ErrorBody(_Wire):
    code: JsonValue = None
    type: JsonValue = None


class IncompleteDetails(_Wire):
    reason: str | None = None


class ResponseBody(_Wire):
    """The response as its first and its last event have it."""

    output: Sequence[Item] = ()
    usage: TokenUsage | None = None
    error: ErrorBody | None = None
    incomplete_details: IncompleteDetails | None = None


class Event(_Wire):
    """Any event: which fields are there depends on `type`. An `error` is flat, with its own `code`."""

    type: str
    sequence_number: int | None = None
    response: ResponseBody | None = None
    item: Item | None = None
    item_id: str | None = None
    output_index: int | None = None
    content_index: int | None = None
    delta: str | None = None
    text: str | None = None
    refusal: str | None = None
    arguments: str | None = None
    code: JsonValue = None
    error: ErrorBody | None = None


def request_body(request: GenerationRequest, *, model: str, extra: Mapping[str, JsonValue]) -> JsonObject:
    """The JSON body of a streamed response: what the system says first are the instructions.

    Raises `ValueError` for a tool schema that is no JSON object.
    """
    first = list(takewhile(lambda message: message.role == "system", request.messages))
    items = [item for message in request.messages[len(first) :] for item in _items(message)]
    body: JsonObject = {**extra, "model": model, "input": [*items], "stream": True, "store": False}
    instructions = "\n\n".join(message.text for message in first)
    if instructions:
        body["instructions"] = instructions
    if request.tools:
        body["tools"] = [_tool(tool) for tool in request.tools]
    return body


def replayed(output: Sequence[Item]) -> str | None:
    """The output of a response as input for the next; None when it has no reasoning that must go back."""
    if not any(item.type == "reasoning" for item in output):
        return None
    return json.dumps([item for one in output for item in _replayed_item(one)], ensure_ascii=False)


def _replayed_item(item: Item) -> list[JsonObject]:
    if item.type == "reasoning":
        whole: JsonObject = item.model_dump(mode="json", exclude_none=True)
        return [{key: whole[key] for key in REPLAYED_KEYS if key in whole}]
    if item.type == "function_call":
        return [_call(item.call_id or "", item.name or "", item.arguments or "{}")]
    text = "".join(part.text or part.refusal or "" for part in item.content or ())
    return [{"role": "assistant", "content": text}] if text else []


def _items(message: Message) -> list[JsonObject]:
    if message.role == "tool":
        return [{"type": "function_call_output", "call_id": message.call_id, "output": message.text}]
    state = message.provider_state
    if state is not None and state.provider == KIND:
        items = _ITEMS.validate_json(state.content_json)
        calls = {str(item["call_id"]) for item in items if item.get("type") == "function_call"}
        if calls == {call.call_id for call in message.tool_calls}:
            return items
    said: list[JsonObject] = [{"role": message.role, "content": message.text}] if message.text else []
    return [*said, *(_call(call.call_id, call.name, call.arguments_json) for call in message.tool_calls)]


def _call(call_id: str, name: str, arguments_json: str) -> JsonObject:
    return {"type": "function_call", "call_id": call_id, "name": name, "arguments": arguments_json}


def _tool(tool: ToolDefinition) -> JsonObject:
    # Not strict: strict mode wants every property required, which our tools' schemas do not promise.
    return {
        "type": "function",
        "name": tool.name,
        "description": tool.description,
        "parameters": parameters_of(tool),
        "strict": False,
    }
