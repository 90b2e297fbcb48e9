"""Pacing: observers are served together, one after the other, so that they never stand in the owner's way.

An observer's share of an event is a write to a socket; two hundred of them in one turn of the event loop would be
many milliseconds in which a token waits. So whoever watches something is woken at most once in an interval, one after
the other, and between any two everybody else gets a turn. What came meanwhile is read as one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import anyio
import anyio.lowlevel

from .observing import Observer


@dataclass(frozen=True, slots=True)
class Pace:
    """`interval_ms`: between two rounds, 0 to 10,000."""

    interval_ms: int = 100


class Watched(Protocol):
    """Something with observers."""

    @property
    def watchers(self) -> tuple[Observer, ...]: ...


class Pacer:
    """Wakes observers in rounds; `run` until cancelled."""

    def __init__(self, pace: Pace | None = None) -> None:
        self._pace = pace or Pace()
        self._marked: dict[Watched, None] = {}
        self._changed = anyio.Event()

    def mark(self, watched: Watched) -> None:
        """There is something to read of it."""
        if watched not in self._marked:
            self._marked[watched] = None
            self._changed.set()

    async def run(self) -> None:
        """Round after round."""
        while True:
            if not self._marked:
                self._changed = anyio.Event()
                await self._changed.wait()
            await anyio.sleep(self._pace.interval_ms / 1_000)
            marked, self._marked = self._marked, {}
            for watched in marked:
                for observer in watched.watchers:
                    observer.wake()
                    # In one turn it is woken, in the next it writes.
                    await anyio.lowlevel.checkpoint()
                    await anyio.lowlevel.checkpoint()
