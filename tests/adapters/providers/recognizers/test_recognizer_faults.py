"""Services that misbehave at random moments: an utterance ends once, in time, and leaves no connection."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import replace

import anyio
import anyio.lowlevel
import pytest

from voicechart.adapters.providers.recognition import Dialect, RecognitionLimits, SocketRecognizer
from voicechart.adapters.providers.recognizers.assemblyai import AssemblyAIDialect, AssemblyAISettings
from voicechart.adapters.providers.recognizers.dashscope import DashScopeDialect, DashScopeSettings
from voicechart.adapters.providers.recognizers.deepgram import OFFERS, DeepgramDialect, DeepgramSettings
from voicechart.adapters.providers.recognizers.openai_realtime_transcription import (
    OpenAIRealtimeTranscriptionDialect,
    OpenAIRealtimeTranscriptionSettings,
)
from voicechart.adapters.providers.recognizers.qwen_realtime_transcription import (
    QwenRealtimeTranscriptionDialect,
    QwenRealtimeTranscriptionSettings,
)
from voicechart.adapters.testing import ScriptedSocketServer, SocketPeer
from voicechart.adapters.testing.recognition_servers import SCRIPTS
from voicechart.audio.formats import SPEECH_FORMAT, AudioFrame
from voicechart.engines.ports import RecognitionRequest, RecognitionStream
from voicechart.engines.reports import PortError, RecognitionEnded, RecognitionErrored, RecognitionReport, SegmentFinal

pytestmark = pytest.mark.anyio

KEY = "sk-very-secret"
SENTENCE = "Turn on the light."
RUNS = 20
LIMITS = RecognitionLimits(ready_s=0.2, finish_s=0.1, silent_s=0.1, keep_alive_s=0.05)
QUICK = replace(LIMITS, socket=replace(LIMITS.socket, close_s=0.2))
GARBAGE = ("", "null", "[]", "{", '{"type": 5}', '{"type": "Results"}', '{"header": {}}', '{"type": "error"}', "\x00")

MAKERS: Mapping[str, Callable[[str], Callable[[RecognitionRequest], Dialect]]] = {
    "deepgram": lambda url: lambda request: DeepgramDialect(request, DeepgramSettings(base_url=url), KEY),
    "assemblyai": lambda url: lambda request: AssemblyAIDialect(request, AssemblyAISettings(base_url=url), KEY),
    "dashscope": lambda url: lambda request: DashScopeDialect(request, DashScopeSettings(base_url=url), KEY, "task-1"),
    "openai-realtime-transcription": lambda url: (
        lambda request: OpenAIRealtimeTranscriptionDialect(
            request, OpenAIRealtimeTranscriptionSettings(base_url=url), KEY
        )
    ),
    "qwen-realtime-transcription": lambda url: (
        lambda request: QwenRealtimeTranscriptionDialect(request, QwenRealtimeTranscriptionSettings(base_url=url), KEY)
    ),
}


class Misbehaving(SocketPeer):
    """The server's end of a connection, on which a message now and then goes wrong."""

    chance: random.Random
    _held: str | None = None

    async def send_text(self, text: str) -> None:
        match self.chance.choice(("fine",) * 12 + ("lost", "twice", "late", "garbage", "dropped", "closed", "stalled")):
            case "lost":
                return
            case "twice":
                await super().send_text(text)
            case "late":
                text, self._held = self._held or text, text
            case "garbage":
                await super().send_text(self.chance.choice(GARBAGE))
            case "dropped":
                self.drop()
            case "closed":
                await self.close(self.chance.choice((1000, 1001, 1008, 1011, 3000, 4000)), KEY)
            case "stalled":
                await self.hung_up()
            case _:
                pass
        await super().send_text(text)


@pytest.mark.parametrize("kind", MAKERS)
async def test_an_utterance_ends_once_whatever_the_service_does(kind: str) -> None:
    outcomes: set[str] = set()
    for seed in range(RUNS):
        last = await run(kind, seed)
        assert KEY not in str(last)
        outcomes.add("ended" if isinstance(last, RecognitionEnded) else last.error.code)
    assert "ended" in outcomes
    assert len(outcomes) > 2, outcomes


async def run(kind: str, seed: int) -> RecognitionEnded | RecognitionErrored | PortError:
    async def script(peer: SocketPeer) -> None:
        peer.__class__ = Misbehaving
        assert isinstance(peer, Misbehaving)
        peer.chance = random.Random(f"{kind} {seed}")
        await SCRIPTS[kind](SENTENCE)(peer)

    server = ScriptedSocketServer(script)
    with anyio.fail_after(10):
        async with server.running() as base_url:
            recognizer = SocketRecognizer(MAKERS[kind](base_url), OFFERS, limits=QUICK)
            last = await heard(recognizer)
            await recognizer.aclose()
            await server.has_connections(0)
    return last


async def speak(stream: RecognitionStream) -> None:
    """Until it takes no more."""
    try:
        for start in range(0, 32_000, 320):
            await stream.write(AudioFrame(bytes(640), SPEECH_FORMAT, start))
            await anyio.lowlevel.checkpoint()
        await stream.finish_input()
    except PortError:
        return  # The reports tell why.


async def heard(recognizer: SocketRecognizer) -> RecognitionEnded | RecognitionErrored | PortError:
    try:
        stream = await recognizer.open(RecognitionRequest("u1", SPEECH_FORMAT))
    except PortError as refused:
        return refused
    reports: list[RecognitionReport] = []

    async def read() -> None:
        reports.extend([report async for report in stream.reports()])

    async with anyio.create_task_group() as group:
        group.start_soon(read)
        await speak(stream)
    await stream.aclose()
    *before, last = reports
    assert not any(isinstance(report, RecognitionEnded | RecognitionErrored) for report in before)
    assert isinstance(last, RecognitionEnded | RecognitionErrored)
    if last == RecognitionEnded():
        # What claims to be whole is whole.
        finals = [report.text for report in before if isinstance(report, SegmentFinal)]
        assert finals in ([SENTENCE], []), finals
    return last
