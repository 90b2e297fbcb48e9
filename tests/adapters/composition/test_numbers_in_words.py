"""A voice that reads numbers badly is given words for them."""

from __future__ import annotations

import pytest

from voicechart.adapters.composition import compose
from voicechart.adapters.composition.numbers_in_words import NumbersInWords
from voicechart.adapters.configuration import parse_configuration
from voicechart.adapters.local.spoken_forms import SpokenForms
from voicechart.engines.ports import SpeechUnit, SynthesisRequest
from voicechart.engines.reports import SynthesisEnded, SynthesisStopped, Synthesized, UnitSynthesized
from voicechart.engines.testing import ScriptedSynthesizer

pytestmark = pytest.mark.anyio
AUDIO = '[audio]\nendpoint = "unix:/run/voicechart/audio.sock"\n'


async def test_units_are_spoken_in_words_and_keep_their_place() -> None:
    inner = ScriptedSynthesizer()
    voice = NumbersInWords(inner, SpokenForms())
    await voice.prepare()
    assert (voice.capabilities, voice.format) == (inner.capabilities, inner.format)
    stream = await voice.open(SynthesisRequest("r1", 1))
    await stream.write(SpeechUnit(0, "It is 3.5 km.", 0, 13))
    await stream.write(SpeechUnit(1, "Go.", 14, 17))
    await stream.finish_input()
    reports = [report async for report in stream.reports()]
    kinds = (Synthesized, UnitSynthesized, SynthesisEnded)
    assert all(isinstance(report, kinds) for report in reports)
    assert [(unit.index, unit.text, unit.source_end) for unit in inner.streams[0].units] == [
        (0, "It is three point five kilometers.", 13),
        (1, "Go.", 17),
    ]
    await stream.aclose()
    await voice.aclose()


async def test_a_cancel_reaches_the_voice() -> None:
    stream = await NumbersInWords(ScriptedSynthesizer(), SpokenForms()).open(SynthesisRequest("r1", 1))
    await stream.write(SpeechUnit(0, "It is 3.5 km.", 0, 13))
    stream.cancel("enough")
    assert [report async for report in stream.reports()] == [SynthesisStopped()]


@pytest.mark.parametrize(("wanted", "is_so"), [("true", True), ("false", False)])
def test_the_configuration_decides(wanted: str, is_so: bool) -> None:
    ports = compose(parse_configuration(f"numbers_in_words = {wanted}\n{AUDIO}"), {}).ports
    assert isinstance(ports.synthesizer, NumbersInWords) is is_so
