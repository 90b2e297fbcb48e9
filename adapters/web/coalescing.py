"""Making less of what waits where nothing is lost by it.

Deltas of one text are joined; of transcripts and positions the newest is kept. Such events may change places with each
other, but never with any other event.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .wire import WireEvent


class Coalescing:
    """Events that wait, in order."""

    def __init__(self, events: Iterable[WireEvent] = ()) -> None:
        self._waiting: dict[int, list[WireEvent]] = {}
        self._places: dict[tuple[str, Any], int] = {}
        self._next = 0
        self.size_bytes = 0
        for event in events:
            self.add(event)

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, event: WireEvent) -> None:
        """One more, joined with one that waits where that is possible."""
        key = event.coalescing_key
        if key is None:
            self._places.clear()
            self._append([event], event.size_bytes)
            return
        # An event that joins one from before goes to the end with it, so that cursors never run backwards.
        place = self._places.get(key)
        former = self._waiting.pop(place, []) if place is not None else []
        if former and event.type != "text.delta":
            self.size_bytes -= former[0].size_bytes
            former = []
        self._places[key] = self._next
        former.append(event)
        self._append(former, event.size_bytes)

    @property
    def events(self) -> tuple[WireEvent, ...]:
        """As they would be sent."""
        return tuple(map(merged, self._waiting.values()))

    @property
    def ends(self) -> tuple[WireEvent, ...]:
        """The ends of things among them."""
        return tuple(event for events in self._waiting.values() for event in events if event.is_terminal)

    def _append(self, events: list[WireEvent], size_bytes: int) -> None:
        self._waiting[self._next] = events
        self._next += 1
        self.size_bytes += size_bytes


def merged(events: list[WireEvent]) -> WireEvent:
    """One event for several of one key, oldest first: text is joined, of anything else the newest counts."""
    newest = events[-1]
    if len(events) == 1 or newest.type != "text.delta":
        return newest
    text = "".join(event.value["payload"]["text"] for event in events)
    return WireEvent({**newest.value, "payload": {**newest.value["payload"], "text": text}}, newest.cursor)
