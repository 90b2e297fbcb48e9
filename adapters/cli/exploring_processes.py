"""Exploring in as many processes as there are cores: who walks what, and how far everybody is."""

from __future__ import annotations

import signal
from collections.abc import Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from multiprocessing import get_context
from multiprocessing.synchronize import Event
from queue import Empty, Queue
from typing import cast

from ...statecharts.explorer import Job, Progress, Runner, ScenarioReport
from ...statecharts.explorer.search import OnProgress

POLL_SECONDS = 0.25
"""How often progress is looked at."""


class Stopped(Exception):
    """In a worker: nobody wants to know any more."""


_line: tuple[Queue[Progress], Event] | None = None
"""In a worker: where its progress goes, and what says that it is to stop."""


def run_in_processes(count: int) -> Runner:
    """A runner with `count` worker processes. A failing worker's exception is raised here; whoever stops waiting - by
    an interrupt, say - stops the workers too.
    """

    def run(jobs: Sequence[Job], on_progress: OnProgress | None) -> Iterable[tuple[ScenarioReport, ...]]:
        context = get_context("spawn")
        progress, is_over = cast("Queue[Progress]", context.Queue()), context.Event()
        with ProcessPoolExecutor(count, context, _begin, (progress, is_over)) as pool:
            running = [pool.submit(_work, job) for job in jobs]
            try:
                waiting: set[Future[tuple[ScenarioReport, ...]]] = set(running)
                while waiting:
                    waiting = wait(waiting, POLL_SECONDS, FIRST_COMPLETED).not_done
                    for told in _drained(progress):
                        if on_progress is not None:
                            on_progress(told)
            except BaseException:
                is_over.set()
                pool.shutdown(wait=False, cancel_futures=True)
                raise
            return [done.result() for done in running]

    return run


def _drained(progress: Queue[Progress]) -> Iterable[Progress]:
    while True:
        try:
            yield progress.get_nowait()
        except Empty:
            return


def _begin(progress: Queue[Progress], is_over: Event) -> None:
    global _line
    _line = progress, is_over
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal interrupts everybody; one of us says what follows


def _work(job: Job) -> tuple[ScenarioReport, ...]:
    return job.run(_tell)


def _tell(progress: Progress) -> None:
    assert _line is not None
    told, is_over = _line
    if is_over.is_set():
        raise Stopped
    told.put(progress)
