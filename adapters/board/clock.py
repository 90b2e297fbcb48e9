"""The `Clock` port on anyio's clock."""

from __future__ import annotations

import anyio

NANOSECONDS_PER_SECOND = 1_000_000_000


class AnyioClock:
    """The event loop's monotonic clock: `CLOCK_MONOTONIC` on asyncio, so that processes of one machine agree."""

    def now_ns(self) -> int:
        return int(anyio.current_time() * NANOSECONDS_PER_SECOND)

    async def sleep_until(self, deadline_ns: int) -> None:
        await anyio.sleep_until(deadline_ns / NANOSECONDS_PER_SECOND)
