"""The gate, and the output stream in front of it."""

from __future__ import annotations

import anyio
import pytest
from trio.testing import MockClock

from voicechart.audio.formats import SPEECH_FORMAT, AudioFrame
from voicechart.engines.output_gate import OutputGate
from voicechart.engines.output_stream import OutputStream
from voicechart.engines.ports import OutputOpening
from voicechart.engines.reports import PortError
from voicechart.engines.testing import ScriptedSpeaker, SpeakerScript, scripted_error

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> object:
    return "trio", {"clock": MockClock(autojump_threshold=0)}


def frame(start_sample: int = 0, samples: int = 320) -> AudioFrame:
    return AudioFrame(bytes(2 * samples), SPEECH_FORMAT, start_sample)


def opening(epoch: int = 5, *, held: bool = False) -> OutputOpening:
    return OutputOpening(1, epoch, SPEECH_FORMAT, prebuffer_ms=0, held=held)


async def test_when_the_epoch_has_moved_the_speaker_has_been_told_and_nothing_older_passes() -> None:
    gate, speaker = OutputGate(), ScriptedSpeaker()
    gate.attach(speaker, 5)
    await speaker.open(opening())
    assert await gate.write(1, 5, frame())
    gate.invalidate_before(6, "barge-in")
    assert [(epoch, reason) for _, epoch, reason in speaker.stops][-1] == (6, "barge-in")
    assert not await gate.write(1, 5, frame(320))
    assert (gate.stale_frames, gate.epoch, speaker.outputs[1].written_samples) == (1, 6, 320)


async def test_epochs_only_grow() -> None:
    gate = OutputGate()
    gate.invalidate_before(9, "barge-in")
    gate.invalidate_before(3, "late")
    assert gate.epoch == 9


async def test_a_frame_that_waits_for_room_while_the_epoch_moves_is_dropped_by_the_speaker() -> None:
    gate, speaker = OutputGate(), ScriptedSpeaker(SpeakerScript(max_queue_ms=20, stands_still=True))
    gate.attach(speaker, 5)
    await speaker.open(opening())
    await gate.write(1, 5, frame())
    passed: list[bool] = []

    async def write() -> None:
        passed.append(await gate.write(1, 5, frame(320)))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(write)
        await anyio.wait_all_tasks_blocked()
        gate.invalidate_before(6, "barge-in")
    assert passed == [False]
    assert speaker.stale_frames == 1


async def test_without_a_speaker_frames_are_dropped_and_counted_and_a_new_speaker_starts_at_the_present_epoch() -> None:
    gate, first, second = OutputGate(), ScriptedSpeaker(), ScriptedSpeaker()
    gate.attach(first, 1)
    gate.detach()
    gate.invalidate_before(4, "lost")
    assert not await gate.write(1, 4, frame())
    assert gate.stale_frames == 1
    gate.attach(second, 4)
    assert [epoch for _, epoch, _ in second.stops] == [4]
    assert [epoch for _, epoch, _ in first.stops] == [1]


async def test_what_a_speaker_refuses_is_raised() -> None:
    gate = OutputGate()
    gate.attach(ScriptedSpeaker(SpeakerScript(write_error=scripted_error("speaker_broken", "playback"))), 1)
    with pytest.raises(PortError, match="speaker_broken"):
        await gate.write(1, 1, frame())


async def test_an_output_that_was_released_before_it_was_open_is_not_held() -> None:
    gate, speaker = OutputGate(), ScriptedSpeaker()
    gate.attach(speaker, 5)
    output = OutputStream(speaker, gate, opening(held=True))
    output.release()
    await output.open()
    assert not speaker.outputs[1].held


async def test_an_output_that_is_released_or_paused_while_it_is_being_opened_is_so_once_it_is_open() -> None:
    gate, speaker = OutputGate(), ScriptedSpeaker(SpeakerScript(open_after_ms=10))
    gate.attach(speaker, 5)
    output = OutputStream(speaker, gate, opening(held=True))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(output.open)
        await anyio.wait_all_tasks_blocked()
        output.release()
        output.pause()
    assert (speaker.outputs[1].held, speaker.outputs[1].paused) == (False, True)
    output.resume()
    assert not speaker.outputs[1].paused


async def test_an_output_that_was_paused_and_resumed_before_it_was_open_plays() -> None:
    gate, speaker = OutputGate(), ScriptedSpeaker()
    gate.attach(speaker, 5)
    output = OutputStream(speaker, gate, opening())
    output.pause()
    output.resume()
    await output.open()
    assert not speaker.outputs[1].paused
    output.pause()
    assert speaker.outputs[1].paused


async def test_the_end_barrier_goes_to_the_speaker() -> None:
    gate, speaker = OutputGate(), ScriptedSpeaker()
    gate.attach(speaker, 5)
    output = OutputStream(speaker, gate, opening())
    await output.open()
    await output.write(frame())
    await output.finish(320)
    assert speaker.outputs[1].end_sample == 320
