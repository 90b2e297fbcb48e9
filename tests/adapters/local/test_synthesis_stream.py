"""Bounds, failures and cancels of a stream over an engine that the test drives."""

from __future__ import annotations

import threading
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from dataclasses import replace

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from voicechart.adapters.local import SynthesisBounds
from voicechart.adapters.local.synthesis_stream import ThreadedSynthesisStream, even_pieces, synthesis_error
from voicechart.adapters.local.worker import Worker
from voicechart.audio.formats import AudioFormat
from voicechart.engines.ports import SpeechUnit
from voicechart.engines.reports import (
    PortError,
    SynthesisEnded,
    SynthesisErrored,
    SynthesisReport,
    SynthesisStopped,
    Synthesized,
    Word,
)

pytestmark = pytest.mark.anyio

FORMAT = AudioFormat(8_000)
MS = bytes(2 * 8)
SMALL = SynthesisBounds(buffer_ms=100, frame_ms=10)


class DrivenEngine:
    """Speaks 10 ms a character, in pieces of 10 ms; counts them; "fail" and "crash" do so."""

    format = FORMAT
    contended = False

    def __init__(self) -> None:
        self.delivered = 0
        self.refused = threading.Event()

    def check_voice(self, voice: str) -> None:
        return

    def speak(self, text: str, voice: str, deliver: Callable[[bytes], bool]) -> tuple[Word, ...]:
        if text == "fail":
            raise synthesis_error("broken", "as the test wants")
        if text == "crash":
            raise KeyError(text)
        for _ in text:
            if not deliver(MS * 10):
                self.refused.set()
                break
            self.delivered += 1
        return (Word(text, 0, 80),)


@pytest.fixture
async def worker() -> AsyncGenerator[Worker, None]:
    worker = Worker("test")
    yield worker
    assert await worker.aclose()


def opened(worker: Worker, engine: DrivenEngine, bounds: SynthesisBounds | None = None) -> ThreadedSynthesisStream:
    return ThreadedSynthesisStream(engine, "voice", worker, bounds or SMALL)


async def read(reports: AsyncIterator[SynthesisReport]) -> list[SynthesisReport]:
    with anyio.fail_after(10):
        return [report async for report in reports]


async def test_nobody_reading_stops_the_engine_at_exactly_the_bound(worker: Worker) -> None:
    engine = DrivenEngine()
    stream = opened(worker, engine, replace(SMALL, read_deadline_s=0.0))
    await stream.write(SpeechUnit(0, "x" * 50))
    reports = await read(stream.reports())
    assert sum(report.frame.duration_ms for report in reports if isinstance(report, Synthesized)) == 100
    assert isinstance(reports[-1], SynthesisErrored)
    assert (reports[-1].error.code, reports[-1].error.partial_output) == ("reader_stalled", True)
    assert engine.delivered == 10


async def test_a_cancel_wakes_an_engine_that_waits_for_the_reader(worker: Worker) -> None:
    engine = DrivenEngine()
    stream = opened(worker, engine)
    await stream.write(SpeechUnit(0, "x" * 50))
    reports = stream.reports()
    assert isinstance(await anext(reports), Synthesized)
    stream.cancel("barge-in")
    await stream.aclose()
    assert engine.refused.is_set()
    assert await read(reports) == [SynthesisStopped()]


async def test_a_failing_engine_ends_the_stream_with_its_error(worker: Worker) -> None:
    stream = opened(worker, DrivenEngine())
    await stream.write(SpeechUnit(0, "fail"))
    reports = await read(stream.reports())
    assert isinstance(reports[-1], SynthesisErrored)
    assert (reports[-1].error.code, reports[-1].error.partial_output) == ("broken", False)
    with pytest.raises(PortError, match="stream_ended"):
        await stream.write(SpeechUnit(2, "more"))


async def test_a_crashing_engine_ends_the_stream_and_is_logged(
    worker: Worker, caplog: pytest.LogCaptureFixture
) -> None:
    stream = opened(worker, DrivenEngine())
    await stream.write(SpeechUnit(0, "crash"))
    (report,) = await read(stream.reports())
    assert isinstance(report, SynthesisErrored)
    assert report.error.code == "engine_failed"
    assert "the speech engine failed" in caplog.text


async def test_units_wait_for_room_and_are_refused_at_the_deadline(worker: Worker) -> None:
    release = threading.Event()
    blocked = worker.submit(lambda: release.wait(10))
    stream = opened(worker, DrivenEngine(), replace(SMALL, waiting_ms=660, write_deadline_s=0.0))
    await stream.write(SpeechUnit(0, "x" * 4))
    await stream.write(SpeechUnit(1, "x" * 6))
    with pytest.raises(PortError, match="backpressure"):
        await stream.write(SpeechUnit(2, "x"))
    release.set()
    await stream.finish_input()
    assert isinstance((await read(stream.reports()))[-1], SynthesisEnded)
    assert blocked.result(0)


async def test_one_unit_of_any_length_may_wait(worker: Worker) -> None:
    stream = opened(worker, DrivenEngine(), replace(SMALL, waiting_ms=1, write_deadline_s=0.0))
    await stream.write(SpeechUnit(0, "x" * 500))
    stream.cancel("enough")
    await stream.aclose()


async def test_a_unit_may_have_exactly_the_longest_length(worker: Worker) -> None:
    stream = opened(worker, DrivenEngine(), replace(SMALL, max_unit_chars=5))
    await stream.write(SpeechUnit(0, "x" * 5))
    with pytest.raises(PortError, match="unit_too_long"):
        await stream.write(SpeechUnit(1, "x" * 6))
    await stream.finish_input()
    assert (await read(stream.reports()))[-1] == SynthesisEnded(400)


async def test_a_cancel_lets_a_writer_go_that_waits_for_room(worker: Worker) -> None:
    release = threading.Event()
    worker.submit(lambda: release.wait(10))
    stream = opened(worker, DrivenEngine(), replace(SMALL, waiting_ms=1))
    await stream.write(SpeechUnit(0, "x"))

    async def write_more() -> None:
        with pytest.raises(PortError, match="stream_ended"):
            await stream.write(SpeechUnit(1, "x"))

    with anyio.fail_after(10):
        async with anyio.create_task_group() as group:
            group.start_soon(write_more)
            await anyio.lowlevel.checkpoint()
            stream.cancel("barge-in")
    release.set()
    await stream.aclose()


@given(st.integers(0, 5_000), st.integers(1, 60))
def test_pieces_are_whole_even_and_not_longer_than_a_frame(samples: int, frame_ms: int) -> None:
    pcm = bytes(range(256)) * (samples * 2 // 256 + 1)
    pieces = even_pieces(pcm[: samples * 2], FORMAT, frame_ms)
    assert b"".join(pieces) == pcm[: samples * 2]
    lengths = [FORMAT.samples_in(len(piece)) for piece in pieces]
    assert all(0 < length <= FORMAT.samples_for_ms(frame_ms) for length in lengths)
    assert not lengths or max(lengths) - min(lengths) <= 1
