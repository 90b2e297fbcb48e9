"""The one way in which providers speak WebSocket.

`open_socket` connects; a `ProviderSocket` sends through one writer and receives one message at a time. Whatever goes
wrong is a `PortError`. The address with its query, the headers and the messages are never shown or logged.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from types import TracebackType
from typing import Self, cast
from urllib.parse import parse_qsl, urlsplit

import anyio
from anyio.lowlevel import checkpoint
from pydantic import JsonValue
from pydantic_core import from_json, to_json
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidMessage, InvalidStatus
from websockets.protocol import State
from websockets.typing import Subprotocol

from ...engines.reports import PortError
from .addresses import is_protected
from .closings import Closing, Explanation, SocketClosed, closing_of, explained
from .refusals import Stage, http_refusal, provider_code

JsonObject = dict[str, JsonValue]

SHORTEST_KEY_CHARS = 8
SHORTEST_QUERY_KEY_CHARS = 16
"""A query holds names of models too, which a message may well repeat."""

# The library's own logger would write addresses, headers and messages at DEBUG.
_QUIET = logging.getLogger("voicechart.provider_sockets")
_QUIET.setLevel(logging.WARNING)


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


class _Connection(ClientConnection):
    """Ends by itself where a provider says that it closes, and then leaves the connection open."""

    _abort_timer: asyncio.TimerHandle | None = None

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.state is State.CLOSING and self._abort_timer is None:
            self._abort_timer = self.loop.call_later(self.close_timeout or 0.0, self.transport.abort)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._abort_timer is not None:
            self._abort_timer.cancel()
        super().connection_lost(exc)


class _Connect(connect):
    """Follows no redirect: a key in a header of the provider's own would go along to wherever it points."""

    def process_redirect(self, exc: Exception) -> Exception | str:
        return exc


async def open_socket(
    url: str,
    *,
    stage: Stage,
    headers: Mapping[str, str] | None = None,
    subprotocols: Sequence[str] = (),
    limits: SocketLimits | None = None,
    allow_plain: bool = False,
    explain: Explanation | None = None,
    tls: ssl.SSLContext | None = None,
) -> ProviderSocket:
    """Connect, and finish the opening handshake. The caller closes the socket (`async with`, or `aclose`), after an
    error too.

    `url` may hold a query; ws:// goes to this machine only, unless `allow_plain`. No proxy of the environment is used,
    and no redirect followed. `explain` gives the provider's own meaning of close codes and reasons.

    Raises `PortError`: `bad_setting`, `unreachable`, `provider_silent` (the deadline), `certificate_refused`,
    `provider_malformed` (no WebSocket is spoken there), or what an HTTP status means (`http_refusal`).
    """
    limits = limits or SocketLimits()
    headers = dict(headers or {})
    _check(url, headers, stage, allow_plain)
    parts = urlsplit(url)
    opening = _Connect(
        url,
        additional_headers=headers,
        subprotocols=[Subprotocol(name) for name in subprotocols] or None,
        compression=None,
        user_agent_header="voicechart",
        proxy=None,
        open_timeout=None,
        ping_interval=limits.ping_interval_s,
        ping_timeout=limits.ping_timeout_s,
        close_timeout=limits.close_s,
        max_size=limits.max_message_bytes,
        max_queue=limits.max_queued_messages,
        logger=_QUIET,
        create_connection=_Connection,
        ssl=(tls or _trusted()) if parts.scheme == "wss" else None,
    )
    try:
        with anyio.fail_after(limits.open_s):
            connection = await opening
    except TimeoutError as late:
        message = f"the provider did not answer within {limits.open_s} s; check the network and the provider"
        raise stage.failure("provider_silent", message, retryable=True) from late
    except InvalidStatus as refused:
        response = refused.response
        retry_after, code = response.headers.get("Retry-After"), provider_code(bytes(response.body or b""))
        # Without the cause: it holds the response's headers, and a provider may echo a key in one.
        raise PortError(http_refusal(stage, response.status_code, retry_after, code)) from None
    except ssl.SSLCertVerificationError as untrusted:
        message = "the provider's certificate is not trusted; check base_url, the clock and the installed certificates"
        raise stage.failure("certificate_refused", message) from untrusted
    except (OSError, EOFError) as broken:
        raise _unreachable(stage) from broken
    except InvalidMessage as broken:
        if isinstance(broken.__cause__, EOFError | OSError):
            raise _unreachable(stage) from broken
        raise _no_websocket(stage) from None
    except InvalidHandshake:
        raise _no_websocket(stage) from None
    return ProviderSocket(connection, stage, limits, explain, _secrets(headers, parts.query))


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


def _check(url: str, headers: Mapping[str, str], stage: Stage, allow_plain: bool) -> None:
    parts = urlsplit(url)
    if parts.scheme not in ("ws", "wss") or not parts.hostname:
        raise stage.bad_setting("base_url must begin with wss:// (or ws:// on your own machine)")
    if not (allow_plain or is_protected(url)):
        raise stage.bad_setting("speech and key would travel unencrypted; use wss://, or allow plain on a safe network")
    for name, value in headers.items():
        if not (value.isascii() and value.isprintable() and value == value.strip() and value):
            message = f"the header {name} is empty or holds control characters; check how the API key is read"
            raise stage.bad_setting(message)


def _secrets(headers: Mapping[str, str], query: str) -> tuple[str, ...]:
    """What may be a key: long words of the headers' values, and long values of the query."""
    words = [word for value in headers.values() for word in value.split() if len(word) >= SHORTEST_KEY_CHARS]
    values = [value for _, value in parse_qsl(query) if len(value) >= SHORTEST_QUERY_KEY_CHARS]
    return (*words, *values)


@cache
def _trusted() -> ssl.SSLContext:
    # Once: reading the certificates takes the loop some ten milliseconds.
    return ssl.create_default_context()


def _unreachable(stage: Stage) -> PortError:
    message = "the provider cannot be reached; check base_url and the network"
    return stage.failure("unreachable", message, retryable=True)


def _no_websocket(stage: Stage) -> PortError:
    return stage.failure("provider_malformed", "no WebSocket is spoken at this address; check base_url")
