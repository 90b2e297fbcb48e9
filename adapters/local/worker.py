"""One named thread for work that would hold up the event loop."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from typing import TypeVar

import anyio.to_thread

T = TypeVar("T")


class WorkerClosedError(Exception):
    """The worker was closed before the job began."""


class Worker:
    """Runs jobs one after another in a thread of its own, which lives from the first job to `aclose`.

    The event loop waits for the thread (in one of anyio's own), never the thread for the loop: whichever ends first,
    the other is not stuck.
    """

    def __init__(self, name: str) -> None:
        self._executor = ThreadPoolExecutor(max_workers=1, thread_name_prefix=f"voicechart-{name}")
        self._lock = threading.Lock()
        self._waiting: Counter[object] = Counter()
        self._closed = False

    @property
    def closed(self) -> bool:
        """`aclose` was called."""
        return self._closed

    def others_wait(self, owner: object) -> bool:
        """A job of somebody else than `owner` waits for the one that runs."""
        with self._lock:
            return any(waiting is not owner for waiting in self._waiting)

    def submit(self, job: Callable[[], T], owner: object = None) -> Future[T]:
        """Queue `job`; what it raises stays in the future. `WorkerClosedError` after `aclose`."""

        def run() -> T:
            self._count(owner, -1)
            return job()

        self._count(owner, +1)
        try:
            future = self._executor.submit(run)
        except RuntimeError as closed:
            self._count(owner, -1)
            raise WorkerClosedError("this worker was closed") from closed
        future.add_done_callback(lambda done: self._count(owner, -1) if done.cancelled() else None)
        return future

    async def run(self, job: Callable[[], T], deadline_s: float) -> T:
        """What `job` returns or raises; `TimeoutError` when it is not done within `deadline_s`."""
        return await result_of(self.submit(job), deadline_s)

    async def aclose(self, deadline_s: float = 5.0) -> bool:
        """Drop the jobs that have not begun and end the thread.

        False when the running job outlives the deadline: the thread then ends with it.
        """
        self._closed = True
        self._executor.shutdown(wait=False, cancel_futures=True)
        with anyio.move_on_after(deadline_s, shield=True) as scope:
            await anyio.to_thread.run_sync(self._executor.shutdown, abandon_on_cancel=True)
        return not scope.cancelled_caught

    def _count(self, owner: object, change: int) -> None:
        with self._lock:
            self._waiting[owner] += change
            if not self._waiting[owner]:
                del self._waiting[owner]


async def result_of(future: Future[T], deadline_s: float) -> T:
    """What the job returns or raises; `TimeoutError` when it is not done within `deadline_s`, `WorkerClosedError` when
    it never began. Cancelling the wait leaves the job alone.
    """
    try:
        if future.done():
            return future.result()
        return await anyio.to_thread.run_sync(future.result, deadline_s, abandon_on_cancel=True)
    except CancelledError as dropped:
        raise WorkerClosedError("the worker was closed before the job began") from dropped
