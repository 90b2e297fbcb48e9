"""What stands before every request: host, origin, rate, token, size - and the headers that every answer bears."""

from __future__ import annotations

import logging
from typing import Any

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ...engines.port_calls import origin_of
from .access import Access, RateLimit
from .errors import ApiError

logger = logging.getLogger(__name__)

HEADERS = {
    "content-security-policy": (
        "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; object-src 'none'"
    ),
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), display-capture=(), geolocation=(), microphone=()",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
}
MAX_HEADER_BYTES = 16_384
MAX_ADDRESS_BYTES = 8_192
OPEN_PATHS = frozenset({"/api/session"})
"""Of the interface, what is asked without a token."""


class Guard:
    """ASGI middleware. What is refused here never reaches a route."""

    def __init__(self, app: ASGIApp, *, access: Access, rate: RateLimit, max_body_bytes: int) -> None:
        self._app = app
        self._access = access
        self._rate = rate
        self._max_body_bytes = max_body_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        path: str = scope["path"]
        begun = False

        async def send_guarded(message: Message) -> None:
            nonlocal begun
            if message["type"] == "http.response.start":
                begun = True
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
                headers.setdefault("cache-control", "no-store" if path.startswith("/api/") else "no-cache")
            await send(message)

        try:
            self._check(scope, path)
            await self._app(scope, receive, send_guarded)
        except ApiError as refused:
            if not begun:
                await _send_error(refused, send_guarded)
        except Exception as error:
            # Without its message, which may hold what somebody said.
            logger.error("%s %s failed: %s", scope["method"], path, origin_of(error))
            if not begun:
                await _send_error(ApiError(500, "internal_error", "this is a defect; the log has more"), send_guarded)

    def _check(self, scope: Scope, path: str) -> None:
        headers = Headers(scope=scope)
        host, origin = headers.get("host"), headers.get("origin")
        _check_size(scope)
        self._access.check_host(host)
        self._access.check_origin(origin, host, headers.get("sec-fetch-site"))
        if not path.startswith("/api/"):
            return
        client: tuple[str, int] | None = scope.get("client")
        self._rate.take(client[0] if client is not None else "")
        # A browser asks without the token whether a page of another origin may send it.
        is_preflight = scope["method"] == "OPTIONS" and origin is not None
        if path not in OPEN_PATHS and not is_preflight:
            self._access.check_token(headers.get("authorization"), headers.get("cookie"))
        length = headers.get("content-length", "0")
        if length.isdigit() and int(length) > self._max_body_bytes:
            raise too_large(self._max_body_bytes)


def _check_size(scope: Scope) -> None:
    """The parser bounds only what is not complete yet."""
    if sum(len(name) + len(value) for name, value in scope["headers"]) > MAX_HEADER_BYTES:
        raise ApiError(431, "headers_too_large", f"headers have at most {MAX_HEADER_BYTES} bytes")
    if len(scope["raw_path"]) + len(scope["query_string"]) > MAX_ADDRESS_BYTES:
        raise ApiError(414, "address_too_long", f"an address has at most {MAX_ADDRESS_BYTES} bytes")


def too_large(max_body_bytes: int) -> ApiError:
    """A body beyond the limit. The connection is closed: nobody reads the rest."""
    return ApiError(413, "too_large", f"a body has at most {max_body_bytes} bytes", headers={"connection": "close"})


async def _send_error(error: ApiError, send: Send) -> None:
    body = error.body
    headers: dict[str, Any] = {
        "content-type": "application/json",
        "content-length": str(len(body)),
        **error.headers,
    }
    raw = [(name.encode("latin-1"), str(value).encode("latin-1")) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": error.status, "headers": raw})
    await send({"type": "http.response.body", "body": body})
