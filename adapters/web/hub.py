"""The hub of one conversation: every event is serialised once, kept for a while, and offered to whoever watches.

Theory of operation. `PublicStream` calls the hub in the moment of publishing, so what it does there is little: one line
of JSON, one append, and one offer for each observer, none of which waits. The folded state is brought up to date when
somebody needs it, or when too much has come since. Taking a snapshot and its watermark, and registering the observer,
is one synchronous step: no event falls between them.

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
from .observing import Observer, ObserverLimits
from .window import ReplayWindow, WindowLimits
from .wire import WireEvent, snapshot_event

MAX_UNFOLDED = 256
DEFAULT_SEES = frozenset({Visibility.USER, Visibility.SPEECH})


@dataclass(frozen=True, slots=True)
class HubLimits:
    """What a hub keeps for those who come back, and for those who are slow."""

    window: WindowLimits = field(default_factory=WindowLimits)
    observer: ObserverLimits = field(default_factory=ObserverLimits)


class EventHub:
    """Attach it before the session runs; `end` it when the session has ended.

    `sees`: the visibilities that observers get. `announce` is given to observers that are paced.
    """

    def __init__(
        self,
        conversation_id: str,
        public: PublicStream,
        *,
        session_epoch: int,
        sees: Iterable[Visibility] = DEFAULT_SEES,
        limits: HubLimits | None = None,
        announce: Callable[[Observer], None] | None = None,
    ) -> None:
        self.conversation_id = conversation_id
        self._sees = frozenset(sees)
        self._limits = limits or HubLimits()
        self._announce = announce
        self._window = ReplayWindow(Cursor(session_epoch, 0), self._limits.window)
        self._state = empty_state()
        self._unfolded: list[WireEvent] = []
        self._owners: list[Observer] = []
        self._observers: list[Observer] = []
        self._filters: dict[Observer, Callable[[WireEvent], bool]] = {}
        self._ended = False
        self._forget = public.listen(self._note)

    @property
    def watermark(self) -> Cursor:
        """Behind the newest event."""
        return self._window.latest

    @property
    def observers(self) -> int:
        """How many watch at the moment."""
        return len(self._observers)

    @property
    def state(self) -> Json:
        """What everything that observers may see amounts to. Do not change it."""
        self._fold()
        return self._state

    def snapshot(self) -> WireEvent:
        """The state and its watermark, as one event."""
        return snapshot_event(self.conversation_id, self.watermark, self.state)

    @contextmanager
    def subscribe(self, after: Cursor | None = None) -> Generator[Observer]:
        """Watch: everything after the cursor, or a snapshot and everything after it."""
        missed = self._window.after(after) if after is not None else None
        begin_with = (self.snapshot(),) if missed is None else missed
        observer = Observer(self.conversation_id, self._limits.observer, begin_with, announce=self._announce)
        yield from self._register(observer, self._observers)

    @contextmanager
    def own(self, concerns: Callable[[WireEvent], bool]) -> Generator[Observer]:
        """Watch what concerns one request, from now on, ahead of all observers."""
        observer = Observer(self.conversation_id, self._limits.observer)
        self._filters[observer] = concerns
        try:
            yield from self._register(observer, self._owners)
        finally:
            del self._filters[observer]

    def end(self) -> None:
        """The conversation has ended: every observer gets what it has not read yet, and no more."""
        if self._ended:
            return
        self._ended = True
        self._forget()
        for observer in (*self._owners, *self._observers):
            observer.end()

    def _register(self, observer: Observer, among: list[Observer]) -> Generator[Observer]:
        among.append(observer)
        if self._ended:
            observer.end()
        try:
            yield observer
        finally:
            among.remove(observer)

    def _note(self, event: PublicEvent) -> None:
        wire = WireEvent.of(event)
        assert wire.cursor is not None
        self._window.note(wire.cursor)
        if event.visibility not in self._sees:
            return
        for owner in self._owners:
            if self._filters[owner](wire):
                owner.offer(wire)
        self._window.keep(wire)
        self._unfolded.append(wire)
        if len(self._unfolded) > MAX_UNFOLDED:
            self._fold()
        for observer in self._observers:
            observer.offer(wire)

    def _fold(self) -> None:
        for event in self._unfolded:
            self._state = fold(self._state, event.value)
        self._unfolded.clear()
