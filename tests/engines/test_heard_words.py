"""An interrupted reply is remembered up to the word that was heard, where somebody can tell."""

from __future__ import annotations

from dataclasses import replace

import pytest
from trio.testing import MockClock

from voicechart.adapters.local import EspeakSynthesizer
from voicechart.engines.history import INTERRUPTED_MARKER, Cut, Delivery
from voicechart.engines.ports import Synthesizer
from voicechart.engines.testing import (
    LinkScript,
    Rehearsal,
    Script,
    ScriptedDevice,
    ScriptedResponder,
    ScriptedSynthesizer,
    SpeakerScript,
    SpeechScript,
    says,
    scripted_error,
)
from voicechart.statecharts.values import DeliveryStatus

pytestmark = pytest.mark.anyio

FIRST = "Once upon a time there was a clock."
SECOND = "It told **the time** to nobody at all, [in a tower](http://tower.example/it) by the sea."
MS_PER_CHAR = 60
ALIGNED = SpeechScript(word_times=True, ms_per_char=MS_PER_CHAR)


@pytest.fixture
def anyio_backend() -> object:
    return "trio", {"clock": MockClock(autojump_threshold=0)}


def telling(synthesizer: Synthesizer, speaker: SpeakerScript | None = None, written: str = "") -> Rehearsal:
    """A rehearsal whose model tells the story, and then says something short."""
    return Rehearsal(
        responder=ScriptedResponder(Script(says(written or f"{FIRST} {SECOND}")), Script(says("Very well."))),
        synthesizer=synthesizer,
        device=ScriptedDevice(LinkScript(speaker=speaker or SpeakerScript())),
    )


async def interrupted_after(rehearsal: Rehearsal, tenths_of_a_second: int) -> Delivery:
    """What is on record of the story when the button is pressed then, and the next question asked."""
    async with rehearsal.running():
        rehearsal.say("tell me a story")
        await rehearsal.until("playback.progress", tenths_of_a_second)
        rehearsal.press_button()
        await rehearsal.until("delivery.recorded")
        rehearsal.say("something else")
        await rehearsal.until("playback.drained")
    return delivery_of(rehearsal)


def delivery_of(rehearsal: Rehearsal) -> Delivery:
    delivery = rehearsal.replies[0].delivery
    assert delivery is not None
    return delivery


def context_of_the_next_question(rehearsal: Rehearsal) -> list[str]:
    responder = rehearsal.engine.ports.responder
    assert isinstance(responder, ScriptedResponder)
    return [message.text for message in responder.requests[1].messages]


@pytest.mark.parametrize(
    ("tenths", "units", "heard"),
    [
        # "Once upon a time" ends after 16 characters, 0.96 s; progress is told each tenth of a second.
        (1, 0, ""),
        (4, 0, "Once"),
        (11, 0, "Once upon a time"),
        (20, 0, "Once upon a time there was a"),
        (22, 1, FIRST),
        (26, 1, f"{FIRST} It told"),
        (40, 1, f"{FIRST} It told **the time** to nobody at"),
        # A link is spoken by its text.
        (48, 1, f"{FIRST} It told **the time** to nobody at all, [in a tower"),
        (53, 1, f"{FIRST} It told **the time** to nobody at all, [in a tower](http://tower.example/it) by the"),
    ],
)
async def test_the_record_ends_with_the_last_word_that_was_played_whole(tenths: int, units: int, heard: str) -> None:
    rehearsal = telling(ScriptedSynthesizer(ALIGNED))
    delivery = await interrupted_after(rehearsal, tenths)
    assert (delivery.status, delivery.units, delivery.text) == (DeliveryStatus.INTERRUPTED, units, heard)
    assert delivery.cut is (Cut.UNIT if heard in ("", FIRST) else Cut.WORD)
    assert context_of_the_next_question(rehearsal) == [
        "tell me a story",
        f"{heard} {INTERRUPTED_MARKER}".strip(),
        "something else",
    ]


@pytest.mark.parametrize(
    ("script", "speaker", "status"),
    [
        (SpeechScript(), SpeakerScript(), DeliveryStatus.INTERRUPTED),
        (ALIGNED, SpeakerScript(stop_receipts=False), DeliveryStatus.UNKNOWN),
    ],
    ids=["no word times", "no receipt"],
)
async def test_whole_units_count_where_nobody_can_tell_the_word(
    script: SpeechScript, speaker: SpeakerScript, status: DeliveryStatus
) -> None:
    delivery = await interrupted_after(telling(ScriptedSynthesizer(script), speaker), 30)
    assert (delivery.status, delivery.units, delivery.text, delivery.cut) == (status, 1, FIRST, Cut.UNIT)


async def test_a_speaker_that_does_not_know_where_it_is_gives_no_word() -> None:
    rehearsal = telling(ScriptedSynthesizer(ALIGNED), SpeakerScript(knows_position=False))
    async with rehearsal.running():
        rehearsal.say("tell me a story")
        await rehearsal.until("playback.progress", 30)
        rehearsal.press_button()
        await rehearsal.until("delivery.recorded")
    delivery = delivery_of(rehearsal)
    assert (delivery.status, delivery.text, delivery.cut) == (DeliveryStatus.UNKNOWN, "", Cut.UNIT)


async def test_of_a_speaker_that_is_lost_only_the_units_count_that_it_had_confirmed() -> None:
    rehearsal = telling(ScriptedSynthesizer(ALIGNED))
    async with rehearsal.running():
        rehearsal.say("tell me a story")
        await rehearsal.until("playback.progress", 26)
        device = rehearsal.engine.ports.device
        assert isinstance(device, ScriptedDevice)
        device.speaker.lose(replace(scripted_error("unplugged", "playback"), retryable=True))
        await rehearsal.until("delivery.recorded")
    delivery = delivery_of(rehearsal)
    assert (delivery.status, delivery.text, delivery.cut) == (DeliveryStatus.UNKNOWN, FIRST, Cut.UNIT)


async def test_a_reply_that_is_heard_to_its_end_is_whole() -> None:
    rehearsal = telling(ScriptedSynthesizer(ALIGNED), written=FIRST)
    async with rehearsal.running():
        rehearsal.say("tell me a story")
        await rehearsal.until("playback.drained")
    assert (delivery_of(rehearsal).text, delivery_of(rehearsal).cut) == (FIRST, Cut.UNIT)


@pytest.mark.slow
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_long_sentence_of_espeak_is_cut_at_a_word_while_it_is_still_being_made() -> None:
    clause = "a story of one long sentence that goes on and on without any end so that nobody hears all of it"
    story = f"This is {clause} and {clause}."
    rehearsal = telling(EspeakSynthesizer(), written=story)
    delivery = await interrupted_after(rehearsal, 14)
    assert (delivery.status, delivery.units, delivery.cut) == (DeliveryStatus.INTERRUPTED, 0, Cut.WORD)
    assert story.startswith(delivery.text)
    # At 165 words a minute some three or four words are heard in 1.4 s.
    assert 2 <= len(delivery.text.split()) <= 8
    assert delivery.text.split()[-1] in story.split()
