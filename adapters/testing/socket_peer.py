"""The server's end of a scripted WebSocket."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Protocol, cast
from urllib.parse import parse_qsl, urlsplit

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from pydantic import JsonValue
from pydantic_core import from_json, to_json
from websockets.asyncio.server import ServerConnection
from websockets.exceptions import ConnectionClosed
from websockets.http11 import Request

EXPECT_WITHIN_S = 10.0


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


class Interference(Protocol):
    """What becomes of messages on their way to the client."""

    def pass_on(self, data: str | bytes, peer: SocketPeer) -> AsyncIterator[str | bytes]:
        """What is sent in the place of a message: nothing, itself, others."""
        ...


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
        self.interference: Interference | None = None
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

    async def messages(self) -> AsyncIterator[ReceivedMessage]:
        """Every message until the client has gone, however long that takes."""
        while True:
            try:
                message = await self._waiting.receive()
            except anyio.EndOfStream:
                return
            yield message

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

    async def gone(self) -> None:
        """Return when the client has gone, however long that takes."""
        await self._gone.wait()

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
        if self.interference is None:
            await self._deliver(data)
            return
        async for passed in self.interference.pass_on(data, self):
            await self._deliver(passed)

    async def _deliver(self, data: str | bytes) -> None:
        try:
            await self._connection.send(data)
        except ConnectionClosed:
            raise ClientGone from None


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
