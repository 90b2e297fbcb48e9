"""The one way in which providers are asked over HTTP.

A `HttpService` asks one address with one key. It never tries again by itself: whether anything is tried again is the
chart's decision, and the error says whether it can help. The key and what is sent are never shown or logged.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass

import anyio
import httpx
from pydantic import JsonValue

from ...engines.reports import PortError
from ...statecharts.errors import ErrorScope, ScopedError
from .addresses import is_protected
from .bounded_transport import BoundedTransport, PayloadTooLargeError
from .refusals import Stage, http_refusal, provider_code

SHOWN_ERROR_BYTES = 16 * 1_024
CHECK_S = 10.0
# Its debug records hold the headers of responses, in which a server may repeat the key.
logging.getLogger("httpcore").setLevel(logging.INFO)
KEPT = httpx.Limits(max_keepalive_connections=4, keepalive_expiry=30.0)
"""Connections that wait for the next turn, which comes some seconds later."""


@dataclass(frozen=True, slots=True)
class HttpLimits:
    """Every wait and every size."""

    connect_s: float = 5.0
    first_byte_s: float = 30.0
    """From the request to the response's headers."""
    idle_s: float = 30.0
    """Between two pieces of the response."""
    total_s: float = 300.0
    after_finish_s: float = 2.0
    """For what follows (usage, say) once the answer itself is complete."""
    close_s: float = 2.0
    max_request_bytes: int = 1 << 20
    max_response_bytes: int = 8 << 20
    max_line_bytes: int = 1 << 20


class HttpService:
    """One provider's HTTP interface: what goes wrong is a `PortError` of `stage`."""

    def __init__(
        self,
        stage: Stage,
        *,
        base_url: str,
        headers: Mapping[str, str],
        api_key: str | None,
        key_header: str = "Authorization",
        allow_plain_http: bool = False,
        limits: HttpLimits | None = None,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        """`headers` go with every request. The key goes as "Bearer …" in `Authorization`, or bare in another header;
        over plain HTTP only to this machine, unless `allow_plain_http`. Raises `PortError` for a bad setting.
        """
        self.url = _checked_url(stage, base_url, api_key is not None and not allow_plain_http)
        self.limits = limits or HttpLimits()
        self._stage = stage
        sent = {"Accept-Encoding": "identity", **headers}
        if api_key is not None:
            if not (api_key and api_key.isascii() and api_key.isprintable() and " " not in api_key):
                raise stage.bad_setting(
                    "the API key is empty or holds spaces or control characters; check how it is read"
                )
            sent[key_header] = f"Bearer {api_key}" if key_header == "Authorization" else api_key
        self._client = httpx.AsyncClient(
            headers=sent,
            timeout=httpx.Timeout(self.limits.idle_s, connect=self.limits.connect_s),
            transport=BoundedTransport(
                # Without TLS there are no authorities to load.
                transport or httpx.AsyncHTTPTransport(verify=self.url.scheme == "https", limits=KEPT),
                self.limits.max_response_bytes,
                self.limits.max_line_bytes,
            ),
        )

    def __repr__(self) -> str:
        return f"HttpService({str(self.url)!r})"

    async def check(self, path: str = "/models") -> None:
        """Ask for something harmless, so that a wrong key or address shows before anybody speaks.

        A server that does not know `path` is fine. Raises `PortError`.
        """
        response = await self._send(self._client.build_request("GET", f"{self.url}{path}"), CHECK_S)
        try:
            if response.status_code in (401, 403) or response.status_code >= 500:
                raise PortError(await self._refusal(response))
            await self._read_away(response)
        finally:
            await response.aclose()

    async def post_json(self, path: str, body: Mapping[str, JsonValue]) -> httpx.Response:
        """The response, its body unread: close it. Raises `PortError`."""
        content = json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()
        return await self.post(path, content, "application/json")

    async def post(self, path: str, content: bytes, content_type: str) -> httpx.Response:
        """The response, its body unread: close it. Raises `PortError`, for any status but 200 too."""
        if len(content) > self.limits.max_request_bytes:
            raise PortError(
                self._stage.error(
                    "request_too_large",
                    f"the request is {len(content)} bytes, at most {self.limits.max_request_bytes}; "
                    "a conversation's history can be shortened",
                )
            )
        request = self._client.build_request(
            "POST", f"{self.url}{path}", content=content, headers={"Content-Type": content_type}
        )
        response = await self._send(request, self.limits.first_byte_s)
        if response.status_code != 200:
            try:
                raise PortError(await self._refusal(response))
            finally:
                await response.aclose()
        return response

    async def aclose(self) -> None:
        """Close every connection; nothing can be asked any more."""
        with anyio.move_on_after(self.limits.close_s, shield=True):
            await self._client.aclose()

    async def _send(self, request: httpx.Request, deadline_s: float) -> httpx.Response:
        if self._client.is_closed:
            raise PortError(
                self._stage.error("port_closed", "this provider's port was closed", scope=ErrorScope.SESSION)
            )
        try:
            with anyio.fail_after(deadline_s):
                return await self._client.send(request, stream=True)
        except (TimeoutError, httpx.TimeoutException) as late:
            message = f"the provider did not answer within {deadline_s} s; check the network and the provider"
            raise self._stage.failure("provider_silent", message, retryable=True) from late
        except httpx.TransportError as broken:
            message = "the provider cannot be reached; check base_url and the network"
            raise self._stage.failure("unreachable", message, retryable=True) from broken

    async def _read_away(self, response: httpx.Response) -> None:
        """To the end of the body, so that the first turn finds a connection that is open."""
        with anyio.move_on_after(self.limits.close_s):
            try:
                async for _ in response.aiter_raw():
                    pass
            except (httpx.TransportError, PayloadTooLargeError):
                # The server has answered, which is all that was asked.
                return

    async def _refusal(self, response: httpx.Response) -> ScopedError:
        body = b""
        try:
            with anyio.move_on_after(self.limits.close_s):
                async for chunk in response.aiter_raw():
                    body += chunk
                    if len(body) > SHOWN_ERROR_BYTES:
                        break
        except (httpx.TransportError, PayloadTooLargeError):
            # The status alone says what to do.
            body = b""
        retry_after = response.headers.get("Retry-After")
        return http_refusal(self._stage, response.status_code, retry_after, provider_code(body))


def _checked_url(stage: Stage, base_url: str, secret: bool) -> httpx.URL:
    try:
        url = httpx.URL(base_url.rstrip("/"))
    except httpx.InvalidURL as invalid:
        raise stage.bad_setting("base_url is no URL") from invalid
    if url.scheme not in ("http", "https") or not url.host:
        raise stage.bad_setting("base_url must begin with https:// (or http:// on your own machine)")
    if url.userinfo or url.query or url.fragment:
        raise stage.bad_setting("base_url must hold no user, query or fragment; the key stands in the environment")
    if secret and not is_protected(str(url)):
        raise stage.bad_setting(
            "the API key would travel unencrypted; use https, or allow_plain_http on a safe network"
        )
    return url
