"""The reports of a port on their way to the one task that reads them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Generic, TypeVar

from ...engines.reports import RenderingProgressed, SpeakerReport
from .notification import Notification

ReportT = TypeVar("ReportT")


class ReportQueue(Generic[ReportT]):
    """First in, first out, bounded by `max_reports`; iterated once, ends when closed and empty.

    `replaces(newer, older)` says that `newer` makes `older` needless: only the newest one of such a run is kept, so
    that a slow reader costs no memory.
    """

    def __init__(self, *, max_reports: int = 1_024, replaces: Callable[[ReportT, ReportT], bool] | None = None) -> None:
        self._reports: deque[ReportT] = deque()
        self._max_reports = max_reports
        self._replaces = replaces
        self._changed = Notification()
        self._closed = False

    @property
    def closed(self) -> bool:
        return self._closed

    def put(self, report: ReportT) -> bool:
        """Queue a report; False when the reader is so far behind that the bound is reached. Ignored when closed."""
        if self._closed:
            return True
        if self._reports and self._replaces is not None and self._replaces(report, self._reports[-1]):
            self._reports[-1] = report
            return True
        if len(self._reports) >= self._max_reports:
            return False
        self._reports.append(report)
        self._changed.notify()
        return True

    def close(self, last: ReportT | None = None) -> None:
        """Nothing comes after `last`, which is queued whatever the bound. Closing again changes nothing."""
        if self._closed:
            return
        if last is not None:
            self._reports.append(last)
        self._closed = True
        self._changed.notify()

    def __aiter__(self) -> ReportQueue[ReportT]:
        return self

    async def __anext__(self) -> ReportT:
        # Not a generator: a reader that is cancelled here loses nothing, and one that leaves early leaves nothing open.
        while not self._reports:
            if self._closed:
                raise StopAsyncIteration
            await self._changed.wait()
        return self._reports.popleft()


def newer_progress(newer: SpeakerReport, older: SpeakerReport) -> bool:
    """Whether `newer` tells all that `older` told."""
    return (
        isinstance(newer, RenderingProgressed)
        and isinstance(older, RenderingProgressed)
        and newer.stream_id == older.stream_id
    )
