"""A scripted WebSocket server: a real socket, on which every connection plays a script."""

from __future__ import annotations

import logging
import math
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import cast
from urllib.parse import parse_qsl, urlsplit

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from pydantic import JsonValue
from pydantic_core import from_json, to_json
from websockets.asyncio.server import ServerConnection, serve
from websockets.datastructures import Headers
from websockets.exceptions import ConnectionClosed
from websockets.http11 import Request, Response
from websockets.typing import Subprotocol

from .http_server import Pause

EXPECT_WITHIN_S = 10.0
MAX_MESSAGE_BYTES = 16 << 20

_QUIET = logging.getLogger("voicechart.scripted_sockets")
_QUIET.setLevel(logging.CRITICAL)


class ClientGone(Exception):
    """The client closed or lost the connection while the script waited for it, or sent something."""


@dataclass(frozen=True, slots=True)
class ReceivedMessage:
    """A message as it came in: a text, or the bytes of a binary one."""

    data: str | bytes

    @property
    def is_text(self) -> bool:
        return isinstance(self.data, str)

    def json(self) -> dict[str, JsonValue]:
        """The message as a JSON object. Raises `ValueError`."""
        value = cast("JsonValue", from_json(self.data))
        if not isinstance(value, dict):
            raise ValueError("the message is no JSON object")
        return value


Wanted = Mapping[str, JsonValue] | type[str] | type[bytes] | None
"""A JSON object with at least these items, any text, any binary message, or anything."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """Answers the opening handshake with an HTTP status."""

    status: int
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    body: bytes = b""


class SocketPeer:
    """The server's end of one connection, as a script drives it."""

    def __init__(self, connection: ServerConnection, request: Request) -> None:
        """For `ScriptedSocketServer`."""
        target = urlsplit(request.path)
        self.path = target.path
        self.query = dict(parse_qsl(target.query, keep_blank_values=True))
        self.headers = {name.lower(): value for name, value in request.headers.raw_items()}
        self.received: list[ReceivedMessage] = []
        """Every message so far, whether the script has waited for it or not."""
        self.close_code: int | None = None
        """What the client closed with; None while it is connected, and where the connection broke."""
        self._connection = connection
        self._gone = anyio.Event()
        feed: tuple[MemoryObjectSendStream[ReceivedMessage], MemoryObjectReceiveStream[ReceivedMessage]]
        feed = anyio.create_memory_object_stream[ReceivedMessage](math.inf)
        self._incoming, self._waiting = feed

    async def expect(self, wanted: Wanted = None) -> ReceivedMessage:
        """The next message. Raises `AssertionError` where it is another one, or late, and `ClientGone`."""
        message = await self._next(wanted)
        assert _fits(message, wanted), f"expected {wanted}, and {_shown(message)} came"
        return message

    async def skip_to(self, wanted: Wanted) -> ReceivedMessage:
        """The next message that fits; whatever comes before it is passed over. Raises as `expect` does."""
        while not _fits(message := await self._next(wanted), wanted):
            pass
        return message

    async def send_json(self, value: Mapping[str, JsonValue]) -> None:
        """One JSON object, as a text message. Raises `ClientGone`."""
        await self.send_text(to_json(value).decode())

    async def send_text(self, text: str) -> None:
        """One text message. Raises `ClientGone`."""
        await self._send(text)

    async def send_bytes(self, data: bytes) -> None:
        """One binary message. Raises `ClientGone`."""
        await self._send(data)

    def send_raw(self, data: bytes) -> None:
        """Bytes outside the WebSocket protocol, or a frame of the script's own."""
        self._connection.transport.write(data)

    async def close(self, code: int = 1000, reason: str = "") -> None:
        """Close, and wait for the client's answer."""
        await self._connection.close(code, reason)

    def drop(self) -> None:
        """Break the connection, without a closing handshake."""
        self._connection.transport.abort()

    async def hung_up(self) -> int | None:
        """Return when the client has gone: its close code, None where the connection broke."""
        with anyio.fail_after(EXPECT_WITHIN_S):
            await self._gone.wait()
        return self.close_code

    async def read_all(self) -> None:
        """For the server: take in what comes, until the client has gone."""
        try:
            while True:
                message = ReceivedMessage(await self._connection.recv())
                self.received.append(message)
                self._incoming.send_nowait(message)
        except ConnectionClosed as closed:
            self.close_code = closed.rcvd.code if closed.rcvd is not None else None
        finally:
            self._incoming.close()
            self._gone.set()

    def release(self) -> None:
        """For the server: nobody waits any more."""
        self._waiting.close()

    async def _next(self, wanted: Wanted) -> ReceivedMessage:
        try:
            with anyio.fail_after(EXPECT_WITHIN_S):
                return await self._waiting.receive()
        except TimeoutError:
            raise AssertionError(f"expected {wanted}, and nothing came") from None
        except anyio.EndOfStream:
            raise ClientGone from None

    async def _send(self, data: str | bytes) -> None:
        try:
            await self._connection.send(data)
        except ConnectionClosed:
            raise ClientGone from None


Script = Callable[[SocketPeer], Awaitable[None]]


class ScriptedSocketServer:
    """`async with ScriptedSocketServer(script, …).running() as base_url`: the nth connection plays the nth script.

    In a script's place, a `Refusal` answers the opening handshake with an HTTP status, and a `Pause` leaves it without
    an answer until its event (then the connection is refused). When a script has returned, the connection stays open,
    and what comes is still recorded, until the client closes it. A connection beyond the scripts is refused with 503.

    What a script raises is raised by `running` at its end; only that the client has gone is no failure, but counted in
    `cut_off`: ask for `completed` where a script had to reach its end.
    """

    def __init__(self, *scripts: Script | Refusal | Pause, subprotocols: tuple[str, ...] = ()) -> None:
        self.peers: list[SocketPeer] = []
        """Every connection that was accepted, in order."""
        self.requests = 0
        """Opening handshakes that came."""
        self.open_connections = 0
        self.completed = 0
        """Scripts that reached their end."""
        self.cut_off = 0
        """Scripts that the client left."""
        self._scripts = list(scripts)
        self._subprotocols = [Subprotocol(name) for name in subprotocols]
        self._accepted: dict[ServerConnection, tuple[Script, SocketPeer]] = {}
        self._errors: list[Exception] = []
        self._scopes: set[anyio.CancelScope] = set()
        self._changed = anyio.Event()

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[str, None]:
        """The base URL (`ws://127.0.0.1:…`), as long as the block lasts. Raises what a script raised."""
        server = await serve(
            self._handle,
            "127.0.0.1",
            0,
            process_request=self._decide,
            subprotocols=self._subprotocols or None,
            compression=None,
            ping_interval=None,
            open_timeout=None,
            close_timeout=EXPECT_WITHIN_S,
            max_size=MAX_MESSAGE_BYTES,
            logger=_QUIET,
        )
        port = next(iter(server.sockets)).getsockname()[1]
        try:
            yield f"ws://127.0.0.1:{port}"
        finally:
            with anyio.CancelScope(shield=True):
                for scope in self._scopes:
                    scope.cancel()
                server.close()
                await server.wait_closed()
            if self._errors:  # also where the block failed: this is why
                raise self._errors[0] if len(self._errors) == 1 else ExceptionGroup("scripts failed", self._errors)

    async def has_connections(self, number: int) -> None:
        """Return when so many connections are open."""
        await self._until(lambda: self.open_connections == number)

    async def has_requests(self, number: int) -> None:
        """Return when so many opening handshakes have come."""
        await self._until(lambda: self.requests >= number)

    async def has_completed(self, number: int = 1) -> None:
        """Return when so many scripts have reached their end."""
        await self._until(lambda: self.completed >= number or bool(self._errors))

    async def _until(self, is_so: Callable[[], bool]) -> None:
        with anyio.fail_after(EXPECT_WITHIN_S):
            while not is_so():
                await self._changed.wait()

    async def _decide(self, connection: ServerConnection, request: Request) -> Response | None:
        self.requests += 1
        self._tell()
        step = self._scripts.pop(0) if self._scripts else Refusal(503, body=b'{"error": {"code": "script_exhausted"}}')
        if isinstance(step, Pause):
            with self._cancellable():
                await step.until.wait()
            step = Refusal(503)
        if isinstance(step, Refusal):
            headers = Headers({**step.headers, "Content-Length": str(len(step.body)), "Connection": "close"})
            return Response(step.status, HTTPStatus(step.status).phrase, headers, step.body)
        self._accepted[connection] = (step, SocketPeer(connection, request))
        return None

    async def _handle(self, connection: ServerConnection) -> None:
        script, peer = self._accepted.pop(connection)
        self.peers.append(peer)
        self.open_connections += 1
        self._tell()
        try:
            with self._cancellable():
                async with anyio.create_task_group() as group:
                    group.start_soon(peer.read_all)
                    await self._play(script, peer)
        finally:
            peer.release()
            self.open_connections -= 1
            self._tell()

    @contextmanager
    def _cancellable(self) -> Generator[None, None, None]:
        with anyio.CancelScope() as scope:
            self._scopes.add(scope)
            try:
                yield
            finally:
                self._scopes.discard(scope)

    async def _play(self, script: Script, peer: SocketPeer) -> None:
        try:
            await script(peer)
            self.completed += 1
        except ClientGone:
            self.cut_off += 1
        except Exception as error:  # what a test's script raises, the test gets
            self._errors.append(error)
            peer.drop()
        self._tell()

    def _tell(self) -> None:
        self._changed.set()
        self._changed = anyio.Event()


def _fits(message: ReceivedMessage, wanted: Wanted) -> bool:
    if wanted is None or isinstance(wanted, type):
        return wanted is None or isinstance(message.data, wanted)
    try:
        value = message.json()
    except ValueError:
        return False
    return all(name in value and value[name] == item for name, item in wanted.items())


def _shown(message: ReceivedMessage) -> str:
    return message.data[:500] if isinstance(message.data, str) else f"{len(message.data)} bytes"
