"""One observer's bounded buffer, between the conversation, which never waits, and a connection, which may be slow.

What waits is made smaller where nothing is lost by it: deltas of one text are joined, of transcripts and positions only
the newest is kept. Such events may change places with each other, but never with any other event. An observer that does
not keep up all the same loses what waits, except for the ends of things, is told `resync_required`, and gets no more.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import anyio

from .wire import WireEvent, merged, resync_event


@dataclass(frozen=True, slots=True)
class ObserverLimits:
    """What may wait for one observer. Raises `ValueError` outside the bounds."""

    max_events: int = 1_024
    """After coalescing. 1 to 100,000."""
    max_bytes: int = 262_144
    """1 KiB to 64 MiB."""

    def __post_init__(self) -> None:
        for name, low, high in (("max_events", 1, 100_000), ("max_bytes", 1_024, 64 * 1024**2)):
            value: int = getattr(self, name)
            if not low <= value <= high:
                raise ValueError(f"{name} = {value} is outside {low:,}–{high:,}")


@dataclass(frozen=True, slots=True)
class Batch:
    """What an observer takes at once. `is_last`: nothing will follow."""

    events: tuple[WireEvent, ...]
    is_last: bool = False


class Observer:
    """Offered events by the hub, read by one task.

    `begin_with` is what it has missed, or a snapshot; it does not count. `announce` is called when something begins to
    wait: whoever paces the observers wakes it then; without it the reader is woken at once.
    """

    def __init__(
        self,
        conversation_id: str,
        limits: ObserverLimits,
        begin_with: tuple[WireEvent, ...] = (),
        *,
        announce: Callable[[Observer], None] | None = None,
    ) -> None:
        self._conversation_id = conversation_id
        self._limits = limits
        self._first = begin_with
        self._announce = announce
        self._waiting: dict[int, list[WireEvent]] = {}
        self._next = 0
        self._places: dict[tuple[str, Any], int] = {}
        self._bytes = 0
        self._changed = anyio.Event()
        self._over = False
        self._awake = False
        self.lagged = False
        """It did not keep up."""

    def __len__(self) -> int:
        """Events that wait, as they would be sent."""
        return len(self._waiting)

    @property
    def waiting_bytes(self) -> int:
        return self._bytes

    def offer(self, event: WireEvent) -> None:
        """One more event. Never waits; nothing happens after the end."""
        if self._over:
            return
        self._keep(event)
        if len(self._waiting) > self._limits.max_events or self._bytes > self._limits.max_bytes:
            self._cut_off()
        self._tell()

    def end(self) -> None:
        """No more events will come."""
        if not self._over:
            self._over = True
            self.wake()

    def wake(self) -> None:
        """Let the reader go on with what waits."""
        self._awake = True
        self._changed.set()

    async def take(self, patience_s: float) -> Batch:
        """Everything that waits, at the latest after `patience_s`: an empty batch means that nothing happened."""
        if not self._first and not self._over:
            with anyio.move_on_after(patience_s):
                while not self._may_go_on():
                    self._changed = anyio.Event()
                    await self._changed.wait()
        waiting = tuple(merged(events) for events in self._waiting.values())
        batch = Batch((*self._first, *waiting), self._over)
        self._first = ()
        self._awake = False
        self._clear()
        return batch

    def _may_go_on(self) -> bool:
        if self._over:
            return True
        return bool(self._waiting) and (self._awake or self._announce is None)

    def _keep(self, event: WireEvent) -> None:
        key = event.coalescing_key
        if key is None:
            self._places.clear()
            self._append([event], event.size_bytes)
            return
        # An event that joins one from before goes to the end with it, so that cursors never run backwards.
        place = self._places.get(key)
        former = self._waiting.pop(place, []) if place is not None else []
        if former and event.type != "text.delta":
            self._bytes -= former[0].size_bytes
            former = []
        self._places[key] = self._next
        former.append(event)
        self._append(former, event.size_bytes)

    def _append(self, events: list[WireEvent], size_bytes: int) -> None:
        self._waiting[self._next] = events
        self._next += 1
        self._bytes += size_bytes

    def _cut_off(self) -> None:
        ends = [event.without_cursor() for events in self._waiting.values() for event in events if event.is_terminal]
        self._clear()
        self.lagged = self._over = True
        reason = "you did not keep up and events were left out: connect again without a cursor"
        for event in (*ends, resync_event(self._conversation_id, reason)):
            self._append([event], event.size_bytes)

    def _clear(self) -> None:
        self._waiting.clear()
        self._places.clear()
        self._bytes = 0

    def _tell(self) -> None:
        if self._announce is not None and not self._over:
            self._announce(self)
        else:
            self._changed.set()
