"""What the recognisers say to the services, kept as golden files that the oracles hold against the vendors' types."""

from __future__ import annotations

from collections.abc import Callable
from email.parser import BytesParser
from email.policy import HTTP

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
from voicechart.adapters.testing import ReceivedMessage, ScriptedHttpServer, ScriptedSocketServer, SocketPeer
from voicechart.adapters.testing.recognition_servers import SCRIPTS, openai_transcription_of
from voicechart.audio.formats import SPEECH_FORMAT, AudioFrame
from voicechart.engines.ports import RecognitionRequest, RecognitionStream, Recognizer

pytestmark = pytest.mark.anyio

KEY = "sk-very-secret"
HEADERS = ("authorization", "assemblyai-version", "openai-beta")
Golden = Callable[[str, JsonValue], None]

PLAIN: dict[str, Callable[[str], Recognizer]] = {
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

FULL: dict[str, Callable[[str], Recognizer]] = {
    "deepgram": lambda url: deepgram.make_recognizer(
        deepgram.DeepgramSettings(base_url=url, language="de", keyterms=("Küche", "Licht")), KEY
    ),
    "assemblyai": lambda url: assemblyai.make_recognizer(
        assemblyai.AssemblyAISettings(
            base_url=url,
            speech_model="universal-streaming-multilingual",
            format_turns=False,
            language_codes=("de", "en"),
            min_turn_silence_ms=200,
            max_turn_silence_ms=900,
            end_of_turn_confidence_threshold=0.5,
            keyterms=("Küche",),
        ),
        KEY,
    ),
    "dashscope": lambda url: dashscope.make_recognizer(
        dashscope.DashScopeSettings(
            base_url=url, sample_rate_hz=8_000, language_hints=("zh", "en"), max_sentence_silence_ms=500
        ),
        KEY,
        task_id=lambda: "task-1",
    ),
    "openai-realtime-transcription": lambda url: openai_realtime_transcription.make_recognizer(
        openai_realtime_transcription.OpenAIRealtimeTranscriptionSettings(
            base_url=url,
            language="de",
            prompt="About a kitchen.",
            noise_reduction="far_field",
            turn_detection="server_vad",
        ),
        KEY,
    ),
    "qwen-realtime-transcription": lambda url: qwen_realtime_transcription.make_recognizer(
        qwen_realtime_transcription.QwenRealtimeTranscriptionSettings(base_url=url, language="zh"), KEY
    ),
}


@pytest.mark.parametrize("kind", PLAIN)
async def test_an_utterance_is_sent_as_the_service_wants_it(kind: str, golden: Golden) -> None:
    golden(f"{kind}/utterance", await sent_by(kind, PLAIN[kind]))


@pytest.mark.parametrize("kind", FULL)
async def test_every_option_reaches_the_service(kind: str, golden: Golden) -> None:
    golden(f"{kind}/options", await sent_by(kind, FULL[kind]))


@pytest.mark.parametrize("kind", PLAIN)
async def test_the_language_of_a_request_is_preferred(kind: str, golden: Golden) -> None:
    golden(f"{kind}/language", await sent_by(kind, PLAIN[kind], "fr-CA"))


@pytest.mark.parametrize("kind", PLAIN)
async def test_an_utterance_without_audio_is_only_closed(kind: str, golden: Golden) -> None:
    golden(f"{kind}/nothing-said", await sent_by(kind, PLAIN[kind], samples=0))


@pytest.mark.parametrize("kind", PLAIN)
async def test_an_utterance_that_nobody_wants_is_called_off(kind: str, golden: Golden) -> None:
    server = ScriptedSocketServer(SCRIPTS[kind]("Stop."))
    async with server.running() as base_url:
        recognizer = PLAIN[kind](base_url)
        stream = await recognizer.open(RecognitionRequest("u1", SPEECH_FORMAT))
        await stream.aclose()
        await server.peers[0].hung_up()
        await recognizer.aclose()
    golden(f"{kind}/called-off", recorded(server.peers[0]))


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("utterance", {"model": "gpt-transcribe"}),
        (
            "options",
            {
                "model": "whisper-1",
                "language": "de",
                "prompt": "About a kitchen.",
                "temperature": 0.2,
                "stream": False,
                "word_times": True,
            },
        ),
    ],
)
async def test_a_whole_utterance_is_sent_as_a_form(name: str, settings: dict[str, JsonValue], golden: Golden) -> None:
    server = ScriptedHttpServer({"/audio/transcriptions": [openai_transcription_of("Stop.", stream=False)]})
    async with server.running() as base_url:
        chosen = openai_transcriptions.OpenAITranscriptionsSettings.model_validate({"base_url": base_url, **settings})
        recognizer = openai_transcriptions.TranscriptionsRecognizer(chosen, KEY)
        await heard(await recognizer.open(RecognitionRequest("u1", SPEECH_FORMAT)), 1_600)
        await recognizer.aclose()
    (request,) = server.requests
    parts = BytesParser(policy=HTTP).parsebytes(
        f"Content-Type: {request.headers['content-type']}\r\n\r\n".encode() + request.body
    )
    form: dict[str, JsonValue] = {}
    for part in parts.iter_parts():
        content = part.get_payload(decode=True)
        assert isinstance(content, bytes)
        field = str(part.get_param("name", header="content-disposition"))
        form[field] = f"{part.get_filename()}, {len(content)} bytes" if part.get_filename() else content.decode()
    golden(
        f"openai-transcriptions/{name}",
        {
            "method": request.method,
            "path": request.path,
            "authorization": request.headers["authorization"].replace(KEY, "<secret>"),
            "form": form,
        },
    )


async def sent_by(
    kind: str, make: Callable[[str], Recognizer], language: str | None = None, samples: int = 3_200
) -> JsonValue:
    """What an utterance of `samples` of silence makes a recogniser say."""
    server = ScriptedSocketServer(SCRIPTS[kind]("Stop."))
    async with server.running() as base_url:
        recognizer = make(base_url)
        await heard(await recognizer.open(RecognitionRequest("u1", SPEECH_FORMAT, language)), samples)
        await recognizer.aclose()
    return recorded(server.peers[0])


async def heard(stream: RecognitionStream, samples: int) -> None:
    for start in range(0, samples, 320):
        await stream.write(AudioFrame(bytes(640), SPEECH_FORMAT, start))
    await stream.finish_input()
    with anyio.fail_after(10):
        async for _ in stream.reports():
            pass
    await stream.aclose()


def recorded(peer: SocketPeer) -> JsonValue:
    headers: dict[str, JsonValue] = {
        name: peer.headers[name].replace(KEY, "<secret>") for name in HEADERS if name in peer.headers
    }
    query: dict[str, JsonValue] = {**peer.query}
    return {"path": peer.path, "query": query, "headers": headers, "frames": frames(peer.received)}


def frames(messages: list[ReceivedMessage]) -> list[JsonValue]:
    """JSON as it is, the bytes of audio by their number."""
    told: list[JsonValue] = []
    for message in messages:
        if not message.is_text:
            told.append(f"{len(message.data)} bytes")
            continue
        value = message.json()
        if isinstance(audio := value.get("audio"), str):
            value["audio"] = f"{len(audio)} characters"
        told.append(value)
    return told
