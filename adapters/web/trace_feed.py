"""The chart's newest macrosteps, for a page that shows the chart alive.

A step is kept as it is and becomes a line only when somebody reads it: what nobody looks at costs an append. Lines are
those of a trace file, redacted in the same way, so that what is exported can be explained and replayed.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Generator
from contextlib import contextmanager
from functools import cached_property

from ... import __version__
from ...statecharts import Conversation
from ...statecharts.chart import Snapshot, Step
from ...statecharts.context import Context
from ...statecharts.traces import TraceEncoder
from .cursors import Cursor
from .folding import Json
from .hub import Announce, wake_all
from .observing import Observer, ObserverLimits
from .window import ReplayWindow, WindowLimits
from .wire import WireEvent

KEPT_STEPS = 512
STEP_BYTES = 3_072
"""About what a macrostep takes; none is written to find out."""
_KEY_BYTES = 32
_LIMITS = ObserverLimits(max_events=KEPT_STEPS, max_bytes=KEPT_STEPS * STEP_BYTES)


class TraceEvent(WireEvent):
    """A macrostep that is written when it is read."""

    def __init__(self, conversation_id: str, encoder: TraceEncoder, cursor: Cursor, step: Step[Context]) -> None:
        super().__init__({"type": "trace.record"}, cursor)
        self.step = step
        self._conversation_id = conversation_id
        self._encoder = encoder
        self._number = cursor.sequence

    @cached_property
    def record(self) -> str:
        """A line of a trace file."""
        return self._encoder.record(self._number, self.step)

    @cached_property
    def line(self) -> bytes:
        head = json.dumps({"type": "trace.record", "conversation_id": self._conversation_id})
        return f'{head[:-1]}, "payload": {self.record.rstrip()}}}'.encode("utf-8", "replace")

    @property
    def size_bytes(self) -> int:
        return STEP_BYTES


class TraceFeed:
    """Follows one conversation from its first macrostep on. `life` tells this run of it from any other one."""

    def __init__(
        self, conversation: Conversation, life: int, *, text_shown: bool = False, announce: Announce = wake_all
    ) -> None:
        self._conversation_id = conversation.context.conversation_id
        self._conversation = conversation
        self._announce = announce
        key = None if text_shown else secrets.token_bytes(_KEY_BYTES)
        self._encoder = TraceEncoder(conversation, key, f"voicechart {__version__}")
        limits = WindowLimits(KEPT_STEPS, 2 * KEPT_STEPS * STEP_BYTES)
        self._window = ReplayWindow(Cursor(life, 0), limits)
        self._observers: dict[Observer, None] = {}
        self._ended = False
        self._forget = conversation.observe(self._note)

    @property
    def watermark(self) -> Cursor:
        """Behind the newest macrostep."""
        return self._window.latest

    @property
    def watchers(self) -> tuple[Observer, ...]:
        """Who watches at the moment."""
        return tuple(self._observers)

    def lines(self) -> str:
        """The newest macrosteps as a trace file; empty before the first one."""
        steps = self._steps()
        if not steps:
            return ""
        return "".join((self._header(steps), *(step.record for step in steps)))

    def about(self, number: int) -> str:
        """A trace file of the first macrostep that is kept and that one; empty when that one is not kept."""
        steps = self._steps()
        first = self._window.latest.sequence - len(steps) + 1
        if not first <= number <= self._window.latest.sequence:
            return ""
        lines = [self._header(steps), steps[0].record]
        if number > first:
            wanted = steps[number - first]
            lines += [self._encoder.gap(number - first - 1, number, wanted.step.before), wanted.record]
        return "".join(lines)

    @contextmanager
    def subscribe(self, after: Cursor | None = None) -> Generator[Observer]:
        """Everything behind the cursor, or the header and everything that is kept; then every macrostep."""
        place = self._window.place_after(after) if after is not None else None
        begin_with: tuple[WireEvent, ...] = ()
        if place is None:
            steps = self._steps()
            place, begin_with = self._window.end - len(steps), (self._start(steps),)
        observer = Observer(self._conversation_id, self._window, _LIMITS, place, begin_with)
        self._observers[observer] = None
        if self._ended:
            observer.end()
        try:
            yield observer
        finally:
            del self._observers[observer]

    def end(self) -> None:
        """The conversation has ended."""
        if not self._ended:
            self._ended = True
            self._forget()
            for observer in self._observers:
                observer.end()

    def _note(self, step: Step[Context]) -> None:
        latest = self._window.latest
        cursor = Cursor(latest.session_epoch, latest.sequence + 1)
        self._window.note(cursor)
        self._window.keep(TraceEvent(self._conversation_id, self._encoder, cursor, step))
        if self._observers:
            self._announce(self)

    def _steps(self) -> tuple[TraceEvent, ...]:
        return tuple(event for event in self._window.kept if isinstance(event, TraceEvent))

    def _start(self, steps: tuple[TraceEvent, ...]) -> WireEvent:
        header: Json = json.loads(self._header(steps))
        value = {"type": "trace.start", "conversation_id": self._conversation_id, "payload": header}
        latest = self._window.latest
        return WireEvent(value, None, str(Cursor(latest.session_epoch, latest.sequence - len(steps))))

    def _header(self, steps: tuple[TraceEvent, ...]) -> str:
        number = self._window.latest.sequence - len(steps) + 1
        before: Snapshot[Context] = steps[0].step.before if steps else self._conversation.snapshot()
        return self._encoder.header(number, before)
