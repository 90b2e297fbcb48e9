"""One streamed chat completion in flight."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from dataclasses import dataclass

import anyio
import httpx
from httpx_sse import EventSource, ServerSentEvent, SSEError
from pydantic import ValidationError

from ...engines.reports import GenerationReport, GenerationStopped, PortError
from .bounded_transport import PayloadTooLargeError
from .chat_assembly import ChatAssembly, generation_error
from .openai_wire import ChatChunk

DONE = "[DONE]"


@dataclass(frozen=True, slots=True)
class ChatLimits:
    """Every wait and every size."""

    connect_s: float = 5.0
    first_byte_s: float = 30.0
    """From the request to the response's headers."""
    idle_s: float = 30.0
    """Between two pieces of the stream."""
    total_s: float = 300.0
    after_finish_s: float = 2.0
    """For the usage and `[DONE]`, once the answer itself is complete."""
    close_s: float = 2.0
    max_request_bytes: int = 1 << 20
    max_response_bytes: int = 8 << 20
    max_line_bytes: int = 1 << 20


class OpenAIChatStream:
    """Implements `GenerationStream`. The response is read as fast as its reader asks, and closed at the end."""

    def __init__(self, response: httpx.Response, limits: ChatLimits, started_at: float) -> None:
        self._response = response
        self._limits = limits
        self._deadline = started_at + limits.total_s
        self._assembly = ChatAssembly()
        self._waiting: anyio.CancelScope | None = None
        self._idle = anyio.Event()
        self._idle.set()
        self._cancelled = False
        self._read = False

    async def reports(self) -> AsyncIterator[GenerationReport]:
        if self._read:
            raise PortError(generation_error("already_reading", "reports() is iterated once; open another stream"))
        self._read = True
        done = False
        try:
            async with aclosing(EventSource(self._response).aiter_sse()) as events:
                while not done and not self._assembly.failed and not self._cancelled:
                    event = await self._next(events)
                    if event is None:
                        break
                    done = event.data.strip() == DONE
                    if not done and event.data:
                        for report in self._assembly.feed(self._parsed(event.data)):
                            yield report
        finally:
            await self._close()
        if self._cancelled:
            yield GenerationStopped()
            return
        for report in self._assembly.end(done=done):
            yield report

    def cancel(self, reason: str) -> None:
        """Chat Completions has no cancel on the wire: the connection is closed, and nobody acknowledges."""
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
        deadline = self._deadline
        if self._assembly.finished:
            deadline = min(deadline, anyio.current_time() + self._limits.after_finish_s)
        self._idle = anyio.Event()
        try:
            with anyio.CancelScope(deadline=deadline) as self._waiting:
                return await anext(events, None)
        except SSEError:
            self._fail("not_a_stream", "the server does not answer with an event stream; it must support stream=true")
        except PayloadTooLargeError:
            self._fail("response_too_large", "the provider's response exceeds the size limit")
        except httpx.TimeoutException:
            self._fail("provider_silent", f"the provider sent nothing for {self._limits.idle_s} s", retryable=True)
        except httpx.TransportError:
            self._fail("connection_lost", "the connection to the provider broke; check the network", retryable=True)
        except UnicodeDecodeError:
            self._fail("malformed_chunk", "the provider's stream is no UTF-8 text")
        finally:
            self._waiting = None
            self._idle.set()
        if not self._cancelled and not self._assembly.finished:
            self._fail("response_too_long", f"the response was not complete within {self._limits.total_s} s")
        return None

    def _parsed(self, data: str) -> ChatChunk:
        try:
            return ChatChunk.model_validate_json(data)
        except ValidationError:
            self._fail("malformed_chunk", "the provider sent a chunk that is no chat completion chunk; check base_url")
            return ChatChunk()

    def _fail(self, code: str, message: str, *, retryable: bool = False) -> None:
        spoke = self._assembly.spoke
        self._assembly.fail(generation_error(code, message, retryable=retryable and not spoke, partial_output=spoke))

    async def _close(self) -> None:
        with anyio.move_on_after(self._limits.close_s, shield=True):
            await self._response.aclose()
