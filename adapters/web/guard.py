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
            # Answered already, as far as that was possible. Not with its message, which may hold what somebody said.
            logger.error("%s %s failed: %s", scope["method"], path, origin_of(error))

    def _check(self, scope: Scope, path: str) -> None:
        headers = Headers(scope=scope)
        host = headers.get("host")
        self._access.check_host(host)
        self._access.check_origin(headers.get("origin"), host, headers.get("sec-fetch-site"))
        if not path.startswith("/api/"):
            return
        client: tuple[str, int] | None = scope.get("client")
        self._rate.take(client[0] if client is not None else "")
        if path not in OPEN_PATHS:
            self._access.check_token(headers.get("authorization"), headers.get("cookie"))
        length = headers.get("content-length", "0")
        if length.isdigit() and int(length) > self._max_body_bytes:
            raise too_large(self._max_body_bytes)


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
