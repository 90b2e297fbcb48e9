"""An open WebSocket to a provider: one writer, one message at a time, every wait with its deadline."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Self, cast

import anyio
from anyio.lowlevel import checkpoint
from pydantic import JsonValue
from pydantic_core import from_json, to_json
from websockets.asyncio.client import ClientConnection
from websockets.exceptions import ConnectionClosed
from websockets.protocol import State

from .closings import Closing, Explanation, SocketClosed, closing_of, explained
from .refusals import Stage

JsonObject = dict[str, JsonValue]


@dataclass(frozen=True, slots=True)
class SocketLimits:
    """Every wait and every size of one WebSocket.

    A message may be `max_message_bytes` long; beyond `max_queued_messages` unread ones the network is not read.
    """

    open_s: float = 10.0
    send_s: float = 10.0
    close_s: float = 2.0
    ping_interval_s: float | None = 20.0
    ping_timeout_s: float | None = 20.0
    """None: a missing answer to a ping ends nothing. Gemini's come up to 30 s late."""
    max_message_bytes: int = 4 << 20
    max_queued_messages: int = 16


class ProviderSocket:
    """An open WebSocket. One task receives; any number may send, one message after another."""

    def __init__(
        self,
        connection: ClientConnection,
        stage: Stage,
        limits: SocketLimits,
        explain: Explanation | None = None,
        secrets: tuple[str, ...] = (),
    ) -> None:
        """For `open_socket`. `secrets` are blanked out in what the provider says."""
        self._connection = connection
        self._stage = stage
        self._limits = limits
        self._explain = explain
        self._secrets = secrets
        self._writer = anyio.Lock()
        self._closing: Closing | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    @property
    def is_open(self) -> bool:
        """Neither side has ended it, as far as is known here."""
        return self._connection.state is State.OPEN

    @property
    def closing(self) -> Closing | None:
        """How it ended, once that is known."""
        return self._closing

    @property
    def subprotocol(self) -> str | None:
        """The one that the provider chose."""
        return self._connection.subprotocol

    async def send_text(self, text: str) -> None:
        """Send one text message. Raises `SocketClosed`, and `PortError` `provider_stalled` after the deadline."""
        await self._send(text)

    async def send_bytes(self, data: bytes) -> None:
        """Send one binary message. Raises as `send_text` does."""
        await self._send(data)

    async def send_json(self, value: Mapping[str, JsonValue]) -> None:
        """Send one JSON object as a text message. Raises as `send_text` does."""
        await self._send(to_json(value).decode())

    async def receive(self, within_s: float | None = None) -> str | bytes:
        """The next message: a text, or the bytes of a binary one. A cancelled call loses nothing.

        Raises `SocketClosed` at the end, a normal one too, and `PortError` `provider_silent` when nothing came within
        `within_s`.
        """
        try:
            with anyio.fail_after(within_s):
                return await self._connection.recv()
        except TimeoutError as late:
            message = f"the provider sent nothing for {within_s} s; check the network and the provider"
            raise self._stage.failure("provider_silent", message, retryable=True) from late
        except ConnectionClosed as closed:
            raise self._closed(closed) from None

    async def receive_json(self, within_s: float | None = None) -> JsonObject:
        """The next message as one JSON object; some providers send theirs in binary messages.

        Raises as `receive` does, and `PortError` `provider_malformed`.
        """
        return self._decoded(await self.receive(within_s))

    async def receive_json_or_bytes(self, within_s: float | None = None) -> JsonObject | bytes:
        """The next message: JSON where it is a text, the bytes of a binary one (audio). Raises as `receive_json`."""
        message = await self.receive(within_s)
        return message if isinstance(message, bytes) else self._decoded(message)

    async def __aiter__(self) -> AsyncIterator[str | bytes]:
        """Every message until the provider ends normally (1000). Any other end raises `SocketClosed`."""
        while True:
            try:
                message = await self.receive()
            except SocketClosed as closed:
                if closed.closing.is_normal:
                    return
                raise
            yield message

    async def close(self, code: int = 1000, reason: str = "") -> None:
        """Say that this side ends, and wait a bounded time for the provider's answer. Raises nothing."""
        try:
            with anyio.move_on_after(self._limits.close_s):
                await self._connection.close(code, reason)
        finally:
            await self._abandon()

    async def aclose(self) -> None:
        """Close it, if it is still open. Idempotent; ends within the deadline even inside a cancelled scope."""
        with anyio.CancelScope(shield=True):
            await self.close()

    async def _send(self, message: str | bytes) -> None:
        try:
            with anyio.fail_after(self._limits.send_s):
                async with self._writer:
                    await self._connection.send(message)
        except TimeoutError as late:
            text = f"the provider took nothing for {self._limits.send_s} s; check the network and the provider"
            raise self._stage.failure("provider_stalled", text, retryable=True) from late
        except ConnectionClosed as closed:
            raise self._closed(closed) from None

    async def _abandon(self) -> None:
        """End the connection at once, and its keep-alive task with it."""
        with anyio.CancelScope(shield=True):
            self._connection.transport.abort()
            await self._connection.wait_closed()
            await checkpoint()

    def _decoded(self, message: str | bytes) -> JsonObject:
        try:
            value = cast("JsonValue", from_json(message, allow_inf_nan=False))
        except ValueError:
            value = None
        if not isinstance(value, dict):
            raise self._stage.failure("provider_malformed", "the provider sent a message that is not a JSON object")
        return value

    def _closed(self, closed: ConnectionClosed) -> SocketClosed:
        self._closing = self._closing or closing_of(closed, self._secrets)
        return explained(self._stage, self._closing, self._explain)
