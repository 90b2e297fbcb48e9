"""The companion's timers: carried out within the session, and told of by voice."""

from __future__ import annotations

from datetime import timedelta

from ...engines import Session
from ...engines.reports import PortError
from ...statecharts.errors import ErrorScope, ScopedError

MAX_TIMERS = 20
SAME_WITHIN_NS = 10_000_000_000
"""A reply that is begun anew, because the user went on speaking, asks for its timer again."""


class SpokenTimers:
    """Timers of one session; they end with it, and do not survive a restart."""

    def __init__(self) -> None:
        self._session: Session | None = None
        self._running = 0
        self._last: tuple[timedelta, int] | None = None

    def attach(self, session: Session) -> None:
        """From now on timers can be started, while the session runs."""
        self._session = session

    def start(self, duration: timedelta) -> None:
        """Ring after `duration`. Returns at once. Raises `PortError` without a session, and when 20 are running."""
        session = self._session
        if session is None:
            raise _refusal("no_session", "a timer needs a running session")
        now_ns = session.clock.now_ns()
        if self._last is not None and self._last[0] == duration and now_ns - self._last[1] < SAME_WITHIN_NS:
            return
        if self._running >= MAX_TIMERS:
            raise _refusal("too_many_timers", f"{MAX_TIMERS} timers are running already; wait for one of them")
        self._last = duration, now_ns
        self._running += 1
        session.start_task(self._ring, session, duration, now_ns, name=f"timer for {duration.total_seconds():.0f} s")

    async def _ring(self, session: Session, duration: timedelta, began_at_ns: int) -> None:
        try:
            await session.clock.sleep_until(began_at_ns + round(duration.total_seconds() * 1_000_000_000))
            session.say(f"Your timer for {in_words(duration)} is over.")
        finally:
            self._running -= 1


def in_words(duration: timedelta) -> str:
    """Whole seconds, as they are said: "1 hour and 5 minutes"."""
    minutes, seconds = divmod(round(duration.total_seconds()), 60)
    hours, minutes = divmod(minutes, 60)
    amounts = ((hours, "hour"), (minutes, "minute"), (seconds, "second"))
    parts = [f"{amount} {unit}{'' if amount == 1 else 's'}" for amount, unit in amounts if amount]
    return " and ".join(parts)


def _refusal(code: str, message: str) -> PortError:
    return PortError(ScopedError(code, "generation", ErrorScope.RESPONSE, message))
