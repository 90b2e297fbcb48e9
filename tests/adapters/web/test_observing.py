"""Whoever is slow is bounded, told so, and never left without the ends of things."""

from __future__ import annotations

from collections.abc import Callable

import anyio
import pytest
from trio.testing import MockClock

from voicechart.adapters.web.coalescing import Coalescing
from voicechart.adapters.web.cursors import Cursor
from voicechart.adapters.web.observing import Observer, ObserverLimits, Owner
from voicechart.adapters.web.pacing import Pace, Pacer
from voicechart.adapters.web.window import KEPT_EPOCHS, ReplayWindow, WindowLimits
from voicechart.adapters.web.wire import WireEvent, compact

pytestmark = pytest.mark.anyio
START = Cursor(1, 0)


@pytest.fixture
def anyio_backend() -> object:
    return "trio", {"clock": MockClock(autojump_threshold=0)}


def delta(number: int, text: str, response_id: str = "r") -> WireEvent:
    value = {"type": "text.delta", "response_id": response_id, "payload": {"text": text}}
    return WireEvent(value, Cursor(1, number))


def other(number: int, kind: str = "tool.started") -> WireEvent:
    return WireEvent({"type": kind, "payload": {"name": "x"}}, Cursor(1, number))


def window(*events: WireEvent, limits: WindowLimits | None = None) -> ReplayWindow:
    kept = ReplayWindow(START, limits or WindowLimits())
    for event in events:
        keep(kept, event)
    return kept


def keep(kept: ReplayWindow, event: WireEvent) -> None:
    assert event.cursor is not None
    kept.note(event.cursor)
    kept.keep(event)


def types_of(events: tuple[WireEvent, ...]) -> list[str]:
    return [event.type for event in events]


# -- coalescing ----------------------------------------------------------------------------------------------------


def test_deltas_of_one_text_become_one_and_keep_the_place_of_the_last() -> None:
    joined = Coalescing((delta(1, "a"), delta(2, "x", "s"), delta(3, "b"))).events
    assert [event.value["payload"]["text"] for event in joined] == ["x", "ab"]
    assert [event.cursor for event in joined] == [Cursor(1, 2), Cursor(1, 3)]


def test_nothing_is_joined_across_an_event_that_counts() -> None:
    assert types_of(Coalescing((delta(1, "a"), other(2), delta(3, "b"))).events) == [
        "text.delta",
        "tool.started",
        "text.delta",
    ]


def test_of_a_hypothesis_the_newest_is_kept() -> None:
    def heard(number: int, text: str) -> WireEvent:
        payload = {"segment_id": "s", "revision": number, "text": text}
        return WireEvent({"type": "transcript.updated", "payload": payload}, Cursor(1, number))

    waiting = Coalescing((heard(1, "a long first guess"), heard(2, "b")))
    (kept,) = waiting.events
    assert kept.value["payload"]["text"] == "b"
    assert waiting.size_bytes == kept.size_bytes


# -- the window ----------------------------------------------------------------------------------------------------


def test_the_window_keeps_so_many_events_and_a_cursor_before_them_is_unknown() -> None:
    kept = window(*(other(number) for number in range(1, 5)), limits=WindowLimits(max_events=3))
    assert kept.place_after(Cursor(1, 0)) is None
    assert kept.place_after(Cursor(1, 1)) == 1
    assert kept.place_after(Cursor(1, 4)) == 4
    assert kept.place_after(Cursor(1, 5)) is None
    assert kept.place_after(Cursor(2, 0)) is None


def test_the_window_keeps_so_many_bytes_and_the_newest_event_in_any_case() -> None:
    big = delta(1, "x" * 2_000)
    kept = window(big, limits=WindowLimits(max_bytes=1_024))
    assert kept.kept == (big,)
    keep(kept, other(2))
    assert types_of(kept.kept) == ["tool.started"]


def test_a_cursor_that_names_an_event_nobody_may_see_is_known() -> None:
    kept = window(other(1))
    kept.note(Cursor(1, 2))
    keep(kept, other(3))
    assert kept.place_after(Cursor(1, 2)) == 1
    kept.note(Cursor(1, 4))
    assert kept.place_after(Cursor(1, 4)) == 2


def test_a_cursor_of_the_former_epoch_goes_on_in_the_next() -> None:
    kept = window(other(1))
    keep(kept, WireEvent({"type": "session.ready", "payload": {}}, Cursor(2, 1)))
    assert kept.place_after(Cursor(1, 1)) == 1
    assert kept.place_after(Cursor(1, 2)) is None


def test_only_so_many_epochs_are_remembered() -> None:
    kept = ReplayWindow(START, WindowLimits())
    for epoch in range(2, KEPT_EPOCHS + 3):
        kept.note(Cursor(epoch, 1))
    assert kept.place_after(Cursor(2, 1)) is None
    assert kept.place_after(Cursor(KEPT_EPOCHS, 1)) == 0


@pytest.mark.parametrize("make", [lambda: WindowLimits(max_events=0), lambda: WindowLimits(max_bytes=1_023)])
def test_a_window_without_room_is_refused(make: Callable[[], object]) -> None:
    with pytest.raises(ValueError, match="outside"):
        make()


@pytest.mark.parametrize("make", [lambda: ObserverLimits(max_events=0), lambda: ObserverLimits(max_bytes=1_023)])
def test_a_buffer_without_room_is_refused(make: Callable[[], object]) -> None:
    with pytest.raises(ValueError, match="outside"):
        make()


# -- observers -----------------------------------------------------------------------------------------------------


async def test_what_waits_is_taken_up_to_the_limit_and_not_beyond() -> None:
    limits = ObserverLimits(max_events=3)
    kept = window(*(other(number) for number in range(1, 4)))
    keeping_up, lagging = Observer("k", kept, limits, 0), Observer("k", kept, limits, 0)
    assert len((await keeping_up.take(0)).events) == 3
    keep(kept, other(4))
    lagging.wake()
    batch = await lagging.take(0)
    assert (types_of(batch.events), batch.is_last, lagging.lagged) == (["resync_required"], True, True)
    assert (await keeping_up.take(0)).events == kept.kept[3:]


async def test_whoever_fell_out_of_the_window_is_told_of_every_end() -> None:
    kept = window(other(1), other(2, "run.terminal"), limits=WindowLimits(max_events=2))
    observer = Observer("k", kept, ObserverLimits(), 0)
    for number in range(3, 6):
        keep(kept, other(number))
    keep(kept, other(6, "session.closed"))
    batch = await observer.take(0)
    assert types_of(batch.events) == ["run.terminal", "session.closed", "resync_required"]
    assert [event.id_text for event in batch.events] == [None, None, "resync"]
    assert (await observer.take(0)).is_last


async def test_an_observer_that_is_not_woken_waits_and_then_looks_all_the_same() -> None:
    kept = window()
    observer = Observer("k", kept, ObserverLimits(), 0)
    assert (await observer.take(1)).events == ()
    keep(kept, other(1))
    before = anyio.current_time()
    assert len((await observer.take(5)).events) == 1
    assert anyio.current_time() - before == 5


async def test_the_end_comes_behind_what_was_not_read_yet() -> None:
    kept = window(other(1))
    observer = Observer("k", kept, ObserverLimits(), 0, (other(0, "snapshot"),))
    observer.end()
    batch = await observer.take(60)
    assert (types_of(batch.events), batch.is_last) == (["snapshot", "tool.started"], True)


async def test_an_owner_is_woken_at_once_and_its_buffer_is_bounded() -> None:
    owner = Owner("k", ObserverLimits(max_events=2))
    async with anyio.create_task_group() as tasks:

        async def speak() -> None:
            await anyio.sleep(1)
            owner.offer(other(1))

        tasks.start_soon(speak)
        assert len((await owner.take(60)).events) == 1
        assert anyio.current_time() < 60
    owner.offer(other(2, "run.terminal"))
    owner.offer(other(3))
    assert not owner.lagged
    owner.offer(other(4))
    owner.offer(other(5))
    batch = await owner.take(0)
    assert (types_of(batch.events), batch.is_last) == (["run.terminal", "resync_required"], True)


async def test_observers_are_woken_together_at_most_once_in_an_interval() -> None:
    kept = window()
    observers = tuple(Observer("k", kept, ObserverLimits(), 0) for _ in range(5))

    class Crowd:
        watchers = observers

    crowd, pacer = Crowd(), Pacer(Pace(interval_ms=100))
    reads: list[float] = []
    began = anyio.current_time()

    async def read(observer: Observer) -> None:
        while True:
            if (await observer.take(1_000)).events:
                reads.append(anyio.current_time())

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(pacer.run)
        for observer in observers:
            await observer.take(0)
            tasks.start_soon(read, observer)
        for number in range(1, 31):
            keep(kept, other(number))
            pacer.mark(crowd)
            await anyio.sleep(0.01)
        await anyio.sleep(0.2)
        tasks.cancel_scope.cancel()
    assert {round(at - began, 1) for at in reads} == {0.1, 0.2, 0.3}
    assert len(reads) == 3 * len(observers)


def test_text_that_is_no_proper_unicode_does_not_break_the_wire() -> None:
    assert compact({"text": "a\ud800b"}).decode() == '{"text":"a?b"}'
