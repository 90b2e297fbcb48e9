"""ElevenLabs over a WebSocket: `/v1/text-to-speech/{voice}/multi-stream-input`.

Every unit is a context of its own on one socket that lasts over replies, for three reasons. A context's end is the only
end that the protocol tells (`isFinal`, after `close_context`; a flush has none), so that a unit's samples are exact
whatever the alignment says. A context whose input has ended cannot run into the input timeout of 20 s. And the next
reply finds a connected socket, where the single-context endpoint ends with each reply. Two contexts are open at most:
the service closes a socket with more than five. A cancel closes the socket: nothing else stops a context whose text is
complete.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal
from urllib.parse import quote, urlencode
from uuid import uuid4

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ....audio.formats import AudioFormat
from ....engines.ports import SpeechUnit, Synthesizer
from ....engines.reports import PortError
from ....statecharts.capabilities import SynthesizerCapabilities
from ....statecharts.errors import ErrorScope, ScopedError
from ..declaration import Provider, ProviderSettings, Secrets, VariableName, WebSocketUrl
from ..refusals import NO_CODE, shown_code
from ..synthesis import (
    SYNTHESIS,
    AlignedLetters,
    Heard,
    SocketSynthesizer,
    SpeechLimits,
    UnitAudio,
    UnitSpoken,
    UnitWords,
    decoded,
    malformed,
)
from ..websocket import Closing, JsonObject, ProviderSocket, open_socket

INACTIVITY_TIMEOUT_S = 180
"""The most that the service allows (its default is 20): how long the socket may idle between two replies."""
CAPABILITIES = SynthesizerCapabilities(incremental_pcm=True, alignment=True)


class ElevenLabsVoice(ProviderSettings):
    kind: Literal["elevenlabs"]
    voice_id: str = Field(min_length=1, max_length=128)
    api_key_env: VariableName = "ELEVENLABS_API_KEY"
    base_url: WebSocketUrl = "wss://api.elevenlabs.io"
    model: str = "eleven_flash_v2_5"
    language: str | None = Field(default=None, pattern=r"^[a-z]{2,3}$")
    """ISO 639, for models that take it; None: as the text is."""
    sample_rate_hz: Literal[8_000, 16_000, 22_050, 24_000, 44_100, 48_000] = 24_000
    stability: float | None = Field(default=None, ge=0, le=1)
    similarity_boost: float | None = Field(default=None, ge=0, le=1)
    style: float | None = Field(default=None, ge=0, le=1)
    speed: float | None = Field(default=None, ge=0.7, le=1.2)


class _Received(BaseModel):
    """Also what the service adds beyond its own types: `isFinal: null` beside audio, `audio: null` beside `isFinal`."""

    model_config = ConfigDict(strict=True, extra="ignore")

    audio: str | None = None
    alignment: _Alignment | None = None
    is_final: bool | None = Field(default=None, alias="isFinal")
    context_id: str | None = Field(default=None, alias="contextId")
    error: str | None = None
    message: str | None = None
    code: int | None = None


class _Alignment(BaseModel):
    """Times are in milliseconds from the beginning of this message's audio."""

    model_config = ConfigDict(strict=True, extra="ignore")

    chars: list[str] | None = None
    starts_ms: list[int] | None = Field(default=None, alias="charStartTimesMs")
    durations_ms: list[int] | None = Field(default=None, alias="charDurationsMs")


class ElevenLabsDialect:
    """One reply."""

    def __init__(self, format: AudioFormat, voice_settings: JsonObject, new_id: Callable[[], str]) -> None:
        self._format = format
        self._voice_settings = voice_settings
        self._new_id = new_id
        self._contexts: dict[str, _Context] = {}

    def say(self, unit: SpeechUnit) -> Sequence[JsonObject]:
        context_id = self._new_id()
        self._contexts[context_id] = _Context(unit.index, AlignedLetters(self._format))
        first: JsonObject = {"text": f"{unit.text} ", "context_id": context_id}
        if self._voice_settings:
            first["voice_settings"] = self._voice_settings
        return (
            first,
            {"context_id": context_id, "flush": True},
            {"context_id": context_id, "close_context": True},
        )

    def hear(self, message: JsonObject | bytes) -> Sequence[Heard]:
        try:
            received = _Received.model_validate(message)
        except ValidationError as invalid:
            raise malformed("a message of another form") from invalid
        if received.error is not None or received.code is not None:
            raise PortError(error_of(received.error, received.code))
        context = self._context(received.context_id)
        if context is None:
            return ()  # of a reply before this one, or said after its end
        heard: list[Heard] = []
        if received.audio:
            pcm = decoded(received.audio)
            heard += self._words(context, received.alignment)
            context.letters.advance(pcm)
            heard.append(UnitAudio(context.unit_index, pcm))
        if received.is_final:
            self._contexts = {name: other for name, other in self._contexts.items() if other is not context}
            if words := context.letters.close():
                heard.append(UnitWords(context.unit_index, words))
            heard.append(UnitSpoken(context.unit_index))
        return heard

    def finish(self) -> Sequence[JsonObject]:
        return ()

    def cancel(self) -> Sequence[JsonObject]:
        # Every context that was opened has been closed: one more message about it would open a phantom.
        return ()

    def _context(self, context_id: str | None) -> _Context | None:
        if context_id is None:
            return next(iter(self._contexts.values()), None)
        return self._contexts.get(context_id)

    def _words(self, context: _Context, alignment: _Alignment | None) -> Sequence[Heard]:
        if alignment is None or alignment.chars is None:
            return ()
        words = context.letters.feed(alignment.chars, alignment.starts_ms or [], alignment.durations_ms or [])
        return (UnitWords(context.unit_index, words),) if words else ()


class _Context:
    """One unit at work."""

    def __init__(self, unit_index: int, letters: AlignedLetters) -> None:
        self.unit_index = unit_index
        self.letters = letters


class ElevenLabs:
    """Implements `SpeechVendor`."""

    max_units_ahead = 2
    max_idle_s = INACTIVITY_TIMEOUT_S - 20.0
    survives_cancel = False
    capabilities = CAPABILITIES

    def __init__(self, settings: ElevenLabsVoice, api_key: str, new_id: Callable[[], str]) -> None:
        self._settings = settings
        self._api_key = api_key
        self._new_id = new_id
        self.format = AudioFormat(settings.sample_rate_hz)
        self.default_voice = settings.voice_id

    async def connect(self, voice: str) -> ProviderSocket:
        settings = self._settings
        query = {
            "model_id": settings.model,
            "output_format": f"pcm_{settings.sample_rate_hz}",
            "inactivity_timeout": INACTIVITY_TIMEOUT_S,
            "sync_alignment": "true",
        }
        if settings.language is not None:
            query["language_code"] = settings.language
        return await open_socket(
            f"{settings.base_url}/v1/text-to-speech/{quote(voice, safe='')}/multi-stream-input?{urlencode(query)}",
            stage=SYNTHESIS,
            headers={"xi-api-key": self._api_key},
            explain=_explained,
        )

    def dialect(self, voice: str) -> ElevenLabsDialect:
        settings = self._settings
        wanted = {
            "stability": settings.stability,
            "similarity_boost": settings.similarity_boost,
            "style": settings.style,
            "speed": settings.speed,
        }
        chosen: JsonObject = {name: value for name, value in wanted.items() if value is not None}
        return ElevenLabsDialect(self.format, chosen, self._new_id)


def error_of(error: str | None, code: int | None) -> ScopedError:
    """What an error message (`error`: its name, `code`: the close code that follows) means."""
    name = shown_code(error) or NO_CODE
    detail = f"{name}, code {code}" if code is not None else name
    if name in ("invalid_api_key", "missing_permissions", "authentication_error", "invalid_authorization_header"):
        message = f"the provider refuses the key ({detail}); check the API key and what it may use"
        return SYNTHESIS.error("auth_refused", message, scope=ErrorScope.SESSION)
    if name == "quota_exceeded":
        message = f"the provider's account cannot be used ({detail}); check its plan and billing"
        return SYNTHESIS.error("quota_exhausted", message, scope=ErrorScope.SESSION)
    if name in ("too_many_concurrent_requests", "max_active_conversations", "rate_limit_exceeded"):
        message = f"the provider asks to slow down ({detail}); it is tried again later"
        return SYNTHESIS.error("rate_limited", message, retryable=True)
    if name in ("system_busy", "internal_error", "input_timeout_exceeded"):
        message = f"the provider cannot go on ({detail}); it is tried again"
        return SYNTHESIS.error("provider_unavailable", message, retryable=True)
    message = f"the provider refuses to speak ({detail}); check voice, model and options of this provider"
    return SYNTHESIS.error("request_refused", message)


def _explained(closing: Closing) -> ScopedError | None:
    """1008 is policy, for several reasons: the close reason has the name of an error, or a sentence about it."""
    if closing.code != 1008:
        return None
    reason = closing.reason.lower().replace(" ", "_")
    known = ("invalid_api_key", "quota_exceeded", "max_active_conversations", "input_timeout_exceeded")
    name = next((name for name in known if name in reason), None)
    if name is None and "maximum_simultaneous_contexts" in reason:
        name = "max_active_conversations"
    return None if name is None else error_of(name, closing.code)


def make(
    settings: ElevenLabsVoice,
    secrets: Secrets,
    *,
    limits: SpeechLimits | None = None,
    new_id: Callable[[], str] = lambda: uuid4().hex,
) -> Synthesizer:
    """Not connected. Raises `SecretMissing`. `new_id` names contexts: never the same one twice on a socket."""
    return SocketSynthesizer(ElevenLabs(settings, secrets.read("api_key_env", settings.api_key_env), new_id), limits)


def _make(settings: ElevenLabsVoice, secrets: Secrets) -> Synthesizer:
    return make(settings, secrets)


def _describe(settings: ElevenLabsVoice) -> str:
    return f"{settings.model}, voice {settings.voice_id}, at {settings.base_url}"


PROVIDER = Provider(
    title="ElevenLabs",
    settings=ElevenLabsVoice,
    make=_make,
    describe=_describe,
    offers=CAPABILITIES,
)
