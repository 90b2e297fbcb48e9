"""The virtual microphone and loudspeaker keep real time and record exactly what they rendered."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import anyio
import pytest

from voicechart.adapters.board import (
    DeviceLost,
    InProcessMicrophone,
    InProcessSpeaker,
    Recording,
    RenderBlock,
    WavMicrophone,
    WavSpeaker,
)
from voicechart.audio.formats import AudioFormat, AudioFrame
from voicechart.audio.wav_reader import read_wav
from voicechart.audio.wav_writer import WavWriter
from voicechart.engines.ports import OutputOpening
from voicechart.engines.reports import Captured, CaptureEnded, PortError, RenderingDrained

pytestmark = pytest.mark.anyio
FORMAT = AudioFormat(8_000)


class SteppedClock:
    """Time that moves only when somebody waits for it, and stands late where the test says so."""

    def __init__(self, limit_ns: int) -> None:
        self._now_ns = 0
        self._limit_ns = limit_ns
        self.late_by_ns: dict[int, int] = {}

    def now_ns(self) -> int:
        return self._now_ns

    async def sleep_until(self, deadline_ns: int) -> None:
        await anyio.lowlevel.checkpoint()
        self._now_ns = max(self._now_ns, deadline_ns + self.late_by_ns.pop(deadline_ns, 0))
        if self._now_ns > self._limit_ns:
            await anyio.sleep_forever()


@dataclass
class Source:
    """Counts what a device takes."""

    presented_at: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])
    flushed_at: list[int] = field(default_factory=list[int])

    def render(self, samples: int) -> RenderBlock:
        return RenderBlock(bytes(2 * samples), 0)

    def presented(self, position_samples: int, now_ns: int) -> None:
        self.presented_at.append((position_samples, now_ns))

    def flushed(self, position_samples: int, now_ns: int) -> None:
        self.flushed_at.append(position_samples)


async def run_until_idle(speaker: WavSpeaker, source: Source) -> None:
    async with anyio.create_task_group() as group:
        group.start_soon(speaker.run, source)
        await anyio.wait_all_tasks_blocked()
        group.cancel_scope.cancel()


async def test_the_speaker_renders_at_absolute_deadlines_without_drift() -> None:
    # 11,025 Hz and 3 ms: neither a quantum's samples nor its nanoseconds are whole.
    odd = AudioFormat(11_025)
    source = Source()
    await run_until_idle(WavSpeaker(None, odd, quantum_ms=3, clock=SteppedClock(30_000_000_000)), source)
    assert all(now_ns == odd.duration_ns(position) for position, now_ns in source.presented_at)
    assert source.presented_at[-1][0] == pytest.approx(30 * 11_025, abs=33)


async def test_half_speed_takes_twice_the_time() -> None:
    source = Source()
    await run_until_idle(WavSpeaker(None, FORMAT, speed=0.5, clock=SteppedClock(1_000_000_000)), source)
    assert source.presented_at[-1][0] == 4_000


async def test_a_late_device_loses_the_time_instead_of_playing_a_burst() -> None:
    clock = SteppedClock(1_000_000_000)
    clock.late_by_ns = {500_000_000: 300_000_000}
    source = Source()
    await run_until_idle(WavSpeaker(None, FORMAT, clock=clock), source)
    times = [now_ns for _, now_ns in source.presented_at]
    assert len(set(times)) == len(times)
    assert source.presented_at[-1][0] == FORMAT.samples_for_ms(700)


async def test_a_flush_of_an_idle_device_changes_nothing() -> None:
    WavSpeaker(None, FORMAT).flush()


async def test_an_aligned_recording_keeps_the_silence_and_a_rendered_one_does_not(tmp_path: Path) -> None:
    for recording in Recording:
        device = WavSpeaker(tmp_path / recording.value, FORMAT, recording=recording)
        async with InProcessSpeaker.running(device) as speaker:
            await anyio.sleep(0.05)
            await speaker.open(OutputOpening(1, 1, FORMAT, prebuffer_ms=0))
            await speaker.write(1, 1, AudioFrame(b"\3\0" * 160, FORMAT))
            await speaker.finish(1, 160)
            async for report in speaker.reports():
                if isinstance(report, RenderingDrained):
                    break
    assert read_wav(tmp_path / "rendered").data == b"\3\0" * 160
    aligned = read_wav(tmp_path / "aligned")
    assert aligned.samples > 160
    assert aligned.data.strip(b"\0") == (b"\3\0" * 160).strip(b"\0")


async def test_a_recording_that_cannot_begin_is_told_before_anything_plays(tmp_path: Path) -> None:
    with pytest.raises(PortError, match="recording_failed"):
        async with InProcessSpeaker.running(WavSpeaker(tmp_path / "no" / "folder.wav", FORMAT)):
            raise AssertionError("started")


async def test_speech_of_another_rate_is_converted_and_its_place_in_the_track_is_told(tmp_path: Path) -> None:
    with WavWriter(tmp_path / "question.wav", AudioFormat(16_000, 2)) as wav:
        wav.write(AudioFrame(b"\x00\x10" * 2 * 3_200, AudioFormat(16_000, 2)))
    microphone = WavMicrophone(FORMAT)
    first = microphone.say_file(tmp_path / "question.wav", after_silence_ms=30)
    second = microphone.say(AudioFrame(b"\1\0" * 100, FORMAT))
    microphone.end_when_silent()
    async with InProcessMicrophone.running(microphone) as port:
        reports = [report async for report in port.reports()]
        await second.wait_spoken()
    assert (first.start_sample, first.end_sample) == (240, 240 + 1_600)
    assert (second.start_sample, second.end_sample) == (1_840, 1_940)
    assert reports[-1] == CaptureEnded(None)
    track = b"".join(report.frame.data for report in reports if isinstance(report, Captured))
    assert track[2 * 1_840 : 2 * 1_940] == b"\1\0" * 100
    assert track[: 2 * 240] == bytes(2 * 240)


async def test_noise_is_low_and_the_same_for_the_same_seed() -> None:
    tracks: list[bytes] = []
    for _ in range(2):
        microphone = WavMicrophone(FORMAT, noise_rms=20, seed=7)
        microphone.say(AudioFrame(bytes(1_600), FORMAT))
        microphone.end_when_silent()
        async with InProcessMicrophone.running(microphone) as port:
            tracks.append(b"".join([r.frame.data async for r in port.reports() if isinstance(r, Captured)]))
    assert tracks[0] == tracks[1]
    values = memoryview(tracks[0]).cast("h")
    assert 10 < (sum(value * value for value in values) / len(values)) ** 0.5 < 40


async def test_a_microphone_in_this_process_reports_its_loss() -> None:
    microphone = WavMicrophone(FORMAT)
    async with InProcessMicrophone.running(microphone) as port:
        reports = port.reports()
        await anext(reports)
        microphone.vanish()
        last = [report async for report in reports][-1]
    assert isinstance(last, CaptureEnded)
    assert last.error is not None
    assert last.error.code == "device_vanished"


async def test_a_closed_microphone_ends_without_an_error() -> None:
    async with InProcessMicrophone.running(WavMicrophone(FORMAT)) as port:
        reports = port.reports()
        await anext(reports)
        await port.aclose()
        assert [report async for report in reports][-1] == CaptureEnded(None)


async def test_an_error_of_the_block_leaves_as_it_is() -> None:
    with pytest.raises(LookupError):
        async with InProcessSpeaker.running(WavSpeaker(None, FORMAT)):
            raise LookupError


async def test_an_unplugged_speaker_raises_even_while_it_stalls() -> None:
    speaker = WavSpeaker(None, FORMAT)
    speaker.stall()
    speaker.vanish()
    with pytest.raises(DeviceLost, match="unplugged"):
        await speaker.run(Source())


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full, a disk that is always full")
async def test_a_disk_that_is_full_from_the_start_is_told_before_anything_plays() -> None:
    with pytest.raises(PortError, match="recording_failed"):
        async with InProcessSpeaker.running(WavSpeaker(Path("/dev/full"), FORMAT)):
            raise AssertionError("started")
