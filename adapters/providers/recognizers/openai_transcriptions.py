"""`/audio/transcriptions`: the whole utterance in one request, at OpenAI or any compatible server (vLLM, speaches …).

It hears nothing before the utterance is over. With `stream` the text comes in pieces then, where the server can; others
ignore the wish and answer as a whole.
Source: developers.openai.com/api/reference/resources/audio, openai 3.57.0.
"""

from __future__ import annotations

from typing import Literal
from weakref import WeakSet

import httpx
from pydantic import Field

from ....engines.ports import RecognitionRequest
from ....statecharts.capabilities import RecognizerCapabilities
from ..declaration import HttpUrl, Provider, ProviderSettings, Secrets, VariableName
from ..http_service import HttpLimits, HttpService
from ..recognition.dialect import STAGE
from ..recognition.input_track import written_format
from ..recognition.transcription_stream import TranscriptionStream


def _limits() -> HttpLimits:
    # 30 s of 48 kHz audio, and the form around it.
    return HttpLimits(max_request_bytes=4 << 20, max_response_bytes=1 << 20, total_s=60.0, close_s=1.0)


class OpenAITranscriptionsSettings(ProviderSettings):
    kind: Literal["openai-transcriptions"] = "openai-transcriptions"
    base_url: HttpUrl = "https://api.openai.com/v1"
    api_key_env: VariableName | None = None
    model: str = Field(min_length=1)
    language: str | None = Field(default=None, min_length=2)
    prompt: str | None = None
    temperature: float | None = Field(default=None, ge=0, le=1)
    stream: bool = True
    """Ask for the text in pieces."""
    word_times: bool = False
    """Ask for the times of words (whisper-1 and most compatible servers; not together with `stream`)."""
    allow_plain_http: bool = False
    """Let speech and key travel unencrypted to another machine."""


class TranscriptionsRecognizer:
    """Implements the `Recognizer` port for what is already said: final-only, or the bounded fallback of another one."""

    def __init__(
        self, settings: OpenAITranscriptionsSettings, api_key: str | None, *, limits: HttpLimits | None = None
    ) -> None:
        """Raises `PortError` for a bad setting."""
        if settings.stream and settings.word_times:
            raise STAGE.bad_setting("word_times cannot be had together with stream; write stream = false")
        self._settings = settings
        self._service = HttpService(
            STAGE,
            base_url=settings.base_url,
            headers={"Accept": "text/event-stream, application/json" if settings.stream else "application/json"},
            api_key=api_key,
            allow_plain_http=settings.allow_plain_http,
            limits=limits or _limits(),
        )
        self._streams: WeakSet[TranscriptionStream] = WeakSet()
        self._is_closed = False

    @property
    def capabilities(self) -> RecognizerCapabilities:
        return RecognizerCapabilities(
            interim=self._settings.stream, segment_finals=True, word_times=self._settings.word_times
        )

    async def prepare(self) -> None:
        """Ask for the list of models, so that a wrong key or address shows early. Raises `PortError`."""
        await self._service.check()

    async def open(self, request: RecognitionRequest) -> TranscriptionStream:
        """Nothing is sent before the utterance is over. Raises `PortError` for several channels, and when closed."""
        if self._is_closed:
            raise STAGE.failure("port_closed", "the recogniser was closed")
        written_format(request.format)

        async def ask(wav: bytes) -> httpx.Response:
            return await self._service.post("/audio/transcriptions", *_form(self._settings, request, wav))

        stream = TranscriptionStream(request, ask, self._service.limits)
        self._streams.add(stream)
        return stream

    async def aclose(self) -> None:
        """Cancel every stream and close every connection."""
        self._is_closed = True
        for stream in list(self._streams):
            await stream.aclose()
        await self._service.aclose()


def _form(settings: OpenAITranscriptionsSettings, request: RecognitionRequest, wav: bytes) -> tuple[bytes, str]:
    """The request's body and its content type."""
    language = request.language or settings.language
    given = {
        "model": settings.model,
        "language": language.partition("-")[0].lower() if language else None,
        "prompt": settings.prompt,
        "temperature": settings.temperature,
        "response_format": "verbose_json" if settings.word_times else "json",
        "timestamp_granularities[]": "word" if settings.word_times else None,
        "stream": "true" if settings.stream else None,
    }
    fields = {name: str(value) for name, value in given.items() if value is not None}
    # httpx writes the form; the address is of no importance here.
    form = httpx.Request("POST", "http://localhost", data=fields, files={"file": ("speech.wav", wav, "audio/wav")})
    return form.read(), form.headers["Content-Type"]


def _make(settings: OpenAITranscriptionsSettings, secrets: Secrets) -> TranscriptionsRecognizer:
    return TranscriptionsRecognizer(settings, secrets.read_optional("api_key_env", settings.api_key_env))


OFFERS = RecognizerCapabilities(interim=True, segment_finals=True, word_times=True)

PROVIDER = Provider(
    title="OpenAI-compatible transcription of whole utterances",
    settings=OpenAITranscriptionsSettings,
    make=_make,
    describe=lambda settings: f"{settings.model} at {settings.base_url}",
    offers=OFFERS,
)
