"""What every message of a recognition service becomes: each fixture, played by a scripted server to the adapter."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest
from pydantic import JsonValue

from voicechart.adapters.providers.recognizers import (
    assemblyai,
    dashscope,
    deepgram,
    openai_realtime_transcription,
    openai_transcriptions,
    qwen_realtime_transcription,
)
from voicechart.adapters.testing import ScriptedHttpServer, ScriptedSocketServer, WireFixture, load_fixtures
from voicechart.audio.formats import SPEECH_FORMAT, AudioFrame
from voicechart.engines.ports import RecognitionRequest, RecognitionStream, Recognizer
from voicechart.engines.reports import PortError, RecognitionErrored, RecognitionReport

pytestmark = pytest.mark.anyio

KEY = "sk-very-secret"
DEADLINE_S = 10.0
FRAMES = [AudioFrame(bytes(640), SPEECH_FORMAT, start) for start in range(0, 16_000, 320)]
"""A second; what it holds is of no importance to a script."""

OVER_SOCKETS: Mapping[str, Callable[[str], Recognizer]] = {
    "deepgram": lambda url: deepgram.make_recognizer(deepgram.DeepgramSettings(base_url=url), KEY),
    "assemblyai": lambda url: assemblyai.make_recognizer(assemblyai.AssemblyAISettings(base_url=url), KEY),
    "dashscope": lambda url: dashscope.make_recognizer(
        dashscope.DashScopeSettings(base_url=url), KEY, task_id=lambda: "task-1"
    ),
    "openai-realtime-transcription": lambda url: openai_realtime_transcription.make_recognizer(
        openai_realtime_transcription.OpenAIRealtimeTranscriptionSettings(base_url=url), KEY
    ),
    "qwen-realtime-transcription": lambda url: qwen_realtime_transcription.make_recognizer(
        qwen_realtime_transcription.QwenRealtimeTranscriptionSettings(base_url=url), KEY
    ),
}


def over_http(url: str) -> Recognizer:
    settings = openai_transcriptions.OpenAITranscriptionsSettings(base_url=url, model="gpt-transcribe")
    return openai_transcriptions.TranscriptionsRecognizer(settings, KEY)


FIXTURES = {
    name: fixture
    for name, fixture in load_fixtures(Path(__file__).parent / "fixtures").items()
    if fixture.protocol in {*OVER_SOCKETS, "openai-transcriptions"}
}


@pytest.mark.parametrize("fixture", [pytest.param(fixture, id=name) for name, fixture in FIXTURES.items()])
async def test_a_fixture_becomes_the_reports_that_it_names(fixture: WireFixture) -> None:
    async with recognizer_for(fixture) as recognizer:
        reports = await played(recognizer)
    seen = [shown(report) for report in reports]
    assert [restricted(one, expected) for one, expected in zip(seen, fixture.expected, strict=False)] == list(
        fixture.expected
    )
    assert len(seen) == len(fixture.expected), seen
    assert KEY not in str(reports)


def test_there_are_fixtures_for_every_recogniser() -> None:
    assert {fixture.protocol for fixture in FIXTURES.values()} == {*OVER_SOCKETS, "openai-transcriptions"}


@asynccontextmanager
async def recognizer_for(fixture: WireFixture) -> AsyncGenerator[Recognizer, None]:
    if fixture.protocol in OVER_SOCKETS:
        async with ScriptedSocketServer(fixture.script()).running() as base_url:
            recognizer = OVER_SOCKETS[fixture.protocol](base_url)
            yield recognizer
            await recognizer.aclose()
    else:
        async with ScriptedHttpServer({"/audio/transcriptions": [fixture.exchange()]}).running() as base_url:
            recognizer = over_http(base_url)
            yield recognizer
            await recognizer.aclose()


async def played(recognizer: Recognizer) -> list[RecognitionReport | PortError]:
    reports: list[RecognitionReport | PortError] = []
    refused: str | None = None
    with anyio.fail_after(DEADLINE_S):
        try:
            stream = await recognizer.open(RecognitionRequest("u1", SPEECH_FORMAT))
        except PortError as not_opened:
            return [not_opened]

        async def read_all() -> None:
            reports.extend([report async for report in stream.reports()])

        async with anyio.create_task_group() as group:
            group.start_soon(read_all)
            refused = await speak(stream)
        # Only after the reports have told the end.
        assert refused in (None, "stream_ended")
        await stream.aclose()
    return reports


async def speak(stream: RecognitionStream) -> str | None:
    """Why the stream took no more, where it did not take everything."""
    try:
        for frame in FRAMES:
            await stream.write(frame)
        await stream.finish_input()
    except PortError as refused:
        return refused.error.code
    return None


def shown(report: RecognitionReport | PortError) -> dict[str, JsonValue]:
    """A report as fixtures write it."""
    name = "PortError" if isinstance(report, PortError) else type(report).__name__
    kind: dict[str, JsonValue] = {"report": name}
    if isinstance(report, PortError | RecognitionErrored):
        error = report.error
        return kind | {
            "code": error.code,
            "scope": error.scope.value,
            "retryable": error.retryable,
            "retry_after_ms": error.retry_after_ms,
        }
    return kind | {name: getattr(report, name) for name in report.__slots__}


def restricted(seen: Mapping[str, JsonValue], expected: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """What was seen, as far as the fixture says anything about it."""
    return {name: value for name, value in seen.items() if name in expected}
