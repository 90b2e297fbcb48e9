"""A scripted WebSocket server: a real socket, on which every connection plays a script."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from http import HTTPStatus

import anyio
from websockets.asyncio.server import ServerConnection, serve
from websockets.datastructures import Headers
from websockets.http11 import Request, Response
from websockets.typing import Subprotocol

from .http_server import Pause
from .socket_peer import EXPECT_WITHIN_S, ClientGone, SocketPeer

MAX_MESSAGE_BYTES = 16 << 20

_QUIET = logging.getLogger("voicechart.scripted_sockets")
_QUIET.setLevel(logging.CRITICAL)


@dataclass(frozen=True, slots=True)
class Refusal:
    """Answers the opening handshake with an HTTP status."""

    status: int
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    body: bytes = b""


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
