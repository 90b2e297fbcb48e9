"""Exploring in as many processes as there are cores: who walks what, and how far everybody is."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from multiprocessing import get_context
from queue import Empty, Queue
from typing import cast

from ...statecharts.explorer import Job, Progress, Runner, ScenarioReport
from ...statecharts.explorer.search import OnProgress

POLL_SECONDS = 0.25
"""How often progress is looked at."""

_told: Queue[Progress] | None = None
"""In a worker: where its progress goes."""


def run_in_processes(count: int) -> Runner:
    """A runner with `count` worker processes. A failing worker's exception is raised here."""

    def run(jobs: Sequence[Job], on_progress: OnProgress | None) -> Iterable[tuple[ScenarioReport, ...]]:
        context = get_context("spawn")
        progress = cast("Queue[Progress]", context.Queue())
        with ProcessPoolExecutor(count, context, _begin, (progress,)) as pool:
            running = [pool.submit(_work, job) for job in jobs]
            try:
                waiting: set[Future[tuple[ScenarioReport, ...]]] = set(running)
                while waiting:
                    waiting = wait(waiting, POLL_SECONDS, FIRST_COMPLETED).not_done
                    for told in _drained(progress):
                        if on_progress is not None:
                            on_progress(told)
            except BaseException:
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


def _begin(progress: Queue[Progress]) -> None:
    global _told
    _told = progress


def _work(job: Job) -> tuple[ScenarioReport, ...]:
    return job.run(None if _told is None else _told.put)
