"""A scripted OpenAI-compatible server: real HTTP over a real socket, byte by byte as the script says."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import cast

import anyio
import h11
from anyio.abc import SocketAttribute, SocketStream
from anyio.streams.stapled import MultiListener
from pydantic import JsonValue

MAX_REQUEST_BYTES = 4 << 20
REQUEST_DEADLINE_S = 10.0


@dataclass(frozen=True, slots=True)
class Pause:
    """Sends nothing until the test sets `until`, or the client hangs up."""

    until: anyio.Event


@dataclass(frozen=True, slots=True)
class ChatExchange:
    """What the server answers to one request for a chat completion.

    The body is sent piece by piece, and the connection closed after the last: `whole` says whether HTTP's own end of
    body is sent before, or the connection just breaks.
    """

    pieces: Sequence[bytes | Pause] = ()
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=lambda: {"Content-Type": "text/event-stream"})
    whole: bool = True


def sse(*data: JsonValue) -> tuple[bytes, ...]:
    """Each value as one server-sent event; a string as it is, anything else as JSON."""
    texts = (value if isinstance(value, str) else json.dumps(value) for value in data)
    return tuple(f"data: {text}\n\n".encode() for text in texts)


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


@dataclass(slots=True)
class ReceivedRequest:
    """A request as it came in. Header names are lower case."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    def json(self) -> dict[str, JsonValue]:
        """The body as a JSON object."""
        return cast("dict[str, JsonValue]", json.loads(self.body))


class ScriptedChatServer:
    """`async with ScriptedChatServer(exchange, …).running() as base_url`: the nth completion plays the nth exchange.

    `GET …/models` is answered with `models_status`. `requests` holds what came, `hung_up` counts the answers that the
    client cut.
    """

    def __init__(self, *exchanges: ChatExchange, models_status: int = 200) -> None:
        self.requests: list[ReceivedRequest] = []
        self.hung_up = 0
        self._exchanges = list(exchanges)
        self._models_status = models_status
        self._changed = anyio.Event()

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[str, None]:
        """The base URL, as long as the block lasts."""
        listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
        async with anyio.create_task_group() as group:
            group.start_soon(self._serve, listener)
            port = listener.extra(SocketAttribute.local_port)
            try:
                yield f"http://127.0.0.1:{port}/v1"
            finally:
                group.cancel_scope.cancel()

    async def has_hung_up(self, times: int = 1) -> None:
        """Return when the client has cut so many answers."""
        while self.hung_up < times:
            await self._changed.wait()

    async def _serve(self, listener: MultiListener[SocketStream]) -> None:
        async with listener:
            await listener.serve(self._handle)

    async def _handle(self, stream: SocketStream) -> None:
        async with stream:
            connection = h11.Connection(h11.SERVER, max_incomplete_event_size=64 * 1_024)
            try:
                with anyio.fail_after(REQUEST_DEADLINE_S):
                    request = await self._receive(connection, stream)
                if request is not None:
                    self.requests.append(request)
                    await self._answer(connection, stream, request)
            except (anyio.BrokenResourceError, anyio.EndOfStream, h11.RemoteProtocolError, TimeoutError):
                self._count_hang_up()

    async def _receive(self, connection: h11.Connection, stream: SocketStream) -> ReceivedRequest | None:
        head: h11.Request | None = None
        body = b""
        while True:
            event = connection.next_event()
            if event is h11.NEED_DATA:
                try:
                    connection.receive_data(await stream.receive())
                except anyio.EndOfStream:
                    return None
            elif isinstance(event, h11.Request):
                head = event
            elif isinstance(event, h11.Data):
                body += event.data
                if len(body) > MAX_REQUEST_BYTES:
                    return None
            else:
                break
        if head is None:
            return None
        headers = {name.decode(): value.decode() for name, value in head.headers}
        return ReceivedRequest(head.method.decode(), head.target.decode(), headers, body)

    async def _answer(self, connection: h11.Connection, stream: SocketStream, request: ReceivedRequest) -> None:
        if request.method == "GET" and request.path.endswith("/models"):
            exchange = ChatExchange((b'{"object": "list", "data": []}',), self._models_status, {})
        elif self._exchanges:
            exchange = self._exchanges.pop(0)
        else:
            exchange = ChatExchange((b'{"error": {"code": "script_exhausted"}}',), 500, {})
        head = h11.Response(
            status_code=exchange.status,
            headers=[*exchange.headers.items(), ("Transfer-Encoding", "chunked"), ("Connection", "close")],
        )
        await self._send(connection, stream, head)
        for piece in exchange.pieces:
            if isinstance(piece, Pause):
                await self._pause(stream, piece.until)
            else:
                await self._send(connection, stream, h11.Data(piece))
        if exchange.whole:
            await self._send(connection, stream, h11.EndOfMessage())

    async def _send(self, connection: h11.Connection, stream: SocketStream, event: h11.Event) -> None:
        await stream.send(connection.send(event) or b"")

    async def _pause(self, stream: SocketStream, until: anyio.Event) -> None:
        """Until the event, or (then `EndOfStream`) until the client hangs up."""
        hung_up = False
        async with anyio.create_task_group() as group:

            async def wait() -> None:
                await until.wait()
                group.cancel_scope.cancel()

            async def watch() -> None:
                nonlocal hung_up
                try:
                    await stream.receive()
                except (anyio.EndOfStream, anyio.BrokenResourceError):
                    hung_up = True
                group.cancel_scope.cancel()

            group.start_soon(wait)
            group.start_soon(watch)
        if hung_up:
            raise anyio.EndOfStream

    def _count_hang_up(self) -> None:
        self.hung_up += 1
        self._changed.set()
        self._changed = anyio.Event()
