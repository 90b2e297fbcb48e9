"""Interruption policies on a whole session: what the user says, and what a speaker that pauses lets be heard."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from trio.testing import MockClock

from voicechart.audio.voice_activity import VoiceActivitySettings
from voicechart.engines.testing import (
    LinkScript,
    Rehearsal,
    Script,
    ScriptedDevice,
    ScriptedMicrophone,
    ScriptedOutput,
    ScriptedRecognizer,
    ScriptedResponder,
    SpeakerScript,
    hears,
    says,
)
from voicechart.statecharts.actions import PausePlayback, RecordDelivery, RecordInterruption, ResumePlayback
from voicechart.statecharts.facts import ProviderInterrupted
from voicechart.statecharts.policies import InterruptionPolicy, Policies, TurnPolicy
from voicechart.statecharts.values import DeliveryStatus, InterruptionSource

pytestmark = pytest.mark.anyio
VOICE = 1_000
QUICK = VoiceActivitySettings(min_speech_ms=64, min_silence_ms=320)
STORY = "Once upon a time there was a clock that told the time to nobody at all. " * 3
ALL = frozenset(InterruptionSource)
DELIVERED, INTERRUPTED = DeliveryStatus.DELIVERED, DeliveryStatus.INTERRUPTED


@pytest.fixture
def anyio_backend() -> object:
    return "trio", {"clock": MockClock(autojump_threshold=0)}


def session(*said: str, pause: bool = True, **policy: Any) -> Rehearsal:  # noqa: ANN401 - fields of a policy
    """The user will say these, one utterance each, while a story is told."""
    return Rehearsal(
        recognizer=ScriptedRecognizer(*(Script(hears(text, every_samples=3_200)) for text in said)),
        device=ScriptedDevice(LinkScript(speaker=SpeakerScript(pause=pause))),
        responder=ScriptedResponder(answers=lambda _: Script(says(STORY))),
        voice_activity_settings=QUICK,
        policies=Policies(
            turn=TurnPolicy(continuation_window_ms=0),
            interruption=replace(InterruptionPolicy(ALL, full_duplex=True), **policy),
        ),
    )


def microphone_of(rehearsal: Rehearsal) -> ScriptedMicrophone:
    device = rehearsal.engine.ports.device
    assert isinstance(device, ScriptedDevice)
    return device.microphone


def outputs_of(rehearsal: Rehearsal) -> list[ScriptedOutput]:
    device = rehearsal.engine.ports.device
    assert isinstance(device, ScriptedDevice)
    return list(device.speaker.outputs.values())


async def hear_the_story(rehearsal: Rehearsal) -> None:
    rehearsal.say("tell me a story")
    await rehearsal.until("playback.started")
    await microphone_of(rehearsal).listen(400)


async def speak(rehearsal: Rehearsal, duration_ms: int = 600, after_ms: int = 600) -> None:
    await microphone_of(rehearsal).listen(duration_ms, VOICE)
    await microphone_of(rehearsal).listen(after_ms)


def first_delivery(rehearsal: Rehearsal) -> DeliveryStatus:
    return rehearsal.decided(RecordDelivery)[0].status


def sources(rehearsal: Rehearsal) -> list[InterruptionSource]:
    return [action.source for action in rehearsal.decided(RecordInterruption)]


# -- pause first ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["mhm", "嗯嗯", "好的", ""])
async def test_a_reply_that_was_paused_for_nothing_goes_on_where_it_stopped(text: str) -> None:
    rehearsal = session(text, pause_first=True)
    async with rehearsal.running():
        await hear_the_story(rehearsal)
        await speak(rehearsal)
        await rehearsal.until("delivery.recorded")
    assert len(rehearsal.decided(PausePlayback)) == len(rehearsal.decided(ResumePlayback)) == 1
    (output,) = outputs_of(rehearsal)
    assert output.heard_pcm == bytes(output.pcm), "something was skipped or said twice"
    assert first_delivery(rehearsal) is DELIVERED
    assert sources(rehearsal) == []


async def test_while_a_reply_is_paused_nothing_of_it_is_heard() -> None:
    rehearsal = session("mhm", pause_first=True)
    async with rehearsal.running():
        await hear_the_story(rehearsal)
        microphone = microphone_of(rehearsal)
        await microphone.listen(160, VOICE)
        await rehearsal.until_true(lambda: bool(rehearsal.decided(PausePlayback)))
        (output,) = outputs_of(rehearsal)
        heard = output.heard_samples
        await microphone.listen(400, VOICE)
        assert output.paused
        assert output.heard_samples == heard
        await microphone.listen(600)
        await rehearsal.until("delivery.recorded")
    assert first_delivery(rehearsal) is DELIVERED


async def test_words_that_count_end_a_paused_reply_at_the_sample_where_it_was_paused() -> None:
    rehearsal = session("stop that please", pause_first=True, min_words=2)
    async with rehearsal.running():
        await hear_the_story(rehearsal)
        await speak(rehearsal, duration_ms=1_000)
        await rehearsal.until("delivery.recorded", 2)
    assert first_delivery(rehearsal) is INTERRUPTED
    assert not rehearsal.decided(ResumePlayback)
    first = outputs_of(rehearsal)[0]
    assert 0 < first.heard_samples < first.written_samples
    assert rehearsal.decided(RecordDelivery)[0].played_samples == first.heard_samples


async def test_a_speaker_that_cannot_pause_goes_on_until_words_count() -> None:
    rehearsal = session("mhm", pause_first=True, pause=False)
    async with rehearsal.running():
        await hear_the_story(rehearsal)
        await speak(rehearsal)
        await rehearsal.until("delivery.recorded")
    assert not rehearsal.decided(PausePlayback)
    assert first_delivery(rehearsal) is DELIVERED


# -- words, duration, back-off -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "min_words", "status"),
    [
        ("stop", 1, INTERRUPTED),
        ("stop", 2, DELIVERED),
        ("stop it", 2, INTERRUPTED),
        ("okay", 1, DELIVERED),
        ("okay stop", 1, INTERRUPTED),
        ("停下来", 3, INTERRUPTED),
        ("停下来", 4, DELIVERED),
        ("对对对", 1, DELIVERED),
        ("是的好的", 1, DELIVERED),
        ("不是", 1, INTERRUPTED),
    ],
)
async def test_enough_words_interrupt_unless_they_are_backchannels(
    text: str, min_words: int, status: DeliveryStatus
) -> None:
    rehearsal = session(text, "", min_words=min_words)
    async with rehearsal.running():
        await hear_the_story(rehearsal)
        await speak(rehearsal)
        await rehearsal.until("delivery.recorded")
    assert first_delivery(rehearsal) is status
    assert sources(rehearsal) == ([InterruptionSource.SPEECH] if status is INTERRUPTED else [])


@pytest.mark.parametrize(("duration_ms", "status"), [(300, DELIVERED), (900, INTERRUPTED)])
async def test_unbroken_speech_interrupts_before_any_word_is_known(duration_ms: int, status: DeliveryStatus) -> None:
    rehearsal = session("", "", min_duration_ms=500)
    async with rehearsal.running():
        await hear_the_story(rehearsal)
        await speak(rehearsal, duration_ms=duration_ms)
        await rehearsal.until("delivery.recorded")
    assert first_delivery(rehearsal) is status


async def test_after_an_interruption_the_next_reply_is_left_alone_for_a_while() -> None:
    rehearsal = session("stop it", "stop again", backoff_ms=20_000)
    async with rehearsal.running():
        await hear_the_story(rehearsal)
        await speak(rehearsal)
        await rehearsal.until("playback.started", 2)
        await speak(rehearsal)
        await rehearsal.until("delivery.recorded", 2)
    assert [delivery.status for delivery in rehearsal.decided(RecordDelivery)][:2] == [INTERRUPTED, DELIVERED]
    assert sources(rehearsal) == [InterruptionSource.SPEECH]


# -- who may -------------------------------------------------------------------------------------------------------


def interrupt(rehearsal: Rehearsal, source: InterruptionSource) -> None:
    match source:
        case InterruptionSource.BUTTON:
            rehearsal.press_button()
        case InterruptionSource.CLIENT:
            rehearsal.cancel()
        case InterruptionSource.PROVIDER:
            rehearsal.tell(ProviderInterrupted(at=rehearsal.now_ns))
        case InterruptionSource.SPEECH:
            raise AssertionError("speech takes its time")


@pytest.mark.parametrize("source", [InterruptionSource.BUTTON, InterruptionSource.CLIENT, InterruptionSource.PROVIDER])
@pytest.mark.parametrize("allowed", [True, False])
async def test_each_source_interrupts_where_it_may(source: InterruptionSource, allowed: bool) -> None:
    rehearsal = session(sources=ALL if allowed else ALL - {source})
    async with rehearsal.running():
        await hear_the_story(rehearsal)
        interrupt(rehearsal, source)
        await rehearsal.until("delivery.recorded")
    assert first_delivery(rehearsal) is (INTERRUPTED if allowed else DELIVERED)
    assert sources(rehearsal) == ([source] if allowed else [])


async def test_an_uninterruptible_reply_is_heard_to_its_end_and_what_was_said_is_answered_then() -> None:
    rehearsal = session("stop it", interruptible=False)
    async with rehearsal.running():
        await hear_the_story(rehearsal)
        rehearsal.press_button()
        await speak(rehearsal)
        await rehearsal.until("turn.committed", 2)
        await rehearsal.until("delivery.recorded", 2)
    assert [delivery.status for delivery in rehearsal.decided(RecordDelivery)] == [DELIVERED, DELIVERED]
    assert sources(rehearsal) == []
    assert all(output.heard_pcm == bytes(output.pcm) for output in outputs_of(rehearsal))
