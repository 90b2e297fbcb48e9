"""The replay window: the newest events, bounded by count and bytes, for whoever comes back with a cursor."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from .cursors import Cursor
from .wire import WireEvent

KEPT_EPOCHS = 64


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


class ReplayWindow:
    """Keeps what may be seen; knows of everything that was numbered."""

    def __init__(self, start: Cursor, limits: WindowLimits) -> None:
        self._limits = limits
        self._events: deque[WireEvent] = deque()
        self._bytes = 0
        self._forgotten_to = start
        self._ends: dict[int, int] = {start.session_epoch: start.sequence}
        self.latest = start
        """The cursor behind everything that was numbered, seen or not."""

    def note(self, cursor: Cursor) -> None:
        """An event was numbered."""
        self.latest = cursor
        self._ends[cursor.session_epoch] = cursor.sequence
        while len(self._ends) > KEPT_EPOCHS:
            del self._ends[min(self._ends)]

    def keep(self, event: WireEvent) -> None:
        """An event that may be seen."""
        self._events.append(event)
        self._bytes += event.size_bytes
        while len(self._events) > 1 and (
            len(self._events) > self._limits.max_events or self._bytes > self._limits.max_bytes
        ):
            oldest = self._events.popleft()
            self._bytes -= oldest.size_bytes
            assert oldest.cursor is not None
            self._forgotten_to = oldest.cursor

    def after(self, cursor: Cursor) -> tuple[WireEvent, ...] | None:
        """Everything behind `cursor`; None when that is not known whole: too old, or of another life of the server."""
        end = self._ends.get(cursor.session_epoch)
        if end is None or cursor.sequence > end or cursor < self._forgotten_to:
            return None
        missed: list[WireEvent] = []
        for event in reversed(self._events):
            if event.cursor is not None and event.cursor <= cursor:
                break
            missed.append(event)
        return tuple(reversed(missed))
