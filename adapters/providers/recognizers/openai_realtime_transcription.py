"""OpenAI's realtime transcription: a session of the type `transcription` over a WebSocket, in the names of the GA
protocol.

The audio of an utterance is one item, which we commit at its end, or several, where the service detects turns by
itself. Items are transcribed side by side: a later one may be done first, but is told in its turn.
Sources: developers.openai.com/api/docs/guides/realtime-transcription, openai 3.57.0.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator, Mapping
from typing import ClassVar, Literal

from pydantic import Field, JsonValue

from ....audio.formats import AudioFormat
from ....engines.ports import RecognitionRequest
from ....engines.reports import UtteranceEnded
from ....statecharts.capabilities import RecognizerCapabilities
from ..declaration import Provider, ProviderSettings, Secrets, VariableName, WebSocketUrl
from ..recognition.dialect import Dialect, Heard, Incoming, Outgoing, Ready, Sending
from ..recognition.realtime_errors import RealtimeError, RealtimeErrorMessage, meaning
from ..recognition.segment_ledger import SegmentLedger
from ..recognition.socket_recognizer import SocketRecognizer
from ..recognition.transcription_items import TranscriptionItems
from ..websocket import JsonObject

COMMIT_ID = "voicechart-commit"
NOTHING_TO_COMMIT = "input_audio_buffer_commit_empty"
"""Less than 100 ms are left, because the service has committed the rest by itself."""


class OpenAIRealtimeTranscriptionSettings(ProviderSettings):
    kind: Literal["openai-realtime-transcription"] = "openai-realtime-transcription"
    base_url: WebSocketUrl = "wss://api.openai.com/v1"
    api_key_env: VariableName | None = "OPENAI_API_KEY"
    model: str = Field(default="gpt-live-transcribe", min_length=1)
    language: str | None = Field(default=None, min_length=2)
    prompt: str | None = None
    noise_reduction: Literal["near_field", "far_field"] | None = None
    turn_detection: Literal["server_vad", "semantic_vad"] | None = None
    """Who ends turns: the service, or (without one) voicechart. Some models refuse it."""
    allow_plain: bool = False
    """Let speech and key travel unencrypted to another machine."""


class _OfItem(Incoming):
    item_id: str


class _Delta(_OfItem):
    delta: str | None = None


class _Completed(_OfItem):
    transcript: str


class OpenAIRealtimeTranscriptionDialect(Dialect):
    min_chunk_ms: ClassVar[int] = 40

    def __init__(
        self, request: RecognitionRequest, settings: OpenAIRealtimeTranscriptionSettings, api_key: str | None
    ) -> None:
        super().__init__(request)
        self.format = AudioFormat(24_000)  # The only rate of `audio/pcm`.
        self.headers: Mapping[str, str] = {} if api_key is None else {"Authorization": f"Bearer {api_key}"}
        self.url = f"{settings.base_url}/realtime?intent=transcription"
        self._settings = settings
        self._items = TranscriptionItems(SegmentLedger(request.recognition_id))
        self._stopped_by_service: set[str] = set()
        self._awaits_commit = False
        self._is_finishing = False

    def audio(self, pcm: bytes) -> Outgoing:
        return {"type": "input_audio_buffer.append", "audio": base64.b64encode(pcm).decode()}

    def finishing(self, has_audio: bool) -> Iterable[Outgoing]:
        self._is_finishing, self._awaits_commit = True, has_audio
        self.is_complete = not has_audio
        return ({"type": "input_audio_buffer.commit", "event_id": COMMIT_ID},) if has_audio else ()

    def take(self, message: JsonObject) -> Iterable[Heard]:
        kind = message.get("type")
        match kind:
            case "session.created":
                return (Sending(self._session_update()),)
            case "session.updated":
                return (Ready(),)
            case "error":
                return self._take_error(self.parsed(RealtimeErrorMessage, message).error)
            case "input_audio_buffer.committed":
                return self._take_committed(self.parsed(_OfItem, message).item_id)
            case "input_audio_buffer.speech_stopped":
                return self._take_stopped(self.parsed(_OfItem, message).item_id)
            case "conversation.item.input_audio_transcription.delta":
                delta = self.parsed(_Delta, message)
                return self._items.append(delta.item_id, delta.delta or "")
            case "conversation.item.input_audio_transcription.completed":
                done = self.parsed(_Completed, message)
                return self._then_check(self._items.replace(done.item_id, done.transcript, is_done=True))
            case "conversation.item.input_audio_transcription.failed":
                return (meaning("OpenAI", self.parsed(RealtimeErrorMessage, message).error),)
            case (
                "input_audio_buffer.speech_started"
                | "input_audio_buffer.timeout_triggered"
                | "conversation.item.added"
                | "conversation.item.created"
                | "conversation.item.done"
                | "conversation.item.input_audio_transcription.segment"
                | "rate_limits.updated"
            ):
                return ()
            case _:
                return self.ignore(kind)

    def _session_update(self) -> JsonObject:
        settings = self._settings
        transcription: dict[str, JsonValue] = {"model": settings.model}
        if language := self.request.language or settings.language:
            transcription["language"] = language.partition("-")[0].lower()
        if settings.prompt:
            transcription["prompt"] = settings.prompt
        given: dict[str, JsonValue] = {
            "format": {"type": "audio/pcm", "rate": self.format.sample_rate_hz},
            "transcription": transcription,
            "turn_detection": {"type": settings.turn_detection} if settings.turn_detection else None,
        }
        if settings.noise_reduction:
            given["noise_reduction"] = {"type": settings.noise_reduction}
        return {"type": "session.update", "session": {"type": "transcription", "audio": {"input": given}}}

    def _take_committed(self, item_id: str) -> Iterator[Heard]:
        self._items.expect(item_id)
        if item_id not in self._stopped_by_service:
            self._awaits_commit = False
        return self._then_check(())

    def _take_stopped(self, item_id: str) -> Iterator[Heard]:
        if item_id not in self._stopped_by_service:
            self._stopped_by_service.add(item_id)
            self._items.expect(item_id)
            yield UtteranceEnded()

    def _take_error(self, error: RealtimeError) -> Iterator[Heard]:
        if error.code == NOTHING_TO_COMMIT and self._is_finishing:
            self._awaits_commit = False
            yield from self._then_check(())
        else:
            yield meaning("OpenAI", error)

    def _then_check(self, heard: Iterable[Heard]) -> Iterator[Heard]:
        yield from heard
        self.is_complete = self._is_finishing and not self._awaits_commit and self._items.is_empty


def make_recognizer(settings: OpenAIRealtimeTranscriptionSettings, api_key: str | None) -> SocketRecognizer:
    """The recogniser of these settings."""
    return SocketRecognizer(
        lambda request: OpenAIRealtimeTranscriptionDialect(request, settings, api_key),
        RecognizerCapabilities(
            live_input=True, interim=True, segment_finals=True, endpointing=settings.turn_detection is not None
        ),
        allow_plain=settings.allow_plain,
    )


def _make(settings: OpenAIRealtimeTranscriptionSettings, secrets: Secrets) -> SocketRecognizer:
    return make_recognizer(settings, secrets.read_optional("api_key_env", settings.api_key_env))


OFFERS = RecognizerCapabilities(live_input=True, interim=True, segment_finals=True, endpointing=True)

PROVIDER = Provider(
    title="OpenAI realtime transcription",
    settings=OpenAIRealtimeTranscriptionSettings,
    make=_make,
    describe=lambda settings: f"OpenAI realtime transcription, {settings.model}",
    offers=OFFERS,
)
