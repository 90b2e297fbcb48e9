"""OpenAI Realtime: a model that hears and speaks by itself, in the names of the GA protocol.

Turns are ended on this side, or by the service, which is then told neither to answer nor to interrupt. A session lasts
an hour at most; the service does not tell when it is about to end. The names of the beta protocol mean nothing here.
Sources: developers.openai.com/api/docs/guides/realtime-conversations, openai 3.57.0.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import ClassVar, Literal
from urllib.parse import urlencode

from pydantic import Field, JsonValue

from ....audio.formats import AudioFormat
from ....engines.ports import ToolDefinition
from ....engines.realtime import RealtimeRequest
from ....statecharts.capabilities import RealtimeCapabilities
from ..declaration import Provider, ProviderSettings, Secrets, VariableName, WebSocketUrl
from ..generation import parameters_of
from ..realtime_protocol import RealtimeDialect, RealtimeLimits, SocketRealtimeModel
from ..realtime_protocol.items import items_of
from ..websocket import JsonObject

FORMAT = AudioFormat(24_000)
"""The only rate of `audio/pcm`."""
WIRE_FORMAT: JsonObject = {"type": "audio/pcm", "rate": 24_000}

KINDS = (
    "error",
    "session.created",
    "session.updated",
    "input_audio_buffer.speech_started",
    "input_audio_buffer.speech_stopped",
    "input_audio_buffer.timeout_triggered",
    "input_audio_buffer.committed",
    "input_audio_buffer.cleared",
    "conversation.item.added",
    "conversation.item.created",
    "conversation.item.done",
    "conversation.item.retrieved",
    "conversation.item.deleted",
    "conversation.item.truncated",
    "conversation.item.input_audio_transcription.delta",
    "conversation.item.input_audio_transcription.segment",
    "conversation.item.input_audio_transcription.completed",
    "conversation.item.input_audio_transcription.failed",
    "response.created",
    "response.output_item.added",
    "response.output_item.done",
    "response.content_part.added",
    "response.content_part.done",
    "response.output_text.delta",
    "response.output_text.done",
    "response.output_audio.delta",
    "response.output_audio.done",
    "response.output_audio_transcript.delta",
    "response.output_audio_transcript.done",
    "response.function_call_arguments.delta",
    "response.function_call_arguments.done",
    "response.done",
    "rate_limits.updated",
)


class OpenAIRealtimeSettings(ProviderSettings):
    kind: Literal["openai-realtime"] = "openai-realtime"
    base_url: WebSocketUrl = "wss://api.openai.com/v1"
    """Without "/realtime"."""
    api_key_env: VariableName | None = "OPENAI_API_KEY"
    model: str = Field(default="gpt-realtime-2.1", min_length=1)
    voice: str | None = Field(default="marin", min_length=1)
    system_prompt: str | None = None
    transcription_model: str | None = Field(default="gpt-live-transcribe", min_length=1)
    """Who writes down what was said, beside the model; None: nobody, and turns are remembered without words."""
    language: str | None = Field(default=None, min_length=2)
    """Of what is said to it, for `transcription_model`."""
    noise_reduction: Literal["near_field", "far_field"] | None = None
    turn_detection: Literal["server_vad", "semantic_vad"] = "server_vad"
    """How the service ends turns, where `turn.authority` is "engine"."""
    vad_threshold: float | None = Field(default=None, ge=0.0, le=1.0)
    vad_prefix_ms: int | None = Field(default=None, ge=0, le=2_000)
    vad_silence_ms: int | None = Field(default=None, ge=100, le=6_000)
    """These three are of "server_vad"."""
    vad_eagerness: Literal["low", "medium", "high", "auto"] | None = None
    """Of "semantic_vad"."""
    max_output_tokens: int | None = Field(default=None, ge=1, le=4_096)
    max_session_minutes: float = Field(default=60.0, ge=1.0, le=120.0)
    """The service's longest session. A new one is opened when nothing is said in its last twelfth."""
    allow_plain: bool = False
    """Let speech and key travel unencrypted to another machine."""


class OpenAIRealtimeDialect(RealtimeDialect):
    vendor: ClassVar[str] = "OpenAI"
    kinds: ClassVar[Mapping[str, str]] = {kind: kind for kind in KINDS}

    def __init__(self, settings: OpenAIRealtimeSettings, api_key: str | None) -> None:
        self.url = f"{settings.base_url}/realtime?{urlencode({'model': settings.model})}"
        self.headers = {} if api_key is None else {"Authorization": f"Bearer {api_key}"}
        self.input_format = self.output_format = FORMAT
        self.tells_transcripts = settings.transcription_model is not None
        self.max_session_minutes = settings.max_session_minutes
        self._settings = settings

    def session_update(self, request: RealtimeRequest) -> JsonObject:
        settings = self._settings
        heard: JsonObject = {
            "format": WIRE_FORMAT,
            "transcription": self._transcription(),
            "turn_detection": self._turn_detection() if request.provider_turns else None,
        }
        if settings.noise_reduction is not None:
            heard["noise_reduction"] = {"type": settings.noise_reduction}
        spoken: JsonObject = {"format": WIRE_FORMAT}
        if settings.voice is not None:
            spoken["voice"] = settings.voice
        session: JsonObject = {
            "type": "realtime",
            "output_modalities": ["audio"],
            "audio": {"input": heard, "output": spoken},
        }
        if request.instructions:
            session["instructions"] = request.instructions
        if request.tools:
            session["tools"] = [_tool(tool) for tool in request.tools]
            session["tool_choice"] = "auto"
        if settings.max_output_tokens is not None:
            session["max_output_tokens"] = settings.max_output_tokens
        return {"type": "session.update", "event_id": "session_1", "session": session}

    def _transcription(self) -> JsonValue:
        settings = self._settings
        if settings.transcription_model is None:
            return None
        transcription: JsonObject = {"model": settings.transcription_model}
        if settings.language is not None:
            transcription["language"] = settings.language.partition("-")[0].lower()
        return transcription

    def _turn_detection(self) -> JsonObject:
        settings = self._settings
        detection: JsonObject = {
            "type": settings.turn_detection,
            "create_response": False,
            "interrupt_response": False,
        }
        given: JsonObject = (
            {
                "threshold": settings.vad_threshold,
                "prefix_padding_ms": settings.vad_prefix_ms,
                "silence_duration_ms": settings.vad_silence_ms,
            }
            if settings.turn_detection == "server_vad"
            else {"eagerness": settings.vad_eagerness}
        )
        return detection | {key: value for key, value in given.items() if value is not None}

    def complaint(self, session: JsonObject, request: RealtimeRequest) -> str | None:
        audio = session.get("audio")
        parts: JsonObject = audio if isinstance(audio, dict) else {}
        heard, spoken = parts.get("input"), parts.get("output")
        for one in (heard, spoken):
            format = one.get("format") if isinstance(one, dict) else None
            if isinstance(format, dict) and format.get("type") != "audio/pcm":
                return "the provider did not take the audio format; check that base_url speaks OpenAI Realtime"
        detection = heard.get("turn_detection") if isinstance(heard, dict) else None
        if not isinstance(detection, dict):
            return None
        if not request.provider_turns or detection.get("create_response") or detection.get("interrupt_response"):
            return 'the provider would answer turns by itself; use turn.authority = "vad", or another server'
        return None

    def restored(self, request: RealtimeRequest) -> Iterable[JsonObject]:
        for number, item in enumerate(items_of(request.messages), start=1):
            yield self.create_item(f"restored_{number}", item)


def _tool(tool: ToolDefinition) -> JsonObject:
    return {
        "type": "function",
        "name": tool.name,
        "description": tool.description,
        "parameters": parameters_of(tool),
    }


def make_model(
    settings: OpenAIRealtimeSettings, api_key: str | None, limits: RealtimeLimits | None = None
) -> SocketRealtimeModel:
    """The model of these settings."""
    dialect = OpenAIRealtimeDialect(settings, api_key)
    able = replace(OFFERS, input_transcripts=dialect.tells_transcripts)
    return SocketRealtimeModel(dialect, able, limits=limits, allow_plain=settings.allow_plain)


def _make(settings: OpenAIRealtimeSettings, secrets: Secrets) -> SocketRealtimeModel:
    return make_model(settings, secrets.read_optional("api_key_env", settings.api_key_env))


OFFERS = RealtimeCapabilities(
    ends_turns=True,
    takes_turns=True,
    cancel=True,
    truncate=True,
    tool_calls=True,
    input_transcripts=True,
    usage=True,
    replay=True,
)

PROVIDER = Provider(
    title="OpenAI Realtime",
    settings=OpenAIRealtimeSettings,
    make=_make,
    describe=lambda settings: f"OpenAI {settings.model}",
    offers=OFFERS,
)
