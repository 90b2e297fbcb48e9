"""A reply that is known at once and streamed at a steady pace."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator

import anyio

from ...engines.reports import GenerationEnded, GenerationReport, GenerationStopped, PortError, TextDelta
from ...statecharts.errors import ErrorScope, ScopedError


class PacedTextStream:
    """Implements `GenerationStream`: a word (with the space before it) every `token_ms`. No task, no thread."""

    def __init__(self, text: str, token_ms: float) -> None:
        self._tokens: list[str] = re.findall(r"\s*\S+", text)
        self._token_ms = token_ms
        self._cancelled = anyio.Event()
        self._ended = False
        self._read = False

    @property
    def ended(self) -> bool:
        """The terminal report was given."""
        return self._ended

    async def reports(self) -> AsyncIterator[GenerationReport]:
        if self._read:
            message = "reports() is iterated once; open another stream"
            raise PortError(ScopedError("already_reading", "generation", ErrorScope.RESPONSE, message))
        self._read = True
        for token in self._tokens:
            with anyio.move_on_after(self._token_ms / 1_000):
                await self._cancelled.wait()
            if self._cancelled.is_set():
                break
            yield TextDelta(token)
        self._ended = True
        yield GenerationStopped() if self._cancelled.is_set() else GenerationEnded()

    def cancel(self, reason: str) -> None:
        if not self._ended:
            self._cancelled.set()

    async def aclose(self) -> None:
        self.cancel("closed")
