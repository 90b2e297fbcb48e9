"""OpenAI's `/audio/speech`, and every server that imitates it: one request for each unit, raw PCM as the answer.

The next unit is asked for while the one before is still being received. How finely the audio comes depends on the
server: OpenAI's streams it, many others make the whole of it first, and then tell its length in advance. `streaming`
says which; where it is left out, `prepare` finds it out with one short word. The capabilities tell what was found.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from email.message import Message
from typing import Literal
from urllib.parse import urlsplit

import anyio
import httpx
from anyio.streams.memory import MemoryObjectSendStream
from pydantic import Field, JsonValue

from ....audio.formats import AudioFormat
from ....engines.ports import SpeechUnit, SynthesisRequest, Synthesizer
from ....engines.reports import PortError
from ....statecharts.capabilities import SynthesizerCapabilities
from ..bounded_transport import PayloadTooLargeError
from ..declaration import HttpUrl, Provider, ProviderSettings, Secrets, VariableName
from ..http_service import HttpLimits, HttpService
from ..synthesis import SYNTHESIS, SpeechLimits, SpokenReply, SpokenTrack, malformed

PROBE = "Ready."
PCM_TYPES = frozenset({"audio/pcm", "audio/l16", "audio/x-pcm", "audio/raw", "application/octet-stream"})
STREAMING_HOSTS = frozenset({"api.openai.com"})


class OpenAISpeechVoice(ProviderSettings):
    kind: Literal["openai-speech"]
    base_url: HttpUrl = "https://api.openai.com/v1"
    """Without "/audio/speech"."""
    model: str = "gpt-4o-mini-tts"
    voice: str = Field(default="alloy", min_length=1)
    api_key_env: VariableName | None = None
    """The environment variable that holds the key; None where the service needs none."""
    instructions: str | None = None
    """How to speak, for models that take it."""
    speed: float | None = Field(default=None, ge=0.25, le=4.0)
    sample_rate_hz: int = Field(default=24_000, ge=8_000, le=48_000)
    """Of the PCM that the server sends: 24 kHz at OpenAI."""
    streaming: bool | None = None
    """Whether audio arrives while it is still being made; None: find out."""
    allow_plain_http: bool = False
    """Let the key travel unencrypted, on a network that you trust."""


class OpenAISpeech:
    """Implements `Synthesizer`."""

    def __init__(
        self, settings: OpenAISpeechVoice, api_key: str | None, limits: SpeechLimits, http_limits: HttpLimits
    ) -> None:
        """Raises `PortError` for a bad setting."""
        self._settings = settings
        self._limits = limits
        self._service = HttpService(
            SYNTHESIS,
            base_url=settings.base_url,
            headers={},
            api_key=api_key,
            allow_plain_http=settings.allow_plain_http,
            limits=http_limits,
        )
        self._format = AudioFormat(settings.sample_rate_hz)
        self._is_streaming = settings.streaming
        if self._is_streaming is None and urlsplit(settings.base_url).hostname in STREAMING_HOSTS:
            self._is_streaming = True
        self._replies: set[SpokenReply] = set()
        self._closed = False

    @property
    def capabilities(self) -> SynthesizerCapabilities:
        """Before `prepare` has found it out, audio is taken to come as a whole."""
        return SynthesizerCapabilities(incremental_pcm=bool(self._is_streaming))

    @property
    def format(self) -> AudioFormat:
        return self._format

    async def prepare(self) -> None:
        """Check address and key; where nobody knows how the audio comes, have one word spoken. Raises `PortError`."""
        if self._is_streaming is not None:
            await self._service.check()
            return
        response = await self._ask(PROBE, self._settings.voice)
        try:
            self._is_streaming = "Content-Length" not in response.headers
            async with aclosing(_pieces(response, self._format)) as pieces:
                async for _ in pieces:
                    pass
        finally:
            await response.aclose()

    async def open(self, request: SynthesisRequest) -> SpokenReply:
        voice = request.voice or self._settings.voice
        if self._closed:
            raise SYNTHESIS.failure("port_closed", "the synthesiser was closed")
        reply = SpokenReply(lambda reply: self._speak(reply, voice), self._limits)
        self._replies.add(reply)
        reply.when_done(lambda: self._replies.discard(reply))
        return reply

    async def aclose(self) -> None:
        self._closed = True
        for reply in tuple(self._replies):
            await reply.aclose()
        await self._service.aclose()

    async def _speak(self, reply: SpokenReply, voice: str) -> None:
        track = SpokenTrack(self._format)
        sender, receiver = anyio.create_memory_object_stream[tuple[SpeechUnit, httpx.Response | PortError]](0)
        failure: PortError | None = None
        async with anyio.create_task_group() as tasks, receiver:
            tasks.start_soon(self._ask_on, reply, voice, sender)
            try:
                async for unit, answer in receiver:
                    if isinstance(answer, PortError):
                        raise answer
                    await self._hear(reply, track, unit, answer)
            except PortError as failed:
                failure = failed
            tasks.cancel_scope.cancel()
        if failure is not None:
            raise failure

    async def _ask_on(self, reply: SpokenReply, voice: str, sender: _Sender) -> None:
        """Ask for one unit after another; one answer waits while the one before is read."""
        async with sender:
            while (unit := await reply.next_unit()) is not None:
                try:
                    answer = await self._ask(unit.text, voice)
                except PortError as failure:
                    await sender.send((unit, failure))
                    return
                try:
                    await sender.send((unit, answer))
                except BaseException:
                    await self._close(answer)
                    raise

    async def _hear(self, reply: SpokenReply, track: SpokenTrack, unit: SpeechUnit, answer: httpx.Response) -> None:
        try:
            track.expect(unit)
            async with aclosing(_pieces(answer, self._format)) as pieces:
                async for piece in pieces:
                    await reply.deliver(track.add(unit.index, piece))
            await reply.deliver(track.complete(unit.index))
        finally:
            await self._close(answer)

    async def _ask(self, text: str, voice: str) -> httpx.Response:
        settings = self._settings
        body: dict[str, JsonValue] = {
            "model": settings.model,
            "input": text,
            "voice": voice,
            "response_format": "pcm",
        }
        if settings.instructions is not None:
            body["instructions"] = settings.instructions
        if settings.speed is not None:
            body["speed"] = settings.speed
        return await self._service.post_json("/audio/speech", body)

    async def _close(self, answer: httpx.Response) -> None:
        """There is no cancel on the wire: the connection is closed."""
        with anyio.move_on_after(self._service.limits.close_s, shield=True):
            await answer.aclose()


_Sender = MemoryObjectSendStream[tuple[SpeechUnit, httpx.Response | PortError]]


async def _pieces(answer: httpx.Response, format: AudioFormat) -> AsyncGenerator[bytes, None]:
    """The PCM of an answer. Raises `PortError`, for an answer that is no such PCM too."""
    _check_type(answer.headers, format)
    is_first = True
    try:
        async for piece in answer.aiter_raw():
            if is_first and piece.startswith((b"RIFF", b"ID3", b"OggS", b"fLaC")):
                raise malformed("a file instead of bare PCM (it does not heed response_format)")
            is_first = False
            yield piece
    except PayloadTooLargeError:
        message = "the provider's audio of one unit exceeds the size limit; make units shorter"
        raise SYNTHESIS.failure("audio_overflow", message) from None
    except httpx.TimeoutException as late:
        message = "the provider sent no audio for too long; check the network and the provider"
        raise SYNTHESIS.failure("provider_silent", message, retryable=True) from late
    except httpx.TransportError as broken:
        message = "the connection to the provider broke; check the network"
        raise SYNTHESIS.failure("connection_lost", message, retryable=True) from broken


def _check_type(headers: Mapping[str, str], format: AudioFormat) -> None:
    declared = Message()
    declared["Content-Type"] = headers.get("Content-Type", "application/octet-stream")
    kind, rate = declared.get_content_type(), declared.get_param("rate")
    if kind not in PCM_TYPES:
        raise malformed(f"{shown_type(kind)} instead of bare PCM (it does not heed response_format)")
    if isinstance(rate, str) and rate.isdecimal() and int(rate) != format.sample_rate_hz:
        message = f"the provider sends {rate[:7]} Hz, not {format.sample_rate_hz}; set sample_rate_hz to what it sends"
        raise SYNTHESIS.bad_setting(message)


def shown_type(kind: str) -> str:
    """A media type, as far as it is safe to show."""
    return (
        kind if len(kind) <= 40 and kind.replace("/", "").replace("-", "").replace(".", "").isalnum() else "something"
    )


def make(
    settings: OpenAISpeechVoice,
    secrets: Secrets,
    *,
    limits: SpeechLimits | None = None,
    http_limits: HttpLimits | None = None,
) -> Synthesizer:
    """Not connected. Raises `SecretMissing`, and `PortError` for a bad setting."""
    limits = limits or SpeechLimits()
    # PCM has no lines.
    http_limits = http_limits or HttpLimits(idle_s=limits.silence_s, max_line_bytes=HttpLimits().max_response_bytes)
    return OpenAISpeech(settings, secrets.read_optional("api_key_env", settings.api_key_env), limits, http_limits)


def _make(settings: OpenAISpeechVoice, secrets: Secrets) -> Synthesizer:
    return make(settings, secrets)


def _describe(settings: OpenAISpeechVoice) -> str:
    return f"{settings.model}, voice {settings.voice}, at {settings.base_url}"


PROVIDER = Provider(
    title="OpenAI /audio/speech, or a server like it",
    settings=OpenAISpeechVoice,
    make=_make,
    describe=_describe,
    offers=SynthesizerCapabilities(incremental_pcm=True),
)
