"""The session's clock: the event loop's, so that a virtual loop clock makes virtual time."""

from __future__ import annotations

import anyio

NANOSECONDS_PER_SECOND = 1_000_000_000


class LoopClock:
    """Monotonic nanoseconds of the running event loop; must be used inside it."""

    def now_ns(self) -> int:
        """Nanoseconds since some fixed moment."""
        return int(anyio.current_time() * NANOSECONDS_PER_SECOND)

    async def sleep_until(self, deadline_ns: int) -> None:
        """Sleep until `now_ns()` is at least `deadline_ns`."""
        await anyio.sleep_until(deadline_ns / NANOSECONDS_PER_SECOND)
