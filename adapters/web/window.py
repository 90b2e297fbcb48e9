"""The newest events of a conversation, bounded by count and bytes, shared by everybody who watches.

Whoever watches holds a place in it and nothing else: what a slow observer costs is a number. Events are kept once, made
into bytes once, and put together once for all observers that stand at the same place.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from functools import cached_property
from itertools import islice

from .coalescing import Coalescing
from .cursors import Cursor
from .wire import WireEvent

KEPT_EPOCHS = 64
KEPT_ENDS = 1_024
"""The ends of things outlive the window: who comes too late for the rest is told of them."""


@dataclass(frozen=True, slots=True)
class WindowLimits:
    """How far back a cursor may lie. Raises `ValueError` outside the bounds."""

    max_events: int = 2_048
    """1 to 1,000,000."""
    max_bytes: int = 1_048_576
    """Of the events' JSON. 1 KiB to 1 GiB. The newest event is kept whatever its size."""

    def __post_init__(self) -> None:
        for name, low, high in (("max_events", 1, 1_000_000), ("max_bytes", 1_024, 1024**3)):
            value: int = getattr(self, name)
            if not low <= value <= high:
                raise ValueError(f"{name} = {value} is outside {low:,}–{high:,}")


@dataclass(frozen=True)
class Batch:
    """What an observer takes at once. `is_last`: nothing will follow."""

    events: tuple[WireEvent, ...]
    is_last: bool = False

    @cached_property
    def sse(self) -> bytes:
        """All of them as server-sent events."""
        return b"".join(event.sse for event in self.events)


@dataclass(frozen=True)
class Slice:
    """Everything from a place to the end, made as small as it gets."""

    batch: Batch
    end: int
    size_bytes: int


class ReplayWindow:
    """Keeps what may be seen; knows of everything that was numbered. A place is how many events were kept before it."""

    def __init__(self, start: Cursor, limits: WindowLimits) -> None:
        self._limits = limits
        self._events: deque[WireEvent] = deque()
        self._ends_of_things: deque[tuple[int, WireEvent]] = deque(maxlen=KEPT_ENDS)
        self._bytes = 0
        self._forgotten_to = start
        self._last_of: dict[int, int] = {start.session_epoch: start.sequence}
        self._slices: dict[int, Slice] = {}
        self.latest = start
        """The cursor behind everything that was numbered, seen or not."""
        self.end = 0
        """The place behind everything."""

    def note(self, cursor: Cursor) -> None:
        """An event was numbered."""
        self.latest = cursor
        self._last_of[cursor.session_epoch] = cursor.sequence
        while len(self._last_of) > KEPT_EPOCHS:
            del self._last_of[min(self._last_of)]

    def keep(self, event: WireEvent) -> None:
        """An event that may be seen."""
        self._events.append(event)
        if event.is_terminal:
            self._ends_of_things.append((self.end, event))
        self.end += 1
        self._slices.clear()
        self._bytes += event.size_bytes
        while len(self._events) > 1 and (
            len(self._events) > self._limits.max_events or self._bytes > self._limits.max_bytes
        ):
            oldest = self._events.popleft()
            self._bytes -= oldest.size_bytes
            assert oldest.cursor is not None
            self._forgotten_to = oldest.cursor

    def place_after(self, cursor: Cursor) -> int | None:
        """The place behind `cursor`; None when what follows it is not known whole: too old, or of another life."""
        last = self._last_of.get(cursor.session_epoch)
        if last is None or cursor.sequence > last or cursor < self._forgotten_to:
            return None
        place = self.end
        for event in reversed(self._events):
            if event.cursor is not None and event.cursor <= cursor:
                break
            place -= 1
        return place

    def read(self, place: int) -> Slice | None:
        """Everything from that place on; None when some of it is forgotten."""
        first = self.end - len(self._events)
        if place < first:
            return None
        found = self._slices.get(place)
        if found is None:
            waiting = Coalescing(islice(self._events, place - first, None))
            found = self._slices[place] = Slice(Batch(waiting.events), self.end, waiting.size_bytes)
        return found

    @property
    def kept(self) -> tuple[WireEvent, ...]:
        """Everything that is there, oldest first."""
        return tuple(self._events)

    def ends_from(self, place: int) -> tuple[WireEvent, ...]:
        """The ends of things from that place on, also of what is forgotten."""
        return tuple(event for number, event in self._ends_of_things if number >= place)
