"""Waking the tasks that wait for something to change."""

from __future__ import annotations

import anyio


class Notification:
    """Every `notify` wakes the tasks that wait at that moment; look at the condition again after each wait.

    Belongs to one event loop.
    """

    def __init__(self) -> None:
        self._event = anyio.Event()

    def notify(self) -> None:
        """Something changed."""
        self._event.set()
        self._event = anyio.Event()

    async def wait(self) -> None:
        """Return at the next `notify`."""
        await self._event.wait()
