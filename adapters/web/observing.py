"""Those who get a conversation's events: observers, who share one window, and owners, each with a buffer of its own.

Neither is ever waited for. An observer that does not keep up, and an owner whose buffer is full, loses what waits,
except for the ends of things, is told `resync_required`, and gets no more.
"""

from __future__ import annotations

from dataclasses import dataclass

import anyio

from .coalescing import Coalescing
from .window import Batch, ReplayWindow
from .wire import WireEvent, resync_event

TOO_SLOW = "you did not keep up and events were left out: connect again without a cursor"


@dataclass(frozen=True, slots=True)
class ObserverLimits:
    """What may wait for one of them, after coalescing. Raises `ValueError` outside the bounds."""

    max_events: int = 1_024
    """1 to 100,000."""
    max_bytes: int = 262_144
    """1 KiB to 64 MiB."""

    def __post_init__(self) -> None:
        for name, low, high in (("max_events", 1, 100_000), ("max_bytes", 1_024, 64 * 1024**2)):
            value: int = getattr(self, name)
            if not low <= value <= high:
                raise ValueError(f"{name} = {value} is outside {low:,}–{high:,}")

    def are_kept_by(self, events: int, size_bytes: int) -> bool:
        """Whether so much may wait."""
        return events <= self.max_events and size_bytes <= self.max_bytes


class Observer:
    """Somebody who watches: a place in the window. `begin_with` comes first and does not count.

    Woken, it reads everything that has come since; until then it does not look.
    """

    def __init__(
        self,
        conversation_id: str,
        window: ReplayWindow,
        limits: ObserverLimits,
        place: int,
        begin_with: tuple[WireEvent, ...] = (),
    ) -> None:
        self._conversation_id = conversation_id
        self._window = window
        self._limits = limits
        self._place = place
        self._first = begin_with
        self._awake = True
        self._changed = anyio.Event()
        self._ended = False
        self.lagged = False
        """It did not keep up."""

    def wake(self) -> None:
        """There may be something to read."""
        self._awake = True
        self._changed.set()

    def end(self) -> None:
        """No more events will come."""
        self._ended = True
        self.wake()

    async def take(self, patience_s: float) -> Batch:
        """Everything that has come, at the latest after `patience_s`: an empty batch means that nothing happened."""
        if not self._first and not self._may_go_on():
            with anyio.move_on_after(patience_s):
                while not self._may_go_on():
                    self._changed = anyio.Event()
                    await self._changed.wait()
        self._awake = False
        return self._read()

    def _may_go_on(self) -> bool:
        return self._ended or self.lagged or (self._awake and self._place < self._window.end)

    def _read(self) -> Batch:
        first, self._first = self._first, ()
        if self.lagged:
            return Batch(first, is_last=True)
        found = self._window.read(self._place)
        if found is None or not self._limits.are_kept_by(len(found.batch.events), found.size_bytes):
            self.lagged = True
            ends = (event.without_cursor() for event in self._window.ends_from(self._place))
            return Batch((*first, *ends, resync_event(self._conversation_id, TOO_SLOW)), is_last=True)
        self._place = found.end
        if first or self._ended:
            return Batch((*first, *found.batch.events), self._ended)
        return found.batch


class Owner:
    """Somebody who asked: a buffer of what concerns the request, read by one task that is woken at once."""

    def __init__(self, conversation_id: str, limits: ObserverLimits) -> None:
        self._conversation_id = conversation_id
        self._limits = limits
        self._waiting = Coalescing()
        self._changed = anyio.Event()
        self._over = False
        self.lagged = False
        """It did not keep up."""

    def __len__(self) -> int:
        """Events that wait, as they would be sent."""
        return len(self._waiting)

    @property
    def waiting_bytes(self) -> int:
        return self._waiting.size_bytes

    def offer(self, event: WireEvent) -> None:
        """One more event. Nothing happens after the end."""
        if self._over:
            return
        self._waiting.add(event)
        if not self._limits.are_kept_by(len(self._waiting), self._waiting.size_bytes):
            ends = (event.without_cursor() for event in self._waiting.ends)
            self._waiting = Coalescing((*ends, resync_event(self._conversation_id, TOO_SLOW)))
            self.lagged = self._over = True
        self._changed.set()

    def end(self) -> None:
        """No more events will come."""
        self._over = True
        self._changed.set()

    async def take(self, patience_s: float) -> Batch:
        """Everything that waits, at the latest after `patience_s`: an empty batch means that nothing happened."""
        if not self._waiting and not self._over:
            self._changed = anyio.Event()
            with anyio.move_on_after(patience_s):
                await self._changed.wait()
        waiting, self._waiting = self._waiting, Coalescing()
        return Batch(waiting.events, self._over)
