"""The interruption cases that need a speaker, through the real board-audio socket, in real time.

A whole session with scripted model and synthesiser speaks to an audio service with a paced virtual speaker. Every
scripted sample says which epoch and which unit it belongs to, so the WAV file of what was rendered tells whose voice
was heard, and in which order; the service's log tells the same as it happens.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path

import anyio
import pytest

from voicechart.adapters.board import BoardAudio, RenderedSpan, WavMicrophone, WavSpeaker, serve_audio
from voicechart.audio.formats import SPEECH_FORMAT, AudioFrame
from voicechart.audio.wav_reader import read_wav
from voicechart.engines.history import Delivery
from voicechart.engines.reports import GenerationReport
from voicechart.engines.testing import (
    HANDS_FREE,
    OnCancel,
    Rehearsal,
    Script,
    ScriptedRecognizer,
    ScriptedResponder,
    ScriptedSynthesizer,
    SpeechScript,
    hears,
    says,
    scripted_error,
)
from voicechart.statecharts import actions as do
from voicechart.statecharts.facts import SpeechStarted, TurnCancelled
from voicechart.statecharts.policies import Policies
from voicechart.statecharts.published import StreamError
from voicechart.statecharts.values import DeliveryStatus, PositionSource

pytestmark = [pytest.mark.anyio, pytest.mark.slow]
MS_PER_CHAR = 15
SENTENCES = (
    "Once upon a time there was a clock.",
    "It told the time to nobody at all.",
    "One day somebody asked it a thing.",
    "It answered that it was half past.",
    "And so it was glad for evermore.",
)
STORY = " ".join(SENTENCES)
WISH = "Very well, as you wish."


@dataclass(frozen=True, slots=True)
class Heard:
    """An unbroken run of one unit's samples in what was rendered."""

    epoch: int
    unit: int
    samples: int


def samples_of(text: str) -> int:
    return SPEECH_FORMAT.samples_for_ms(MS_PER_CHAR * len(text))


@dataclass
class SocketDevice:
    """The daemon's way to the service."""

    path: Path
    boards: list[BoardAudio] = field(default_factory=list[BoardAudio])

    @asynccontextmanager
    async def connect(self) -> AsyncGenerator[BoardAudio, None]:
        async with BoardAudio.connect(self.path) as board:
            self.boards.append(board)
            yield board


@dataclass
class Room:
    """An audio service with its devices, and what was heard of them."""

    device: SocketDevice
    speaker: WavSpeaker
    rendered: list[RenderedSpan]
    wav: Path

    @property
    def heard(self) -> list[Heard]:
        """What was rendered, once the service has ended."""
        data = read_wav(self.wav).data
        samples = memoryview(data).cast("h")
        return [Heard((value - 1) // 100, (value - 1) % 100, sum(1 for _ in run)) for value, run in groupby(samples)]

    def rendered_of(self, epoch: int) -> int:
        """Samples of an epoch that the service has rendered so far: one gapless run from its first one."""
        end = 0
        for span in self.rendered:
            if span.output_epoch == epoch:
                assert span.start_sample == end
                end = span.end_sample
        return end

    @property
    def order(self) -> list[int]:
        """Epochs in the order in which they were rendered."""
        return [epoch for epoch, _ in groupby(span.output_epoch for span in self.rendered)]


@asynccontextmanager
async def room(folder: Path, *, hardware_ms: int = 0, takes_back: bool = True) -> AsyncGenerator[Room, None]:
    wav = folder / "heard.wav"
    speaker = WavSpeaker(wav, SPEECH_FORMAT, hardware_ms=hardware_ms, takes_back=takes_back)
    rendered: list[RenderedSpan] = []
    path = folder / "audio.sock"
    async with anyio.create_task_group() as tasks:

        async def serve(*, task_status: anyio.abc.TaskStatus[None]) -> None:
            await serve_audio(path, WavMicrophone(), speaker, log_rendered=rendered.append, task_status=task_status)

        await tasks.start(serve)
        yield Room(SocketDevice(path), speaker, rendered, wav)
        tasks.cancel_scope.cancel()


def rehearsal_in(
    here: Room,
    *,
    speech: SpeechScript | None = None,
    reply: Script[GenerationReport] | None = None,
    policies: Policies = HANDS_FREE,
    recognizer: ScriptedRecognizer | None = None,
) -> Rehearsal:
    """The model tells the story, then grants every wish."""
    return Rehearsal(
        device=here.device,
        recognizer=recognizer,
        responder=ScriptedResponder(reply or Script(says(STORY)), answers=lambda _: Script(says(WISH))),
        synthesizer=ScriptedSynthesizer(
            speech or SpeechScript(ms_per_char=MS_PER_CHAR), SpeechScript(ms_per_char=MS_PER_CHAR)
        ),
        policies=policies,
    )


def delivery_of(rehearsal: Rehearsal, index: int = 0) -> Delivery:
    delivery = rehearsal.replies[index].delivery
    assert delivery is not None
    return delivery


def whole_sentences(played_samples: int | None) -> str:
    """The sentences of the story that lie whole before that position."""
    assert played_samples is not None
    end, whole = 0, list[str]()
    for sentence in SENTENCES:
        end += samples_of(sentence)
        if end <= played_samples:
            whole.append(sentence)
    return " ".join(whole)


async def until_units_are_played(rehearsal: Rehearsal, here: Room, count: int) -> None:
    """Until so many sentences of the first reply were rendered whole."""
    due = sum(samples_of(sentence) for sentence in SENTENCES[:count])
    await rehearsal.until_true(lambda: here.rendered_of(1) >= due)


# -- the cases -----------------------------------------------------------------------------------------------------


async def test_nothing_of_an_interrupted_story_is_heard_later_and_all_of_the_next_reply_is(tmp_path: Path) -> None:
    """Case 1: interrupted after two of five sentences."""
    async with room(tmp_path) as here:
        rehearsal = rehearsal_in(here, speech=SpeechScript(ms_per_char=MS_PER_CHAR, on_cancel=OnCancel.IGNORE))
        async with rehearsal.running():
            rehearsal.say("tell me a story")
            await until_units_are_played(rehearsal, here, 2)
            rehearsal.press_button()
            await rehearsal.until("delivery.recorded")
            heard_of_the_story = here.rendered_of(1)
            rehearsal.say("something else")
            await rehearsal.until("playback.drained")
    assert here.rendered_of(1) == heard_of_the_story == delivery_of(rehearsal).played_samples
    assert here.order == [1, 2]
    assert delivery_of(rehearsal).units >= 2
    assert delivery_of(rehearsal).text == whole_sentences(heard_of_the_story) != STORY
    *story, wish = here.heard
    assert [run.epoch for run in story] == [1] * len(story)
    assert wish == Heard(2, 0, samples_of(WISH))
    assert delivery_of(rehearsal, 1).text == WISH


async def test_a_synthesis_that_has_begun_and_was_not_heard_is_not_heard_in_the_next_reply(tmp_path: Path) -> None:
    """Case 2: the synthesiser is told, though nothing was rendered."""
    async with room(tmp_path) as here:
        rehearsal = rehearsal_in(here, speech=SpeechScript(ms_per_char=MS_PER_CHAR, first_frame_after_ms=2_000))
        async with rehearsal.running():
            rehearsal.say("tell me a story")
            await rehearsal.until("speech.text_committed")
            await anyio.wait_all_tasks_blocked()
            rehearsal.press_button()
            await rehearsal.until("delivery.recorded")
            rehearsal.say("something else")
            await rehearsal.until("playback.drained")
    synthesizer = rehearsal.engine.ports.synthesizer
    assert isinstance(synthesizer, ScriptedSynthesizer)
    assert synthesizer.streams[0].cancel_reason is not None
    assert here.heard == [Heard(2, 0, samples_of(WISH))]
    assert (delivery_of(rehearsal).status, delivery_of(rehearsal).text) == (DeliveryStatus.INTERRUPTED, "")


async def test_what_was_interrupted_at_its_first_frame_delivers_nothing_and_not_the_reply_before(
    tmp_path: Path,
) -> None:
    """Case 3."""
    async with room(tmp_path) as here:
        rehearsal = Rehearsal(
            device=here.device,
            responder=ScriptedResponder(Script(says(WISH)), Script(says(STORY))),
            synthesizer=ScriptedSynthesizer(SpeechScript(ms_per_char=MS_PER_CHAR)),
        )
        async with rehearsal.running():
            rehearsal.say("hello")
            await rehearsal.until("playback.drained")
            rehearsal.say("tell me a story")
            await rehearsal.until("playback.started", 2)
            rehearsal.press_button()
            await rehearsal.until("delivery.recorded", 2)
    first, second = delivery_of(rehearsal), delivery_of(rehearsal, 1)
    assert (first.status, first.text) == (DeliveryStatus.DELIVERED, WISH)
    assert (second.status, second.units, second.text) == (DeliveryStatus.INTERRUPTED, 0, "")
    assert 0 < (second.played_samples or 0) < samples_of(SENTENCES[0])


async def test_a_barge_in_after_the_model_has_finished_stops_playback_and_cancels_nothing(tmp_path: Path) -> None:
    """Case 12."""
    async with room(tmp_path) as here:
        rehearsal = rehearsal_in(here)
        async with rehearsal.running():
            rehearsal.say("tell me a story")
            await rehearsal.until("response.terminal")
            await until_units_are_played(rehearsal, here, 1)
            rehearsal.press_button()
            await rehearsal.until("delivery.recorded")
            await anyio.sleep(0.2)
    responder = rehearsal.engine.ports.responder
    assert isinstance(responder, ScriptedResponder)
    assert rehearsal.decided(do.CancelGeneration) == []
    assert responder.streams[0].cancel_reason in (None, "closed")
    assert here.rendered_of(1) == delivery_of(rehearsal).played_samples
    assert delivery_of(rehearsal).text == whole_sentences(here.rendered_of(1)) != STORY
    assert len(rehearsal.of("run.terminal")) == 1


async def test_a_gap_in_synthesis_is_bridged_by_itself_and_nothing_is_lost(tmp_path: Path) -> None:
    """Case 15."""
    async with room(tmp_path) as here:
        rehearsal = rehearsal_in(here, speech=SpeechScript(ms_per_char=MS_PER_CHAR, first_frame_after_ms=700))
        async with rehearsal.running():
            rehearsal.say("tell me a story")
            await rehearsal.until("playback.drained")
    assert len(rehearsal.of("playback.underrun")) >= 3
    assert here.heard == [Heard(1, index, samples_of(sentence)) for index, sentence in enumerate(SENTENCES)]
    assert delivery_of(rehearsal).text == STORY


async def test_audio_made_far_faster_than_real_time_queues_at_most_a_second_and_the_stop_does_not_wait_for_it(
    tmp_path: Path,
) -> None:
    """Case 16."""
    async with room(tmp_path) as here:
        rehearsal = rehearsal_in(here)
        async with rehearsal.running():
            rehearsal.say("tell me a story")
            await until_units_are_played(rehearsal, here, 1)
            board = here.device.boards[0].speaker
            assert 500 < board.statistics.peak_queued_ms <= 1_000
            rehearsal.press_button()
            await rehearsal.until("delivery.recorded")
            heard = here.rendered_of(1)
            await anyio.sleep(1.2)
            assert here.rendered_of(1) == heard
    assert here.device.boards[0].speaker.statistics.peak_queued_ms <= 1_000
    assert heard < sum(samples_of(sentence) for sentence in SENTENCES)


@pytest.mark.parametrize("takes_back", [True, False])
async def test_what_the_device_holds_is_flushed_or_admitted_and_the_receipt_tells_what_was_heard(
    tmp_path: Path, takes_back: bool
) -> None:
    """Case 17: 400 ms are in the hardware when the interruption comes."""
    async with room(tmp_path, hardware_ms=400, takes_back=takes_back) as here:
        rehearsal = rehearsal_in(here)
        async with rehearsal.running():
            rehearsal.say("tell me a story")
            await until_units_are_played(rehearsal, here, 1)
            heard_at_the_stop = here.rendered_of(1)
            rehearsal.press_button()
            await rehearsal.until("delivery.recorded")
            rehearsal.say("something else")
            await rehearsal.until("playback.drained")
    delivery = delivery_of(rehearsal)
    assert delivery.played_samples == here.rendered_of(1)
    assert delivery.source is PositionSource.MEASURED
    after_the_stop_ms = SPEECH_FORMAT.duration_ms(here.rendered_of(1) - heard_at_the_stop)
    # What the hardware held is heard only where it cannot be taken back.
    assert (after_the_stop_ms < 380) == takes_back
    assert here.order == [1, 2]
    assert here.heard[-1] == Heard(2, 0, samples_of(WISH))


async def test_a_frame_of_the_old_reply_that_comes_after_the_new_one_began_is_dropped_and_counted(
    tmp_path: Path,
) -> None:
    """Case 18: correctly labelled old, at both gates of this side."""
    late = AudioFrame(b"\x7f\x7f" * 320, SPEECH_FORMAT, 0)
    async with room(tmp_path) as here:
        rehearsal = rehearsal_in(here, reply=Script(says(STORY)))
        async with rehearsal.running():
            rehearsal.say("tell me a story")
            await rehearsal.until("playback.started")
            rehearsal.press_button()
            await rehearsal.until("delivery.recorded")
            rehearsal.say("something else")
            await rehearsal.until("playback.started", 2)
            gate, board = rehearsal.engine.gate, here.device.boards[0].speaker
            stale_before = gate.stale_frames
            for _ in range(5):
                assert not await gate.write(1, 1, late)
            assert gate.stale_frames == stale_before + 5
            stale_before = board.statistics.stale_frames
            for _ in range(5):
                await board.write(1, 1, late)
            assert board.statistics.stale_frames == stale_before + 5
            await rehearsal.until("playback.drained")
    assert [run.epoch for run in here.heard if run.epoch == 1] == [1]
    assert here.heard[-1] == Heard(2, 0, samples_of(WISH))


async def test_a_reply_does_not_talk_over_a_user_who_went_on_speaking(tmp_path: Path) -> None:
    """Case 19: its first audio is held while the user has the floor, and heard whole afterwards."""
    async with room(tmp_path) as here:
        rehearsal = rehearsal_in(
            here,
            recognizer=ScriptedRecognizer(Script(hears(""))),
            reply=Script(says(WISH, first_token_ms=125)),
        )
        async with rehearsal.running():
            rehearsal.say("what is it")
            await rehearsal.until("response.started")
            rehearsal.tell(SpeechStarted(at=rehearsal.now_ns))
            began = await rehearsal.until("audio.started")
            assert began.as_json()["payload"]["held"]
            await anyio.sleep(0.4)
            assert here.rendered == []
            rehearsal.tell(TurnCancelled(at=rehearsal.now_ns))
            await rehearsal.until("playback.drained")
    assert here.heard == [Heard(1, 0, samples_of(WISH))]
    assert delivery_of(rehearsal).text == WISH


async def test_a_sentence_that_could_not_be_synthesised_is_not_delivered_and_not_spoken_again(tmp_path: Path) -> None:
    """Case 22."""
    async with room(tmp_path) as here:
        broken = SpeechScript(
            ms_per_char=MS_PER_CHAR, fails_at_unit=4, failure=scripted_error("voice_died", "synthesis")
        )
        rehearsal = rehearsal_in(here, speech=broken)
        async with rehearsal.running():
            rehearsal.say("tell me a story")
            await rehearsal.until("delivery.recorded")
            rehearsal.say("something else")
            await rehearsal.until("delivery.recorded", 2)
    assert here.heard == [
        *(Heard(1, index, samples_of(sentence)) for index, sentence in enumerate(SENTENCES[:4])),
        Heard(1, 0, samples_of(WISH)),
    ]
    assert (delivery_of(rehearsal).status, delivery_of(rehearsal).text) == (
        DeliveryStatus.FAILED,
        " ".join(SENTENCES[:4]),
    )
    errors = [e.payload.error.code for e in rehearsal.of("stream.error") if isinstance(e.payload, StreamError)]
    assert errors == ["voice_died"]
    assert rehearsal.left_behind == ()
