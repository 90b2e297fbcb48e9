"""The Chat Completions wire: what is sent, and the chunks that come back.

Shapes: `openai.types.chat.ChatCompletionChunk` and `completion_create_params.CompletionCreateParamsStreaming` of the
vendor's SDK (openai 3.57.0). Compatible servers leave parts out, so that what is read is lenient where nothing depends
on it; keys nobody here needs are ignored.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from .....engines.ports import GenerationRequest, Message, ToolDefinition
from ...generation import parameters_of


class _Wire(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)


class FunctionDelta(_Wire):
    name: str | None = None
    arguments: str | None = None


class ToolCallDelta(_Wire):
    """`index` and `id` are both optional in practice; see `ChatAssembly` for what keys a call."""

    index: int | None = None
    id: str | None = None
    function: FunctionDelta | None = None


class Delta(_Wire):
    content: str | None = None
    refusal: str | None = None
    reasoning_content: str | None = None
    """A common extension: the model's reasoning, never spoken."""
    tool_calls: Sequence[ToolCallDelta] | None = None
    function_call: JsonValue = None
    """The form before tools, long deprecated; refused."""


class Choice(_Wire):
    index: int = 0
    delta: Delta = Field(default_factory=Delta)
    finish_reason: str | None = None


class TokenUsage(_Wire):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None


class ErrorBody(_Wire):
    """`code` is a string, a number or null, depending on the server."""

    code: JsonValue = None
    type: JsonValue = None


class ChatChunk(_Wire):
    """One `data:` of the stream. The usage chunk has no choices; an error may come in-band, after the status 200."""

    choices: Sequence[Choice] = ()
    usage: TokenUsage | None = None
    error: ErrorBody | str | None = None


def request_body(
    request: GenerationRequest, model: str, *, include_usage: bool, extra: Mapping[str, JsonValue]
) -> dict[str, JsonValue]:
    """The JSON body of a streamed chat completion. Raises `ValueError` for a tool schema that is no JSON object."""
    body: dict[str, JsonValue] = dict(extra)
    body |= {"model": model, "messages": [_message(message) for message in request.messages], "stream": True}
    if include_usage:
        body["stream_options"] = {"include_usage": True}
    if request.tools:
        body["tools"] = [_tool(tool) for tool in request.tools]
    return body


def _message(message: Message) -> JsonValue:
    if message.role == "tool":
        return {"role": "tool", "tool_call_id": message.call_id, "content": message.text}
    if message.role == "assistant" and message.tool_calls:
        calls: list[JsonValue] = [
            {"id": call.call_id, "type": "function", "function": {"name": call.name, "arguments": call.arguments_json}}
            for call in message.tool_calls
        ]
        return {"role": "assistant", "content": message.text or None, "tool_calls": calls}
    return {"role": message.role, "content": message.text}


def _tool(tool: ToolDefinition) -> JsonValue:
    return {
        "type": "function",
        "function": {"name": tool.name, "description": tool.description, "parameters": parameters_of(tool)},
    }
