"""A server behind a URL: streamable HTTP with bounded answers."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import httpx2
from mcp.client._transport import TransportStreams
from mcp.client.streamable_http import streamable_http_client

MAX_BODY_BYTES = 4_194_304
"""Of an answer that is no stream of events."""
MAX_EVENT_BYTES = 1_048_576
TIMEOUT_S = 10.0
"""For connecting and writing. How long a call may take is the tool's own affair."""


@dataclass(frozen=True, slots=True)
class HttpServer:
    """Where it is, and the bearer token that it asks for. The token is never shown."""

    url: str
    token: str | None = field(default=None, repr=False)


@asynccontextmanager
async def http_transport(server: HttpServer) -> AsyncGenerator[TransportStreams]:
    """The two streams of a session."""
    headers = {"Accept-Encoding": "identity"}
    if server.token is not None:
        headers["Authorization"] = f"Bearer {server.token}"
    client = httpx2.AsyncClient(
        headers=headers,
        timeout=httpx2.Timeout(TIMEOUT_S, read=None),
        transport=_Bounded(httpx2.AsyncHTTPTransport()),
    )
    async with (
        client,
        streamable_http_client(server.url, http_client=client, max_sse_event_size=MAX_EVENT_BYTES) as streams,
    ):
        yield streams


class AnswerTooLong(httpx2.TransportError):
    """The body is longer than allowed."""


class _Bounded(httpx2.AsyncBaseTransport):
    def __init__(self, inner: httpx2.AsyncBaseTransport) -> None:
        self._inner = inner

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        response = await self._inner.handle_async_request(request)
        is_stream = response.headers.get("content-type", "").startswith("text/event-stream")
        if not is_stream and isinstance(response.stream, httpx2.AsyncByteStream):
            response.stream = _BoundedBody(response.stream)
        return response

    async def aclose(self) -> None:
        await self._inner.aclose()


class _BoundedBody(httpx2.AsyncByteStream):
    def __init__(self, inner: httpx2.AsyncByteStream) -> None:
        self._inner = inner

    async def __aiter__(self) -> AsyncIterator[bytes]:
        length = 0
        async for chunk in self._inner:
            length += len(chunk)
            if length > MAX_BODY_BYTES:
                raise AnswerTooLong(f"the answer is longer than {MAX_BODY_BYTES} bytes")
            yield chunk

    async def aclose(self) -> None:
        await self._inner.aclose()
