"""Reports from a thread to the event loop: bounded, ordered, one terminal report."""

from __future__ import annotations

import threading

import anyio.to_thread
import pytest

from voicechart.adapters.local.bridge import ReportBridge

pytestmark = pytest.mark.anyio


async def read(bridge: ReportBridge[str]) -> list[str]:
    with anyio.fail_after(10):
        return [report async for report in bridge.reports()]


async def test_reports_arrive_in_order_and_the_terminal_one_last() -> None:
    bridge = ReportBridge[str](capacity=10)
    bridge.put("a", 1)
    bridge.put("b", 1)
    bridge.end("end")
    assert not bridge.put("late", 1)
    assert await read(bridge) == ["a", "b", "end"]


async def test_the_first_end_counts() -> None:
    bridge = ReportBridge[str](capacity=1)
    bridge.end("first")
    bridge.end("second")
    assert await read(bridge) == ["first"]


async def test_a_stop_drops_what_waits_and_replaces_an_unread_end() -> None:
    bridge = ReportBridge[str](capacity=10)
    bridge.put("a", 1)
    bridge.end("end")
    bridge.stop("stopped")
    assert bridge.used == 0
    assert await read(bridge) == ["stopped"]


async def test_a_stop_after_the_end_was_read_changes_nothing() -> None:
    bridge = ReportBridge[str](capacity=10)
    bridge.end("end")
    assert await read(bridge) == ["end"]
    bridge.stop("stopped")
    assert not bridge.stopped


async def test_what_fills_the_capacity_exactly_does_not_wait() -> None:
    bridge = ReportBridge[str](capacity=2, put_deadline_s=0)
    assert bridge.put("a", 1)
    assert bridge.put("b", 1)
    with pytest.raises(TimeoutError):
        bridge.put("c", 1)
    assert bridge.used == 2


async def test_one_report_larger_than_the_capacity_passes_alone() -> None:
    bridge = ReportBridge[str](capacity=2, put_deadline_s=0)
    assert bridge.put("large", 100)


async def test_reading_makes_room_for_a_thread_that_waits() -> None:
    bridge = ReportBridge[str](capacity=1, put_deadline_s=10)

    def produce() -> None:
        for report in "abc":
            bridge.put(report, 1)
        bridge.end("end")

    async with anyio.create_task_group() as group:
        group.start_soon(anyio.to_thread.run_sync, produce)
        assert await read(bridge) == ["a", "b", "c", "end"]


async def test_a_stop_wakes_a_thread_that_waits_for_room() -> None:
    bridge = ReportBridge[str](capacity=1, put_deadline_s=60)
    bridge.put("a", 1)
    taken: list[bool] = []
    producer = threading.Thread(target=lambda: taken.append(bridge.put("b", 1)))
    producer.start()
    bridge.stop("stopped")
    with anyio.fail_after(10):
        await anyio.to_thread.run_sync(producer.join)
    assert taken == [False]


async def test_the_bound_gives_way_when_somebody_else_is_held_up() -> None:
    bridge = ReportBridge[str](capacity=1, may_overflow=lambda: True, put_deadline_s=0)
    assert bridge.put("a", 1)
    assert bridge.put("b", 1)
    assert bridge.used == 2


async def test_a_newer_report_takes_the_place_of_one_that_it_replaces() -> None:
    bridge = ReportBridge[str](capacity=10)
    bridge.put("draft 1", 1)
    bridge.put("draft 2", 1, replaces=lambda older: older.startswith("draft"))
    bridge.put("final", 1, replaces=lambda older: older == "nothing")
    bridge.end("end")
    assert await read(bridge) == ["draft 2", "final", "end"]
