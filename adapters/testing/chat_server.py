"""A scripted OpenAI-compatible server for Chat Completions."""

from __future__ import annotations

from pydantic import JsonValue

from .http_server import HttpExchange, ScriptedHttpServer, sse

ChatExchange = HttpExchange
"""What the server answers to one request for a chat completion."""


def chat_chunks(text: str, *, usage: bool = True) -> tuple[bytes, ...]:
    """A whole answer in the shape of `openai.types.chat.ChatCompletionChunk`, a word a chunk."""

    def chunk(choices: list[JsonValue], tokens: JsonValue = None) -> JsonValue:
        head: dict[str, JsonValue] = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
        return {**head, "choices": choices, "usage": tokens}

    def choice(delta: JsonValue, finish_reason: JsonValue = None) -> JsonValue:
        return {"index": 0, "delta": delta, "finish_reason": finish_reason}

    words = [word if index == 0 else f" {word}" for index, word in enumerate(text.split())]
    chunks = [chunk([choice({"role": "assistant", "content": ""})])]
    chunks += [chunk([choice({"content": word})]) for word in words]
    chunks.append(chunk([choice({}, "stop")]))
    if usage:
        counts: JsonValue = {"prompt_tokens": 7, "completion_tokens": len(words), "total_tokens": 7 + len(words)}
        chunks.append(chunk([], counts))
    return sse(*chunks, "[DONE]")


class ScriptedChatServer(ScriptedHttpServer):
    """`async with ScriptedChatServer(exchange, …).running() as base_url`: the nth completion plays the nth exchange."""

    def __init__(self, *exchanges: HttpExchange, models_status: int = 200) -> None:
        super().__init__({"/chat/completions": exchanges}, models_status=models_status)
