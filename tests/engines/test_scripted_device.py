"""The scripted device keeps a speaker's and a microphone's promises, and breaks them only where the script says so."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import anyio
import pytest
from trio.testing import MockClock

from voicechart.audio.formats import SPEECH_FORMAT, AudioFrame
from voicechart.engines import Closed
from voicechart.engines.ports import OutputOpening, Speaker
from voicechart.engines.reports import (
    Captured,
    CaptureEnded,
    CaptureGap,
    MicrophoneReport,
    PortError,
    RenderingDrained,
    RenderingProgressed,
    RenderingStarted,
    RenderingStarved,
    RenderingStopped,
    SpeakerLost,
    SpeakerReport,
)
from voicechart.engines.testing import (
    LinkScript,
    Rehearsal,
    Script,
    ScriptedDevice,
    ScriptedMicrophone,
    ScriptedResponder,
    ScriptedSpeaker,
    SpeakerScript,
    says,
    scripted_error,
)

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> object:
    return "trio", {"clock": MockClock(autojump_threshold=0)}


def frame(start_ms: int, duration_ms: int = 100) -> AudioFrame:
    samples = SPEECH_FORMAT.samples_for_ms(duration_ms)
    return AudioFrame(bytes(2 * samples), SPEECH_FORMAT, SPEECH_FORMAT.samples_for_ms(start_ms))


def opening(stream_id: int = 1, epoch: int = 1, *, held: bool = False) -> OutputOpening:
    return OutputOpening(stream_id, epoch, SPEECH_FORMAT, prebuffer_ms=80, held=held)


@asynccontextmanager
async def reading(speaker: ScriptedSpeaker, reports: list[SpeakerReport]) -> AsyncGenerator[None, None]:
    async def read() -> None:
        async for report in speaker.reports():
            reports.append(report)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(read)
        yield
        await speaker.aclose()


def kinds(reports: list[SpeakerReport]) -> list[type[SpeakerReport]]:
    return [type(report) for report in reports if not isinstance(report, RenderingProgressed)]


async def test_it_is_a_speaker() -> None:
    assert isinstance(ScriptedSpeaker(), Speaker)


async def test_a_stream_begins_with_its_prebuffer_takes_its_time_and_drains() -> None:
    speaker, reports = ScriptedSpeaker(), list[SpeakerReport]()
    async with reading(speaker, reports):
        await speaker.open(opening())
        await speaker.write(1, 1, frame(0, 60))
        await anyio.sleep(1)
        assert reports == []
        await speaker.write(1, 1, frame(60, 440))
        await speaker.finish(1, SPEECH_FORMAT.samples_for_ms(500))
        await anyio.sleep(0.499)
        assert kinds(reports) == [RenderingStarted]
        await anyio.sleep(0.002)
    assert kinds(reports) == [RenderingStarted, RenderingDrained]
    assert len(reports) == 6
    assert len(speaker.outputs[1].heard_pcm) == 16_000


async def test_a_stream_that_runs_dry_says_so_and_starts_again() -> None:
    speaker, reports = ScriptedSpeaker(), list[SpeakerReport]()
    async with reading(speaker, reports):
        await speaker.open(opening())
        await speaker.write(1, 1, frame(0))
        await anyio.sleep(1)
        await speaker.write(1, 1, frame(100))
        await anyio.sleep(1)
    assert kinds(reports) == [RenderingStarted, RenderingStarved, RenderingStarted, RenderingStarved]


async def test_a_stop_is_confirmed_where_it_stopped_and_late_frames_are_dropped() -> None:
    speaker, reports = ScriptedSpeaker(), list[SpeakerReport]()
    async with reading(speaker, reports):
        await speaker.open(opening())
        await speaker.write(1, 1, frame(0, 1_000))
        await anyio.sleep(0.25)
        speaker.invalidate_before(2, "barge-in")
        await speaker.write(1, 1, frame(1_000))
        await speaker.finish(1, 99)
        await anyio.sleep(1)
    stopped = reports[-1]
    assert isinstance(stopped, RenderingStopped)
    assert stopped.position.played_samples == 4_000 == speaker.outputs[1].heard_samples
    assert speaker.stale_frames == 1


async def test_a_held_or_paused_stream_stands_still() -> None:
    speaker, reports = ScriptedSpeaker(), list[SpeakerReport]()
    async with reading(speaker, reports):
        await speaker.open(opening(held=True))
        await speaker.write(1, 1, frame(0, 500))
        await anyio.sleep(1)
        assert reports == []
        speaker.release(1)
        await anyio.sleep(0.2)
        speaker.pause(1)
        await anyio.sleep(5)
        heard = speaker.outputs[1].heard_samples
        assert heard == 3_200
        speaker.resume(1)
        await anyio.sleep(0.1)
    assert speaker.outputs[1].heard_samples >= heard + 1_600


async def test_a_full_queue_makes_writers_wait_and_one_that_stands_still_refuses_at_the_deadline() -> None:
    speaker, reports = ScriptedSpeaker(SpeakerScript(max_queue_ms=200)), list[SpeakerReport]()
    async with reading(speaker, reports):
        await speaker.open(opening())
        began_s = anyio.current_time()
        for start_ms in range(0, 500, 100):
            await speaker.write(1, 1, frame(start_ms))
        assert anyio.current_time() - began_s == pytest.approx(0.3, abs=0.02)
    assert speaker.peak_queued_ms == 200
    stuck = ScriptedSpeaker(SpeakerScript(max_queue_ms=100, stands_still=True, write_deadline_ms=300))
    await stuck.open(opening())
    await stuck.write(1, 1, frame(0))
    with pytest.raises(PortError, match="speaker_stalled"):
        await stuck.write(1, 1, frame(100))


async def test_what_does_not_continue_the_stream_is_refused() -> None:
    speaker = ScriptedSpeaker()
    await speaker.open(opening())
    with pytest.raises(PortError, match="not_contiguous"):
        await speaker.write(1, 1, frame(100))
    with pytest.raises(PortError, match="end_mismatch"):
        await speaker.finish(1, 5)


async def test_a_lost_speaker_says_so_last_and_refuses_everything() -> None:
    speaker, reports = ScriptedSpeaker(), list[SpeakerReport]()
    async with reading(speaker, reports):
        speaker.lose(scripted_error("unplugged", "playback"))
        await anyio.sleep(0.1)
        with pytest.raises(PortError, match="unplugged"):
            await speaker.open(opening())
    assert kinds(reports) == [SpeakerLost]


async def test_a_microphone_gives_its_track_in_order_and_its_end_last() -> None:
    microphone = ScriptedMicrophone()
    reports: list[MicrophoneReport] = []
    microphone.hear(50, 7)
    microphone.lose(100)
    microphone.hear(20)
    await microphone.aclose()
    async for report in microphone.reports():
        reports.append(report)
    assert [type(report) for report in reports] == [Captured, Captured, Captured, CaptureGap, Captured, CaptureEnded]
    frames = [report.frame for report in reports if isinstance(report, Captured)]
    assert [(one.start_sample, one.samples) for one in frames] == [(0, 320), (320, 320), (640, 160), (2_400, 320)]
    assert frames[0].data == b"\x07\x00" * 320


async def test_a_microphone_that_listens_takes_as_long_as_it_captures() -> None:
    microphone = ScriptedMicrophone()
    began_s = anyio.current_time()
    await microphone.listen(1_000)
    assert anyio.current_time() - began_s == pytest.approx(1.0)
    assert microphone.position == 16_000


async def test_the_nth_connection_follows_the_nth_script() -> None:
    device = ScriptedDevice(LinkScript(connect_error=scripted_error("busy", "connection")), LinkScript())
    with pytest.raises(PortError, match="busy"):
        async with device.connect():
            pass
    async with device.connect() as link:
        assert device.link is link
    assert (device.connections, len(device.links), link.left) == (2, 1, True)
    assert (link.speaker.closed, link.microphone.closed) == (True, True)


async def test_a_rehearsal_writes_down_what_was_said_decided_and_left_behind() -> None:
    rehearsal = Rehearsal(responder=ScriptedResponder(Script(says("It is noon, my friend."))))
    async with rehearsal.running():
        rehearsal.say("what time is it")
        await rehearsal.until("playback.drained")
    assert rehearsal.closed == Closed("rehearsed")
    assert rehearsal.replies[0].generated == "It is noon, my friend."
    assert [event.sequence for event in rehearsal.events] == list(range(1, len(rehearsal.events) + 1))
    assert rehearsal.left_behind == ()


async def test_a_rehearsal_raises_what_its_block_raises() -> None:
    rehearsal = Rehearsal()
    with pytest.raises(ZeroDivisionError):
        async with rehearsal.running():
            raise ZeroDivisionError
