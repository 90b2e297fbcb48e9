"""One streamed response of a model in flight, as server-sent events."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import aclosing
from typing import Protocol

import anyio
import httpx
from httpx_sse import EventSource, ServerSentEvent, SSEError

from ...engines.reports import GenerationReport, GenerationStopped
from .bounded_transport import PayloadTooLargeError
from .generation import GENERATION
from .http_service import HttpLimits

DRAIN_S = 0.1
"""For the end of the body, once the provider has said everything."""


class EventAssembly(Protocol):
    """From a provider's events to reports: pure, no I/O. Sees no event after `over` or `failed`."""

    @property
    def over(self) -> bool:
        """The provider has said everything."""
        ...

    @property
    def finished(self) -> bool:
        """The answer is complete; at most something about it (usage, say) follows, and need not."""
        ...

    @property
    def failed(self) -> bool:
        """Nothing more needs to be read."""
        ...

    def feed(self, event: ServerSentEvent) -> Iterator[GenerationReport]:
        """What this event adds."""
        ...

    def fail(self, code: str, message: str, *, retryable: bool = False) -> None:
        """The connection failed. The first failure counts; `retryable` only if nothing was visible yet."""
        ...

    def end(self) -> Iterator[GenerationReport]:
        """Nothing more comes. The terminal report is the last."""
        ...


class EventStream:
    """Implements `GenerationStream`. The response is read as fast as its reader asks, and closed at the end."""

    def __init__(
        self, response: httpx.Response, assembly: EventAssembly, limits: HttpLimits, started_at_s: float
    ) -> None:
        """`started_at_s`: when the request was sent, on anyio's clock; `limits.total_s` counts from there."""
        self._response = response
        self._assembly = assembly
        self._limits = limits
        self._deadline_s = started_at_s + limits.total_s
        self._waiting: anyio.CancelScope | None = None
        self._idle = anyio.Event()
        self._idle.set()
        self._cancelled = False
        self._read = False

    async def reports(self) -> AsyncIterator[GenerationReport]:
        if self._read:
            raise GENERATION.failure("already_reading", "reports() is iterated once; open another stream")
        self._read = True
        try:
            async with aclosing(EventSource(self._response).aiter_sse()) as events:
                while not (self._assembly.over or self._assembly.failed or self._cancelled):
                    event = await self._next(events)
                    if event is None:
                        break
                    for report in self._assembly.feed(event):
                        yield report
                        if self._cancelled:
                            break
                await self._drain(events)
        finally:
            await self._close()
        if self._cancelled:
            yield GenerationStopped()
            return
        for report in self._assembly.end():
            yield report

    def cancel(self, reason: str) -> None:
        """There is no cancel on the wire: the connection is closed, and nobody acknowledges."""
        self._cancelled = True
        if self._waiting is not None:
            self._waiting.cancel()

    async def aclose(self) -> None:
        self.cancel("closed")
        with anyio.move_on_after(self._limits.close_s, shield=True):
            await self._idle.wait()
        await self._close()

    async def _next(self, events: AsyncGenerator[ServerSentEvent, None]) -> ServerSentEvent | None:
        """The next event; None at the end, at a failure (kept in the assembly) and when cancelled."""
        deadline_s = self._deadline_s
        if self._assembly.finished:
            deadline_s = min(deadline_s, anyio.current_time() + self._limits.after_finish_s)
        self._idle = anyio.Event()
        fail = self._assembly.fail
        try:
            with anyio.CancelScope(deadline=deadline_s) as self._waiting:
                return await anext(events, None)
        except SSEError:
            fail("not_a_stream", "the server does not answer with an event stream; it must support stream=true")
        except PayloadTooLargeError:
            fail("response_too_large", "the provider's response exceeds the size limit")
        except httpx.TimeoutException:
            fail("provider_silent", f"the provider sent nothing for {self._limits.idle_s} s", retryable=True)
        except httpx.TransportError:
            fail("connection_lost", "the connection to the provider broke; check the network", retryable=True)
        except UnicodeDecodeError:
            fail("malformed_chunk", "the provider's stream is no UTF-8 text")
        finally:
            self._waiting = None
            self._idle.set()
        if not self._cancelled and not self._assembly.finished:
            fail("response_too_long", f"the response was not complete within {self._limits.total_s} s")
        return None

    async def _drain(self, events: AsyncGenerator[ServerSentEvent, None]) -> None:
        """Read what is left behind the last event, usually nothing, so that the connection can serve the next request:
        a new one costs several round trips.
        """
        if not self._assembly.over or self._assembly.failed or self._cancelled:
            return
        self._idle = anyio.Event()
        try:
            with anyio.move_on_after(DRAIN_S) as self._waiting:
                while await anext(events, None) is not None:
                    pass
        except (SSEError, PayloadTooLargeError, httpx.TransportError, UnicodeDecodeError):
            # The answer is whole; only the connection cannot be used again, and is closed.
            return
        finally:
            self._waiting = None
            self._idle.set()

    async def _close(self) -> None:
        with anyio.move_on_after(self._limits.close_s, shield=True):
            await self._response.aclose()
