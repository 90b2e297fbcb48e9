"""DashScope's live recognition (Paraformer, Fun-ASR): the task protocol of `/api-ws/v1/inference`.

One connection runs one task here. A sentence is told again and again, each time as a whole.
Sources: alibabacloud.com/help/en/model-studio (paraformer-client-events, paraformer-server-events), dashscope 2.0.2.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import ClassVar, Literal
from uuid import uuid4

from pydantic import Field, JsonValue

from ....audio.formats import AudioFormat
from ....engines.ports import RecognitionRequest
from ....engines.reports import RecognitionErrored, UtteranceEnded, Word
from ....statecharts.capabilities import RecognizerCapabilities
from ..declaration import Provider, ProviderSettings, Secrets, VariableName, WebSocketUrl
from ..recognition.dialect import STAGE, Dialect, Heard, Incoming, Milliseconds, Outgoing, Ready, failed
from ..recognition.segment_ledger import SegmentLedger
from ..recognition.socket_recognizer import SocketRecognizer
from ..refusals import shown_code
from ..websocket import JsonObject


class DashScopeSettings(ProviderSettings):
    kind: Literal["dashscope"] = "dashscope"
    base_url: WebSocketUrl = "wss://dashscope.aliyuncs.com/api-ws/v1"
    """Ends before "/inference". A workspace or region has an address of its own."""
    api_key_env: VariableName = "DASHSCOPE_API_KEY"
    model: str = Field(default="paraformer-realtime-v2", min_length=1)
    sample_rate_hz: Literal[8_000, 16_000] = 16_000
    """What the model was trained on; the audio is converted to it."""
    language_hints: tuple[str, ...] = Field(default=(), strict=False)
    max_sentence_silence_ms: int | None = Field(default=None, ge=200, le=6_000)
    """Silence that ends a sentence; the model's default without one."""
    allow_plain: bool = False
    """Let speech and key travel unencrypted to another machine."""


class _Header(Incoming):
    task_id: str | None = None
    event: str
    error_code: str | None = None


class _Word(Incoming):
    text: str
    begin_time: Milliseconds
    end_time: Milliseconds | None = None
    punctuation: str | None = None


class _Sentence(Incoming):
    sentence_id: int | None = None
    begin_time: Milliseconds | None = None
    end_time: Milliseconds | None = None
    text: str = ""
    words: tuple[_Word, ...] | None = None
    sentence_end: bool | None = None
    heartbeat: bool | None = None

    @property
    def is_final(self) -> bool:
        """Older models send no `sentence_end`; dashscope 2.0.2 goes by the end's time."""
        return self.end_time is not None if self.sentence_end is None else self.sentence_end


class _Output(Incoming):
    sentence: _Sentence | None = None


class _Payload(Incoming):
    output: _Output


class DashScopeDialect(Dialect):
    min_chunk_ms: ClassVar[int] = 100
    """What its documentation advises."""

    def __init__(self, request: RecognitionRequest, settings: DashScopeSettings, api_key: str, task_id: str) -> None:
        super().__init__(request)
        self.format = AudioFormat(settings.sample_rate_hz)
        self.headers = {"Authorization": f"Bearer {api_key}"}
        self.url = f"{settings.base_url}/inference"
        self._settings = settings
        self._task_id = task_id
        self._ledger = SegmentLedger(request.recognition_id)
        self._is_finishing = False

    def opening(self) -> Iterable[Outgoing]:
        parameters: dict[str, JsonValue] = {"format": "pcm", "sample_rate": self._settings.sample_rate_hz}
        hints = (self.request.language.partition("-")[0],) if self.request.language else self._settings.language_hints
        if hints:
            parameters["language_hints"] = list(hints)
        if self._settings.max_sentence_silence_ms is not None:
            parameters["max_sentence_silence"] = self._settings.max_sentence_silence_ms
        payload: dict[str, JsonValue] = {
            "model": self._settings.model,
            "task_group": "audio",
            "task": "asr",
            "function": "recognition",
            "input": {},
            "parameters": parameters,
        }
        return (self._message("run-task", payload),)

    def finishing(self, has_audio: bool) -> Iterable[Outgoing]:
        self._is_finishing = True
        return (self._message("finish-task", {"input": {}}),)

    def take(self, message: JsonObject) -> Iterable[Heard]:
        header = self.parsed(_Header, message.get("header"))
        if header.task_id not in (None, self._task_id):
            return ()  # of another task
        match header.event:
            case "task-started":
                return (Ready(),)
            case "result-generated":
                return self._take_result(self.parsed(_Payload, message.get("payload")).output)
            case "task-finished":
                return self._take_finished()
            case "task-failed":
                return (_meaning(shown_code(header.error_code) or "no code given"),)
            case event:
                return self.ignore(event)

    def _message(self, action: str, payload: dict[str, JsonValue]) -> JsonObject:
        return {"header": {"action": action, "task_id": self._task_id, "streaming": "duplex"}, "payload": payload}

    def _take_result(self, output: _Output) -> Iterator[Heard]:
        sentence = output.sentence
        if sentence is None or sentence.heartbeat:
            return
        key = str(sentence.begin_time if sentence.sentence_id is None else sentence.sentence_id)
        text, words = sentence.text.strip(), tuple(self._words(sentence))
        if not sentence.is_final:
            yield from self._ledger.revise(key, text, words=words)
        elif not self._ledger.is_final(key):
            yield from self._ledger.finish(
                key,
                text,
                start_sample=self._sample(sentence.begin_time),
                end_sample=self._sample(sentence.end_time),
                words=words,
            )
            if text:
                yield UtteranceEnded()

    def _take_finished(self) -> Iterator[Heard]:
        if self._is_finishing and not self._ledger.has_open_text():
            self.is_complete = True
        elif self._is_finishing:
            message = "DashScope finished before its last sentence was final; it is tried again"
            yield failed("recognizer_cut_off", message, retryable=True)
        else:
            yield failed("closed_by_provider", "DashScope ended the task by itself; open another", retryable=True)

    def _words(self, sentence: _Sentence) -> Iterator[Word]:
        for word in sentence.words or ():
            end = word.end_time if word.end_time is not None else word.begin_time
            yield Word(
                word.text.strip() + (word.punctuation or "").strip(),
                self.sample_at(word.begin_time / 1_000),
                self.sample_at(end / 1_000),
            )

    def _sample(self, milliseconds: int | None) -> int | None:
        return None if milliseconds is None else self.sample_at(milliseconds / 1_000)


def _meaning(code: str) -> RecognitionErrored:
    """Of `task-failed`. The connection is of no use any more, and was made for this task only."""
    name = code.lower()
    detail = f"DashScope, {code}"
    if "apikey" in name or "accessdenied" in name or "unauthorized" in name:
        message = f"the provider refuses the key or the model ({detail}); check the API key and what it may use"
        return failed("auth_refused", message, session=True)
    if "throttling" in name or "ratelimit" in name:
        return failed("rate_limited", f"the provider asks to slow down ({detail}); it is tried again", retryable=True)
    if "arrearage" in name or "quota" in name:
        message = f"the provider's account cannot be used ({detail}); check its plan and billing"
        return failed("quota_exhausted", message, session=True)
    if "modelnotfound" in name:
        return failed("not_found", f"the provider knows no such model ({detail}); check model", session=True)
    if "invalidparameter" in name or "unsupported" in name:
        message = f"the provider refuses the request ({detail}); check the options of this provider"
        return RecognitionErrored(STAGE.error("request_refused", message))
    return failed("provider_failed", f"the provider failed ({detail}); it is tried again", retryable=True)


def new_task_id() -> str:
    """Unique, as the service wants it."""
    return uuid4().hex


def make_recognizer(
    settings: DashScopeSettings, api_key: str, *, task_id: Callable[[], str] = new_task_id
) -> SocketRecognizer:
    """The recogniser of these settings. `task_id` names each task."""
    return SocketRecognizer(
        lambda request: DashScopeDialect(request, settings, api_key, task_id()),
        OFFERS,
        allow_plain=settings.allow_plain,
    )


def _make(settings: DashScopeSettings, secrets: Secrets) -> SocketRecognizer:
    return make_recognizer(settings, secrets.read("api_key_env", settings.api_key_env))


OFFERS = RecognizerCapabilities(live_input=True, interim=True, segment_finals=True, endpointing=True, word_times=True)

PROVIDER = Provider(
    title="DashScope live recognition",
    settings=DashScopeSettings,
    make=_make,
    describe=lambda settings: f"DashScope {settings.model}",
    offers=OFFERS,
)
