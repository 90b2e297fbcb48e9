"""Reading and writing a connected Unix socket without waiting inside a send.

Why not anyio's own stream: a stop must leave at once, from synchronous code, which its `send` cannot; and with anyio
4.16 on asyncio a `receive` that is cancelled in the very moment in which bytes come logs an `InvalidStateError` from
its event loop (the case beside https://github.com/agronholm/anyio/issues/1267). `wait_readable` has neither trouble.
"""

from __future__ import annotations

import socket

import anyio
import anyio.lowlevel
from anyio.abc import SocketAttribute, SocketStream


class SocketIo:
    """A connected socket. One task may receive and one may wait to write at a time; any may send."""

    def __init__(self, stream: SocketStream) -> None:
        self._stream = stream
        self._socket: socket.socket = stream.extra(SocketAttribute.raw_socket)

    async def receive(self, max_bytes: int) -> bytes:
        """At least one byte; b"" when the peer has closed or is gone."""
        await anyio.lowlevel.checkpoint()
        while True:
            try:
                return self._socket.recv(max_bytes)
            except BlockingIOError:
                await anyio.wait_readable(self._socket)
            except ConnectionError:
                return b""

    def send_now(self, data: bytes | bytearray) -> int:
        """How many bytes were taken, without waiting. Raises `ConnectionError` when the peer is gone."""
        try:
            return self._socket.send(data)
        except BlockingIOError:
            return 0

    async def wait_writable(self) -> None:
        """Return when bytes may be taken again."""
        await anyio.wait_writable(self._socket)

    async def aclose(self) -> None:
        """Close it. No other call may be waiting."""
        await self._stream.aclose()
