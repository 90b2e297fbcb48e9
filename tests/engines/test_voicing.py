"""From text to the speaker: streaming, interruption, and synthesisers and speakers that fail."""

from __future__ import annotations

from dataclasses import replace

import anyio
import pytest
from trio.testing import MockClock

from voicechart.engines.history import Delivery
from voicechart.engines.ports import SpeechUnit, SynthesisRequest
from voicechart.engines.reports import PortError
from voicechart.engines.testing import (
    HANDS_FREE,
    LinkScript,
    OnCancel,
    Rehearsal,
    Script,
    ScriptedDevice,
    ScriptedRecognizer,
    ScriptedResponder,
    ScriptedSynthesisStream,
    ScriptedSynthesizer,
    SpeakerScript,
    SpeechScript,
    hears,
    marker,
    says,
    scripted_error,
)
from voicechart.statecharts.facts import SpeechStarted, TurnCancelled
from voicechart.statecharts.policies import GenerationPolicy, InterruptionPolicy, PlaybackPolicy, TurnPolicy
from voicechart.statecharts.published import StreamError
from voicechart.statecharts.values import DeliveryStatus, InterruptionSource

pytestmark = pytest.mark.anyio
SENTENCES = (
    "Once upon a time there was a clock.",
    "It told the time to nobody at all.",
    "One day somebody asked it a thing.",
    "And so it was glad for evermore.",
)
STORY = " ".join(SENTENCES)


@pytest.fixture
def anyio_backend() -> object:
    return "trio", {"clock": MockClock(autojump_threshold=0)}


def telling(synthesizer: ScriptedSynthesizer | None = None, device: ScriptedDevice | None = None) -> Rehearsal:
    """A rehearsal whose model tells the story, and then says something short for ever."""
    return Rehearsal(
        responder=ScriptedResponder(Script(says(STORY)), answers=lambda _: Script(says("Very well, as you wish."))),
        synthesizer=synthesizer,
        device=device or ScriptedDevice(),
    )


def delivery_of(rehearsal: Rehearsal, index: int = 0) -> Delivery:
    delivery = rehearsal.replies[index].delivery
    assert delivery is not None
    return delivery


def error_codes(rehearsal: Rehearsal) -> list[str]:
    return [
        event.payload.error.code for event in rehearsal.of("stream.error") if isinstance(event.payload, StreamError)
    ]


def device_of(rehearsal: Rehearsal) -> ScriptedDevice:
    device = rehearsal.engine.ports.device
    assert isinstance(device, ScriptedDevice)
    return device


# -- speaking ------------------------------------------------------------------------------------------------------


async def test_everything_is_rendered_once_and_in_order() -> None:
    rehearsal = telling()
    async with rehearsal.running():
        rehearsal.say("tell me a story")
        await rehearsal.until("playback.drained")
    output = device_of(rehearsal).speaker.outputs[1]
    heard = output.heard_pcm
    expected = b"".join(
        marker(output.opening.output_epoch, index).to_bytes(2, "little") * (len(sentence) * 60 * 16)
        for index, sentence in enumerate(SENTENCES)
    )
    assert heard == expected
    assert delivery_of(rehearsal).units == 4
    assert device_of(rehearsal).speaker.peak_queued_ms <= 1_000


async def test_no_more_than_the_budget_of_text_waits_in_the_synthesiser() -> None:
    synthesizer = ScriptedSynthesizer()
    rehearsal = telling(synthesizer)
    async with rehearsal.running():
        rehearsal.say("tell me a story")
        await rehearsal.until("playback.started")
        # One sentence is about 2.3 s by estimate: the next is handed in when less than 2 s of the first are left.
        assert [unit.index for unit in synthesizer.streams[0].units] == [0, 1]
        await rehearsal.until("playback.drained")
    assert [unit.text for unit in synthesizer.streams[0].units] == list(SENTENCES)


async def test_a_gap_in_synthesis_rebuffers_and_goes_on_by_itself() -> None:
    """Case 15."""
    synthesizer = ScriptedSynthesizer(SpeechScript(first_frame_after_ms=3_000))
    rehearsal = telling(synthesizer)
    async with rehearsal.running():
        rehearsal.say("tell me a story")
        await rehearsal.until("playback.drained")
    assert len(rehearsal.of("playback.underrun")) == 3
    assert delivery_of(rehearsal).text == STORY


# -- interruption --------------------------------------------------------------------------------------------------


async def test_only_whole_confirmed_units_count_as_delivered() -> None:
    rehearsal = telling()
    async with rehearsal.running():
        rehearsal.say("tell me a story")
        # The first sentence lasts 2.1 s, the second one to 4.14 s.
        await rehearsal.until("playback.progress", 38)
        rehearsal.press_button()
        await rehearsal.until("delivery.recorded")
    delivery = delivery_of(rehearsal)
    assert (delivery.status, delivery.units, delivery.text) == (DeliveryStatus.INTERRUPTED, 1, SENTENCES[0])
    assert delivery.played_samples == device_of(rehearsal).speaker.outputs[1].heard_samples


async def test_nothing_is_delivered_before_a_whole_unit_was_heard() -> None:
    """Case 3: not the whole answer, and never the former reply's."""
    rehearsal = telling()
    async with rehearsal.running():
        rehearsal.say("tell me a story")
        await rehearsal.until("playback.started")
        rehearsal.press_button()
        await rehearsal.until("delivery.recorded")
    delivery = delivery_of(rehearsal)
    assert (delivery.status, delivery.units, delivery.text) == (DeliveryStatus.INTERRUPTED, 0, "")


async def test_after_an_interruption_nothing_of_the_old_reply_reaches_the_speaker_and_all_of_the_new_one_does() -> None:
    """Case 1."""
    synthesizer = ScriptedSynthesizer(SpeechScript(on_cancel=OnCancel.IGNORE, frame_every_ms=20), SpeechScript())
    rehearsal = telling(synthesizer)
    async with rehearsal.running():
        rehearsal.say("tell me a story")
        await rehearsal.until("playback.progress", 30)
        speaker = device_of(rehearsal).speaker
        rehearsal.press_button()
        await rehearsal.until("interruption.accepted")
        written, heard = speaker.outputs[1].written_samples, speaker.outputs[1].heard_samples
        rehearsal.say("something else")
        await rehearsal.until("playback.drained")
    assert (speaker.outputs[1].written_samples, speaker.outputs[1].heard_samples) == (written, heard)
    assert speaker.outputs[2].heard_samples == len("Very well, as you wish.") * 60 * 16
    assert delivery_of(rehearsal, 1).text == "Very well, as you wish."
    assert rehearsal.left_behind == ()


async def test_a_synthesis_is_cancelled_from_its_start_also_before_anything_was_heard() -> None:
    """Case 2."""
    synthesizer = ScriptedSynthesizer(SpeechScript(first_frame_after_ms=500), SpeechScript())
    rehearsal = telling(synthesizer)
    async with rehearsal.running():
        rehearsal.say("tell me a story")
        await rehearsal.until("speech.text_committed")
        await anyio.wait_all_tasks_blocked()
        rehearsal.press_button()
        await rehearsal.until("delivery.recorded")
        rehearsal.say("something else")
        await rehearsal.until("playback.drained")
    assert synthesizer.streams[0].cancel_reason is not None
    assert synthesizer.streams[0].closed
    assert [output.opening.output_epoch for output in device_of(rehearsal).speaker.outputs.values()] == [2]


async def test_a_synthesiser_that_is_still_opening_is_given_up_at_once() -> None:
    synthesizer = ScriptedSynthesizer(SpeechScript(open_after_ms=60_000), SpeechScript())
    rehearsal = telling(synthesizer)
    async with rehearsal.running():
        rehearsal.say("tell me a story")
        await rehearsal.until("text.final")
        rehearsal.press_button()
        await rehearsal.until("delivery.recorded")
        rehearsal.say("something else")
        await rehearsal.until("playback.drained")
    assert len(synthesizer.streams) == 1
    assert delivery_of(rehearsal, 1).status is DeliveryStatus.DELIVERED


async def test_a_reply_that_is_ready_while_the_user_speaks_is_held_and_then_heard() -> None:
    """Case 19, and an output that is released before the speaker knows it."""
    rehearsal = Rehearsal(
        responder=ScriptedResponder(Script(says(STORY))),
        recognizer=ScriptedRecognizer(Script(hears(""))),
        device=ScriptedDevice(LinkScript(speaker=SpeakerScript(open_after_ms=300))),
    )
    async with rehearsal.running():
        rehearsal.say("tell me a story")
        rehearsal.tell(SpeechStarted(at=rehearsal.now_ns))
        began = await rehearsal.until("audio.started")
        assert began.as_json()["payload"]["held"]
        rehearsal.tell(TurnCancelled(at=rehearsal.now_ns))
        await rehearsal.until("playback.drained")
    assert delivery_of(rehearsal).text == STORY


async def test_a_reply_that_is_paused_for_longer_than_a_write_may_take_goes_on_where_it_paused() -> None:
    """Case 14, with a patient policy."""
    policies = replace(
        HANDS_FREE,
        interruption=InterruptionPolicy(
            sources=frozenset(InterruptionSource), full_duplex=True, pause_first=True, false_alarm_ms=20_000
        ),
        turn=TurnPolicy(input_timeout_ms=60_000),
    )
    rehearsal = Rehearsal(
        responder=ScriptedResponder(Script(says(STORY))),
        recognizer=ScriptedRecognizer(Script(hears(""))),
        policies=policies,
    )
    async with rehearsal.running():
        rehearsal.say("tell me a story")
        await rehearsal.until("playback.progress", 3)
        rehearsal.tell(SpeechStarted(at=rehearsal.now_ns))
        await rehearsal.until("playback.paused")
        await rehearsal.until("playback.resumed")
        await rehearsal.until("playback.drained")
    assert delivery_of(rehearsal).text == STORY
    assert error_codes(rehearsal) == []


# -- synthesisers that fail ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("script", "code", "units"),
    [
        (SpeechScript(open_error=scripted_error("voice_missing", "synthesis")), "voice_missing", 0),
        (SpeechScript(fails_at_unit=0), "scripted", 0),
        (SpeechScript(fails_at_unit=3), "scripted", 3),
        (SpeechScript(ends_without_terminal=True), "synthesizer_cut_off", 4),
        (SpeechScript(open_after_ms=3_600_000), "synthesizer_not_opened", 0),
    ],
)
async def test_a_synthesiser_that_fails_is_told_and_only_what_was_heard_is_delivered(
    script: SpeechScript, code: str, units: int
) -> None:
    """Case 22: the rest is not delivered, and not silently spoken again."""
    synthesizer = ScriptedSynthesizer(script, SpeechScript())
    rehearsal = Rehearsal(
        responder=ScriptedResponder(Script(says(STORY)), Script(says("Very well, as you wish."))),
        synthesizer=synthesizer,
        policies=replace(HANDS_FREE, generation=GenerationPolicy(first_audio_ms=60_000)),
    )
    async with rehearsal.running():
        rehearsal.say("tell me a story")
        await rehearsal.until("delivery.recorded")
        rehearsal.say("again")
        await rehearsal.until("delivery.recorded", 2)
    delivery = delivery_of(rehearsal)
    assert (delivery.status, delivery.units, delivery.text) == (
        DeliveryStatus.FAILED,
        units,
        " ".join(SENTENCES[:units]),
    )
    assert error_codes(rehearsal) == [code]
    assert synthesizer.opened == 2
    assert delivery_of(rehearsal, 1).status is DeliveryStatus.DELIVERED
    assert rehearsal.left_behind == ()


class _Refusing(ScriptedSynthesisStream):
    """Takes one unit, and no other."""

    async def write(self, unit: SpeechUnit) -> None:
        if unit.index:
            raise PortError(scripted_error("unit_refused", "synthesis"))
        await super().write(unit)


class _RefusingSynthesizer(ScriptedSynthesizer):
    async def open(self, request: SynthesisRequest) -> ScriptedSynthesisStream:
        return _Refusing(request, SpeechScript(), self.format)


async def test_a_synthesiser_that_refuses_a_unit_is_a_failure_and_the_end_is_where_the_audio_ends() -> None:
    rehearsal = telling(_RefusingSynthesizer())
    async with rehearsal.running():
        rehearsal.say("tell me a story")
        await rehearsal.until("delivery.recorded")
    assert error_codes(rehearsal) == ["unit_refused"]
    output = device_of(rehearsal).speaker.outputs[1]
    assert output.end_sample == output.heard_samples == output.written_samples
    assert delivery_of(rehearsal).status is DeliveryStatus.FAILED


async def test_a_synthesiser_that_never_makes_a_sound_is_given_up_within_the_deadline() -> None:
    synthesizer = ScriptedSynthesizer(SpeechScript(first_frame_after_ms=3_600_000), SpeechScript())
    rehearsal = telling(synthesizer)
    async with rehearsal.running():
        began_s = anyio.current_time()
        rehearsal.say("tell me a story")
        await rehearsal.until("delivery.recorded")
        assert anyio.current_time() - began_s == pytest.approx(10, abs=0.5)
        rehearsal.say("again")
        await rehearsal.until("playback.drained")
    assert delivery_of(rehearsal).status is DeliveryStatus.FAILED
    assert synthesizer.streams[0].closed
    assert rehearsal.left_behind == ()


# -- speakers that fail --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("script", "code"),
    [
        (SpeakerScript(open_error=scripted_error("wrong_format", "playback")), "wrong_format"),
        (SpeakerScript(write_error=scripted_error("queue_refused", "playback")), "queue_refused"),
        (SpeakerScript(stands_still=True, write_deadline_ms=1_000), "speaker_stalled"),
    ],
)
async def test_a_speaker_that_fails_ends_the_reply_with_its_error_and_the_session_goes_on(
    script: SpeakerScript, code: str
) -> None:
    synthesizer = ScriptedSynthesizer()
    rehearsal = telling(synthesizer, ScriptedDevice(LinkScript(speaker=script)))
    async with rehearsal.running():
        rehearsal.say("tell me a story")
        await rehearsal.until("delivery.recorded")
        assert rehearsal.session.closed is None
    assert code in error_codes(rehearsal)
    delivery = delivery_of(rehearsal)
    assert (delivery.status, delivery.text) == (DeliveryStatus.FAILED, "")
    assert synthesizer.streams[0].closed
    assert rehearsal.left_behind == ()


async def test_a_speaker_without_receipts_is_given_up_within_the_deadline() -> None:
    policies = replace(HANDS_FREE, playback=PlaybackPolicy(stall_ms=1_000))
    rehearsal = Rehearsal(
        device=ScriptedDevice(LinkScript(speaker=SpeakerScript(receipts=False))),
        responder=ScriptedResponder(Script(says(STORY))),
        policies=policies,
    )
    async with rehearsal.running():
        rehearsal.say("tell me a story")
        await rehearsal.until("delivery.recorded")
    assert delivery_of(rehearsal).status is DeliveryStatus.FAILED
    assert "playback_stalled" in error_codes(rehearsal)
    assert rehearsal.left_behind == ()


async def test_a_speaker_that_cannot_tell_positions_plays_to_the_end() -> None:
    rehearsal = telling(device=ScriptedDevice(LinkScript(speaker=SpeakerScript(knows_position=False))))
    async with rehearsal.running():
        rehearsal.say("tell me a story")
        await rehearsal.until("playback.drained")
    assert delivery_of(rehearsal).status is DeliveryStatus.DELIVERED
