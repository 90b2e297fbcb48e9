"""The hub of one conversation: every event is serialised once, kept for a while, and there for whoever watches.

Theory of operation. `PublicStream` calls the hub in the moment of publishing, so what it does there does not depend on
how many watch: one line of JSON, one append, one offer to the owner of the run, and a word to the pacer. Observers read
the shared window when the pacer wakes them. The folded state is brought up to date when somebody needs it, or when too
much has come since. Taking a snapshot and its watermark, and finding the observer its place, is one synchronous step:
no event falls between them.

What an observer may not see never gets as far as the window, a buffer or the folded state. It is numbered all the same,
so a cursor may name it, and a gap in the numbers is no loss.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from dataclasses import dataclass, field

from ...engines.public_events import PublicEvent, PublicStream, Visibility
from .cursors import Cursor
from .folding import Json, empty_state, fold
from .observing import Observer, ObserverLimits, Owner
from .pacing import Watched
from .window import ReplayWindow, WindowLimits
from .wire import WireEvent, snapshot_event

MAX_UNFOLDED = 256
DEFAULT_SEES = frozenset({Visibility.USER, Visibility.SPEECH})
Announce = Callable[[Watched], None]
"""Called when there is something to read; wakes the observers, now or later."""


def wake_all(watched: Watched) -> None:
    """Wakes them now."""
    for observer in watched.watchers:
        observer.wake()


@dataclass(frozen=True, slots=True)
class HubLimits:
    """What a hub keeps for those who come back, and for those who are slow."""

    window: WindowLimits = field(default_factory=WindowLimits)
    observer: ObserverLimits = field(default_factory=ObserverLimits)


class EventHub:
    """Attach it before the session runs; `end` it when the session has ended.

    `sees`: the visibilities that are served.
    """

    def __init__(
        self,
        conversation_id: str,
        public: PublicStream,
        *,
        session_epoch: int,
        sees: Iterable[Visibility] = DEFAULT_SEES,
        limits: HubLimits | None = None,
        announce: Announce = wake_all,
    ) -> None:
        self.conversation_id = conversation_id
        self._sees = frozenset(sees)
        self._limits = limits or HubLimits()
        self._announce = announce
        self._window = ReplayWindow(Cursor(session_epoch, 0), self._limits.window)
        self._state = empty_state()
        self._unfolded: list[WireEvent] = []
        self._snapshot: WireEvent | None = None
        self._owners: dict[Owner, Callable[[WireEvent], bool]] = {}
        self._observers: dict[Observer, None] = {}
        self._ended = False
        self._forget = public.listen(self._note)

    @property
    def watermark(self) -> Cursor:
        """Behind the newest event."""
        return self._window.latest

    @property
    def watchers(self) -> tuple[Observer, ...]:
        """Who watches at the moment."""
        return tuple(self._observers)

    @property
    def state(self) -> Json:
        """What everything that observers may see amounts to. Do not change it."""
        self._fold()
        return self._state

    def snapshot(self) -> WireEvent:
        """The state and its watermark, as one event; the same one for all who come before the next event."""
        if self._snapshot is None or self._snapshot.cursor != self.watermark:
            self._snapshot = snapshot_event(self.conversation_id, self.watermark, self.state)
        return self._snapshot

    @contextmanager
    def subscribe(self, after: Cursor | None = None) -> Generator[Observer]:
        """Watch: everything after the cursor, or a snapshot and everything after it."""
        place = self._window.place_after(after) if after is not None else None
        begin_with = (self.snapshot(),) if place is None else ()
        if place is None:
            place = self._window.end
        observer = Observer(self.conversation_id, self._window, self._limits.observer, place, begin_with)
        self._observers[observer] = None
        if self._ended:
            observer.end()
        try:
            yield observer
        finally:
            del self._observers[observer]

    @contextmanager
    def own(self, concerns: Callable[[WireEvent], bool]) -> Generator[Owner]:
        """Get what concerns one request, from now on, ahead of all observers."""
        owner = Owner(self.conversation_id, self._limits.observer)
        self._owners[owner] = concerns
        if self._ended:
            owner.end()
        try:
            yield owner
        finally:
            del self._owners[owner]

    def end(self) -> None:
        """The conversation has ended: everybody gets what was not read yet, and no more."""
        if self._ended:
            return
        self._ended = True
        self._forget()
        for reader in (*self._owners, *self._observers):
            reader.end()

    def _note(self, event: PublicEvent) -> None:
        wire = WireEvent.of(event)
        assert wire.cursor is not None
        self._window.note(wire.cursor)
        if event.visibility not in self._sees:
            return
        for owner, concerns in self._owners.items():
            if concerns(wire):
                owner.offer(wire)
        self._window.keep(wire)
        self._unfolded.append(wire)
        if len(self._unfolded) > MAX_UNFOLDED:
            self._fold()
        if self._observers:
            self._announce(self)

    def _fold(self) -> None:
        for event in self._unfolded:
            self._state = fold(self._state, event.value)
        self._unfolded.clear()
