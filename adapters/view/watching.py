"""From a running session to a view, without ever making the session wait.

The chart's macrosteps are noted synchronously, in the order taken, and shown later by a task of their own. A view that
cannot keep up loses the oldest of them, and says so.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import anyio
import anyio.to_thread

from ...engines import Session
from ...engines.public_events import ObserverLagged, PublicEvent, SpeechTextCommitted, TextAppended, TextFinished
from ...statecharts.chart import Step
from ...statecharts.context import Context
from .moments import Moment
from .picture import Picture
from .views import View

REFRESH_S = 0.1
MAX_WAITING = 4_096
MEDIA_PATH = (TextAppended, TextFinished, SpeechTextCommitted)


@dataclass(slots=True)
class Watching:
    """Shows one session in one view; `watch` runs until the session has ended."""

    view: View

    async def watch(self, session: Session) -> None:
        """Follow `session` to its end and show everything, the last moment too."""
        waiting: deque[Step[Context] | PublicEvent] = deque(maxlen=MAX_WAITING)
        ignore = session.conversation.observe(waiting.append)
        picture = Picture()
        ended = anyio.Event()
        try:
            with self.view:
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(_read_public, session, waiting, ended)
                    while not ended.is_set():
                        with anyio.move_on_after(REFRESH_S):
                            await ended.wait()
                        await self._show(picture, waiting)
        finally:
            ignore()

    async def _show(self, picture: Picture, waiting: deque[Step[Context] | PublicEvent]) -> None:
        moments: list[Moment] = []
        if len(waiting) == waiting.maxlen:
            at_ns = _time_of(waiting[0])
            moments.append(
                Moment(at_ns, picture.leaves, "session", "the view fell behind and left something out", True)
            )
        while waiting:
            seen = waiting.popleft()
            moments.extend(picture.take_event(seen) if isinstance(seen, PublicEvent) else picture.take_step(seen))
        # Drawing takes milliseconds that the loop has not got.
        await anyio.to_thread.run_sync(self.view.show, picture, moments)


def _time_of(seen: Step[Context] | PublicEvent) -> int:
    return seen.occurred_at_ns if isinstance(seen, PublicEvent) else seen.fact.at


async def _read_public(session: Session, waiting: deque[Step[Context] | PublicEvent], ended: anyio.Event) -> None:
    """The text of the media path; the chart's own events come with its macrosteps."""
    lagged = True
    while lagged and session.closed is None:
        lagged = False
        try:
            with session.public.subscribe(MAX_WAITING) as subscription:
                async for event in subscription.events():
                    if isinstance(event.payload, MEDIA_PATH):
                        waiting.append(event)
        except ObserverLagged:
            lagged = True
    ended.set()
