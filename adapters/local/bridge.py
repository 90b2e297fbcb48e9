"""Reports on their way from a worker thread to the one task that reads them."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import AsyncIterator, Callable
from time import monotonic
from typing import Generic, TypeVar

import anyio.to_thread

ReportT = TypeVar("ReportT")

LOOK_EVERY_S = 0.05
"""How often a waiting `put` asks whether it may go beyond the bound."""

WAIT_SLICE_S = 1.0
"""A reader's thread wakes at least this often, so that an abandoned one ends."""


class ReportBridge(Generic[ReportT]):
    """A bounded queue with a thread at one end and the event loop at the other, and exactly one terminal report.

    Reports have a `cost` (samples, say); `put` waits while `capacity` would be exceeded, unless the bridge is empty (so
    that one report of any size passes) or `may_overflow()` says that somebody else is held up by the wait.
    """

    def __init__(
        self,
        capacity: int,
        *,
        may_overflow: Callable[[], bool] = lambda: False,
        put_deadline_s: float = 60.0,
    ) -> None:
        self._capacity = capacity
        self._may_overflow = may_overflow
        self._put_deadline_s = put_deadline_s
        self._changed = threading.Condition()
        self._reports: deque[tuple[ReportT, int]] = deque()
        self._used = 0
        self._last: ReportT | None = None
        self._stopped = False
        self._delivered_last = False

    @property
    def stopped(self) -> bool:
        """`stop` came before the end: whatever is produced now is not wanted."""
        return self._stopped

    @property
    def ended(self) -> bool:
        """The terminal report is decided (it may still wait to be read)."""
        return self._last is not None

    @property
    def used(self) -> int:
        """The cost of what waits to be read."""
        return self._used

    def put(self, report: ReportT, cost: int = 0, *, replaces: Callable[[ReportT], bool] = lambda _: False) -> bool:
        """For the thread: queue a report, waiting for room. False when the stream has ended, so stop producing.

        A waiting report for which `replaces` holds gives its place to this one. Raises `TimeoutError` when nobody made
        room within the deadline.
        """
        give_up_at = monotonic() + self._put_deadline_s
        with self._changed:
            while self._last is None and self._used and self._used + cost > self._capacity:
                if self._may_overflow():
                    break
                if monotonic() >= give_up_at:
                    raise TimeoutError(f"nobody read for {self._put_deadline_s} s")
                self._changed.wait(LOOK_EVERY_S)
            if self._last is not None:
                return False
            if self._reports and replaces(self._reports[-1][0]):
                self._used -= self._reports.pop()[1]
            self._reports.append((report, cost))
            self._used += cost
            self._changed.notify_all()
            return True

    def end(self, last: ReportT) -> None:
        """The terminal report, after everything that waits. The first terminal report wins. From any side."""
        with self._changed:
            if self._last is None:
                self._last = last
                self._changed.notify_all()

    def stop(self, last: ReportT) -> None:
        """The terminal report, instead of everything that waits, unless the terminal report was read already. Never
        blocks for longer than a queue operation. From any side.
        """
        with self._changed:
            if self._delivered_last:
                return
            self._stopped = True
            self._last = last
            self._reports.clear()
            self._used = 0
            self._changed.notify_all()

    async def reports(self) -> AsyncIterator[ReportT]:
        """For the event loop: every report, the terminal one last."""
        while not self._delivered_last:
            report = self._take()
            if report is None:
                await anyio.to_thread.run_sync(self._wait_for_report, abandon_on_cancel=True)
            else:
                yield report

    def _take(self) -> ReportT | None:
        with self._changed:
            if self._reports:
                report, cost = self._reports.popleft()
                self._used -= cost
                self._changed.notify_all()
                return report
            self._delivered_last = self._last is not None
            return self._last

    def _wait_for_report(self) -> None:
        with self._changed:
            self._changed.wait_for(lambda: bool(self._reports) or self._last is not None, WAIT_SLICE_S)
