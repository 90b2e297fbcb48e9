"""What is particular to eSpeak, Pico and Piper."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from voicechart.adapters.local import EspeakSynthesizer, PicoSynthesizer, PiperSynthesizer, SynthesisBounds
from voicechart.adapters.local.piper import QUIET_LEVEL, without_long_lead
from voicechart.engines.ports import SpeechUnit, SynthesisRequest, Synthesizer
from voicechart.engines.reports import PortError, SynthesisReport, Synthesized, UnitSynthesized
from voicechart.statecharts.errors import ErrorScope


async def spoken(synthesizer: Synthesizer, text: str, voice: str | None = None) -> list[SynthesisReport]:
    stream = await synthesizer.open(SynthesisRequest("r1", 1, voice))
    await stream.write(SpeechUnit(0, text))
    await stream.finish_input()
    with anyio.fail_after(30):
        reports = [report async for report in stream.reports()]
    await stream.aclose()
    return reports


def samples(reports: list[SynthesisReport]) -> int:
    return sum(report.frame.samples for report in reports if isinstance(report, Synthesized))


@pytest.fixture
async def espeak() -> AsyncIterator[EspeakSynthesizer]:
    pytest.importorskip("espeakng_loader", reason="not installed: espeakng_loader")
    synthesizer = EspeakSynthesizer()
    yield synthesizer
    await synthesizer.aclose()


@pytest.mark.anyio
async def test_espeak_knows_when_every_written_word_is_said(espeak: EspeakSynthesizer) -> None:
    reports = await spoken(espeak, "It's 3:45, isn't it — naïve?")
    unit = next(report for report in reports if isinstance(report, UnitSynthesized))
    assert [word.text for word in unit.words] == ["It's", "3:45,", "isn't", "it", "naïve?"]
    assert all(word.start_sample < word.end_sample for word in unit.words)
    assert unit.words[0].start_sample == 0
    assert unit.words[-1].end_sample <= unit.end_sample


@pytest.mark.anyio
async def test_espeak_speaks_several_languages_in_one_process(espeak: EspeakSynthesizer) -> None:
    english = await spoken(espeak, "Good morning.")
    chinese = await spoken(espeak, "你好世界", voice="cmn")
    assert samples(english) > 0
    assert samples(chinese) > 0


@pytest.mark.anyio
async def test_espeak_refuses_a_voice_that_it_lacks_and_speaks_on(espeak: EspeakSynthesizer) -> None:
    with pytest.raises(PortError, match="unknown_voice"):
        await spoken(espeak, "Hello.", voice="no-such-voice")
    assert samples(await spoken(espeak, "Hello.")) > 0


@pytest.mark.anyio
async def test_espeak_is_interrupted_inside_the_unit(espeak: EspeakSynthesizer) -> None:
    stream = await espeak.open(SynthesisRequest("r1", 1))
    await stream.write(SpeechUnit(0, "word " * 300))
    reports = stream.reports()
    assert isinstance(await anext(reports), Synthesized)
    with anyio.fail_after(10):
        await stream.aclose()
    assert len([report async for report in reports]) == 1


@pytest.mark.anyio
async def test_two_espeak_synthesizers_share_the_library(espeak: EspeakSynthesizer) -> None:
    slow = EspeakSynthesizer(rate_wpm=80, bounds=SynthesisBounds(buffer_ms=100))
    unread = await slow.open(SynthesisRequest("r1", 1))
    await unread.write(SpeechUnit(0, "One two three four five six seven eight."))
    assert samples(await spoken(espeak, "Hello.")) > 0
    await slow.aclose()


@pytest.mark.anyio
async def test_a_faster_rate_is_shorter() -> None:
    pytest.importorskip("espeakng_loader", reason="not installed: espeakng_loader")
    lengths: list[int] = []
    for rate_wpm in (100, 250):
        synthesizer = EspeakSynthesizer(rate_wpm=rate_wpm)
        lengths.append(samples(await spoken(synthesizer, "The quick brown fox jumps over the lazy dog.")))
        await synthesizer.aclose()
    assert lengths[1] < lengths[0] * 0.7


@pytest.mark.parametrize(("rate_wpm", "pitch"), [(79, 50), (451, 50), (165, -1), (165, 100)])
def test_espeak_refuses_settings_outside_their_bounds(rate_wpm: int, pitch: int) -> None:
    with pytest.raises(PortError) as refusal:
        EspeakSynthesizer(rate_wpm=rate_wpm, pitch=pitch)
    assert refusal.value.error.scope is ErrorScope.SESSION


@pytest.mark.parametrize("speed", [0.19, 5.01])
def test_pico_refuses_a_speed_outside_its_bounds(speed: float) -> None:
    with pytest.raises(PortError, match="bad_setting"):
        PicoSynthesizer(speed=speed)


@pytest.mark.parametrize(("length_scale", "threads"), [(0.49, 1), (2.01, 1), (1.0, 0), (1.0, 17)])
def test_piper_refuses_settings_outside_their_bounds(length_scale: float, threads: int) -> None:
    with pytest.raises(PortError, match="bad_setting"):
        PiperSynthesizer(length_scale=length_scale, threads=threads)


@pytest.mark.anyio
async def test_pico_refuses_a_voice_that_it_lacks() -> None:
    pytest.importorskip("py_nanotts", reason="not installed: py_nanotts")
    synthesizer = PicoSynthesizer(voice="en-AU")
    with pytest.raises(PortError, match="unknown_voice"):
        await synthesizer.prepare()
    await synthesizer.aclose()


@pytest.mark.anyio
async def test_a_file_that_is_no_piper_voice_is_named(tmp_path: Path) -> None:
    pytest.importorskip("piper", reason="not installed: piper")
    (tmp_path / "mine.onnx").write_bytes(b"no weights")
    synthesizer = PiperSynthesizer(model_path=tmp_path / "mine.onnx")
    with pytest.raises(PortError, match=r"voice_unusable: mine\.onnx"):
        await synthesizer.prepare()
    await synthesizer.aclose()


@pytest.mark.anyio
async def test_the_format_is_known_once_prepared(espeak: EspeakSynthesizer) -> None:
    with pytest.raises(PortError, match="not_prepared"):
        _ = espeak.format
    await espeak.prepare()
    assert espeak.format.sample_rate_hz == 22_050


@given(st.integers(0, 500), st.integers(0, 500), st.integers(0, 200))
def test_a_long_lead_is_cut_to_what_is_kept_and_nothing_else_changes(lead: int, sound: int, kept: int) -> None:
    quiet = np.full(lead, QUIET_LEVEL, np.int16)
    loud = np.full(sound, -QUIET_LEVEL - 1, np.int16)
    whole = np.concatenate([quiet, loud, quiet])
    trimmed = without_long_lead(whole, kept)
    expected = min(lead, kept) + sound + lead if sound else 2 * lead
    assert len(trimmed) == expected
    assert np.array_equal(trimmed, whole[len(whole) - expected :])


def test_the_lowest_sample_is_loud() -> None:
    assert len(without_long_lead(np.array([0, 0, -32_768], np.int16), 0)) == 1
