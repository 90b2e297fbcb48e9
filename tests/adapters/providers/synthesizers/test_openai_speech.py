"""/audio/speech: how the audio comes is found out and told, and what goes out."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import anyio
import anyio.lowlevel
import pytest
from anyio.abc import SocketAttribute, SocketStream
from pydantic import JsonValue

from voicechart.adapters.providers import Secrets
from voicechart.adapters.providers.http_service import HttpLimits
from voicechart.adapters.providers.synthesizers.openai_speech import OpenAISpeechVoice, make
from voicechart.adapters.testing import HttpExchange, Pause, ScriptedHttpServer
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

pytestmark = pytest.mark.anyio

PCM = b"\x01\x00" * 4_800
HEADERS = {"Content-Type": "audio/pcm"}
Make = Callable[..., Synthesizer]
Speak = Callable[..., Awaitable[list[SynthesisReport]]]


@pytest.fixture
def voice(secrets: Secrets) -> Make:
    def voice(url: str, http_limits: HttpLimits | None = None, **settings: object) -> Synthesizer:
        chosen: dict[str, object] = {"kind": "openai-speech", "api_key_env": "VOICE_KEY", "base_url": url, **settings}
        return make(OpenAISpeechVoice.model_validate(chosen), secrets, http_limits=http_limits)

    return voice


def speech(*answers: HttpExchange) -> ScriptedHttpServer:
    return ScriptedHttpServer({"/audio/speech": answers})


async def test_what_is_sent_for_a_unit(voice: Make, speak: Speak, golden: Callable[[str, JsonValue], None]) -> None:
    server = speech(HttpExchange((PCM,), headers=HEADERS))
    async with server.running() as url:
        synthesizer = voice(url, streaming=True, instructions="Cheerful.", speed=1.25)
        assert (await speak(synthesizer, "Hello there."))[-1] == SynthesisEnded(4_800)
        await synthesizer.aclose()
    (request,) = server.requests
    golden("openai-speech/unit", request.recorded("sk-planted-0123456789"))


@pytest.mark.parametrize(("length", "streams"), [({}, True), ({"Content-Length": str(len(PCM))}, False)])
async def test_preparing_finds_out_whether_the_server_streams(
    voice: Make, length: dict[str, str], streams: bool
) -> None:
    server = PlainServer(HEADERS | length)
    async with server.running() as url:
        synthesizer = voice(url)
        assert not synthesizer.capabilities.incremental_pcm, "not known yet"
        await synthesizer.prepare()
        assert synthesizer.capabilities.incremental_pcm is streams
        await synthesizer.prepare()
        await synthesizer.aclose()
    assert server.asked == ["/v1/audio/speech", "/v1/models"]


async def test_a_server_of_which_it_is_known_is_not_asked_to_speak(voice: Make) -> None:
    server = speech()
    async with server.running() as url:
        synthesizer = voice(url, streaming=False)
        await synthesizer.prepare()
        assert not synthesizer.capabilities.incremental_pcm
        await synthesizer.aclose()
    assert [request.path for request in server.requests] == ["/v1/models"]


def test_openais_own_service_is_known_to_stream(voice: Make) -> None:
    assert voice("https://api.openai.com/v1").capabilities.incremental_pcm


async def test_the_next_unit_is_asked_for_while_the_one_before_still_comes(voice: Make) -> None:
    rest = anyio.Event()
    server = speech(HttpExchange((PCM, Pause(rest), PCM), headers=HEADERS), HttpExchange((PCM[:960],), headers=HEADERS))
    async with server.running() as url:
        synthesizer = voice(url, streaming=True)
        stream = await synthesizer.open(SynthesisRequest("r", 1))
        for index, text in enumerate(("One.", "Two.")):
            await stream.write(SpeechUnit(index, text))
        await stream.finish_input()
        reports = stream.reports()
        with anyio.fail_after(10):
            assert isinstance(await anext(reports), Synthesized)
            while len(server.requests) < 2:
                await anyio.lowlevel.checkpoint()
            rest.set()
            ended = [report async for report in reports]
        await stream.aclose()
        await synthesizer.aclose()
    ranges = [(unit.start_sample, unit.end_sample) for unit in ended if isinstance(unit, UnitSynthesized)]
    assert ranges == [(0, 9_600), (9_600, 10_080)]


async def test_a_cancel_hangs_up_on_every_answer_that_is_open(voice: Make) -> None:
    never = anyio.Event()
    endless = HttpExchange((PCM, Pause(never)), headers=HEADERS)
    server = speech(endless, endless)
    async with server.running() as url:
        synthesizer = voice(url, streaming=True)
        stream = await synthesizer.open(SynthesisRequest("r", 1))
        for index, text in enumerate(("One.", "Two.")):
            await stream.write(SpeechUnit(index, text))
        reports = stream.reports()
        with anyio.fail_after(10):
            assert isinstance(await anext(reports), Synthesized)
            while len(server.requests) < 2:
                await anyio.lowlevel.checkpoint()
            stream.cancel("barge-in")
            assert [report async for report in reports] == [SynthesisStopped()]
            await stream.aclose()
            await server.has_hung_up(2)
        await synthesizer.aclose()


async def test_a_server_that_stops_in_the_middle_is_silent(voice: Make, speak: Speak) -> None:
    never = anyio.Event()
    async with speech(HttpExchange((PCM, Pause(never)), headers=HEADERS)).running() as url:
        synthesizer = voice(url, HttpLimits(idle_s=0.1), streaming=True)
        reports = await speak(synthesizer, "Hi.")
        await synthesizer.aclose()
    assert isinstance(reports[-1], SynthesisErrored)
    assert (reports[-1].error.code, reports[-1].error.partial_output) == ("provider_silent", True)


async def test_more_audio_than_allowed_for_a_unit_ends_the_reply(voice: Make, speak: Speak) -> None:
    async with speech(HttpExchange((PCM, PCM), headers=HEADERS)).running() as url:
        limits = HttpLimits(max_response_bytes=len(PCM), max_line_bytes=len(PCM))
        synthesizer = voice(url, limits, streaming=True)
        reports = await speak(synthesizer, "Hi.")
        await synthesizer.aclose()
    assert isinstance(reports[-1], SynthesisErrored)
    assert reports[-1].error.code == "audio_overflow"


async def test_a_key_is_not_sent_unencrypted(voice: Make) -> None:
    with pytest.raises(PortError, match="unencrypted"):
        voice("http://192.0.2.1/v1")


class PlainServer:
    """Answers every request with the same PCM, and with just the headers that it is given."""

    def __init__(self, headers: dict[str, str]) -> None:
        self.asked: list[str] = []
        self._headers = headers

    def running(self) -> AbstractAsyncContextManager[str]:
        return self._running()

    @asynccontextmanager
    async def _running(self) -> AsyncGenerator[str, None]:
        listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
        async with listener, anyio.create_task_group() as group:
            group.start_soon(listener.serve, self._answer)
            yield f"http://127.0.0.1:{listener.extra(SocketAttribute.local_port)}/v1"
            group.cancel_scope.cancel()

    async def _answer(self, stream: SocketStream) -> None:
        async with stream:
            request = await stream.receive()
            if request.startswith(b"POST"):
                while b"}" not in request:
                    request += await stream.receive()
            self.asked.append(request.split()[1].decode())
            head = "".join(f"{name}: {value}\r\n" for name, value in self._headers.items())
            await stream.send(f"HTTP/1.1 200 OK\r\n{head}Connection: close\r\n\r\n".encode() + PCM)
