"""Deepgram's live recognition: `listen`, version 1, over a WebSocket.

A result speaks of a window of the audio: interim results replace each other, `is_final` freezes the window, and an
utterance is what was frozen until `speech_final` or `UtteranceEnd`, of which either, both or none may come.
Sources: developers.deepgram.com/docs (finalize, close-stream, audio-keep-alive, utterance-end) and deepgram-sdk 7.17.0.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import ClassVar, Literal
from urllib.parse import urlencode

from pydantic import Field, JsonValue

from ....engines.ports import RecognitionRequest
from ....engines.reports import UtteranceEnded, Word
from ....statecharts.capabilities import RecognizerCapabilities
from ..declaration import Provider, ProviderSettings, Secrets, VariableName, WebSocketUrl
from ..recognition.dialect import Dialect, Heard, Incoming, Outgoing, Seconds, failed
from ..recognition.segment_ledger import SegmentLedger
from ..recognition.socket_recognizer import SocketRecognizer
from ..refusals import shown_code
from ..websocket import Closing, JsonObject

UNTOLD_END_MS = 500
"""So much silence beyond `utterance_end_ms` ends an utterance whose end was never told."""
ROUNDING_S = 0.000_1


class DeepgramSettings(ProviderSettings):
    kind: Literal["deepgram"] = "deepgram"
    base_url: WebSocketUrl = "wss://api.deepgram.com/v1"
    api_key_env: VariableName = "DEEPGRAM_API_KEY"
    model: str = Field(default="nova-3", min_length=1)
    language: str | None = Field(default=None, min_length=1)
    """BCP 47, or "multi"; the model's default without one."""
    endpointing_ms: int = Field(default=300, ge=10, le=5_000)
    """Silence after which an utterance is told to be over (`speech_final`)."""
    utterance_end_ms: int = Field(default=1_000, ge=1_000, le=5_000)
    """The same by the words' times, for rooms that are never silent (`UtteranceEnd`)."""
    smart_format: bool = True
    keyterms: tuple[str, ...] = Field(default=(), strict=False)
    allow_plain: bool = False
    """Let speech and key travel unencrypted to another machine."""


class _Word(Incoming):
    word: str
    start: Seconds
    end: Seconds
    confidence: float | None = None
    punctuated_word: str | None = None


class _Alternative(Incoming):
    transcript: str
    confidence: float | None = None
    words: tuple[_Word, ...] = ()
    languages: tuple[str, ...] | None = None


class _Channel(Incoming):
    alternatives: tuple[_Alternative, ...]


class _Results(Incoming):
    start: Seconds
    duration: Seconds
    is_final: bool | None = None
    speech_final: bool | None = None
    from_finalize: bool | None = None
    channel: _Channel


class _UtteranceEnd(Incoming):
    last_word_end: Seconds


class _Error(Incoming):
    variant: str | None = None
    code: str | None = None


class DeepgramDialect(Dialect):
    ready_at_once: ClassVar[bool] = True
    # A text message: as a binary one it would be taken for audio.
    keep_alive: ClassVar[Mapping[str, JsonValue] | None] = {"type": "KeepAlive"}
    answers_audio: ClassVar[bool] = True

    def __init__(self, request: RecognitionRequest, settings: DeepgramSettings, api_key: str) -> None:
        super().__init__(request)
        self.format = request.format
        self.headers = {"Authorization": f"Token {api_key}"}
        self.url = f"{settings.base_url}/listen?{urlencode(_query(request, settings))}"
        self._untold_end_s = (settings.utterance_end_ms + UNTOLD_END_MS) / 1_000
        self._language = request.language or settings.language
        self._ledger = SegmentLedger(request.recognition_id)
        self._frozen_until = 0.0
        self._last_word_end = 0.0
        self._has_unended_words = False
        self._is_finishing = False

    def finishing(self, has_audio: bool) -> Iterable[Outgoing]:
        self._is_finishing = True
        # Finalize answers at once, but not for certain; CloseStream always ends in Metadata.
        return ({"type": "Finalize"}, {"type": "CloseStream"}) if has_audio else ({"type": "CloseStream"},)

    def abandoning(self) -> Iterable[Outgoing]:
        return ({"type": "CloseStream"},)

    def take(self, message: JsonObject) -> Iterable[Heard]:
        match message.get("type"):
            case "Results":
                return self._take_results(self.parsed(_Results, message))
            case "UtteranceEnd":
                return self._take_utterance_end(self.parsed(_UtteranceEnd, message).last_word_end)
            case "Metadata":
                return self._take_metadata()
            case "Error":
                return (_failure(self.parsed(_Error, message)),)
            case "SpeechStarted" | "ConfigureSuccess" | "ConfigureFailure":
                return ()
            case kind:
                return self.ignore(kind)

    def take_closing(self, closing: Closing) -> Iterable[Heard]:
        # Metadata may be missing: what was frozen is whole when the provider closed in good order after CloseStream.
        self.is_complete = self._is_finishing and closing.is_normal and not self._ledger.has_open_text()
        return ()

    def _take_results(self, results: _Results) -> Iterator[Heard]:
        end = results.start + results.duration
        is_late = not results.is_final and end <= self._frozen_until + ROUNDING_S
        if not (is_late or self._ledger.is_final(str(self.sample_at(results.start)))):
            yield from self._take_window(results, end)
        if results.speech_final and results.is_final and not self._ledger.has_open_text():
            yield from self._end_utterance()
        if results.from_finalize and self._is_finishing:
            self.is_complete = True

    def _take_window(self, results: _Results, end: float) -> Iterator[Heard]:
        best = next(iter(results.channel.alternatives), _Alternative(transcript=""))
        key, text = str(self.sample_at(results.start)), best.transcript.strip()
        words = tuple(
            Word(
                word.punctuated_word or word.word, self.sample_at(word.start), self.sample_at(word.end), word.confidence
            )
            for word in best.words
        )
        if text:
            self._last_word_end = best.words[-1].end if best.words else end
        if not results.is_final:
            yield from self._ledger.revise(key, text, words=words)
            return
        yield from self._ledger.finish(
            key,
            text,
            start_sample=self.sample_at(results.start),
            end_sample=self.sample_at(end),
            words=words,
            language=next(iter(best.languages or ()), self._language),
            confidence=best.confidence,
        )
        for guess in self._ledger.open_keys():
            if self.sample_at(results.start) < int(guess) < self.sample_at(end):
                yield from self._ledger.finish(guess, "")
        self._frozen_until = max(self._frozen_until, end)
        self._has_unended_words = self._has_unended_words or bool(text)
        if not text and end - self._last_word_end >= self._untold_end_s:
            yield from self._end_utterance()

    def _take_utterance_end(self, last_word_end: float) -> Iterator[Heard]:
        # Words that came later are of the next utterance, whose end this is not. -1: no word is known.
        is_older = 0 <= last_word_end < self._last_word_end - 0.01
        if not is_older and not self._ledger.has_open_text():
            yield from self._end_utterance()

    def _end_utterance(self) -> Iterator[Heard]:
        if self._has_unended_words:
            self._has_unended_words = False
            yield UtteranceEnded()

    def _take_metadata(self) -> Iterator[Heard]:
        if self._is_finishing and self._ledger.has_open_text():
            message = "Deepgram ended before its last words were final; it is tried again"
            yield failed("recognizer_cut_off", message, retryable=True)
        self.is_complete = self._is_finishing


def _query(request: RecognitionRequest, settings: DeepgramSettings) -> list[tuple[str, str]]:
    query = {
        "model": settings.model,
        "encoding": "linear16",
        "sample_rate": str(request.format.sample_rate_hz),
        "channels": "1",
        "interim_results": "true",
        "endpointing": str(settings.endpointing_ms),
        "utterance_end_ms": str(settings.utterance_end_ms),
        "smart_format": str(settings.smart_format).lower(),
    }
    if language := request.language or settings.language:
        query["language"] = language
    return [*query.items(), *(("keyterm", term) for term in settings.keyterms)]


def _failure(error: _Error) -> Heard:
    code = shown_code(error.code) or shown_code(error.variant) or "no code given"
    return failed("provider_failed", f"Deepgram failed ({code}); it is tried again", retryable=True)


def _make(settings: DeepgramSettings, secrets: Secrets) -> SocketRecognizer:
    api_key = secrets.read("api_key_env", settings.api_key_env)
    return make_recognizer(settings, api_key)


def make_recognizer(settings: DeepgramSettings, api_key: str) -> SocketRecognizer:
    """The recogniser of these settings."""
    return SocketRecognizer(
        lambda request: DeepgramDialect(request, settings, api_key), OFFERS, allow_plain=settings.allow_plain
    )


OFFERS = RecognizerCapabilities(live_input=True, interim=True, segment_finals=True, endpointing=True, word_times=True)

PROVIDER = Provider(
    title="Deepgram live recognition",
    settings=DeepgramSettings,
    make=_make,
    describe=lambda settings: f"Deepgram {settings.model}",
    offers=OFFERS,
)
