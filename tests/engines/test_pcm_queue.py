"""The awaiting queue: deadlines, order, cancellation and closing, on a virtual clock where time matters."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import anyio
import anyio.lowlevel
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from trio.testing import MockClock

from voicechart.audio import (
    SPEECH_FORMAT,
    AudioFormat,
    AudioFormatError,
    AudioFrame,
    FrameTooLarge,
    QueueClosed,
    QueueFull,
)
from voicechart.engines.pcm_queue import PcmQueue


def frame_of(samples: int, start_sample: int = 0) -> AudioFrame:
    return AudioFrame(bytes(2 * samples), SPEECH_FORMAT, start_sample)


def queue(max_bytes: int = 640, max_ms: int = 20) -> PcmQueue[int]:
    return PcmQueue(SPEECH_FORMAT, max_bytes=max_bytes, max_ms=max_ms)


on_virtual_time = pytest.mark.parametrize("anyio_backend", [("trio", {"clock": MockClock(autojump_threshold=0)})])
"""The clock jumps to the next deadline when nothing else can happen."""


async def settle() -> None:
    """Let every other task run until it waits."""
    await anyio.wait_all_tasks_blocked()


@pytest.mark.anyio
async def test_frames_come_out_in_order_with_their_tags() -> None:
    pcm = queue()
    await pcm.put(frame_of(10), 1, timeout_s=1)
    pcm.put_nowait(frame_of(20, 10), 2)
    first, second = await pcm.get(), pcm.get_nowait()
    assert (first.frame.samples, first.tag) == (10, 1)
    assert second is not None
    assert (second.frame.start_sample, second.tag) == (10, 2)
    assert pcm.get_nowait() is None


@pytest.mark.anyio
async def test_untagged_frames_need_no_tag() -> None:
    pcm: PcmQueue[None] = PcmQueue(SPEECH_FORMAT, max_bytes=640, max_ms=20)
    await pcm.put(frame_of(1), timeout_s=0)
    pcm.put_nowait(frame_of(1, 1))
    assert (await pcm.get()).tag is None


@pytest.mark.anyio
async def test_both_bounds_and_the_peaks_are_told() -> None:
    pcm = queue(max_bytes=1_000, max_ms=30)
    await pcm.put(frame_of(320), 0, timeout_s=0)
    assert (pcm.queued_samples, pcm.queued_bytes, pcm.queued_ms) == (320, 640, 20.0)
    assert (pcm.max_bytes, pcm.max_ms, pcm.format) == (1_000, 30, SPEECH_FORMAT)
    assert pcm.clear() == 320
    assert (pcm.peak_bytes, pcm.peak_ms, pcm.queued_ms) == (640, 20.0, 0.0)


@pytest.mark.parametrize(("max_bytes", "max_ms"), [(640, 1_000), (1_000_000, 20)])
@pytest.mark.anyio
async def test_without_time_to_wait_each_bound_refuses_at_its_edge(max_bytes: int, max_ms: int) -> None:
    pcm = queue(max_bytes, max_ms)
    await pcm.put(frame_of(320), 0, timeout_s=0)
    for refused in (
        lambda: pcm.put(frame_of(1, 320), 0, timeout_s=0),
        lambda: pcm.put(frame_of(1, 320), 0, timeout_s=-1),
    ):
        with pytest.raises(QueueFull, match=r"20 of \d+ ms and 640 of \d+ bytes are queued"):
            await refused()
    with pytest.raises(QueueFull, match="no room now"):
        pcm.put_nowait(frame_of(1, 320), 0)
    assert pcm.queued_samples == 320


@pytest.mark.anyio
async def test_a_waiting_producer_goes_on_as_soon_as_there_is_room_enough() -> None:
    pcm = queue()
    pcm.put_nowait(frame_of(200), 0)
    pcm.put_nowait(frame_of(120, 200), 0)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(lambda: pcm.put(frame_of(150, 320), 0, timeout_s=10))
        await settle()
        await pcm.get(max_samples=149)
        await settle()
        assert pcm.queued_samples == 171
        await pcm.get(max_samples=1)
        await settle()
        assert pcm.queued_samples == 320


async def _discard(pcm: PcmQueue[int]) -> None:
    pcm.discard(lambda epoch: epoch < 1)


async def _clear(pcm: PcmQueue[int]) -> None:
    pcm.clear()


async def _get(pcm: PcmQueue[int]) -> None:
    await pcm.get()


@pytest.mark.parametrize("make_room", [_discard, _clear, _get])
@pytest.mark.anyio
async def test_every_way_to_make_room_wakes_a_producer(make_room: Callable[[PcmQueue[int]], Awaitable[None]]) -> None:
    pcm = queue()
    pcm.put_nowait(frame_of(320), 0)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(lambda: pcm.put(frame_of(5, 320), 1, timeout_s=10))
        await settle()
        await make_room(pcm)
        await settle()
        assert pcm.queued_samples == 5


@pytest.mark.anyio
async def test_waiting_producers_keep_their_order_and_are_not_overtaken() -> None:
    pcm = queue()
    pcm.put_nowait(frame_of(320), 0)
    async with anyio.create_task_group() as tasks:
        for tag, samples in ((1, 200), (2, 10), (3, 110)):
            tasks.start_soon(lambda tag=tag, samples=samples: pcm.put(frame_of(samples), tag, timeout_s=10))
            await settle()
        await pcm.get(max_samples=100)
        with pytest.raises(QueueFull):
            pcm.put_nowait(frame_of(10), 4)
        await settle()
        assert pcm.queued_samples == 220
        pcm.clear()
        await settle()
        assert [(await pcm.get()).tag for _ in range(3)] == [1, 2, 3]


@on_virtual_time
@pytest.mark.anyio
async def test_a_producer_gives_up_at_its_deadline_and_not_before() -> None:
    pcm = queue()
    pcm.put_nowait(frame_of(320), 0)
    begun = anyio.current_time()
    with pytest.raises(QueueFull, match=r"within 0\.5 s"):
        await pcm.put(frame_of(1, 320), 0, timeout_s=0.5)
    assert anyio.current_time() - begun == pytest.approx(0.5)
    assert pcm.queued_samples == 320


@on_virtual_time
@pytest.mark.anyio
async def test_the_time_behind_another_producer_counts() -> None:
    pcm = queue()
    pcm.put_nowait(frame_of(320), 0)
    begun = anyio.current_time()

    async def patient() -> None:
        with pytest.raises(QueueFull):
            await pcm.put(frame_of(320), 1, timeout_s=5)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(patient)
        await settle()
        with pytest.raises(QueueFull):
            await pcm.put(frame_of(1), 2, timeout_s=1)
        assert anyio.current_time() - begun == pytest.approx(1)
    assert anyio.current_time() - begun == pytest.approx(5)


@on_virtual_time
@pytest.mark.anyio
async def test_small_rooms_do_not_prolong_the_deadline() -> None:
    pcm = queue()
    pcm.put_nowait(frame_of(320), 0)
    begun = anyio.current_time()

    async def trickle() -> None:
        for _ in range(30):
            await anyio.sleep(0.1)
            await pcm.get(max_samples=1)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(trickle)
        with pytest.raises(QueueFull):
            await pcm.put(frame_of(300, 320), 0, timeout_s=1.05)
        assert anyio.current_time() - begun == pytest.approx(1.05)


@pytest.mark.anyio
async def test_a_cancelled_producer_has_queued_nothing_and_blocks_nobody() -> None:
    pcm = queue()
    pcm.put_nowait(frame_of(320), 0)
    async with anyio.create_task_group() as tasks:
        scope = anyio.CancelScope()

        async def cancelled() -> None:
            with scope:
                await pcm.put(frame_of(300), 1, timeout_s=10)

        tasks.start_soon(cancelled)
        await settle()
        tasks.start_soon(lambda: pcm.put(frame_of(7), 2, timeout_s=10))
        await settle()
        scope.cancel()
        await pcm.get()
        await settle()
        assert pcm.queued_samples == 7


@pytest.mark.anyio
async def test_a_cancelled_consumer_has_taken_nothing() -> None:
    pcm = queue()
    with anyio.move_on_after(0) as scope:
        await pcm.get()
    assert scope.cancelled_caught
    pcm.put_nowait(frame_of(3), 0)
    with anyio.CancelScope() as scope:
        scope.cancel()
        await pcm.get()
    assert (await pcm.get()).frame.samples == 3


@pytest.mark.anyio
async def test_waiting_consumers_keep_their_order() -> None:
    pcm, got = queue(), list[tuple[str, int]]()

    async def consume(name: str) -> None:
        got.append((name, (await pcm.get()).tag))

    async with anyio.create_task_group() as tasks:
        for name in ("first", "second"):
            tasks.start_soon(consume, name)
            await settle()
        for tag in (1, 2):
            pcm.put_nowait(frame_of(1), tag)
        await settle()
    assert got == [("first", 1), ("second", 2)]


@pytest.mark.anyio
async def test_closing_refuses_producers_and_lets_consumers_finish() -> None:
    pcm = queue()
    pcm.put_nowait(frame_of(320), 0)
    refused = 0

    async def produce() -> None:
        nonlocal refused
        with pytest.raises(QueueClosed, match="not queued"):
            await pcm.put(frame_of(1), 0, timeout_s=10)
        refused += 1

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(produce)
        tasks.start_soon(produce)
        await settle()
        pcm.close()
    assert refused == 2
    assert pcm.closed
    with pytest.raises(QueueClosed):
        pcm.put_nowait(frame_of(0), 0)
    assert (await pcm.get()).frame.samples == 320
    with pytest.raises(QueueClosed, match="closed and empty"):
        await pcm.get()
    with pytest.raises(QueueClosed):
        pcm.get_nowait()
    pcm.close()


@pytest.mark.anyio
async def test_closing_ends_every_waiting_consumer() -> None:
    pcm = queue()
    ended = 0

    async def consume() -> None:
        nonlocal ended
        with pytest.raises(QueueClosed):
            await pcm.get()
        ended += 1

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(consume)
        tasks.start_soon(consume)
        await settle()
        pcm.close()
    assert ended == 2


@pytest.mark.anyio
async def test_a_frame_that_never_fits_is_refused_at_once() -> None:
    pcm = queue()
    with pytest.raises(FrameTooLarge):
        await pcm.put(frame_of(321), 0, timeout_s=10)
    with pytest.raises(AudioFormatError):
        await pcm.put(AudioFrame(bytes(4), AudioFormat(16_000, 2)), 0, timeout_s=10)


@pytest.mark.anyio
async def test_an_empty_frame_does_not_wake_a_consumer_with_nothing() -> None:
    pcm = queue()
    async with anyio.create_task_group() as tasks:

        async def consume() -> None:
            assert (await pcm.get()).frame.samples == 1

        tasks.start_soon(consume)
        await settle()
        pcm.put_nowait(frame_of(0), 0)
        await settle()
        pcm.put_nowait(frame_of(1), 0)


@pytest.mark.anyio
async def test_a_producer_and_a_consumer_that_never_wait_still_let_others_run() -> None:
    pcm, others = queue(), 0

    async def bystander() -> None:
        nonlocal others
        while True:
            await anyio.lowlevel.checkpoint()
            others += 1

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(bystander)
        for _ in range(100):
            await pcm.put(frame_of(1), 0, timeout_s=1)
            await pcm.get()
        tasks.cancel_scope.cancel()
    assert others >= 100


def test_a_queue_can_be_built_before_any_loop_runs() -> None:
    pcm = queue()

    async def use() -> int:
        await pcm.put(frame_of(4), 9, timeout_s=0)
        return (await pcm.get()).tag

    assert anyio.run(use) == 9


@settings(deadline=None, max_examples=50)
@given(
    st.lists(st.integers(0, 40), min_size=1, max_size=20),
    st.lists(st.one_of(st.none(), st.integers(1, 50)), min_size=1, max_size=20),
)
def test_any_interleaving_keeps_the_bounds_and_the_order(sizes: list[int], takes: list[int | None]) -> None:
    pcm: PcmQueue[int] = PcmQueue(SPEECH_FORMAT, max_bytes=120, max_ms=3)
    received = bytearray()
    whole = bytes(i % 251 for i in range(2 * sum(sizes)))

    async def produce() -> None:
        position = 0
        for tag, size in enumerate(sizes):
            frame = AudioFrame(whole[2 * position : 2 * (position + size)], SPEECH_FORMAT, position)
            await pcm.put(frame, tag, timeout_s=30)
            assert pcm.queued_bytes <= 96
            position += size
        pcm.close()

    async def consume() -> None:
        turn = 0
        try:
            while True:
                queued = await pcm.get(takes[turn % len(takes)])
                assert queued.frame.start_sample == len(received) // 2
                received.extend(queued.frame.data)
                turn += 1
        except QueueClosed:
            return

    async def both() -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(produce)
            tasks.start_soon(consume)

    anyio.run(both)
    assert received == whole
    assert pcm.peak_bytes <= 96
