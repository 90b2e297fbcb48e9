"""What goes to a synthesiser is as large as it can take, and the record does not depend on it."""

from __future__ import annotations

import anyio
import pytest
from trio.testing import MockClock

from voicechart.engines.reports import GenerationEnded, GenerationReport, TextDelta
from voicechart.engines.testing import (
    Rehearsal,
    Script,
    ScriptedResponder,
    ScriptedSynthesizer,
    SpeechScript,
    Step,
    says,
)
from voicechart.statecharts.capabilities import SynthesizerCapabilities
from voicechart.statecharts.values import DeliveryStatus

pytestmark = pytest.mark.anyio

INCREMENTAL = SynthesizerCapabilities(incremental_text=True, incremental_pcm=True)
SENTENCES = SynthesizerCapabilities(incremental_pcm=True)
BATCH = SynthesizerCapabilities(sentence_input=False)
STORY = "It struck at noon, and nobody heard it at all, for years and years. Then somebody came."


@pytest.fixture
def anyio_backend() -> object:
    return "trio", {"clock": MockClock(autojump_threshold=0)}


def telling(synthesizer: ScriptedSynthesizer, *scripts: Script[GenerationReport]) -> Rehearsal:
    responder = ScriptedResponder(*(scripts or (Script(says(STORY)),)))
    return Rehearsal(responder=responder, synthesizer=synthesizer)


def units_of(rehearsal: Rehearsal) -> list[str]:
    synthesizer = rehearsal.engine.ports.synthesizer
    assert isinstance(synthesizer, ScriptedSynthesizer)
    return [unit.text for unit in synthesizer.streams[0].units]


@pytest.mark.parametrize(
    ("capabilities", "units"),
    [
        (
            INCREMENTAL,
            ["It struck at noon,", "and nobody heard it at all,", "for years and years.", "Then somebody came."],
        ),
        (SENTENCES, ["It struck at noon, and nobody heard it at all,", "for years and years.", "Then somebody came."]),
        (BATCH, [STORY]),
    ],
    ids=["incremental", "sentences", "batch"],
)
async def test_a_synthesiser_gets_units_of_its_size_and_the_whole_reply_is_heard(
    capabilities: SynthesizerCapabilities, units: list[str]
) -> None:
    rehearsal = telling(ScriptedSynthesizer(capabilities=capabilities))
    async with rehearsal.running():
        rehearsal.say("tell me a story")
        await rehearsal.until("playback.drained")
    assert units_of(rehearsal) == units
    delivery = rehearsal.replies[0].delivery
    assert delivery is not None
    assert (delivery.status, delivery.text, delivery.units) == (DeliveryStatus.DELIVERED, STORY, len(units))


async def test_a_synthesiser_that_takes_clauses_begins_while_the_sentence_is_being_written() -> None:
    more = anyio.Event()
    script: Script[GenerationReport] = Script(
        [Step(TextDelta("It struck at noon, and ")), Step(GenerationEnded(), gate=more)]
    )
    rehearsal = telling(ScriptedSynthesizer(capabilities=INCREMENTAL), script)
    async with rehearsal.running():
        rehearsal.say("tell me a story")
        await rehearsal.until("playback.started")
        assert units_of(rehearsal) == ["It struck at noon,"]
        more.set()
        await rehearsal.until("playback.drained")


async def test_a_synthesiser_that_takes_one_text_is_asked_once_the_model_has_ended() -> None:
    more = anyio.Event()
    last = Step(TextDelta("that was it."), gate=more)
    script: Script[GenerationReport] = Script([Step(TextDelta(f"{STORY} And ")), last, Step(GenerationEnded())])
    rehearsal = telling(ScriptedSynthesizer(capabilities=BATCH), script)
    async with rehearsal.running():
        rehearsal.say("tell me a story")
        await anyio.sleep(5)
        assert not rehearsal.of("speech.text_committed")
        more.set()
        await rehearsal.until("playback.drained")
    assert units_of(rehearsal) == [f"{STORY} And that was it."]


@pytest.mark.parametrize(
    ("capabilities", "word_times", "heard"),
    [
        (INCREMENTAL, False, "It struck at noon,"),
        (SENTENCES, False, ""),
        (BATCH, False, ""),
        (BATCH, True, "It struck at noon, and nobody"),
    ],
    ids=["incremental", "sentences", "batch", "batch with word times"],
)
async def test_of_an_interrupted_reply_whole_units_of_that_size_count(
    capabilities: SynthesizerCapabilities, word_times: bool, heard: str
) -> None:
    script = SpeechScript(word_times=word_times)
    rehearsal = telling(ScriptedSynthesizer(script, capabilities=capabilities))
    async with rehearsal.running():
        rehearsal.say("tell me a story")
        # "It struck at noon, and nobody" lasts 1.74 s, what follows to the next comma ends at 2.76 s.
        await rehearsal.until("playback.progress", 18)
        rehearsal.press_button()
        await rehearsal.until("delivery.recorded")
    delivery = rehearsal.replies[0].delivery
    assert delivery is not None
    assert (delivery.status, delivery.text) == (DeliveryStatus.INTERRUPTED, heard)
