"""The session's inbox: facts in the order they came, with a reserved lane for control."""

from __future__ import annotations

from collections import deque

import anyio

from ..statecharts.errors import ErrorScope, ScopedError
from ..statecharts.facts import ButtonPressed, ClientCancelled, CloseRequested, ConnectionLost, Fact
from .reports import PortError

CONTROL = (CloseRequested, ClientCancelled, ButtonPressed, ConnectionLost)
"""Facts that never wait behind others."""


class Inbox:
    """Bounded: `capacity` ordinary facts and `control_capacity` control facts.

    A full ordinary lane makes `put` wait; a full control lane drops nothing and refuses nothing that ends the
    conversation: its facts are few, and a repeated one adds nothing.
    """

    def __init__(self, capacity: int = 512, control_capacity: int = 64) -> None:
        self._capacity = capacity
        self._control_capacity = control_capacity
        self._ordinary: deque[Fact] = deque()
        self._control: deque[Fact] = deque()
        self._arrived = anyio.Event()
        self._left = anyio.Event()
        self.peak = 0
        """Most facts that ever waited."""

    def __len__(self) -> int:
        return len(self._ordinary) + len(self._control)

    def put_nowait(self, fact: Fact) -> None:
        """Add a fact at once. Raises `PortError` when its lane is full."""
        is_control = isinstance(fact, CONTROL)
        lane, capacity = (self._control, self._control_capacity) if is_control else (self._ordinary, self._capacity)
        if len(lane) >= capacity:
            raise PortError(
                ScopedError(
                    "inbox_full",
                    "connection",
                    ErrorScope.SESSION,
                    f"{capacity} facts wait to be handled: the event loop is blocked, or an adapter never stops reporting",
                )
            )
        lane.append(fact)
        self.peak = max(self.peak, len(self))
        self._arrived.set()

    async def put(self, fact: Fact) -> None:
        """Add a fact, waiting for room in its lane."""
        while True:
            try:
                self.put_nowait(fact)
            except PortError:
                self._left = anyio.Event()
                await self._left.wait()
            else:
                return

    def take(self) -> Fact | None:
        """The next fact, control first; None when there is none."""
        lane = self._control or self._ordinary
        if not lane:
            return None
        fact = lane.popleft()
        self._left.set()
        return fact

    async def wait(self) -> None:
        """Return when there is a fact to take."""
        while not len(self):
            self._arrived = anyio.Event()
            await self._arrived.wait()
