"""Any service that speaks OpenAI's Chat Completions: a cloud provider, or llama.cpp, vLLM or Ollama at home."""

from __future__ import annotations

import json
from collections.abc import Mapping
from ipaddress import ip_address
from weakref import WeakSet

import anyio
import httpx
from pydantic import JsonValue

from ...engines.ports import GenerationRequest
from ...engines.reports import PortError
from ...statecharts.capabilities import ResponderCapabilities
from ...statecharts.errors import ErrorScope, ScopedError
from .bounded_transport import BoundedTransport, PayloadTooLargeError
from .chat_assembly import generation_error
from .openai_errors import refused
from .openai_stream import ChatLimits, OpenAIChatStream
from .openai_wire import request_body

RESERVED = frozenset({"model", "messages", "stream", "stream_options", "tools", "n"})
SHOWN_ERROR_BYTES = 16 * 1_024
CHECK_S = 10.0


class OpenAIChatResponder:
    """Implements the `Responder` port over HTTP. The key is sent, and never shown: not in errors, not in logs."""

    def __init__(
        self,
        *,
        base_url: str,
        model: str,
        api_key: str | None = None,
        extra: Mapping[str, JsonValue] | None = None,
        include_usage: bool = True,
        allow_plain_http: bool = False,
        limits: ChatLimits | None = None,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        """`base_url` ends before "/chat/completions", e.g. "https://api.openai.com/v1".

        `extra` goes into the request as it is, e.g. {"temperature": 0.3, "max_completion_tokens": 300}. `include_usage`
        asks for token counts; turn it off for a server that refuses `stream_options`. A key goes over plain HTTP only
        to this machine, unless `allow_plain_http`. Raises `PortError` for a bad setting.
        """
        self._url = _checked_url(base_url, api_key is not None and not allow_plain_http)
        if not model:
            raise PortError(_setting("give the name of a model"))
        if taken := RESERVED & (extra or {}).keys():
            raise PortError(_setting(f"extra may not hold {', '.join(sorted(taken))}: voicechart sets it"))
        if api_key is not None and not (api_key and api_key.isascii() and api_key.isprintable() and " " not in api_key):
            raise PortError(
                _setting("the API key is empty or holds spaces or control characters; check how it is read")
            )
        self._model = model
        self._extra = dict(extra or {})
        self._include_usage = include_usage
        self._limits = limits or ChatLimits()
        headers = {"Accept": "text/event-stream", "Accept-Encoding": "identity"}
        if api_key is not None:
            headers["Authorization"] = f"Bearer {api_key}"
        self._client = httpx.AsyncClient(
            headers=headers,
            timeout=httpx.Timeout(self._limits.idle_s, connect=self._limits.connect_s),
            transport=BoundedTransport(
                transport or httpx.AsyncHTTPTransport(), self._limits.max_response_bytes, self._limits.max_line_bytes
            ),
        )
        self._streams: WeakSet[OpenAIChatStream] = WeakSet()

    def __repr__(self) -> str:
        return f"OpenAIChatResponder(base_url={str(self._url)!r}, model={self._model!r})"

    @property
    def capabilities(self) -> ResponderCapabilities:
        return ResponderCapabilities(text_deltas=True, tool_calls=True, usage=self._include_usage)

    async def prepare(self) -> None:
        """Ask for the list of models, so that a wrong key or address shows before anybody speaks.

        Raises `PortError`. A server without such a list is fine.
        """
        response = await self._send(self._client.build_request("GET", f"{self._url}/models"), CHECK_S)
        try:
            if response.status_code in (401, 403) or response.status_code >= 500:
                raise PortError(await self._refusal(response))
        finally:
            await response.aclose()

    async def open(self, request: GenerationRequest) -> OpenAIChatStream:
        """Send the request; the answer has begun when this returns. Raises `PortError`."""
        started_at = anyio.current_time()
        try:
            body = request_body(request, self._model, include_usage=self._include_usage, extra=self._extra)
        except ValueError as bad_schema:
            raise PortError(generation_error("bad_tool_schema", str(bad_schema))) from bad_schema
        content = json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()
        if len(content) > self._limits.max_request_bytes:
            message = (
                f"the context is {len(content)} bytes, at most {self._limits.max_request_bytes}; shorten the history"
            )
            raise PortError(generation_error("context_too_large", message))
        response = await self._send(
            self._client.build_request(
                "POST", f"{self._url}/chat/completions", content=content, headers={"Content-Type": "application/json"}
            ),
            self._limits.first_byte_s,
        )
        if response.status_code != 200:
            try:
                raise PortError(await self._refusal(response))
            finally:
                await response.aclose()
        stream = OpenAIChatStream(response, self._limits, started_at)
        self._streams.add(stream)
        return stream

    async def aclose(self) -> None:
        """Close every connection."""
        for stream in list(self._streams):
            await stream.aclose()
        with anyio.move_on_after(self._limits.close_s, shield=True):
            await self._client.aclose()

    async def _send(self, request: httpx.Request, deadline_s: float) -> httpx.Response:
        if self._client.is_closed:
            raise PortError(generation_error("port_closed", "the responder was closed", scope=ErrorScope.SESSION))
        try:
            with anyio.fail_after(deadline_s):
                return await self._client.send(request, stream=True)
        except (TimeoutError, httpx.TimeoutException) as late:
            message = f"the provider did not answer within {deadline_s} s; check the network and the provider"
            raise PortError(generation_error("provider_silent", message, retryable=True)) from late
        except httpx.TransportError as broken:
            message = "the provider cannot be reached; check base_url and the network"
            raise PortError(generation_error("unreachable", message, retryable=True)) from broken

    async def _refusal(self, response: httpx.Response) -> ScopedError:
        body = b""
        try:
            with anyio.move_on_after(self._limits.close_s):
                async for chunk in response.aiter_raw():
                    body += chunk
                    if len(body) > SHOWN_ERROR_BYTES:
                        break
        except (httpx.TransportError, PayloadTooLargeError):
            # The status alone says what to do.
            body = b""
        return refused(response.status_code, response.headers.get("Retry-After"), body)


def _setting(message: str) -> ScopedError:
    return generation_error("bad_setting", message, scope=ErrorScope.SESSION)


def _checked_url(base_url: str, secret: bool) -> httpx.URL:
    try:
        url = httpx.URL(base_url.rstrip("/"))
    except httpx.InvalidURL as invalid:
        raise PortError(_setting("base_url is no URL")) from invalid
    if url.scheme not in ("http", "https") or not url.host:
        raise PortError(_setting("base_url must begin with https:// (or http:// on your own machine)"))
    if url.userinfo or url.query or url.fragment:
        raise PortError(_setting("base_url must hold no user, query or fragment; pass the key as api_key"))
    if secret and url.scheme == "http" and not _is_this_machine(url.host):
        raise PortError(
            _setting("the API key would travel unencrypted; use https, or allow_plain_http on a safe network")
        )
    return url


def _is_this_machine(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
