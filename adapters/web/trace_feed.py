"""The chart's newest macrosteps, for a page that shows the chart alive.

A step is kept as it is and becomes a line only when somebody asks: what nobody looks at costs an append. Lines are
those of a trace file, redacted in the same way, so that what is exported can be explained and replayed.
"""

from __future__ import annotations

import json
import secrets
from collections import deque
from collections.abc import Callable, Generator
from contextlib import contextmanager

from ... import __version__
from ...statecharts import Conversation
from ...statecharts.chart import Step
from ...statecharts.context import Context
from ...statecharts.traces import TraceEncoder
from .cursors import Cursor
from .folding import Json
from .observing import Observer, ObserverLimits
from .wire import WireEvent

KEPT_STEPS = 512
_KEY_BYTES = 32


class TraceFeed:
    """Follows one conversation from its first macrostep on. `life` tells this run of it from any other one."""

    def __init__(
        self,
        conversation: Conversation,
        life: int,
        *,
        text_shown: bool = False,
        announce: Callable[[Observer], None] | None = None,
        kept_steps: int = KEPT_STEPS,
    ) -> None:
        self._conversation_id = conversation.context.conversation_id
        self._conversation = conversation
        self._life = life
        self._announce = announce
        key = None if text_shown else secrets.token_bytes(_KEY_BYTES)
        self._encoder = TraceEncoder(conversation, key, f"voicechart {__version__}")
        self._steps: deque[tuple[int, Step[Context]]] = deque(maxlen=kept_steps)
        self._number = 0
        self._observers: list[Observer] = []
        self._ended = False
        self._forget = conversation.observe(self._note)

    def lines(self) -> str:
        """The newest macrosteps as a trace file; empty before the first one."""
        if not self._steps:
            return ""
        number, first = self._steps[0]
        header = self._encoder.header(number, first.before)
        return "".join((header, *(self._encoder.record(number, step) for number, step in self._steps)))

    @contextmanager
    def subscribe(self, after: Cursor | None = None) -> Generator[Observer]:
        """Everything behind the cursor, or the header and everything that is kept; then every macrostep."""
        observer = Observer(self._conversation_id, ObserverLimits(), self._missed(after), announce=self._announce)
        self._observers.append(observer)
        if self._ended:
            observer.end()
        try:
            yield observer
        finally:
            self._observers.remove(observer)

    def end(self) -> None:
        """The conversation has ended."""
        if not self._ended:
            self._ended = True
            self._forget()
            for observer in self._observers:
                observer.end()

    @property
    def watermark(self) -> Cursor:
        """Behind the newest macrostep."""
        return Cursor(self._life, self._number)

    def _note(self, step: Step[Context]) -> None:
        self._number += 1
        self._steps.append((self._number, step))
        if self._observers:
            event = self._event(self._number, step)
            for observer in self._observers:
                observer.offer(event)

    def _missed(self, after: Cursor | None) -> tuple[WireEvent, ...]:
        first = self._steps[0][0] if self._steps else self._number + 1
        is_known = after is not None and after.session_epoch == self._life
        if after is not None and is_known and first - 1 <= after.sequence <= self._number:
            return tuple(self._event(number, step) for number, step in self._steps if number > after.sequence)
        return (self._start(first), *(self._event(number, step) for number, step in self._steps))

    def _start(self, number: int) -> WireEvent:
        before = self._steps[0][1].before if self._steps else self._conversation.snapshot()
        header: Json = json.loads(self._encoder.header(number, before))
        value = {"type": "trace.start", "conversation_id": self._conversation_id, "payload": header}
        return WireEvent(value, None, str(Cursor(self._life, number - 1)))

    def _event(self, number: int, step: Step[Context]) -> WireEvent:
        record: Json = json.loads(self._encoder.record(number, step))
        value = {"type": "trace.record", "conversation_id": self._conversation_id, "payload": record}
        return WireEvent(value, Cursor(self._life, number))
