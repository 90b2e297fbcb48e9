"""What is sent on one connection, in order, by whoever happens to be able to send."""

from __future__ import annotations

from collections import deque

import anyio

from ..websocket import JsonObject, ProviderSocket
from .told import Sending


class Outbox:
    """A cancel never waits: it leaves its message here."""

    def __init__(self, socket: ProviderSocket) -> None:
        self._socket = socket
        self._messages: deque[JsonObject] = deque()
        self._sending = anyio.Lock()

    @property
    def is_empty(self) -> bool:
        """Nothing waits."""
        return not self._messages

    def put(self, message: JsonObject) -> None:
        """To be sent before anything that is sent later."""
        self._messages.append(message)

    async def send(self, *messages: Sending) -> None:
        """After what waits. Raises `PortError`."""
        async with self._sending:
            while self._messages:
                await self._socket.send_json(self._messages.popleft())
            for one in messages:
                await self._socket.send_json(one.message)
