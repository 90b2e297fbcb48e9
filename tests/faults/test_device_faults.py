"""A device that fails while it speaks, behind the real socket: answered, renewed or closed, and nothing left open."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

import anyio
import pytest

from voicechart.adapters.board import BoardAudio, DeviceLost, WavMicrophone, WavSpeaker, serve_audio
from voicechart.audio.formats import SPEECH_FORMAT
from voicechart.engines import Closed
from voicechart.engines.testing import (
    HANDS_FREE,
    Rehearsal,
    Script,
    ScriptedRecognizer,
    ScriptedResponder,
    ScriptedSynthesizer,
    SpeechScript,
    hears,
    says,
)
from voicechart.statecharts.policies import ConnectionPolicy, PlaybackPolicy, Policies
from voicechart.statecharts.values import DeliveryStatus

pytestmark = [pytest.mark.anyio, pytest.mark.slow]
STORY = "Once upon a time there was a clock. It told the time to nobody at all. And so it was glad for evermore."
POLICIES = replace(
    HANDS_FREE,
    connection=ConnectionPolicy(connect_ms=2_000, backoff_ms=20, max_backoff_ms=100, shutdown_ms=1_000),
    playback=PlaybackPolicy(stall_ms=500),
)


@dataclass
class SocketDevice:
    """The daemon's way to the service; remembers its connections."""

    path: Path
    boards: list[BoardAudio] = field(default_factory=list[BoardAudio])

    @asynccontextmanager
    async def connect(self) -> AsyncGenerator[BoardAudio, None]:
        async with BoardAudio.connect(self.path) as board:
            self.boards.append(board)
            yield board


class Service:
    """An audio service that can be started, killed and started again."""

    def __init__(self, folder: Path, tasks: anyio.abc.TaskGroup) -> None:
        self.path = folder / "audio.sock"
        self.speaker = WavSpeaker(folder / "heard.wav", SPEECH_FORMAT)
        self.microphone = WavMicrophone()
        self.lost: DeviceLost | None = None
        self._tasks = tasks
        self._scope = anyio.CancelScope()
        self._ended = anyio.Event()

    async def start(self, *, speaker: WavSpeaker | None = None) -> None:
        self.speaker = speaker or self.speaker
        await self._tasks.start(self._serve)

    async def kill(self) -> None:
        self._scope.cancel()
        await self._ended.wait()

    async def ended(self) -> None:
        with anyio.fail_after(10):
            await self._ended.wait()

    async def _serve(self, *, task_status: anyio.abc.TaskStatus[None]) -> None:
        self._ended = anyio.Event()
        try:
            with anyio.CancelScope() as self._scope, suppress(FileNotFoundError):
                await serve_audio(self.path, self.microphone, self.speaker, task_status=task_status)
        except DeviceLost as error:
            self.lost = error
        finally:
            self._ended.set()


def open_descriptors() -> set[str]:
    """What the process has open, by what it is: sockets and files, not the loop's own."""
    found: set[str] = set()
    for name in os.listdir("/proc/self/fd"):
        with suppress(OSError):
            found.add(os.readlink(f"/proc/self/fd/{name}"))
    return found


@asynccontextmanager
async def service_in(folder: Path) -> AsyncGenerator[Service, None]:
    """The service, and the proof that nothing of it or its clients is left open."""
    before = open_descriptors()
    async with anyio.create_task_group() as tasks:
        service = Service(folder, tasks)
        await service.start()
        yield service
        tasks.cancel_scope.cancel()
    assert {name for name in open_descriptors() - before if name.startswith(("socket:", str(folder)))} == set()


def telling(service: Service, policies: Policies = POLICIES) -> Rehearsal:
    return Rehearsal(
        device=SocketDevice(service.path),
        recognizer=ScriptedRecognizer(Script(hears(""))),
        responder=ScriptedResponder(answers=lambda _: Script(says(STORY))),
        synthesizer=ScriptedSynthesizer(SpeechScript(ms_per_char=15)),
        policies=policies,
    )


async def begin_the_story(rehearsal: Rehearsal) -> None:
    rehearsal.say("tell me a story")
    await rehearsal.until("playback.progress", 2)


async def test_a_speaker_that_stands_still_ends_the_reply_and_the_next_one_is_heard(tmp_path: Path) -> None:
    async with service_in(tmp_path) as service:
        rehearsal = telling(service)
        async with rehearsal.running():
            await begin_the_story(rehearsal)
            service.speaker.stall()
            await rehearsal.until("delivery.recorded")
            service.speaker.go_on()
            rehearsal.say("again")
            await rehearsal.until("playback.drained")
        first, second = (reply.delivery for reply in rehearsal.replies)
        assert first is not None
        assert second is not None
        assert (first.status, second.status) == (DeliveryStatus.FAILED, DeliveryStatus.DELIVERED)
        assert rehearsal.left_behind == ()


async def test_a_speaker_that_vanishes_closes_the_session_with_a_typed_error(tmp_path: Path) -> None:
    async with service_in(tmp_path) as service:
        rehearsal = telling(service)
        async with rehearsal.running():
            await begin_the_story(rehearsal)
            service.speaker.vanish()
            await rehearsal.until("session.closed")
        assert service.lost is not None
        assert service.lost.code == "device_vanished"
        assert rehearsal.closed is not None
        assert rehearsal.closed.error is not None
        assert rehearsal.closed.error.code in ("audio_service_missing", "connect_timed_out")
        assert rehearsal.of("session.reconnecting")[0].as_json()["payload"]["reason"] == "device_vanished"
        assert rehearsal.left_behind == ()


async def test_a_full_disk_under_the_recording_closes_the_session_with_a_typed_error(tmp_path: Path) -> None:
    async with anyio.create_task_group() as tasks:
        service = Service(tmp_path, tasks)
        await service.start(speaker=WavSpeaker(tmp_path / "heard.wav", SPEECH_FORMAT, max_data_bytes=16_000))
        rehearsal = telling(service)
        async with rehearsal.running():
            await begin_the_story(rehearsal)
            await rehearsal.until("session.closed")
        assert service.lost is not None
        assert service.lost.code == "recording_failed"
        assert rehearsal.closed is not None
        assert rehearsal.closed.error is not None
        assert rehearsal.left_behind == ()


async def test_a_microphone_that_vanishes_closes_the_session_and_no_other_is_used(tmp_path: Path) -> None:
    async with service_in(tmp_path) as service:
        rehearsal = telling(service)
        async with rehearsal.running():
            await begin_the_story(rehearsal)
            service.microphone.vanish()
            await rehearsal.until("session.closed")
        assert service.lost is not None
        assert rehearsal.closed is not None
        assert rehearsal.closed.error is not None
        assert rehearsal.left_behind == ()


async def test_a_service_that_is_killed_and_comes_back_is_spoken_through_again(tmp_path: Path) -> None:
    patient = replace(
        POLICIES, connection=ConnectionPolicy(connect_ms=20_000, max_attempts=100, backoff_ms=20, max_backoff_ms=200)
    )
    async with service_in(tmp_path) as service:
        rehearsal = telling(service, patient)
        async with rehearsal.running():
            await begin_the_story(rehearsal)
            await service.kill()
            await service.start(speaker=WavSpeaker(tmp_path / "again.wav", SPEECH_FORMAT))
            await rehearsal.until("session.ready", 2)
            rehearsal.say("again")
            await rehearsal.until("playback.drained")
        first = rehearsal.replies[0].delivery
        assert first is not None
        assert first.status is DeliveryStatus.UNKNOWN
        assert [event.session_epoch for event in rehearsal.of("session.ready")] == [1, 2]


async def test_a_service_that_is_killed_for_good_closes_the_session_within_its_deadline(tmp_path: Path) -> None:
    async with service_in(tmp_path) as service:
        rehearsal = telling(service)
        async with rehearsal.running():
            await begin_the_story(rehearsal)
            await service.kill()
            with anyio.fail_after(POLICIES.connection.connect_ms / 1_000 + 2):
                await rehearsal.until("session.closed")
        assert rehearsal.closed is not None
        assert rehearsal.closed.error is not None
        assert "audio service" in rehearsal.closed.error.message
        assert rehearsal.left_behind == ()


async def test_without_an_audio_service_voice_is_refused_and_says_what_to_start(tmp_path: Path) -> None:
    rehearsal = Rehearsal(device=SocketDevice(tmp_path / "nobody.sock"), policies=POLICIES)
    async with rehearsal.running(ready=False):
        await rehearsal.until("session.closed")
    assert rehearsal.closed is not None
    assert rehearsal.closed.error is not None
    assert "voicechart audio-service" in rehearsal.closed.error.message
    assert rehearsal.left_behind == ()


async def test_cancelling_a_session_that_speaks_silences_the_speaker_and_leaves_nothing(tmp_path: Path) -> None:
    async with service_in(tmp_path) as service:
        rehearsal = telling(service)
        before, began_s = {task.id for task in anyio.get_running_tasks()}, 0.0
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(rehearsal.session.run)
            with rehearsal.session.public.subscribe() as subscription:
                async for event in subscription.events():
                    if event.type == "session.ready":
                        rehearsal.say("tell me a story")
                    if event.type == "playback.progress":
                        break
            began_s = anyio.current_time()
            tasks.cancel_scope.cancel()
        assert anyio.current_time() - began_s < 2 * POLICIES.connection.shutdown_ms / 1_000
        assert rehearsal.session.closed == Closed("cancelled")
        delivery = rehearsal.replies[0].delivery
        assert delivery is not None
        assert delivery.status is DeliveryStatus.INTERRUPTED
        assert {task.id for task in anyio.get_running_tasks()} - before == set()
