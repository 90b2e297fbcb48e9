"""An httpx transport that refuses to read without end."""

from __future__ import annotations

from collections.abc import AsyncIterator

import httpx


class PayloadTooLargeError(httpx.TransportError):
    """The body, or one line of it, is longer than allowed."""


class BoundedTransport(httpx.AsyncBaseTransport):
    """Bounds what every response of `inner` may hold: `max_body_bytes` in total and `max_line_bytes` between two line
    feeds, counted before decoding (so ask for no compression).
    """

    def __init__(self, inner: httpx.AsyncBaseTransport, max_body_bytes: int, max_line_bytes: int) -> None:
        self._inner = inner
        self._max_body_bytes = max_body_bytes
        self._max_line_bytes = max_line_bytes

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        response = await self._inner.handle_async_request(request)
        if isinstance(response.stream, httpx.AsyncByteStream):
            response.stream = _BoundedStream(response.stream, self._max_body_bytes, self._max_line_bytes)
        return response

    async def aclose(self) -> None:
        await self._inner.aclose()


class _BoundedStream(httpx.AsyncByteStream):
    def __init__(self, inner: httpx.AsyncByteStream, max_body_bytes: int, max_line_bytes: int) -> None:
        self._inner = inner
        self._max_body_bytes = max_body_bytes
        self._max_line_bytes = max_line_bytes

    async def __aiter__(self) -> AsyncIterator[bytes]:
        body_bytes = line_bytes = 0
        async for chunk in self._inner:
            body_bytes += len(chunk)
            first, *others = chunk.split(b"\n")
            longest = (
                max(line_bytes + len(first), *(len(line) for line in others)) if others else line_bytes + len(first)
            )
            line_bytes = len(others[-1]) if others else longest
            if body_bytes > self._max_body_bytes or longest > self._max_line_bytes:
                raise PayloadTooLargeError("the response is longer than allowed")
            yield chunk

    async def aclose(self) -> None:
        await self._inner.aclose()
