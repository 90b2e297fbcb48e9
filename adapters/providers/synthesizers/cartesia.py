"""Cartesia over a WebSocket: `/tts/websocket`.

Units that are spoken without a pause between them share a context, so that prosody goes on; each ends with a flush, and
`flush_done` marks the end of its samples. A context expires a second after its last audio: after a pause the next unit
begins another one. A cancelled context may still send audio that was under way; its id is never used again, and what
bears it is passed over.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Annotated, Literal
from uuid import uuid4

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from ....audio.formats import AudioFormat
from ....engines.ports import SpeechUnit, Synthesizer
from ....engines.reports import PortError, Word
from ....statecharts.capabilities import SynthesizerCapabilities
from ..declaration import Provider, ProviderSettings, Secrets, VariableName, WebSocketUrl
from ..refusals import NO_CODE, http_refusal, shown_code
from ..synthesis import (
    SYNTHESIS,
    Heard,
    SocketSynthesizer,
    SpeechLimits,
    UnitAudio,
    UnitSpoken,
    UnitWords,
    decoded,
    malformed,
)
from ..websocket import JsonObject, ProviderSocket, open_socket

API_VERSION = "2026-08-14"
"""The one that the vendor's library 4.2.0 speaks."""
IDLE_LIMIT_S = 240.0
"""The service closes a socket that idled for five minutes."""
EARLIEST_S = 0.05
"""A first word that lies further before its unit than this was not counted from the context's beginning."""


class CartesiaVoice(ProviderSettings):
    kind: Literal["cartesia"]
    voice_id: str = Field(min_length=1, max_length=128)
    api_key_env: VariableName = "CARTESIA_API_KEY"
    base_url: WebSocketUrl = "wss://api.cartesia.ai"
    model: str = "sonic-3"
    language: str | None = Field(default=None, pattern=r"^[a-z]{2,3}$")
    """ISO 639; None: the voice's own."""
    sample_rate_hz: Literal[8_000, 16_000, 22_050, 24_000, 44_100, 48_000] = 24_000
    word_times: bool = True
    """Ask for the times of words. Some models have none."""


class _Message(BaseModel):
    model_config = ConfigDict(strict=True, extra="ignore")


class _Chunk(_Message):
    type: Literal["chunk"]
    context_id: str
    data: str
    flush_id: int | None = None


class _WordTimes(_Message):
    words: list[str] = []
    start: list[float] = []
    end: list[float] = []


class _Timestamps(_Message):
    type: Literal["timestamps"]
    context_id: str
    flush_id: int | None = None
    word_timestamps: _WordTimes | None = None


class _FlushDone(_Message):
    type: Literal["flush_done"]
    context_id: str
    flush_id: int | None = None


class _Done(_Message):
    type: Literal["done"]
    context_id: str


class _Error(_Message):
    type: Literal["error"]
    context_id: str | None = None
    status_code: int | None = None
    error_code: str | None = None


_RECEIVED: TypeAdapter[_Chunk | _Timestamps | _FlushDone | _Done | _Error] = TypeAdapter(
    Annotated[_Chunk | _Timestamps | _FlushDone | _Done | _Error, Field(discriminator="type")]
)
_KNOWN = frozenset({"chunk", "timestamps", "flush_done", "done", "error"})


class CartesiaDialect:
    """One reply."""

    def __init__(self, format: AudioFormat, request: JsonObject, new_id: Callable[[], str]) -> None:
        """`request`: what every message of a context repeats."""
        self._format = format
        self._request = request
        self._new_id = new_id
        self._context_id: str | None = None
        self._units: deque[int] = deque()
        self._context_bytes = 0
        self._unit_start = 0
        """In samples of the context."""
        self._origin: int | None = None
        """Where the times of the present unit's words count from, in samples of the context; None: not known yet."""
        self._flush_id: int | None = None
        self._last_flushed = 0

    def say(self, unit: SpeechUnit) -> Sequence[JsonObject]:
        if not self._units:
            self._context_id = self._new_id()
            self._context_bytes = self._unit_start = 0
            self._origin = self._flush_id = None
            self._last_flushed = 0
        self._units.append(unit.index)
        # Transcripts of a context are joined as they are.
        return (self._input(f"{unit.text} ", True), self._input("", True) | {"flush": True})

    def hear(self, message: JsonObject | bytes) -> Sequence[Heard]:
        if isinstance(message, bytes):
            raise malformed("binary data")
        if message.get("type") not in _KNOWN:
            return ()
        try:
            received = _RECEIVED.validate_python(message)
        except ValidationError as invalid:
            raise malformed("a message of another form") from invalid
        if isinstance(received, _Error) and received.context_id is None:
            raise _refused(received)  # of the whole connection
        if received.context_id != self._context_id:
            return ()  # of a context that was cancelled, or has ended
        match received:
            case _Error():
                raise _refused(received)
            case _Done():
                return self._ended_early()
            case _ if not self._units:
                return ()
            case _Chunk(data=data, flush_id=flush_id):
                self._flush_id = flush_id
                pcm = decoded(data)
                self._context_bytes += len(pcm)
                return (UnitAudio(self._units[0], pcm),)
            case _Timestamps(word_timestamps=times, flush_id=flush_id):
                return self._words(times, flush_id)
            case _FlushDone(flush_id=flush_id):
                if flush_id is not None and flush_id <= self._last_flushed:
                    return ()  # said twice
                self._last_flushed = flush_id or self._last_flushed
                self._unit_start = self._context_bytes // self._format.bytes_per_sample
                self._origin = self._flush_id = None
                return (UnitSpoken(self._units.popleft()),)

    def finish(self) -> Sequence[JsonObject]:
        """Ends the context, rather than let it expire."""
        return () if self._context_id is None else (self._input("", False),)

    def cancel(self) -> Sequence[JsonObject]:
        return () if self._context_id is None else ({"context_id": self._context_id, "cancel": True},)

    def _input(self, transcript: str, goes_on: bool) -> JsonObject:
        return self._request | {"transcript": transcript, "context_id": self._context_id, "continue": goes_on}

    def _ended_early(self) -> Sequence[Heard]:
        if self._units:
            message = "the provider ended a context before all of it was spoken; it is tried again"
            raise SYNTHESIS.failure("cut_off", message, retryable=True)
        return ()

    def _words(self, times: _WordTimes | None, flush_id: int | None) -> Sequence[Heard]:
        if times is None or not times.words or not len(times.words) == len(times.start) == len(times.end):
            return ()
        if None not in (flush_id, self._flush_id) and flush_id != self._flush_id:
            return ()  # late: of the unit before
        start = self._unit_start
        if self._origin is None:
            early = times.start[0] + EARLIEST_S < start / self._format.sample_rate_hz
            self._origin = start if early else 0
        shift = self._origin - start
        rate = self._format.sample_rate_hz
        words = tuple(
            Word(text, max(0, round(begin * rate) + shift), max(0, round(end * rate) + shift))
            for text, begin, end in zip(times.words, times.start, times.end, strict=True)
        )
        return (UnitWords(self._units[0], words),)


def _refused(received: _Error) -> PortError:
    code = shown_code(received.error_code) or NO_CODE
    return PortError(http_refusal(SYNTHESIS, received.status_code or 500, None, code))


class Cartesia:
    """Implements `SpeechVendor`."""

    max_units_ahead = 3
    max_idle_s = IDLE_LIMIT_S
    survives_cancel = True

    def __init__(self, settings: CartesiaVoice, api_key: str, new_id: Callable[[], str]) -> None:
        self._settings = settings
        self._api_key = api_key
        self._new_id = new_id
        self.format = AudioFormat(settings.sample_rate_hz)
        self.default_voice = settings.voice_id
        self.capabilities = SynthesizerCapabilities(incremental_pcm=True, alignment=settings.word_times)

    async def connect(self, voice: str) -> ProviderSocket:
        return await open_socket(
            f"{self._settings.base_url}/tts/websocket",
            stage=SYNTHESIS,
            headers={"Authorization": f"Bearer {self._api_key}", "Cartesia-Version": API_VERSION},
        )

    def dialect(self, voice: str) -> CartesiaDialect:
        request: JsonObject = {
            "model_id": self._settings.model,
            "voice": {"mode": "id", "id": voice},
            "output_format": {"container": "raw", "encoding": "pcm_s16le", "sample_rate": self.format.sample_rate_hz},
        }
        if self._settings.language is not None:
            request["language"] = self._settings.language
        if self._settings.word_times:
            request["add_timestamps"] = True
        return CartesiaDialect(self.format, request, self._new_id)


def make(
    settings: CartesiaVoice,
    secrets: Secrets,
    *,
    limits: SpeechLimits | None = None,
    new_id: Callable[[], str] = lambda: uuid4().hex,
) -> Synthesizer:
    """Not connected. Raises `SecretMissing`. `new_id` names contexts: never the same one twice on a socket."""
    return SocketSynthesizer(Cartesia(settings, secrets.read("api_key_env", settings.api_key_env), new_id), limits)


def _make(settings: CartesiaVoice, secrets: Secrets) -> Synthesizer:
    return make(settings, secrets)


def _describe(settings: CartesiaVoice) -> str:
    return f"{settings.model}, voice {settings.voice_id}, at {settings.base_url}"


PROVIDER = Provider(
    title="Cartesia",
    settings=CartesiaVoice,
    make=_make,
    describe=_describe,
    offers=SynthesizerCapabilities(incremental_pcm=True, alignment=True),
)
