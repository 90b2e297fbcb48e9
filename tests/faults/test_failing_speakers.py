"""A speaker that stalls, one that plays at half speed, one that vanishes, behind the real socket, in virtual time.

Whatever it does, no more than a second of audio waits for it, what is heard of a sentence has no hole, and the record
says what became of the reply.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

import anyio
import anyio.abc
import pytest
from trio.testing import MockClock

from voicechart.adapters.board import (
    BoardAudio,
    ClientLimits,
    DeviceLost,
    RenderedSpan,
    WavMicrophone,
    WavSpeaker,
    serve_audio,
)
from voicechart.audio.formats import SPEECH_FORMAT, AudioFormat, AudioFrame
from voicechart.audio.wav_reader import read_wav
from voicechart.engines.history import Delivery
from voicechart.engines.testing import (
    HANDS_FREE,
    Rehearsal,
    Script,
    ScriptedRecognizer,
    ScriptedResponder,
    ScriptedSynthesizer,
    SpeechScript,
    hears,
    marker,
    says,
)
from voicechart.statecharts.policies import ConnectionPolicy, PlaybackPolicy
from voicechart.statecharts.values import DeliveryStatus

pytestmark = pytest.mark.anyio

MS_PER_CHAR = 40
STORY = "Once upon a time there was a clock. It told the time to nobody at all. And so it was glad for evermore."
WISH = "Very well, as you wish."
STALL_MS = 2_000
POLICIES = replace(
    HANDS_FREE,
    connection=ConnectionPolicy(
        connect_ms=20_000, max_attempts=100, backoff_ms=20, max_backoff_ms=200, shutdown_ms=1_000
    ),
    playback=PlaybackPolicy(stall_ms=STALL_MS),
)
QUEUE_MS, QUEUE_BYTES = 1_000, SPEECH_FORMAT.bytes_for(SPEECH_FORMAT.samples_for_ms(1_000))


@pytest.fixture
def anyio_backend() -> object:
    return "trio", {"clock": MockClock(autojump_threshold=0)}


@dataclass
class Service:
    """An audio service that can be killed and started again, and everything it rendered."""

    folder: Path
    tasks: anyio.abc.TaskGroup
    speaker: WavSpeaker
    microphone: WavMicrophone = field(default_factory=WavMicrophone)
    rendered: list[RenderedSpan] = field(default_factory=list[RenderedSpan])
    lost: DeviceLost | None = None
    boards: list[BoardAudio] = field(default_factory=list[BoardAudio])
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    ended: anyio.Event = field(default_factory=anyio.Event)

    @property
    def path(self) -> Path:
        return self.folder / "audio.sock"

    async def start(self) -> None:
        await self.tasks.start(self._serve)

    async def kill(self) -> None:
        self.scope.cancel()
        await self.ended.wait()

    async def _serve(self, *, task_status: anyio.abc.TaskStatus[None]) -> None:
        self.ended = anyio.Event()
        try:
            with anyio.CancelScope() as self.scope, suppress(FileNotFoundError):
                await serve_audio(
                    self.path, self.microphone, self.speaker, log_rendered=self.rendered.append, task_status=task_status
                )
        except DeviceLost as error:
            self.lost = error
        finally:
            self.ended.set()

    @asynccontextmanager
    async def connect(self) -> AsyncGenerator[BoardAudio]:
        """As the daemon does. Implements `AudioDevice`."""
        async with BoardAudio.connect(self.path, limits=ClientLimits()) as board:
            self.boards.append(board)
            yield board

    def heard_of(self, output_epoch: int) -> int:
        """Samples of a reply that were rendered: one run without a hole, from its first one on."""
        end = 0
        for span in self.rendered:
            if span.output_epoch == output_epoch:
                assert span.start_sample == end, "a hole in a sentence"
                end = span.end_sample
        return end

    def assert_bounded(self) -> None:
        """No more than a second waited, in the client or on the way, in time and in bytes."""
        assert self.boards
        for board in self.boards:
            assert board.speaker.statistics.peak_queued_ms <= QUEUE_MS
            assert board.speaker.statistics.peak_queued_bytes <= QUEUE_BYTES


@asynccontextmanager
async def service_in(folder: Path, *, speed: float = 1.0, recording: str = "heard.wav") -> AsyncGenerator[Service]:
    async with anyio.create_task_group() as tasks:
        service = Service(folder, tasks, WavSpeaker(folder / recording, SPEECH_FORMAT, speed=speed))
        await service.start()
        yield service
        tasks.cancel_scope.cancel()


def telling(service: Service, *questions: str) -> Rehearsal:
    """The model tells the story, then grants every wish; the user's voice asks `questions`."""
    return Rehearsal(
        device=service,
        recognizer=ScriptedRecognizer(*(Script(hears(question, after_samples=1_600)) for question in questions)),
        responder=ScriptedResponder(Script(says(STORY)), answers=lambda _: Script(says(WISH))),
        synthesizer=ScriptedSynthesizer(SpeechScript(ms_per_char=MS_PER_CHAR)),
        policies=POLICIES,
    )


def samples_of(text: str) -> int:
    """Of the sentences of a text, as the synthesiser speaks them."""
    return sum(SPEECH_FORMAT.samples_for_ms(MS_PER_CHAR * len(unit.strip() + ".")) for unit in text.split(".")[:-1])


def delivery_of(rehearsal: Rehearsal, index: int = 0) -> Delivery:
    delivery = rehearsal.replies[index].delivery
    assert delivery is not None
    return delivery


def speech(duration_ms: int) -> AudioFrame:
    return AudioFrame(b"\x01\x01" * SPEECH_FORMAT.samples_for_ms(duration_ms), SPEECH_FORMAT)


async def tell_until(rehearsal: Rehearsal, progress: int) -> None:
    rehearsal.say("tell me a story")
    await rehearsal.until("playback.progress", progress)


# -- it stalls -------------------------------------------------------------------------------------------------------


async def test_a_speaker_that_stalls_for_good_fails_the_reply_and_the_next_one_is_heard(tmp_path: Path) -> None:
    async with service_in(tmp_path) as service:
        rehearsal = telling(service)
        async with rehearsal.running():
            await tell_until(rehearsal, 18)
            service.speaker.stall()
            await rehearsal.until("delivery.recorded")
            heard = service.heard_of(1)
            service.speaker.go_on()
            rehearsal.say("again")
            await rehearsal.until("playback.drained")
        service.assert_bounded()
        first, second = delivery_of(rehearsal), delivery_of(rehearsal, 1)
        # The first sentence was heard whole, and the rest of the second one never comes.
        assert (first.status, first.units, first.text) == (DeliveryStatus.FAILED, 1, STORY.split(" It")[0])
        assert (second.status, second.text) == (DeliveryStatus.DELIVERED, WISH)
        assert service.heard_of(1) == heard
        assert service.heard_of(2) == samples_of(WISH)
        assert rehearsal.left_behind == ()


async def test_a_speaker_that_stalls_for_a_moment_loses_the_time_and_not_a_sample(tmp_path: Path) -> None:
    async with service_in(tmp_path) as service:
        rehearsal = telling(service)
        async with rehearsal.running():
            await tell_until(rehearsal, 10)
            service.speaker.stall()
            await anyio.sleep(STALL_MS / 2_000)
            service.speaker.go_on()
            await rehearsal.until("playback.drained")
        service.assert_bounded()
        assert (delivery_of(rehearsal).status, delivery_of(rehearsal).text) == (DeliveryStatus.DELIVERED, STORY)
        assert service.heard_of(1) == samples_of(STORY)
    expected = b"".join(
        marker(1, unit).to_bytes(2, "little") * samples_of(sentence + ".")
        for unit, sentence in enumerate(STORY.split(".")[:-1])
    )
    assert read_wav(tmp_path / "heard.wav").data == expected


# -- it is slow ------------------------------------------------------------------------------------------------------


async def test_a_speaker_at_half_speed_is_waited_for_and_everything_is_heard_without_a_hole(tmp_path: Path) -> None:
    async with service_in(tmp_path, speed=0.5) as service:
        rehearsal = telling(service)
        async with rehearsal.running():
            rehearsal.say("tell me a story")
            await rehearsal.until("playback.started")
            began_s = anyio.current_time()
            await rehearsal.until("playback.drained")
            took_ms = (anyio.current_time() - began_s) * 1_000
        service.assert_bounded()
        assert rehearsal.of("playback.underrun") == []
        assert (delivery_of(rehearsal).status, delivery_of(rehearsal).text) == (DeliveryStatus.DELIVERED, STORY)
        assert service.heard_of(1) == samples_of(STORY)
        assert took_ms == pytest.approx(2 * SPEECH_FORMAT.duration_ms(samples_of(STORY)), abs=100)


async def test_an_interruption_at_half_speed_is_silent_at_once_and_remembered_where_it_was(tmp_path: Path) -> None:
    async with service_in(tmp_path, speed=0.5) as service:
        rehearsal = telling(service)
        async with rehearsal.running():
            await tell_until(rehearsal, 16)
            rehearsal.press_button()
            await rehearsal.until("delivery.recorded")
            delivery, heard = delivery_of(rehearsal), service.heard_of(1)
            rehearsal.say("again")
            await rehearsal.until("playback.drained")
        service.assert_bounded()
        assert delivery.played_samples == heard == service.heard_of(1)
        # Progress comes each tenth of a second of sound: 1.6 s of it, less than a tenth more, and one sentence whole.
        assert 1_500 <= SPEECH_FORMAT.duration_ms(heard) <= 1_700
        assert (delivery.status, delivery.text) == (DeliveryStatus.INTERRUPTED, STORY.split(" It")[0])


# -- it vanishes -----------------------------------------------------------------------------------------------------


async def test_a_speaker_that_vanishes_leaves_what_it_confirmed_and_ends_the_session(tmp_path: Path) -> None:
    async with service_in(tmp_path) as service:
        rehearsal = telling(service)
        async with rehearsal.running():
            await tell_until(rehearsal, 18)
            service.speaker.vanish()
            await rehearsal.until("session.closed")
        service.assert_bounded()
        assert service.lost is not None
        assert service.lost.code == "device_vanished"
        delivery = delivery_of(rehearsal)
        assert (delivery.status, delivery.units, delivery.text) == (DeliveryStatus.UNKNOWN, 1, STORY.split(" It")[0])
        assert service.heard_of(1) <= samples_of(STORY)
        assert rehearsal.closed is not None
        assert rehearsal.closed.error is not None
        assert rehearsal.left_behind == ()


# -- the service goes and comes back ---------------------------------------------------------------------------------


async def test_a_service_that_restarts_while_a_reply_is_spoken_repeats_nothing_of_it(tmp_path: Path) -> None:
    async with service_in(tmp_path) as service:
        rehearsal = telling(service)
        async with rehearsal.running():
            await tell_until(rehearsal, 18)
            await service.kill()
            old = len(service.rendered)
            await rehearsal.until("session.reconnecting")
            service.speaker = WavSpeaker(tmp_path / "again.wav", SPEECH_FORMAT)
            await service.start()
            await rehearsal.until("session.ready", 2)
            await anyio.sleep(5)
            assert service.rendered[old:] == [], "nothing is said that nobody asked for"
            rehearsal.say("again")
            await rehearsal.until("playback.drained")
        service.assert_bounded()
        delivery, answer = delivery_of(rehearsal), delivery_of(rehearsal, 1)
        assert (delivery.status, delivery.text) == (DeliveryStatus.UNKNOWN, STORY.split(" It")[0])
        assert (answer.status, answer.text) == (DeliveryStatus.DELIVERED, WISH)
        assert {span.output_epoch for span in service.rendered[old:]} == {2}
        assert [event.session_epoch for event in rehearsal.of("session.ready")] == [1, 2]
    assert set(memoryview(read_wav(tmp_path / "again.wav").data).cast("h")) == {marker(2, 0)}


async def test_a_service_that_restarts_while_the_user_speaks_hears_the_next_question(tmp_path: Path) -> None:
    async with service_in(tmp_path) as service:
        rehearsal = telling(service, "tell me a", "what time is it")
        async with rehearsal.running():
            service.microphone.say(speech(5_000))
            await rehearsal.until("transcript.updated", 2)
            await service.kill()
            await rehearsal.until("session.reconnecting")
            service.microphone = WavMicrophone()
            service.speaker = WavSpeaker(tmp_path / "again.wav", SPEECH_FORMAT)
            await service.start()
            await rehearsal.until("session.ready", 2)
            await service.microphone.say(speech(1_000), after_silence_ms=2_000).wait_spoken()
            await rehearsal.until("playback.drained")
        questions = [event.as_json()["payload"]["text"] for event in rehearsal.of("turn.committed")]
        assert questions[-1] == "what time is it"
        assert len(questions) == len(rehearsal.replies)
        assert delivery_of(rehearsal, -1).status is DeliveryStatus.DELIVERED
        assert [event.session_epoch for event in rehearsal.of("session.ready")] == [1, 2]


async def test_a_speaker_of_another_rate_is_converted_at_the_service_and_told_in_the_reply_s_own_samples(
    tmp_path: Path,
) -> None:
    async with service_in(tmp_path) as service:
        await service.kill()
        service.speaker = WavSpeaker(tmp_path / "fast.wav", AudioFormat(48_000))
        await service.start()
        rehearsal = telling(service)
        async with rehearsal.running():
            await tell_until(rehearsal, 18)
            rehearsal.press_button()
            await rehearsal.until("delivery.recorded")
        service.assert_bounded()
        delivery = delivery_of(rehearsal)
        assert (delivery.status, delivery.text) == (DeliveryStatus.INTERRUPTED, STORY.split(" It")[0])
        heard = service.heard_of(1)
        assert delivery.played_samples == heard
        assert 1_700 <= SPEECH_FORMAT.duration_ms(heard) <= 1_900
    # Positions are the reply's own samples, the recording is the device's: three times as many.
    assert read_wav(tmp_path / "fast.wav").samples == pytest.approx(3 * heard, abs=48)
