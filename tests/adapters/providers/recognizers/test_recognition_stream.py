"""The life of an utterance on a socket: readiness, waits, watchdogs, cancelling, and what is never shown."""

from __future__ import annotations

from collections.abc import Iterable

import anyio
import pytest

from voicechart.adapters.providers import SecretMissing, Secrets
from voicechart.adapters.providers.recognition import (
    Dialect,
    Heard,
    RecognitionLimits,
    SegmentLedger,
    SocketRecognizer,
)
from voicechart.adapters.providers.recognizers import (
    assemblyai,
    dashscope,
    deepgram,
    openai_realtime_transcription,
    openai_transcriptions,
)
from voicechart.adapters.providers.websocket import JsonObject
from voicechart.adapters.testing import (
    HttpExchange,
    Pause,
    Refusal,
    ScriptedHttpServer,
    ScriptedSocketServer,
    SocketPeer,
    sse,
)
from voicechart.audio.formats import SPEECH_FORMAT, AudioFormat, AudioFrame
from voicechart.engines.ports import RecognitionRequest, RecognitionStream
from voicechart.engines.reports import (
    PortError,
    RecognitionEnded,
    RecognitionErrored,
    RecognitionReport,
    SegmentFinal,
    SegmentHypothesis,
)

pytestmark = pytest.mark.anyio

KEY = "sk-very-secret"
REQUEST = RecognitionRequest("u1", SPEECH_FORMAT)
FRAME = AudioFrame(bytes(640), SPEECH_FORMAT)


class Echo(Dialect):
    """A service that is told of audio and tells it back."""

    ready_at_once = True
    answers_audio = True

    def __init__(self, request: RecognitionRequest, base_url: str, format: AudioFormat = SPEECH_FORMAT) -> None:
        super().__init__(request)
        self.url = f"{base_url}/echo?model=m"
        self.headers = {"Authorization": f"Bearer {KEY}"}
        self.format = format
        self._ledger = SegmentLedger(request.recognition_id)

    def finishing(self, has_audio: bool) -> Iterable[JsonObject]:
        return ({"type": "finish"},)

    def take(self, message: JsonObject) -> Iterable[Heard]:
        match message.get("type"):
            case "heard":
                return self._ledger.revise("s", str(message["text"]))
            case "finished":
                self.is_complete = True
                return ()
            case kind:
                return self.ignore(kind)


def echo(
    base_url: str, limits: RecognitionLimits | None = None, format: AudioFormat = SPEECH_FORMAT
) -> SocketRecognizer:
    return SocketRecognizer(lambda request: Echo(request, base_url, format), deepgram.OFFERS, limits=limits)


async def says_nothing(peer: SocketPeer) -> None:
    await peer.hung_up()


async def read(stream: RecognitionStream) -> list[RecognitionReport]:
    with anyio.fail_after(10):
        return [report async for report in stream.reports()]


def code_of(report: RecognitionReport) -> str:
    assert isinstance(report, RecognitionErrored)
    return report.error.code


async def test_audio_that_nothing_is_said_about_ends_at_a_deadline_however_much_goes_out() -> None:
    async with ScriptedSocketServer(says_nothing).running() as base_url:
        recognizer = echo(base_url, RecognitionLimits(silent_s=0.1))
        ended = anyio.Event()
        stream = await recognizer.open(REQUEST)

        async def keep_talking() -> None:
            for start in range(0, 16_000 * 60, 320):
                if ended.is_set():
                    return
                await stream.write(AudioFrame(bytes(640), SPEECH_FORMAT, start))
                await anyio.sleep(0.005)

        reports: list[RecognitionReport] = []
        async with anyio.create_task_group() as group:
            group.start_soon(keep_talking)
            with anyio.fail_after(10):
                async for report in stream.reports():
                    ended.set()
                    reports.append(report)
        await recognizer.aclose()
    assert [code_of(report) for report in reports] == ["provider_silent"]


async def test_without_audio_nothing_has_to_be_said() -> None:
    go_on = anyio.Event()

    async def script(peer: SocketPeer) -> None:
        await go_on.wait()
        await peer.send_json({"type": "finished"})

    async with ScriptedSocketServer(script).running() as base_url:
        recognizer = echo(base_url, RecognitionLimits(silent_s=0.01))
        stream = await recognizer.open(REQUEST)
        reports: list[RecognitionReport] = []

        async def read_all() -> None:
            reports.extend(await read(stream))

        async with anyio.create_task_group() as group:
            group.start_soon(read_all)
            await anyio.sleep(0.05)
            go_on.set()
        await recognizer.aclose()
    assert reports == [RecognitionEnded()]


async def test_the_deadline_after_the_end_counts_from_the_last_message() -> None:
    async def script(peer: SocketPeer) -> None:
        await peer.skip_to({"type": "finish"})
        for text in ("a", "a b", "a b c", "a b c d"):
            await anyio.sleep(0.1)
            await peer.send_json({"type": "heard", "text": text})
        await peer.hung_up()

    async with ScriptedSocketServer(script).running() as base_url:
        recognizer = echo(base_url, RecognitionLimits(finish_s=0.3))
        stream = await recognizer.open(REQUEST)
        await stream.write(FRAME)
        await stream.finish_input()
        reports = await read(stream)
        await recognizer.aclose()
    assert [report.text for report in reports if isinstance(report, SegmentHypothesis)][-1] == "a b c d"
    assert code_of(reports[-1]) == "provider_silent"


async def test_a_message_that_is_too_long_is_an_error() -> None:
    async def script(peer: SocketPeer) -> None:
        await peer.send_json({"type": "heard", "text": "x" * (2 << 20)})
        await peer.hung_up()

    async with ScriptedSocketServer(script).running() as base_url:
        recognizer = echo(base_url)
        reports = await read(await recognizer.open(REQUEST))
        await recognizer.aclose()
    assert [code_of(report) for report in reports] == ["message_too_large"]


async def test_the_reports_and_not_the_writer_tell_why_a_connection_was_closed() -> None:
    async def script(peer: SocketPeer) -> None:
        await peer.send_json({"type": "heard", "text": "stop"})
        await peer.close(1011, f"because of {KEY}")

    server = ScriptedSocketServer(script)
    async with server.running() as base_url:
        recognizer = echo(base_url)
        stream = await recognizer.open(REQUEST)
        await server.has_completed()
        await stream.write(FRAME)
        await stream.write(AudioFrame(bytes(640), SPEECH_FORMAT, 320))
        await stream.finish_input()
        reports = await read(stream)
        with pytest.raises(PortError, match="stream_ended"):
            await stream.write(AudioFrame(bytes(640), SPEECH_FORMAT, 640))
        await recognizer.aclose()
    assert [type(report) for report in reports] == [SegmentHypothesis, RecognitionErrored]
    assert code_of(reports[-1]) == "provider_unavailable"
    assert KEY not in str(reports)


async def test_a_cancelled_utterance_closes_its_connection() -> None:
    server = ScriptedSocketServer(says_nothing)
    async with server.running() as base_url:
        recognizer = echo(base_url)
        stream = await recognizer.open(REQUEST)
        await stream.write(FRAME)
        stream.cancel("noise")
        assert await read(stream) == [RecognitionEnded(cancelled=True)]
        await stream.aclose()
        await stream.aclose()
        await server.has_connections(0)
        await recognizer.aclose()


async def test_a_recogniser_that_closes_while_it_opens_leaves_no_connection() -> None:
    refused = anyio.Event()
    server = ScriptedSocketServer(Pause(refused))
    async with server.running() as base_url:
        recognizer = dashscope.make_recognizer(dashscope.DashScopeSettings(base_url=base_url), KEY)

        async def open_one() -> None:
            with pytest.raises(PortError):
                await recognizer.open(REQUEST)

        async with anyio.create_task_group() as group:
            group.start_soon(open_one)
            await server.has_requests(1)
            await recognizer.aclose()
            refused.set()
        await server.has_connections(0)


@pytest.mark.parametrize("rate_hz", [8_000, 16_000, 24_000, 48_000])
async def test_audio_is_converted_for_the_service_and_nothing_of_it_is_lost(rate_hz: int) -> None:
    async def script(peer: SocketPeer) -> None:
        await peer.skip_to({"type": "finish"})
        await peer.send_json({"type": "finished"})

    server = ScriptedSocketServer(script)
    source = AudioFormat(16_000)
    async with server.running() as base_url:
        recognizer = echo(base_url, format=AudioFormat(rate_hz))
        stream = await recognizer.open(REQUEST)
        for start in range(0, 16_000, 320):
            await stream.write(AudioFrame(bytes(640), source, 5_000 + start))
        await stream.finish_input()
        assert await read(stream) == [RecognitionEnded()]
        await recognizer.aclose()
    sent = sum(len(message.data) for message in server.peers[0].received if not message.is_text)
    assert abs(sent // 2 - rate_hz) <= 1


async def test_several_channels_are_refused() -> None:
    recognizer = echo("ws://127.0.0.1:1")
    with pytest.raises(PortError, match="mix down"):
        await recognizer.open(RecognitionRequest("u1", AudioFormat(16_000, 2)))


async def test_preparing_shows_a_refused_key_and_is_done_once_it_worked() -> None:
    server = ScriptedSocketServer(Refusal(401, body=f'{{"err_msg": "{KEY}"}}'.encode()), says_nothing)
    async with server.running() as base_url:
        recognizer = deepgram.make_recognizer(deepgram.DeepgramSettings(base_url=base_url), KEY)
        with pytest.raises(PortError, match="auth_refused") as refused:
            await recognizer.prepare()
        assert KEY not in str(refused.value)
        await recognizer.prepare()
        await recognizer.prepare()
        await recognizer.aclose()
    assert server.requests == 2


async def test_speech_and_key_do_not_travel_unencrypted() -> None:
    recognizer = deepgram.make_recognizer(deepgram.DeepgramSettings(base_url="ws://example.org"), KEY)
    with pytest.raises(PortError, match="unencrypted"):
        await recognizer.open(REQUEST)


def test_a_missing_secret_is_named_by_its_setting() -> None:
    nothing = Secrets({})
    for provider, settings in (
        (deepgram.PROVIDER, deepgram.DeepgramSettings()),
        (assemblyai.PROVIDER, assemblyai.AssemblyAISettings()),
        (dashscope.PROVIDER, dashscope.DashScopeSettings()),
        (
            openai_realtime_transcription.PROVIDER,
            openai_realtime_transcription.OpenAIRealtimeTranscriptionSettings(),
        ),
    ):
        with pytest.raises(SecretMissing) as missing:
            provider.make(settings, nothing)  # pyright: ignore[reportArgumentType]
        assert missing.value.key == "api_key_env"


# -- whole utterances ----------------------------------------------------------------------------------------------


def transcriber(base_url: str) -> openai_transcriptions.TranscriptionsRecognizer:
    settings = openai_transcriptions.OpenAITranscriptionsSettings(base_url=base_url, model="m")
    return openai_transcriptions.TranscriptionsRecognizer(settings, KEY)


@pytest.mark.parametrize("pieces", [0, 1], ids=["before the answer", "in the middle of it"])
async def test_cancelling_a_transcription_closes_the_connection(pieces: int) -> None:
    sent = sse({"type": "transcript.text.delta", "delta": "Turn"})[:pieces]
    server = ScriptedHttpServer({"/audio/transcriptions": [HttpExchange((*sent, Pause(anyio.Event())))]})
    async with server.running() as base_url:
        recognizer = transcriber(base_url)
        stream = await recognizer.open(REQUEST)
        await stream.write(FRAME)
        await stream.finish_input()
        reports: list[RecognitionReport] = []

        async def read_all() -> None:
            reports.extend(await read(stream))

        with anyio.fail_after(10):
            async with anyio.create_task_group() as group:
                group.start_soon(read_all)
                await server.has_requests()
                stream.cancel("noise")
            await stream.aclose()
            await server.has_hung_up()
        await recognizer.aclose()
    assert reports[-1] == RecognitionEnded(cancelled=True)


async def test_an_utterance_of_thirty_seconds_is_taken_and_a_longer_one_refused() -> None:
    answer = HttpExchange((b'{"text": "Stop."}',), headers={"Content-Type": "application/json"})
    server = ScriptedHttpServer({"/audio/transcriptions": [answer]})
    async with server.running() as base_url:
        recognizer = transcriber(base_url)
        stream = await recognizer.open(REQUEST)
        second = AudioFrame(bytes(32_000), SPEECH_FORMAT)
        for start in range(0, 480_000, 16_000):
            await stream.write(AudioFrame(second.data, SPEECH_FORMAT, start))
        with pytest.raises(PortError, match="utterance_too_long"):
            await stream.write(AudioFrame(bytes(2), SPEECH_FORMAT, 480_000))
        await stream.finish_input()
        reports = await read(stream)
        await recognizer.aclose()
    assert [report.text for report in reports if isinstance(report, SegmentFinal)] == ["Stop."]
    assert len(server.requests[0].body) > 960_000


async def test_nothing_is_asked_about_an_utterance_without_audio() -> None:
    server = ScriptedHttpServer({})
    async with server.running() as base_url:
        recognizer = transcriber(base_url)
        stream = await recognizer.open(REQUEST)
        await stream.finish_input()
        assert await read(stream) == [RecognitionEnded()]
        await recognizer.aclose()
    assert server.requests == []


def test_word_times_and_pieces_exclude_each_other() -> None:
    settings = openai_transcriptions.OpenAITranscriptionsSettings(model="m", word_times=True)
    with pytest.raises(PortError, match="stream = false"):
        openai_transcriptions.TranscriptionsRecognizer(settings, None)
