"""A scripted HTTP server: real HTTP over a real socket, byte by byte as the script says."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import cast

import anyio
import h11
from anyio.abc import SocketAttribute, SocketStream
from anyio.streams.stapled import MultiListener
from pydantic import JsonValue

MAX_REQUEST_BYTES = 16 << 20
REQUEST_DEADLINE_S = 10.0
UNRECORDED_HEADERS = frozenset({"host", "user-agent", "content-length", "connection"})
EVENT_STREAM: Mapping[str, str] = {"Content-Type": "text/event-stream"}


@dataclass(frozen=True, slots=True)
class Pause:
    """Sends nothing until the test sets `until`, or the client hangs up."""

    until: anyio.Event


@dataclass(frozen=True, slots=True)
class HttpExchange:
    """What the server answers to one request.

    The body is sent piece by piece, and the connection closed after the last: `whole` says whether HTTP's own end of
    body is sent before, or the connection just breaks.
    """

    pieces: Sequence[bytes | Pause] = ()
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=lambda: dict(EVENT_STREAM))
    whole: bool = True


def sse(*data: JsonValue) -> tuple[bytes, ...]:
    """Each value as one server-sent event; a string as it is, anything else as JSON."""
    texts = (value if isinstance(value, str) else json.dumps(value) for value in data)
    return tuple(f"data: {text}\n\n".encode() for text in texts)


def typed_sse(*data: Mapping[str, JsonValue]) -> tuple[bytes, ...]:
    """Each object as one server-sent event that bears the object's `type` as its name."""
    return tuple(f"event: {value['type']}\ndata: {json.dumps(value)}\n\n".encode() for value in data)


def words_of(text: str) -> list[str]:
    """A text as models stream it: each word with the space before it; what stands behind the last goes with it."""
    return re.findall(r"\s*\S+(?:\s+$)?", text)


@dataclass(slots=True)
class ReceivedRequest:
    """A request as it came in. Header names are lower case; `path` has the query."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    def json(self) -> dict[str, JsonValue]:
        """The body as a JSON object."""
        return cast("dict[str, JsonValue]", json.loads(self.body))

    def recorded(self, *secrets: str) -> JsonValue:
        """What a golden file keeps of it: no secret, and nothing that differs from run to run."""
        headers: dict[str, JsonValue] = {}
        for name, value in sorted(self.headers.items()):
            if name not in UNRECORDED_HEADERS:
                for secret in secrets:
                    value = value.replace(secret, "<secret>")
                headers[name] = value
        return {"method": self.method, "path": self.path, "headers": headers, "body": self.json()}


class ScriptedHttpServer:
    """`async with ScriptedHttpServer({"/messages": (exchange, …)}).running() as base_url`.

    The nth request whose path ends with a route plays that route's nth exchange; a route that has none left, and a path
    without a route, answer 500; `GET …/models` without a route is answered with `models_status`. `keeps_alive`: a
    connection serves one request after another. `requests` holds what came; `connections` counts connections,
    `open_connections` those that are open, and `hung_up` the answers that the client cut.
    """

    def __init__(
        self, routes: Mapping[str, Sequence[HttpExchange]], *, models_status: int = 200, keeps_alive: bool = False
    ) -> None:
        self.requests: list[ReceivedRequest] = []
        self.hung_up = 0
        self.connections = 0
        self.open_connections = 0
        self._keeps_alive = keeps_alive
        self._routes = {path: list(exchanges) for path, exchanges in routes.items()}
        self._models_status = models_status
        self._changed = anyio.Event()

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[str, None]:
        """The base URL, which ends with "/v1", as long as the block lasts."""
        listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
        async with anyio.create_task_group() as group:
            group.start_soon(self._serve, listener)
            port = listener.extra(SocketAttribute.local_port)
            try:
                yield f"http://127.0.0.1:{port}/v1"
            finally:
                group.cancel_scope.cancel()

    async def has_requests(self, number: int = 1) -> None:
        """Return when so many requests have come."""
        while len(self.requests) < number:
            await self._changed.wait()

    async def has_hung_up(self, times: int = 1) -> None:
        """Return when the client has cut so many answers."""
        while self.hung_up < times:
            await self._changed.wait()

    async def has_connections(self, number: int) -> None:
        """Return when so many connections are open."""
        while self.open_connections != number:
            await self._changed.wait()

    async def _serve(self, listener: MultiListener[SocketStream]) -> None:
        async with listener:
            await listener.serve(self._handle)

    async def _handle(self, stream: SocketStream) -> None:
        async with stream:
            connection = h11.Connection(h11.SERVER, max_incomplete_event_size=64 * 1_024)
            self.connections += 1
            self.open_connections += 1
            try:
                while await self._serve_one(connection, stream):
                    connection.start_next_cycle()
            except (anyio.BrokenResourceError, anyio.EndOfStream, h11.RemoteProtocolError, TimeoutError):
                self._count_hang_up()
            finally:
                self.open_connections -= 1
                self._tell()

    async def _serve_one(self, connection: h11.Connection, stream: SocketStream) -> bool:
        """Whether the connection may serve another request."""
        with anyio.fail_after(REQUEST_DEADLINE_S):
            request = await self._receive(connection, stream)
        if request is None:
            return False
        self.requests.append(request)
        self._tell()
        exchange = self._exchange(request)
        await self._answer(connection, stream, exchange)
        return self._keeps_alive and exchange.whole

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

    def _exchange(self, request: ReceivedRequest) -> HttpExchange:
        path = request.path.partition("?")[0]
        for route, exchanges in self._routes.items():
            if path.endswith(route) and exchanges:
                return exchanges.pop(0)
        if request.method == "GET" and path.endswith("/models"):
            return HttpExchange((b'{"object": "list", "data": []}',), self._models_status, {})
        return HttpExchange((b'{"error": {"code": "script_exhausted"}}',), 500, {})

    async def _answer(self, connection: h11.Connection, stream: SocketStream, exchange: HttpExchange) -> None:
        head = h11.Response(
            status_code=exchange.status,
            headers=[
                *exchange.headers.items(),
                ("Transfer-Encoding", "chunked"),
                *([] if self._keeps_alive else [("Connection", "close")]),
            ],
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
        self._tell()

    def _tell(self) -> None:
        self._changed.set()
        self._changed = anyio.Event()
