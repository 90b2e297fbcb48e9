"""Qwen-ASR's realtime recognition at DashScope: OpenAI's realtime protocol in the names of its beta.

A hypothesis comes in two parts: what will stay, and a guess behind it that is replaced each time.
Sources: alibabacloud.com/help/en/model-studio (qwen-asr-realtime-client-events, …-server-events), dashscope 2.0.2.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator
from typing import ClassVar, Literal
from urllib.parse import urlencode

from pydantic import Field, JsonValue

from ....audio.formats import SPEECH_FORMAT
from ....engines.ports import RecognitionRequest
from ....engines.reports import UtteranceEnded
from ....statecharts.capabilities import RecognizerCapabilities
from ..declaration import Provider, ProviderSettings, Secrets, VariableName, WebSocketUrl
from ..recognition.dialect import Dialect, Heard, Incoming, Outgoing, Ready, Sending, failed
from ..recognition.realtime_errors import RealtimeErrorMessage, meaning
from ..recognition.segment_ledger import SegmentLedger
from ..recognition.socket_recognizer import SocketRecognizer
from ..recognition.transcription_items import TranscriptionItems
from ..websocket import JsonObject


class QwenRealtimeTranscriptionSettings(ProviderSettings):
    kind: Literal["qwen-realtime-transcription"] = "qwen-realtime-transcription"
    base_url: WebSocketUrl = "wss://dashscope.aliyuncs.com/api-ws/v1"
    """Ends before "/realtime". A workspace or region has an address of its own."""
    api_key_env: VariableName = "DASHSCOPE_API_KEY"
    model: str = Field(default="qwen3-asr-flash-realtime", min_length=1)
    language: str | None = Field(default=None, min_length=2)
    silence_duration_ms: int = Field(default=400, ge=200, le=6_000)
    """Silence after which the service takes a turn for over."""
    allow_plain: bool = False
    """Let speech and key travel unencrypted to another machine."""


class _OfItem(Incoming):
    item_id: str


class _Text(_OfItem):
    text: str = ""
    stash: str = ""


class _Completed(_OfItem):
    transcript: str


class QwenRealtimeTranscriptionDialect(Dialect):
    min_chunk_ms: ClassVar[int] = 100

    def __init__(self, request: RecognitionRequest, settings: QwenRealtimeTranscriptionSettings, api_key: str) -> None:
        super().__init__(request)
        self.format = SPEECH_FORMAT
        self.headers = {"Authorization": f"Bearer {api_key}", "OpenAI-Beta": "realtime=v1"}
        self.url = f"{settings.base_url}/realtime?{urlencode({'model': settings.model})}"
        self._settings = settings
        self._items = TranscriptionItems(SegmentLedger(request.recognition_id))
        self._stopped: set[str] = set()
        self._messages = 0
        self._is_configured = False
        self._is_finishing = False

    def audio(self, pcm: bytes) -> Outgoing:
        return self._message("input_audio_buffer.append", audio=base64.b64encode(pcm).decode())

    def finishing(self, has_audio: bool) -> Iterable[Outgoing]:
        self._is_finishing = True
        return (self._message("session.finish"),)

    def abandoning(self) -> Iterable[Outgoing]:
        return (self._message("session.finish"),)

    def take(self, message: JsonObject) -> Iterable[Heard]:
        kind = message.get("type")
        match kind:
            case "session.created":
                return self._take_created()
            case "session.updated":
                return (Ready(),)
            case "session.finished":
                return self._take_finished()
            case "error":
                return (meaning("DashScope", self.parsed(RealtimeErrorMessage, message).error),)
            case "input_audio_buffer.committed":
                self._items.expect(self.parsed(_OfItem, message).item_id)
                return ()
            case "input_audio_buffer.speech_stopped":
                return self._take_stopped(self.parsed(_OfItem, message).item_id)
            case "conversation.item.input_audio_transcription.text":
                told = self.parsed(_Text, message)
                return self._items.replace(told.item_id, told.text + told.stash)
            case "conversation.item.input_audio_transcription.completed":
                done = self.parsed(_Completed, message)
                return self._items.replace(done.item_id, done.transcript, is_done=True)
            case "conversation.item.input_audio_transcription.failed":
                return (meaning("DashScope", self.parsed(RealtimeErrorMessage, message).error),)
            case "input_audio_buffer.speech_started" | "conversation.item.created":
                return ()
            case _:
                return self.ignore(kind)

    def _message(self, kind: str, **fields: JsonValue) -> JsonObject:
        self._messages += 1
        return {"event_id": f"event_{self._messages}", "type": kind, **fields}

    def _take_created(self) -> Iterator[Heard]:
        # Once: a session that has begun refuses another one.
        if not self._is_configured:
            self._is_configured = True
            yield Sending(self._session_update())

    def _session_update(self) -> JsonObject:
        language = self.request.language or self._settings.language
        transcription: dict[str, JsonValue] = {"language": language.partition("-")[0].lower()} if language else {}
        session: dict[str, JsonValue] = {
            "modalities": ["text"],
            "input_audio_format": "pcm",
            "sample_rate": self.format.sample_rate_hz,
            "input_audio_transcription": transcription,
            "turn_detection": {"type": "server_vad", "silence_duration_ms": self._settings.silence_duration_ms},
        }
        return self._message("session.update", session=session)

    def _take_stopped(self, item_id: str) -> Iterator[Heard]:
        if item_id not in self._stopped:
            self._stopped.add(item_id)
            self._items.expect(item_id)
            yield UtteranceEnded()

    def _take_finished(self) -> Iterator[Heard]:
        if not self._is_finishing:
            yield failed("closed_by_provider", "DashScope ended the session by itself; open another", retryable=True)
        elif not self._items.is_empty:
            message = "DashScope finished before its last words were final; it is tried again"
            yield failed("recognizer_cut_off", message, retryable=True)
        self.is_complete = self._is_finishing


def make_recognizer(settings: QwenRealtimeTranscriptionSettings, api_key: str) -> SocketRecognizer:
    """The recogniser of these settings."""
    return SocketRecognizer(
        lambda request: QwenRealtimeTranscriptionDialect(request, settings, api_key),
        OFFERS,
        allow_plain=settings.allow_plain,
    )


def _make(settings: QwenRealtimeTranscriptionSettings, secrets: Secrets) -> SocketRecognizer:
    return make_recognizer(settings, secrets.read("api_key_env", settings.api_key_env))


OFFERS = RecognizerCapabilities(live_input=True, interim=True, segment_finals=True, endpointing=True)

PROVIDER = Provider(
    title="Qwen-ASR realtime recognition (DashScope)",
    settings=QwenRealtimeTranscriptionSettings,
    make=_make,
    describe=lambda settings: f"DashScope {settings.model}",
    offers=OFFERS,
)
