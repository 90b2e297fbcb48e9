"""Pacing: observers are served together, a few at a time, so that they never stand in the owner's way.

An observer's share of an event is a write to a socket; two hundred of them in one turn of the event loop would be
milliseconds in which a token waits. So an observer whose buffer has something is woken at most once in an interval, and
between two small groups everybody else gets a turn. What comes meanwhile is coalesced in its buffer.
"""

from __future__ import annotations

from dataclasses import dataclass

import anyio
import anyio.lowlevel

from .observing import Observer


@dataclass(frozen=True, slots=True)
class Pace:
    """`interval_ms`: between two rounds, 0 to 10,000. `at_once`: observers woken together, 1 to 1,000."""

    interval_ms: int = 50
    at_once: int = 2


class Pacer:
    """Wakes observers in rounds; `run` until cancelled."""

    def __init__(self, pace: Pace | None = None) -> None:
        self._pace = pace or Pace()
        self._marked: dict[Observer, None] = {}
        self._changed = anyio.Event()

    def mark(self, observer: Observer) -> None:
        """It has something to read."""
        self._marked[observer] = None
        self._changed.set()

    async def run(self) -> None:
        """Round after round."""
        while True:
            if not self._marked:
                self._changed = anyio.Event()
                await self._changed.wait()
            await anyio.sleep(self._pace.interval_ms / 1_000)
            round_, self._marked = self._marked, {}
            for number, observer in enumerate(round_, 1):
                observer.wake()
                if number % self._pace.at_once == 0:
                    # The first turn wakes the readers, in the second they write.
                    await anyio.lowlevel.checkpoint()
                    await anyio.lowlevel.checkpoint()
