"""AssemblyAI's streaming recognition, version 3.

A turn is told again and again, each time as a whole; `end_of_turn` is its end, and with `format_turns` the same turn
follows once more, formatted. What is said goes by `turn_order`.
Sources: assemblyai.com/docs/streaming (message-sequence, common-session-errors-and-closures), assemblyai 1.8.2.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import ClassVar, Literal
from urllib.parse import urlencode

from pydantic import Field
from pydantic_core import to_json

from ....engines.ports import RecognitionRequest
from ....engines.reports import RecognitionErrored, UtteranceEnded, Word
from ....statecharts.capabilities import RecognizerCapabilities
from ....statecharts.context import join_texts
from ....statecharts.errors import ScopedError
from ..declaration import Provider, ProviderSettings, Secrets, VariableName, WebSocketUrl
from ..recognition.dialect import STAGE, Dialect, Heard, Incoming, Milliseconds, Outgoing, Ready, failed
from ..recognition.segment_ledger import SegmentLedger
from ..recognition.socket_recognizer import SocketRecognizer
from ..websocket import ClosedBy, Closing, JsonObject

API_VERSION = "2025-05-12"
"""The header that assemblyai 1.8.2 sends."""


class AssemblyAISettings(ProviderSettings):
    kind: Literal["assemblyai"] = "assemblyai"
    base_url: WebSocketUrl = "wss://streaming.assemblyai.com/v3"
    api_key_env: VariableName = "ASSEMBLYAI_API_KEY"
    speech_model: str = Field(default="universal-streaming-english", min_length=1)
    language_codes: tuple[str, ...] = Field(default=(), strict=False)
    """For models of several languages."""
    format_turns: bool = True
    """Punctuation and capitals, a moment later."""
    min_turn_silence_ms: int | None = Field(default=None, ge=0, le=10_000)
    max_turn_silence_ms: int | None = Field(default=None, ge=0, le=30_000)
    end_of_turn_confidence_threshold: float | None = Field(default=None, ge=0, le=1)
    keyterms: tuple[str, ...] = Field(default=(), strict=False)
    allow_plain: bool = False
    """Let speech and key travel unencrypted to another machine."""


class _Word(Incoming):
    text: str
    start: Milliseconds
    end: Milliseconds
    confidence: float | None = None
    word_is_final: bool


class _Turn(Incoming):
    turn_order: int
    turn_is_formatted: bool
    end_of_turn: bool
    transcript: str
    words: tuple[_Word, ...]
    language_code: str | None = None

    @property
    def text(self) -> str:
        """`transcript` holds the words that are final only; it is empty while a turn's first word is not."""
        return self.transcript.strip() if self.end_of_turn and self.transcript else self.spoken or self.transcript

    @property
    def spoken(self) -> str:
        return join_texts(word.text for word in self.words)

    @property
    def settled(self) -> str:
        """The beginning of `spoken` that will not change."""
        final = 0
        while final < len(self.words) and self.words[final].word_is_final:
            final += 1
        return join_texts(word.text for word in self.words[:final])


class _Error(Incoming):
    error_code: int | None = None


class AssemblyAIDialect(Dialect):
    # Below 50 and above 1,000 ms the service closes with 3007.
    min_chunk_ms: ClassVar[int] = 50
    pads_last_chunk: ClassVar[bool] = True

    def __init__(self, request: RecognitionRequest, settings: AssemblyAISettings, api_key: str) -> None:
        super().__init__(request)
        self.format = request.format
        self.headers = {"Authorization": api_key, "AssemblyAI-Version": API_VERSION}
        self.url = f"{settings.base_url}/ws?{urlencode(_query(request, settings))}"
        self._format_turns = settings.format_turns
        self._ledger = SegmentLedger(request.recognition_id)
        self._open: dict[int, _Turn] = {}
        self._ended: set[int] = set()
        self._is_finishing = False

    def finishing(self, has_audio: bool) -> Iterable[Outgoing]:
        self._is_finishing = True
        return ({"type": "ForceEndpoint"}, {"type": "Terminate"}) if has_audio else self.abandoning()

    def abandoning(self) -> Iterable[Outgoing]:
        return ({"type": "Terminate"},)

    def take(self, message: JsonObject) -> Iterable[Heard]:
        match message.get("type"):
            case "Begin":
                return (Ready(),)
            case "Turn":
                return self._take_turn(self.parsed(_Turn, message))
            case "Termination":
                return self._take_termination()
            case "Error":
                return (RecognitionErrored(_meaning(self.parsed(_Error, message).error_code)),)
            case "SpeechStarted" | "Warning" | "Heartbeat" | "Silence" | "SpeakerRevision" | "LLMGatewayResponse":
                return ()
            case kind:
                return self.ignore(kind)

    def _take_turn(self, turn: _Turn) -> Iterator[Heard]:
        key = str(turn.turn_order)
        if self._ledger.is_final(key):
            return
        is_last = turn.end_of_turn and (turn.turn_is_formatted or not self._format_turns)
        if is_last:
            yield from self._finish(turn)
        elif turn.turn_order in self._ended and not turn.end_of_turn:
            return  # late: the turn has ended, only its formatted text is awaited
        else:
            self._open[turn.turn_order] = turn
            is_kept = not self._format_turns and turn.text.startswith(turn.settled)
            stable_chars = len(turn.settled) if is_kept else 0
            yield from self._ledger.revise(key, turn.text, stable_chars=stable_chars, words=self._words(turn))
        if turn.end_of_turn and turn.turn_order not in self._ended:
            self._ended.add(turn.turn_order)
            if turn.text:
                yield UtteranceEnded()

    def _take_termination(self) -> Iterator[Heard]:
        """Whatever was in flight has come before: a turn that was not formatted stays as it is."""
        for turn in tuple(self._open.values()):
            yield from self._finish(turn)
        if self._is_finishing:
            self.is_complete = True
        else:
            yield failed("closed_by_provider", "AssemblyAI ended the session by itself; open another", retryable=True)

    def _finish(self, turn: _Turn) -> Iterator[Heard]:
        self._open.pop(turn.turn_order, None)
        words = self._words(turn)
        yield from self._ledger.finish(
            str(turn.turn_order),
            turn.text,
            start_sample=words[0].start_sample if words else None,
            end_sample=words[-1].end_sample if words else None,
            words=words,
            language=turn.language_code,
        )

    def _words(self, turn: _Turn) -> tuple[Word, ...]:
        return tuple(
            Word(word.text, self.sample_at(word.start / 1_000), self.sample_at(word.end / 1_000), word.confidence)
            for word in turn.words
        )


def _query(request: RecognitionRequest, settings: AssemblyAISettings) -> dict[str, str]:
    languages = (request.language.partition("-")[0],) if request.language else settings.language_codes
    given = {
        "sample_rate": str(request.format.sample_rate_hz),
        "encoding": "pcm_s16le",
        "speech_model": settings.speech_model,
        "format_turns": str(settings.format_turns).lower(),
        "language_codes": to_json(languages).decode() if languages else None,
        "min_turn_silence": settings.min_turn_silence_ms,
        "max_turn_silence": settings.max_turn_silence_ms,
        "end_of_turn_confidence_threshold": settings.end_of_turn_confidence_threshold,
        "keyterms_prompt": to_json(settings.keyterms).decode() if settings.keyterms else None,
    }
    return {name: str(value) for name, value in given.items() if value is not None}


def explain(closing: Closing) -> ScopedError | None:
    """The service's own close codes; None for those of the WebSocket protocol."""
    if closing.by is not ClosedBy.PROVIDER:
        return None
    return _meaning(closing.code) if closing.code == 1008 or closing.code >= 3000 else None


def _meaning(code: int | None) -> ScopedError:
    """The codes that `Error` messages and closings share (`RealTimeErrorCodes` of assemblyai 1.8.2)."""
    detail = f"AssemblyAI, code {code}"
    match code:
        case 1008 | 4001:
            message = f"the provider refuses the key ({detail}); check the API key and what it may use"
            return failed("auth_refused", message, session=True).error
        case 4002 | 4003:
            message = f"the provider's account cannot be used ({detail}); check its plan and billing"
            return failed("quota_exhausted", message, session=True).error
        case 3009 | 4029 | 4102:
            message = f"the provider asks to slow down ({detail}); it is tried again later"
            return STAGE.error("rate_limited", message, retryable=True)
        case 3006 | 3007 | 4000 | 4032 | 4033 | 4034 | 4100 | 4101:
            message = f"the provider refuses the request ({detail}); check the options of this provider"
            return STAGE.error("request_refused", message)
        case 3008 | 4008 | 4010 | 4030 | 4031 | 4103:
            return STAGE.error("session_expired", f"the provider's session is over ({detail})", retryable=True)
        case _:
            return STAGE.error("provider_unavailable", f"the provider cannot go on ({detail})", retryable=True)


def _make(settings: AssemblyAISettings, secrets: Secrets) -> SocketRecognizer:
    return make_recognizer(settings, secrets.read("api_key_env", settings.api_key_env))


def make_recognizer(settings: AssemblyAISettings, api_key: str) -> SocketRecognizer:
    """The recogniser of these settings."""
    return SocketRecognizer(
        lambda request: AssemblyAIDialect(request, settings, api_key),
        OFFERS,
        allow_plain=settings.allow_plain,
        explain=explain,
    )


OFFERS = RecognizerCapabilities(live_input=True, interim=True, segment_finals=True, endpointing=True, word_times=True)

PROVIDER = Provider(
    title="AssemblyAI streaming recognition",
    settings=AssemblyAISettings,
    make=_make,
    describe=lambda settings: f"AssemblyAI {settings.speech_model}",
    offers=OFFERS,
)
