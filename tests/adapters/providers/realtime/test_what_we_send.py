"""What realtime sessions are told, kept as golden files that the oracles hold against the vendors' types."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import TypeVar

import anyio
import pytest
from pydantic import JsonValue

from voicechart.adapters.providers.realtime import gemini_live, openai_realtime, qwen_omni
from voicechart.adapters.testing import ReceivedMessage, ScriptedSocketServer, SocketPeer
from voicechart.adapters.testing.gemini_server import GeminiVoice
from voicechart.adapters.testing.realtime_servers import RealtimeVoice, Says
from voicechart.audio.formats import AudioFrame
from voicechart.engines.ports import Message, ToolDefinition, ToolRequest
from voicechart.engines.realtime import RealtimeModel, RealtimeRequest, RealtimeSession, ToolOutput
from voicechart.engines.realtime.reports import AnswerAudio, AnswerEnded, RealtimeReport, Truncated

pytestmark = pytest.mark.anyio

KEY = "sk-very-secret"
HEADERS = ("authorization", "openai-beta", "x-goog-api-key")
R = TypeVar("R", bound=RealtimeReport)
Golden = Callable[[str, JsonValue], None]
WEATHER = ToolDefinition("weather", "The weather.", '{"type":"object","properties":{"city":{"type":"string"}}}')
BEFORE = (
    Message("user", "How is the weather in Oslo?"),
    Message("assistant", "Let me see.", tool_calls=(ToolRequest("call_0", "weather", '{"city":"Oslo"}'),)),
    Message("tool", "sunny", call_id="call_0"),
    Message("assistant", "It is sunny."),
    Message("user", ""),
    Message("assistant", "", tool_calls=(ToolRequest("call_lost", "weather", "{}"),)),
)

PLAIN: dict[str, Callable[[str], RealtimeModel]] = {
    "openai-realtime": lambda url: openai_realtime.make_model(
        openai_realtime.OpenAIRealtimeSettings(base_url=url), KEY
    ),
    "qwen-omni": lambda url: qwen_omni.make_model(qwen_omni.QwenOmniSettings(base_url=url), KEY),
    "gemini-live": lambda url: gemini_live.make_model(gemini_live.GeminiLiveSettings(base_url=url), KEY),
}
FULL: dict[str, Callable[[str], RealtimeModel]] = {
    "openai-realtime": lambda url: openai_realtime.make_model(
        openai_realtime.OpenAIRealtimeSettings(
            base_url=url,
            model="gpt-realtime-2",
            voice="cedar",
            transcription_model="gpt-transcribe",
            language="de-AT",
            noise_reduction="far_field",
            turn_detection="server_vad",
            vad_threshold=0.4,
            vad_prefix_ms=200,
            vad_silence_ms=700,
            max_output_tokens=500,
        ),
        KEY,
    ),
    "qwen-omni": lambda url: qwen_omni.make_model(
        qwen_omni.QwenOmniSettings(base_url=url, model="qwen3.5-omni-flash-realtime", voice="Cherry"), KEY
    ),
    "gemini-live": lambda url: gemini_live.make_model(
        gemini_live.GeminiLiveSettings(
            base_url=url,
            api_version="v1alpha",
            model="gemini-2.5-flash-native-audio",
            voice="Kore",
            language="de-AT",
            max_output_tokens=500,
            temperature=0.5,
        ),
        KEY,
    ),
}


def voice_of(kind: str, *says: Says) -> RealtimeVoice | GeminiVoice:
    return GeminiVoice(*says) if kind == "gemini-live" else RealtimeVoice(*says, beta=kind == "qwen-omni")


@pytest.mark.parametrize("kind", PLAIN)
async def test_a_conversation_with_a_tool_and_an_interruption_is_told_as_the_service_wants_it(
    kind: str, golden: Golden
) -> None:
    says = (Says("Let me see.", calls=(("call_1", "weather", '{"city":"Rome"}'),)), Says("A story.", goes_on=True))
    server = ScriptedSocketServer(voice_of(kind, *says))
    async with server.running() as base_url, Talk(PLAIN[kind](base_url)).opened() as talk:
        await talk.speak("u1")
        await talk.session.respond("a1")
        await talk.has_told(AnswerEnded)
        await talk.session.submit_outputs((ToolOutput("call_1", "weather", "rain"),))
        await talk.session.respond("a2")
        told = await talk.has_told(AnswerAudio, "a2")
        talk.session.cancel("a2", "interrupted")
        if talk.model.capabilities.truncate:
            await talk.session.truncate(told.item_id, 120)
            await talk.has_told(Truncated)
        await talk.session.submit_text("And in Bergen?")
        await talk.session.begin_utterance("u2")
        await talk.write(100)
        await talk.session.discard_utterance("u2")
        await talk.session.respond("a3")
    golden(f"{kind}/conversation", recorded(server.peers[0]))


@pytest.mark.parametrize("kind", FULL)
async def test_every_option_reaches_the_service(kind: str, golden: Golden) -> None:
    server = ScriptedSocketServer(voice_of(kind))
    async with server.running() as base_url:
        model = FULL[kind](base_url)
        turns = model.capabilities.ends_turns
        request = RealtimeRequest(instructions="Be brief.", tools=(WEATHER,), provider_turns=turns)
        async with Talk(model, request).opened():
            pass
    golden(f"{kind}/options", recorded(server.peers[0]))


@pytest.mark.parametrize("kind", PLAIN)
async def test_what_was_said_before_is_restored_and_not_answered(kind: str, golden: Golden) -> None:
    server = ScriptedSocketServer(voice_of(kind))
    async with server.running() as base_url:
        request = RealtimeRequest(instructions="Be brief.", messages=BEFORE)
        async with Talk(PLAIN[kind](base_url), request).opened():
            pass
    golden(f"{kind}/restored", recorded(server.peers[0]))


async def test_nothing_is_written_down_and_turns_end_by_their_meaning_where_that_is_asked_for(golden: Golden) -> None:
    server = ScriptedSocketServer(RealtimeVoice())
    async with server.running() as base_url:
        settings = openai_realtime.OpenAIRealtimeSettings(
            base_url=base_url,
            voice=None,
            transcription_model=None,
            turn_detection="semantic_vad",
            vad_threshold=0.4,
            vad_eagerness="low",
        )
        model = openai_realtime.make_model(settings, None)
        assert not model.capabilities.input_transcripts
        async with Talk(model, RealtimeRequest(provider_turns=True)).opened():
            pass
    golden("openai-realtime/by-meaning", recorded(server.peers[0]))


class Talk:
    """A session, and what it tells."""

    def __init__(self, model: RealtimeModel, request: RealtimeRequest | None = None) -> None:
        self.model = model
        self.reports: list[RealtimeReport] = []
        self._request = request or RealtimeRequest()
        self._session: RealtimeSession | None = None
        self._changed = anyio.Event()

    @property
    def session(self) -> RealtimeSession:
        assert self._session is not None
        return self._session

    @asynccontextmanager
    async def opened(self) -> AsyncGenerator[Talk, None]:
        with anyio.fail_after(10):
            self._session = session = await self.model.open(self._request)
            async with anyio.create_task_group() as group:
                group.start_soon(self._read, session)
                yield self
                await session.aclose()
            await self.model.aclose()

    async def _read(self, session: RealtimeSession) -> None:
        async for report in session.reports():
            self.reports.append(report)
            self._changed.set()
            self._changed = anyio.Event()

    async def has_told(self, kind: type[R], answer_id: str | None = None) -> R:
        """The first report of that kind, of that answer."""
        while True:
            for report in self.reports:
                if isinstance(report, kind) and answer_id in (None, getattr(report, "answer_id", None)):
                    return report
            await self._changed.wait()

    async def speak(self, utterance_id: str) -> None:
        await self.session.begin_utterance(utterance_id)
        await self.write(200)
        await self.session.commit_utterance(utterance_id)

    async def write(self, milliseconds: int) -> None:
        format = self.model.input_format
        step = format.samples_for_ms(20)
        for number in range(milliseconds // 20):
            await self.session.write(AudioFrame(bytes(format.bytes_for(step)), format, number * step))


def recorded(peer: SocketPeer) -> JsonValue:
    headers: dict[str, JsonValue] = {
        name: peer.headers[name].replace(KEY, "<secret>") for name in HEADERS if name in peer.headers
    }
    query: dict[str, JsonValue] = {**peer.query}
    return {"path": peer.path, "query": query, "headers": headers, "frames": frames(peer.received)}


def frames(messages: list[ReceivedMessage]) -> list[JsonValue]:
    """JSON as it is, audio by its length."""
    told: list[JsonValue] = []
    for message in messages:
        value = message.json()
        heard = value.get("realtimeInput")
        for part in (value, heard, heard.get("audio") if isinstance(heard, dict) else None):
            for name in ("audio", "data"):
                if isinstance(part, dict) and isinstance(audio := part.get(name), str):
                    part[name] = f"{len(audio)} characters"
        told.append(value)
    return told
