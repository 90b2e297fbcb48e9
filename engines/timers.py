"""Timers that the chart starts: each a task of the session, each cancelled, fired or superseded."""

from __future__ import annotations

from collections.abc import Callable

import anyio
from anyio.abc import TaskGroup

from ..statecharts.facts import Fact, TimerFired
from .ports import Clock


class Timers:
    """Runs in the session's task group; reports `TimerFired` when one is due."""

    def __init__(self, clock: Clock, tasks: TaskGroup, report: Callable[[Fact], None]) -> None:
        self._clock = clock
        self._tasks = tasks
        self._report = report
        self._running: dict[str, anyio.CancelScope] = {}

    def __len__(self) -> int:
        return len(self._running)

    def start(self, timer_id: str, delay_ms: int) -> None:
        """Fire in `delay_ms` unless cancelled before."""
        scope = anyio.CancelScope()
        self._running[timer_id] = scope
        due_ns = self._clock.now_ns() + delay_ms * 1_000_000
        self._tasks.start_soon(self._run, timer_id, due_ns, scope, name=f"timer {timer_id}")

    def cancel(self, timer_id: str) -> None:
        """Unknown and fired ones are nothing to cancel."""
        scope = self._running.pop(timer_id, None)
        if scope is not None:
            scope.cancel()

    async def _run(self, timer_id: str, due_ns: int, scope: anyio.CancelScope) -> None:
        with scope:
            await self._clock.sleep_until(due_ns)
            self._running.pop(timer_id, None)
            self._report(TimerFired(at=self._clock.now_ns(), timer_id=timer_id))
