"""The one way in which providers speak WebSocket.

`open_socket` connects; a `ProviderSocket` sends through one writer and receives one message at a time. Whatever goes
wrong is a `PortError`. The address with its query, the headers and the messages are never shown or logged.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Mapping, Sequence
from functools import cache
from urllib.parse import parse_qsl, urlsplit

import anyio
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import InvalidHandshake, InvalidMessage, InvalidStatus
from websockets.protocol import State
from websockets.typing import Subprotocol

from ...engines.reports import PortError
from .addresses import is_protected
from .closings import ClosedBy, Closing, Explanation, SocketClosed
from .provider_socket import JsonObject, ProviderSocket, SocketLimits
from .refusals import Stage, http_refusal, provider_code

__all__ = [
    "ClosedBy",
    "Closing",
    "Explanation",
    "JsonObject",
    "ProviderSocket",
    "SocketClosed",
    "SocketLimits",
    "open_socket",
]

SHORTEST_KEY_CHARS = 8
SHORTEST_QUERY_KEY_CHARS = 16
"""A query holds names of models too, which a message may well repeat."""

# The library's own logger would write addresses, headers and messages at DEBUG.
_QUIET = logging.getLogger("voicechart.provider_sockets")
_QUIET.setLevel(logging.WARNING)


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
