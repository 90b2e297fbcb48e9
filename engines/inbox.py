"""The session's inbox: facts in the order they came, with a reserved lane for control."""

from __future__ import annotations

from collections import deque

import anyio

from ..statecharts.errors import ErrorScope, ScopedError
from ..statecharts.facts import (
    ButtonPressed,
    ClientCancelled,
    CloseRequested,
    ConnectionFailed,
    ConnectionLost,
    ConnectionReady,
    Fact,
)
from .reports import PortError

CONTROL = (CloseRequested, ClientCancelled, ButtonPressed, ConnectionReady, ConnectionFailed, ConnectionLost)
"""Facts that never wait behind others. Those of the connection keep their order among themselves: a loss that overtook
the readiness it ends would be taken for nothing."""


class Inbox:
    """Bounded: `capacity` ordinary and `control_capacity` control facts; one request to close always finds room."""

    def __init__(self, capacity: int = 512, control_capacity: int = 64) -> None:
        self._capacity = capacity
        self._control_capacity = control_capacity
        self._ordinary: deque[Fact] = deque()
        self._control: deque[Fact] = deque()
        self._arrived = anyio.Event()
        self.peak = 0
        """Most facts that ever waited."""

    def __len__(self) -> int:
        return len(self._ordinary) + len(self._control)

    def put_nowait(self, fact: Fact) -> None:
        """Add a fact at once. Raises `PortError` when its lane is full, for anything but a request to close.

        A second request to close adds nothing to one that waits.
        """
        is_control = isinstance(fact, CONTROL)
        lane, capacity = (self._control, self._control_capacity) if is_control else (self._ordinary, self._capacity)
        if isinstance(fact, CloseRequested):
            if any(isinstance(waiting, CloseRequested) for waiting in lane):
                return
        elif len(lane) >= capacity:
            raise PortError(
                ScopedError(
                    "inbox_full",
                    "session",
                    ErrorScope.SESSION,
                    f"{capacity} facts wait: the event loop is blocked, or an adapter never stops reporting",
                )
            )
        lane.append(fact)
        self.peak = max(self.peak, len(self))
        self._arrived.set()

    def take(self) -> Fact | None:
        """The next fact, control first; None when there is none."""
        lane = self._control or self._ordinary
        return lane.popleft() if lane else None

    async def wait(self) -> None:
        """Return when there is a fact to take. For one task: the one that takes."""
        while not len(self):
            self._arrived = anyio.Event()
            await self._arrived.wait()
