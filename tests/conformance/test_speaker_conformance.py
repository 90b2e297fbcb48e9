"""What every `Speaker` promises, run against each one: in this process, and over a real Unix socket.

Time is virtual (trio's mock clock) and real (asyncio, which production runs on). The device is the paced virtual
speaker; what it really rendered is in the log of rendered spans and in its WAV file.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import anyio
import pytest
import trio.testing
from anyio.abc import TaskStatus

from voicechart.adapters.board import (
    BoardAudio,
    ClientLimits,
    DeviceLost,
    InProcessSpeaker,
    QueueLimits,
    RenderedSpan,
    ServiceLimits,
    WavSpeaker,
    serve_audio,
)
from voicechart.audio.formats import AudioFormat, AudioFrame
from voicechart.audio.wav_reader import read_wav
from voicechart.engines.ports import OutputOpening, Speaker
from voicechart.engines.reports import (
    PortError,
    RenderingDrained,
    RenderingProgressed,
    RenderingStarted,
    RenderingStarved,
    RenderingStopped,
    SpeakerLost,
    SpeakerReport,
)

FORMAT = AudioFormat(8_000)
QUEUE_MS = 400
WRITE_DEADLINE_MS = 500
pytestmark = pytest.mark.anyio


@dataclass
class Rig:
    """A speaker, the device under it, and what that rendered."""

    speaker: Speaker
    device: WavSpeaker
    rendered: list[RenderedSpan]
    heard: Path
    reports: list[SpeakerReport] = field(default_factory=list[SpeakerReport])
    changed: anyio.Event = field(default_factory=anyio.Event)

    async def read(self, *, task_status: TaskStatus[None]) -> None:
        task_status.started()
        async for report in self.speaker.reports():
            self.reports.append(report)
            self.changed.set()
            self.changed = anyio.Event()

    async def until(
        self, kind: type[SpeakerReport], stream_id: int | None = None, count: int = 1
    ) -> list[SpeakerReport]:
        """The first `count` reports of this kind (and stream), waiting for them."""
        with anyio.fail_after(10):
            while len(found := self.of(kind, stream_id)) < count:
                await self.changed.wait()
        return found

    def of(self, kind: type[SpeakerReport], stream_id: int | None = None) -> list[SpeakerReport]:
        return [
            report
            for report in self.reports
            if isinstance(report, kind) and (stream_id is None or getattr(report, "stream_id", None) == stream_id)
        ]

    def samples_of(self, stream_id: int) -> int:
        """How many samples of a stream were rendered, which must be one gapless run from its first one."""
        end = 0
        for span in self.rendered:
            if span.stream_id == stream_id:
                assert span.start_sample == end
                end = span.end_sample
        return end


Making = Callable[[Path, WavSpeaker], AbstractAsyncContextManager[Rig]]
Act = Callable[[Speaker], Awaitable[None]]


class Running(Protocol):
    """A speaker on a device of this kind, for the time of a block."""

    def __call__(
        self, *, hardware_ms: int = 0, takes_back: bool = True, speed: float = 1.0, max_data_bytes: int = 1_000_000
    ) -> AbstractAsyncContextManager[Rig]: ...


@asynccontextmanager
async def in_process(folder: Path, device: WavSpeaker) -> AsyncGenerator[Rig, None]:
    rendered: list[RenderedSpan] = []
    async with InProcessSpeaker.running(
        device,
        limits=QueueLimits(max_ms=QUEUE_MS),
        write_deadline_ms=WRITE_DEADLINE_MS,
        log=rendered.append,
    ) as speaker:
        yield Rig(speaker, device, rendered, folder / "heard.wav")


@asynccontextmanager
async def over_a_socket(folder: Path, device: WavSpeaker) -> AsyncGenerator[Rig, None]:
    rendered: list[RenderedSpan] = []
    path = folder / "audio.sock"
    limits = ServiceLimits(queue=QueueLimits(max_ms=QUEUE_MS))

    async def serve(*, task_status: TaskStatus[None]) -> None:
        # A lost device also ends the service; what the speaker makes of it is tested here.
        with suppress(DeviceLost):
            await serve_audio(path, None, device, limits=limits, log_rendered=rendered.append, task_status=task_status)

    async with anyio.create_task_group() as group:
        await group.start(serve)
        async with BoardAudio.connect(path, limits=ClientLimits(write_deadline_ms=WRITE_DEADLINE_MS)) as board:
            yield Rig(board.speaker, device, rendered, folder / "heard.wav")
        group.cancel_scope.cancel()


@pytest.fixture(
    params=[
        pytest.param("asyncio", id="real-time"),
        pytest.param(("trio", {"clock": trio.testing.MockClock(autojump_threshold=0)}), id="virtual-time"),
    ]
)
def anyio_backend(request: pytest.FixtureRequest) -> object:
    return request.param


@pytest.fixture(params=[in_process, over_a_socket], ids=["in-process", "socket"])
def running(request: pytest.FixtureRequest, tmp_path: Path) -> Running:
    make: Making = request.param

    @asynccontextmanager
    async def run(
        *, hardware_ms: int = 0, takes_back: bool = True, speed: float = 1.0, max_data_bytes: int = 1_000_000
    ) -> AsyncGenerator[Rig, None]:
        device = WavSpeaker(
            tmp_path / "heard.wav",
            FORMAT,
            hardware_ms=hardware_ms,
            takes_back=takes_back,
            speed=speed,
            max_data_bytes=max_data_bytes,
        )
        async with make(tmp_path, device) as rig, anyio.create_task_group() as group:
            await group.start(rig.read)
            yield rig
            group.cancel_scope.cancel()

    return run


def pcm(ms: int, value: int = 1, start_ms: int = 0) -> AudioFrame:
    """A run of equal samples, at its place in the stream."""
    samples = FORMAT.samples_for_ms(ms)
    return AudioFrame(value.to_bytes(2, "little") * samples, FORMAT, FORMAT.samples_for_ms(start_ms))


def opening(stream_id: int, epoch: int = 1, *, prebuffer_ms: int = 20, held: bool = False) -> OutputOpening:
    return OutputOpening(stream_id, epoch, FORMAT, prebuffer_ms, held)


async def test_what_is_written_is_heard_exactly_and_drains(running: Running) -> None:
    async with running() as rig:
        await rig.speaker.open(opening(1))
        await rig.speaker.write(1, 1, pcm(150, 7))
        await rig.speaker.finish(1, 1_200)
        (drained,) = await rig.until(RenderingDrained)
    assert isinstance(drained, RenderingDrained)
    assert drained.position.accepted_samples == drained.position.played_samples == 1_200
    assert rig.samples_of(1) == 1_200
    assert read_wav(rig.heard).data == pcm(150, 7).data


async def test_started_comes_with_the_first_rendered_sample_and_not_before_the_prebuffer(running: Running) -> None:
    async with running() as rig:
        await rig.speaker.open(opening(1, prebuffer_ms=60))
        await rig.speaker.write(1, 1, pcm(59))
        await anyio.sleep(0.1)
        assert rig.samples_of(1) == 0
        assert rig.reports == []
        await rig.speaker.write(1, 1, pcm(1, start_ms=59))
        (started,) = await rig.until(RenderingStarted)
    assert isinstance(started, RenderingStarted)
    assert started.position.played_samples
    assert started.position.accepted_samples == 480


async def test_progress_comes_at_most_ten_times_a_second_and_never_beyond_what_was_accepted(running: Running) -> None:
    async with running() as rig:
        await rig.speaker.open(opening(1))
        await rig.speaker.write(1, 1, pcm(350))
        await rig.speaker.finish(1, 2_800)
        await rig.until(RenderingDrained)
    progress = rig.of(RenderingProgressed)
    # One for every 100 ms of the 350; a slow reader may get the newer of two.
    assert 1 <= len(progress) <= 3
    for report in progress:
        assert isinstance(report, RenderingProgressed)
        position = report.position
        assert position.played_samples is not None
        assert position.played_samples <= position.submitted_samples <= position.accepted_samples <= 2_800


async def test_an_invalidated_stream_stops_with_a_receipt_and_nothing_of_it_is_heard_later(running: Running) -> None:
    async with running() as rig:
        await rig.speaker.open(opening(1))
        await rig.speaker.write(1, 1, pcm(300))
        await rig.until(RenderingStarted)
        rig.speaker.invalidate_before(2, "barge-in")
        (stopped,) = await rig.until(RenderingStopped)
        heard = rig.samples_of(1)
        await anyio.sleep(0.05)
        assert rig.samples_of(1) == heard
    assert isinstance(stopped, RenderingStopped)
    assert stopped.position.played_samples == heard
    assert stopped.dropped_samples == stopped.position.accepted_samples - heard > 0
    assert rig.of(RenderingDrained) == []


async def test_a_late_frame_of_an_old_epoch_is_dropped_while_the_new_reply_plays_whole(running: Running) -> None:
    async with running() as rig:
        await rig.speaker.open(opening(1, epoch=1))
        await rig.speaker.write(1, 1, pcm(100, 1))
        rig.speaker.invalidate_before(2, "barge-in")
        await rig.speaker.open(opening(2, epoch=2))
        await rig.speaker.write(2, 2, pcm(60, 2))
        await rig.speaker.write(1, 1, pcm(100, 1, start_ms=100))
        await rig.speaker.write(2, 2, pcm(60, 2, start_ms=60))
        await rig.speaker.finish(2, 960)
        await rig.until(RenderingDrained, 2)
    assert rig.samples_of(2) == 960
    epochs = [span.output_epoch for span in rig.rendered]
    assert epochs == sorted(epochs)


async def test_a_writer_that_waits_for_room_learns_of_the_invalidation(running: Running) -> None:
    async with running() as rig:
        await rig.speaker.open(opening(1, held=True))

        async def write() -> None:
            await rig.speaker.write(1, 1, pcm(2_000))
            written.set()

        written = anyio.Event()
        async with anyio.create_task_group() as group:
            group.start_soon(write)
            await anyio.sleep(0.05)
            assert not written.is_set()
            rig.speaker.invalidate_before(2, "barge-in")
            with anyio.fail_after(10):
                await written.wait()
        (stopped,) = await rig.until(RenderingStopped)
        assert isinstance(stopped, RenderingStopped)
        assert stopped.position.played_samples == 0


async def test_a_stream_of_an_invalidated_epoch_is_stopped_before_its_first_sample(running: Running) -> None:
    async with running() as rig:
        rig.speaker.invalidate_before(5, "barge-in")
        await rig.speaker.open(opening(1, epoch=4))
        await rig.speaker.write(1, 4, pcm(100))
        await rig.speaker.finish(1, 800)
        (stopped,) = await rig.until(RenderingStopped)
    assert isinstance(stopped, RenderingStopped)
    assert stopped.position.played_samples == 0
    assert rig.rendered == []


async def test_a_stop_before_anything_was_rendered_reports_nothing_played(running: Running) -> None:
    async with running() as rig:
        await rig.speaker.open(opening(1, prebuffer_ms=200))
        await rig.speaker.write(1, 1, pcm(40))
        rig.speaker.invalidate_before(2, "barge-in")
        (stopped,) = await rig.until(RenderingStopped)
    assert isinstance(stopped, RenderingStopped)
    assert stopped.position.played_samples == 0
    assert rig.rendered == []


async def test_a_queue_that_runs_dry_buffers_again_and_goes_on_by_itself(running: Running) -> None:
    async with running() as rig:
        await rig.speaker.open(opening(1))
        await rig.speaker.write(1, 1, pcm(40))
        await rig.until(RenderingStarved)
        await rig.speaker.write(1, 1, pcm(80, start_ms=40))
        await rig.until(RenderingStarted, count=2)
        await rig.speaker.finish(1, 960)
        await rig.until(RenderingDrained)
    kinds = [type(report) for report in rig.reports if not isinstance(report, RenderingProgressed)]
    assert kinds == [RenderingStarted, RenderingStarved, RenderingStarted, RenderingDrained]
    assert rig.samples_of(1) == 960


async def test_a_reply_shorter_than_its_prebuffer_plays_once_its_end_is_known(running: Running) -> None:
    async with running() as rig:
        await rig.speaker.open(opening(1, prebuffer_ms=200))
        await rig.speaker.write(1, 1, pcm(30))
        await rig.speaker.finish(1, 240)
        await rig.until(RenderingDrained)
    assert rig.samples_of(1) == 240


async def test_an_empty_reply_drains_at_once(running: Running) -> None:
    async with running() as rig:
        await rig.speaker.open(opening(1))
        await rig.speaker.finish(1, 0)
        await rig.until(RenderingDrained)
    assert rig.rendered == []


async def test_a_pause_is_silent_and_a_resume_goes_on_where_it_paused(running: Running) -> None:
    async with running() as rig:
        await rig.speaker.open(opening(1))
        await rig.speaker.write(1, 1, pcm(200))
        await rig.speaker.finish(1, 1_600)
        await rig.until(RenderingStarted)
        rig.speaker.pause(1)
        await anyio.sleep(0.05)
        paused_at = rig.samples_of(1)
        await anyio.sleep(0.1)
        assert rig.samples_of(1) == paused_at < 1_600
        rig.speaker.resume(1)
        await rig.until(RenderingDrained)
    assert rig.samples_of(1) == 1_600


async def test_a_held_stream_is_silent_until_it_is_released(running: Running) -> None:
    async with running() as rig:
        await rig.speaker.open(opening(1, held=True))
        await rig.speaker.write(1, 1, pcm(60))
        await rig.speaker.finish(1, 480)
        await anyio.sleep(0.1)
        assert rig.rendered == []
        rig.speaker.release(1)
        await rig.until(RenderingDrained)
    assert rig.samples_of(1) == 480


async def test_streams_are_heard_one_after_the_other_in_the_order_of_their_opening(running: Running) -> None:
    async with running() as rig:
        for stream_id in (1, 2):
            await rig.speaker.open(opening(stream_id))
            await rig.speaker.write(stream_id, 1, pcm(50, stream_id))
            await rig.speaker.finish(stream_id, 400)
        await rig.until(RenderingDrained, 2)
    assert read_wav(rig.heard).data == pcm(50, 1).data + pcm(50, 2).data


async def test_a_writer_faster_than_real_time_never_queues_beyond_the_cap(running: Running) -> None:
    async with running() as rig:
        await rig.speaker.open(opening(1))
        await rig.speaker.write(1, 1, pcm(900))
        await rig.speaker.finish(1, 7_200)
        await rig.until(RenderingDrained)
    cap = FORMAT.samples_for_ms(QUEUE_MS)
    for report in rig.reports:
        assert not isinstance(report, SpeakerLost)
        assert report.position.accepted_samples - (report.position.played_samples or 0) <= cap
    assert rig.samples_of(1) == 7_200


async def test_a_stalled_device_fails_the_write_at_its_deadline(running: Running) -> None:
    async with running() as rig:
        rig.device.stall()
        await rig.speaker.open(opening(1))
        with anyio.fail_after(10), pytest.raises(PortError, match="speaker_stalled"):
            await rig.speaker.write(1, 1, pcm(1_000))


@pytest.mark.slow
@pytest.mark.parametrize("held", [True, False], ids=["held", "paused"])
async def test_a_stream_that_was_asked_to_stand_still_is_waited_for(running: Running, held: bool) -> None:
    async with running() as rig:
        await rig.speaker.open(opening(1, held=held))
        if not held:
            rig.speaker.pause(1)
        async with anyio.create_task_group() as group:
            group.start_soon(rig.speaker.write, 1, 1, pcm(QUEUE_MS + 100))
            await anyio.sleep(2.5 * WRITE_DEADLINE_MS / 1_000)
            if held:
                rig.speaker.release(1)
            else:
                rig.speaker.resume(1)
        await rig.speaker.finish(1, FORMAT.samples_for_ms(QUEUE_MS + 100))
        await rig.until(RenderingDrained)
    assert rig.samples_of(1) == FORMAT.samples_for_ms(QUEUE_MS + 100)


async def test_a_slow_device_is_waited_for(running: Running) -> None:
    async with running(speed=0.5) as rig:
        await rig.speaker.open(opening(1))
        await rig.speaker.write(1, 1, pcm(600))
        await rig.speaker.finish(1, 4_800)
        await rig.until(RenderingDrained)
    assert rig.samples_of(1) == 4_800


async def test_audio_in_the_hardware_is_taken_back_by_a_stop(running: Running) -> None:
    async with running(hardware_ms=100) as rig:
        await rig.speaker.open(opening(1))
        await rig.speaker.write(1, 1, pcm(300))
        await rig.until(RenderingStarted)
        rig.speaker.invalidate_before(2, "barge-in")
        (stopped,) = await rig.until(RenderingStopped)
        await anyio.sleep(0.15)
    assert isinstance(stopped, RenderingStopped)
    assert stopped.position.played_samples == rig.samples_of(1) < stopped.position.submitted_samples


async def test_the_receipt_admits_what_the_hardware_cannot_take_back(running: Running) -> None:
    async with running(hardware_ms=100, takes_back=False) as rig:
        await rig.speaker.open(opening(1))
        await rig.speaker.write(1, 1, pcm(300, 9))
        await rig.until(RenderingStarted)
        rig.speaker.invalidate_before(2, "barge-in")
        (stopped,) = await rig.until(RenderingStopped)
        # Ten times what the hardware holds: on a busy machine its quanta come late.
        await anyio.sleep(1.0)
    assert isinstance(stopped, RenderingStopped)
    assert stopped.position.played_samples == stopped.position.submitted_samples
    assert read_wav(rig.heard).samples == stopped.position.played_samples


async def test_a_pause_returns_what_the_hardware_held(running: Running) -> None:
    async with running(hardware_ms=100) as rig:
        await rig.speaker.open(opening(1))
        ramp = b"".join(value.to_bytes(2, "little") for value in range(2_400))
        await rig.speaker.write(1, 1, AudioFrame(ramp, FORMAT))
        await rig.speaker.finish(1, 2_400)
        await rig.until(RenderingStarted)
        rig.speaker.pause(1)
        await anyio.sleep(0.15)
        assert rig.samples_of(1) < 2_400
        rig.speaker.resume(1)
        await rig.until(RenderingDrained)
    assert read_wav(rig.heard).data == ramp


async def test_a_stream_in_another_rate_is_converted_and_counted_in_its_own_samples(running: Running) -> None:
    other = AudioFormat(22_050)
    async with running() as rig:
        await rig.speaker.open(OutputOpening(1, 1, other, prebuffer_ms=20))
        await rig.speaker.write(1, 1, AudioFrame(bytes(2 * 4_410), other))
        await rig.speaker.finish(1, 4_410)
        (drained,) = await rig.until(RenderingDrained)
    assert isinstance(drained, RenderingDrained)
    assert drained.position.played_samples == 4_410
    assert rig.samples_of(1) == 4_410
    assert read_wav(rig.heard).samples == 1_600


async def test_a_device_that_vanishes_is_reported_and_every_call_fails(running: Running) -> None:
    async with running() as rig:
        await rig.speaker.open(opening(1, held=True))
        failures: list[str] = []

        async def write() -> None:
            try:
                await rig.speaker.write(1, 1, pcm(2_000))
            except PortError as error:
                failures.append(error.error.code)

        async with anyio.create_task_group() as group:
            group.start_soon(write)
            await anyio.sleep(0.05)
            rig.device.vanish()
        assert failures == ["device_vanished"]
        (lost,) = await rig.until(SpeakerLost)
        with pytest.raises(PortError):
            await rig.speaker.open(opening(2))
    assert isinstance(lost, SpeakerLost)
    assert "plug it in" in lost.error.message
    assert rig.reports[-1] == lost


async def test_a_full_disk_ends_the_speaker_with_its_reason(running: Running) -> None:
    async with running(max_data_bytes=1_000) as rig:
        await rig.speaker.open(opening(1))
        await rig.speaker.write(1, 1, pcm(200))
        (lost,) = await rig.until(SpeakerLost)
    assert isinstance(lost, SpeakerLost)
    assert lost.error.code == "recording_failed"


BROKEN_PROMISES: dict[str, Act] = {
    "unknown_stream": lambda speaker: speaker.write(9, 1, pcm(10)),
    "not_contiguous": lambda speaker: speaker.write(1, 1, pcm(10, start_ms=10)),
    "wrong_epoch": lambda speaker: speaker.write(1, 2, pcm(10)),
    "end_mismatch": lambda speaker: speaker.finish(1, 5),
    "stream_reused": lambda speaker: speaker.open(opening(1)),
    "prebuffer_too_long": lambda speaker: speaker.open(opening(2, prebuffer_ms=QUEUE_MS + 1)),
}


@pytest.mark.parametrize("code", BROKEN_PROMISES)
async def test_a_broken_promise_of_the_caller_is_refused_and_the_stream_goes_on(running: Running, code: str) -> None:
    async with running() as rig:
        await rig.speaker.open(opening(1))
        with pytest.raises(PortError, match=code):
            await BROKEN_PROMISES[code](rig.speaker)
        await rig.speaker.write(1, 1, pcm(30))
        await rig.speaker.finish(1, 240)
        await rig.until(RenderingDrained, 1)


async def test_closing_stops_what_plays_and_ends_the_reports(running: Running) -> None:
    async with running() as rig:
        await rig.speaker.open(opening(1))
        await rig.speaker.write(1, 1, pcm(300))
        await rig.until(RenderingStarted)
        await rig.speaker.aclose()
        await rig.speaker.aclose()
        heard = rig.samples_of(1)
        await anyio.sleep(0.05)
        assert rig.samples_of(1) == heard
        assert rig.of(RenderingStopped)
        with pytest.raises(PortError, match="closed"):
            await rig.speaker.write(1, 1, pcm(10, start_ms=300))


async def test_the_port_is_the_protocol(running: Running) -> None:
    async with running() as rig:
        assert isinstance(rig.speaker, Speaker)
        assert rig.speaker.capabilities.pause
        assert rig.speaker.capabilities.measured_position
        assert rig.speaker.capabilities.max_queue_ms == QUEUE_MS
