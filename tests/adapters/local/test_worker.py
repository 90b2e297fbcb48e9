"""One thread, one job after another, and nothing left at the end."""

from __future__ import annotations

import threading

import anyio
import pytest

from voicechart.adapters.local.worker import Worker, WorkerClosedError, result_of

pytestmark = pytest.mark.anyio


def threads(name: str) -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name.startswith(f"voicechart-{name}")]


async def test_a_job_returns_its_result_and_raises_its_error() -> None:
    worker = Worker("result")
    assert await worker.run(lambda: 42, deadline_s=10) == 42
    with pytest.raises(ZeroDivisionError):
        await worker.run(lambda: 1 // 0, deadline_s=10)
    await worker.aclose()


async def test_closing_ends_the_thread_and_refuses_more() -> None:
    worker = Worker("closing")
    await worker.run(lambda: None, deadline_s=10)
    assert threads("closing") != []
    assert await worker.aclose()
    assert await worker.aclose()
    assert threads("closing") == []
    with pytest.raises(WorkerClosedError):
        worker.submit(lambda: None)


async def test_closing_drops_the_jobs_that_have_not_begun() -> None:
    worker = Worker("dropping")
    release = threading.Event()
    running = worker.submit(lambda: release.wait(10))
    dropped = worker.submit(lambda: True)
    async with anyio.create_task_group() as group:
        group.start_soon(worker.aclose)
        with pytest.raises(WorkerClosedError):
            await result_of(dropped, 10)
        release.set()
    assert running.result(0)


async def test_closing_gives_up_on_a_job_that_outlives_the_deadline() -> None:
    worker = Worker("late")
    release = threading.Event()
    worker.submit(lambda: release.wait(30))
    assert not await worker.aclose(deadline_s=0)
    release.set()
    assert await worker.aclose(deadline_s=10)


async def test_a_result_that_is_late_is_a_timeout() -> None:
    worker = Worker("timeout")
    release = threading.Event()
    with pytest.raises(TimeoutError):
        await worker.run(lambda: release.wait(30), deadline_s=0.01)
    release.set()
    await worker.aclose()


async def test_only_the_jobs_of_others_count_as_waiting() -> None:
    worker = Worker("waiting")
    release = threading.Event()
    begun = threading.Event()

    def block() -> None:
        begun.set()
        release.wait(30)

    first = worker.submit(block, owner="me")
    assert begun.wait(10)
    mine = worker.submit(lambda: None, owner="me")
    assert not worker.others_wait("me")
    worker.submit(lambda: None, owner="you").cancel()
    assert not worker.others_wait("me")
    yours = worker.submit(lambda: None, owner="you")
    assert worker.others_wait("me")
    release.set()
    for job in (first, mine, yours):
        await result_of(job, 10)
    assert not worker.others_wait("me")
    await worker.aclose()
