"""A scripted OpenAI-compatible server for Chat Completions."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import JsonValue

from ...engines.ports import ToolRequest
from .http_server import HttpExchange, ScriptedHttpServer, sse, words_of

ChatExchange = HttpExchange
"""What the server answers to one request for a chat completion."""


def chat_chunks(text: str, *, usage: bool = True, calls: Sequence[ToolRequest] = ()) -> tuple[bytes, ...]:
    """A whole answer in the shape of `openai.types.chat.ChatCompletionChunk`: a word a chunk, then a call a chunk."""

    def chunk(choices: list[JsonValue], tokens: JsonValue = None) -> JsonValue:
        head: dict[str, JsonValue] = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
        return {**head, "choices": choices, "usage": tokens}

    def choice(delta: JsonValue, finish_reason: JsonValue = None) -> JsonValue:
        return {"index": 0, "delta": delta, "finish_reason": finish_reason}

    def call(index: int, request: ToolRequest) -> JsonValue:
        function: JsonValue = {"name": request.name, "arguments": request.arguments_json}
        return {"tool_calls": [{"index": index, "id": request.call_id, "type": "function", "function": function}]}

    words = words_of(text)
    chunks = [chunk([choice({"role": "assistant", "content": ""})])]
    chunks += [chunk([choice({"content": word})]) for word in words]
    chunks += [chunk([choice(call(index, request))]) for index, request in enumerate(calls)]
    chunks.append(chunk([choice({}, "tool_calls" if calls else "stop")]))
    if usage:
        counts: JsonValue = {"prompt_tokens": 7, "completion_tokens": len(words), "total_tokens": 7 + len(words)}
        chunks.append(chunk([], counts))
    return sse(*chunks, "[DONE]")


class ScriptedChatServer(ScriptedHttpServer):
    """`async with ScriptedChatServer(exchange, …).running() as base_url`: the nth completion plays the nth exchange."""

    def __init__(self, *exchanges: HttpExchange, models_status: int = 200) -> None:
        super().__init__({"/chat/completions": exchanges}, models_status=models_status)
