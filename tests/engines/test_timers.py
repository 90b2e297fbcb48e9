"""Timers on a virtual clock: each fires once, or is cancelled."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import anyio
import pytest
from trio.testing import MockClock

from voicechart.engines.clock import LoopClock
from voicechart.engines.timers import Timers
from voicechart.statecharts.facts import Fact, TimerFired

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> object:
    return "trio", {"clock": MockClock(autojump_threshold=0)}


@asynccontextmanager
async def running(fired: list[Fact]) -> AsyncGenerator[Timers, None]:
    async with anyio.create_task_group() as tasks:
        yield Timers(LoopClock(), tasks, fired.append)
        tasks.cancel_scope.cancel()


async def test_a_timer_fires_once_at_its_time() -> None:
    fired: list[Fact] = []
    async with running(fired) as timers:
        began_ns = LoopClock().now_ns()
        timers.start("t1", 250)
        await anyio.sleep(0.249)
        assert not fired
        assert len(timers) == 1
        await anyio.sleep(10)
    assert [(fact.timer_id, (fact.at - began_ns) // 1_000_000) for fact in fired if isinstance(fact, TimerFired)] == [
        ("t1", 250)
    ]


async def test_a_cancelled_timer_never_fires() -> None:
    fired: list[Fact] = []
    async with running(fired) as timers:
        timers.start("t1", 100)
        timers.start("t2", 100)
        timers.cancel("t1")
        await anyio.sleep(1)
        assert len(timers) == 0
    assert [fact.timer_id for fact in fired if isinstance(fact, TimerFired)] == ["t2"]


async def test_a_timer_that_is_cancelled_before_its_task_began_never_fires() -> None:
    fired: list[Fact] = []
    async with running(fired) as timers:
        timers.start("t1", 0)
        timers.cancel("t1")
        await anyio.sleep(1)
    assert not fired


async def test_cancelling_what_has_fired_or_never_was_is_nothing() -> None:
    fired: list[Fact] = []
    async with running(fired) as timers:
        timers.start("t1", 1)
        await anyio.sleep(1)
        timers.cancel("t1")
        timers.cancel("unknown")
    assert len(fired) == 1
