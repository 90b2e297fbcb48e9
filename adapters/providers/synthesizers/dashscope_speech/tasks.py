"""CosyVoice: one task for each unit, one after another on the same socket.

A task's end is the only end that the protocol tells, so that a unit's samples are exact. Nothing is said before
`task-started`. A failed or cancelled task poisons the socket: the next reply has another one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

from pydantic import BaseModel, ConfigDict, JsonValue, ValidationError

from .....audio.formats import AudioFormat
from .....engines.ports import SpeechUnit
from .....engines.reports import PortError, Word
from .....statecharts.capabilities import SynthesizerCapabilities
from ...synthesis import SYNTHESIS, Answer, Heard, UnitAudio, UnitSpoken, UnitWords, malformed
from ...websocket import JsonObject, ProviderSocket, open_socket
from .settings import MAX_IDLE_S, DashScopeVoice, error_of


class _Part(BaseModel):
    model_config = ConfigDict(strict=True, extra="ignore")


class _Header(_Part):
    event: str
    task_id: str
    error_code: str | None = None


class _TimedWord(_Part):
    text: str
    begin_time: int
    """Milliseconds from the beginning of the task's audio."""
    end_time: int


class _Sentence(_Part):
    words: list[_TimedWord] = []


class _Output(_Part):
    type: str | None = None
    sentence: _Sentence | None = None


class _Payload(_Part):
    output: _Output | None = None


class _Event(_Part):
    header: _Header
    payload: _Payload | None = None


class TaskDialect:
    """One reply."""

    def __init__(self, settings: DashScopeVoice, voice: str, new_id: Callable[[], str]) -> None:
        self._settings = settings
        self._voice = voice
        self._new_id = new_id
        self._task_id: str | None = None
        self._unit: SpeechUnit | None = None
        self._is_started = False

    def say(self, unit: SpeechUnit) -> Sequence[JsonObject]:
        self._task_id = self._new_id()
        self._unit = unit
        self._is_started = False
        parameters: JsonObject = {
            "text_type": "PlainText",
            "voice": self._voice,
            "format": "pcm",
            "sample_rate": self._settings.sample_rate_hz,
            "volume": 50,
            "rate": self._settings.rate,
            "pitch": 1.0,
        }
        if self._settings.language is not None:
            parameters["language_hints"] = [self._settings.language]
        if self._settings.word_times:
            parameters["word_timestamp_enabled"] = True
        payload: JsonObject = {
            "model": self._settings.model,
            "task_group": "audio",
            "task": "tts",
            "function": "SpeechSynthesizer",
            "input": {},
            "parameters": parameters,
        }
        return (self._command("run-task", payload),)

    def hear(self, message: JsonObject | bytes) -> Sequence[Heard]:
        if isinstance(message, bytes):
            # Binary messages bear no task. Before the start of ours, what comes is of the one before.
            return (UnitAudio(self._unit.index, message),) if self._unit is not None and self._is_started else ()
        try:
            event = _Event.model_validate(message)
        except ValidationError as invalid:
            raise malformed("a message of another form") from invalid
        if event.header.task_id != self._task_id or self._unit is None:
            return ()  # stale: of an earlier task on this socket
        match event.header.event:
            case "task-started" if not self._is_started:
                self._is_started = True
                text = self._command("continue-task", {"input": {"text": self._unit.text}})
                return (Answer((text, self._command("finish-task", {"input": {}}))),)
            case "result-generated":
                return self._words(self._unit, event.payload)
            case "task-finished":
                return self._finished(self._unit)
            case "task-failed":
                raise PortError(error_of(event.header.error_code))
            case _:
                return ()

    def finish(self) -> Sequence[JsonObject]:
        return ()

    def cancel(self) -> Sequence[JsonObject]:
        return () if self._unit is None else (self._command("finish-task", {"input": {"directive": "cancel"}}),)

    def _finished(self, unit: SpeechUnit) -> Sequence[Heard]:
        if not self._is_started:
            message = "the provider finished a task that it had not started; it is tried again"
            raise SYNTHESIS.failure("provider_malformed", message, retryable=True)
        self._unit = None
        return (UnitSpoken(unit.index),)

    def _words(self, unit: SpeechUnit, payload: _Payload | None) -> Sequence[Heard]:
        output = payload.output if payload is not None else None
        # The events before a sentence's end repeat its words.
        if output is None or output.type != "sentence-end" or output.sentence is None or not output.sentence.words:
            return ()
        samples = AudioFormat(self._settings.sample_rate_hz).samples_for_ms
        words = (Word(word.text, samples(word.begin_time), samples(word.end_time)) for word in output.sentence.words)
        return (UnitWords(unit.index, tuple(words)),)

    def _command(self, action: Literal["run-task", "continue-task", "finish-task"], payload: JsonObject) -> JsonObject:
        header: dict[str, JsonValue] = {"action": action, "task_id": self._task_id, "streaming": "duplex"}
        return {"header": header, "payload": payload}


class CosyVoice:
    """Implements `SpeechVendor`."""

    max_units_ahead = 1
    max_idle_s = MAX_IDLE_S
    survives_cancel = False

    def __init__(self, settings: DashScopeVoice, api_key: str, new_id: Callable[[], str]) -> None:
        self._settings = settings
        self._api_key = api_key
        self._new_id = new_id
        self.format = AudioFormat(settings.sample_rate_hz)
        self.default_voice = settings.voice
        self.capabilities = SynthesizerCapabilities(incremental_pcm=True, alignment=settings.word_times)

    async def connect(self, voice: str) -> ProviderSocket:
        return await open_socket(
            f"{self._settings.base_url}/inference",
            stage=SYNTHESIS,
            headers={"Authorization": f"Bearer {self._api_key}"},
        )

    def dialect(self, voice: str) -> TaskDialect:
        return TaskDialect(self._settings, voice, self._new_id)
