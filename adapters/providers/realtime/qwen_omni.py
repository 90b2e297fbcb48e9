"""Qwen-Omni's realtime model at DashScope: OpenAI's protocol in the names of its beta.

Turns are always ended on this side: the service cannot be told to end them without answering. It cannot be told either
how much of an answer was heard. A session lasts two hours at most.
Sources: alibabacloud.com/help/en/model-studio (client-events, server-events, of October 2026), dashscope 2.0.2.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import ClassVar, Literal
from urllib.parse import urlencode

from pydantic import Field

from ....audio.formats import SPEECH_FORMAT, AudioFormat
from ....engines.ports import ToolDefinition
from ....engines.realtime import RealtimeRequest
from ....statecharts.capabilities import RealtimeCapabilities
from ..declaration import Provider, ProviderSettings, Secrets, VariableName, WebSocketUrl
from ..generation import parameters_of
from ..realtime_protocol import RealtimeDialect, RealtimeLimits, SocketRealtimeModel
from ..realtime_protocol.items import as_text
from ..realtime_protocol.wire import Fault
from ..websocket import JsonObject

OUTPUT_FORMAT = AudioFormat(24_000)

SAME = (
    "error",
    "session.created",
    "session.updated",
    "session.finished",
    "input_audio_buffer.speech_started",
    "input_audio_buffer.speech_stopped",
    "input_audio_buffer.committed",
    "input_audio_buffer.cleared",
    "conversation.item.created",
    "conversation.item.deleted",
    "conversation.item.input_audio_transcription.delta",
    "conversation.item.input_audio_transcription.text",
    "conversation.item.input_audio_transcription.completed",
    "conversation.item.input_audio_transcription.failed",
    "response.created",
    "response.output_item.added",
    "response.output_item.done",
    "response.content_part.added",
    "response.content_part.done",
    "response.function_call_arguments.delta",
    "response.function_call_arguments.done",
    "response.done",
)
BETA = {
    "response.text.delta": "response.output_text.delta",
    "response.text.done": "response.output_text.done",
    "response.audio.delta": "response.output_audio.delta",
    "response.audio.done": "response.output_audio.done",
    "response.audio_transcript.delta": "response.output_audio_transcript.delta",
    "response.audio_transcript.done": "response.output_audio_transcript.done",
}


class QwenOmniSettings(ProviderSettings):
    kind: Literal["qwen-omni"] = "qwen-omni"
    base_url: WebSocketUrl = "wss://dashscope.aliyuncs.com/api-ws/v1"
    """Ends before "/realtime". A workspace or region has an address of its own."""
    api_key_env: VariableName = "DASHSCOPE_API_KEY"
    model: str = Field(default="qwen3-omni-flash-realtime", min_length=1)
    voice: str | None = Field(default=None, min_length=1)
    """None: the model's own default."""
    system_prompt: str | None = None
    transcription_model: str | None = Field(default="gummy-realtime-v1", min_length=1)
    """Who writes down what was said, beside the model; None: nobody, and turns are remembered without words."""
    max_session_minutes: float = Field(default=120.0, ge=1.0, le=120.0)
    """The service's longest session. A new one is opened when nothing is said in its last twelfth."""
    allow_plain: bool = False
    """Let speech and key travel unencrypted to another machine."""


class QwenOmniDialect(RealtimeDialect):
    vendor: ClassVar[str] = "DashScope"
    kinds: ClassVar[Mapping[str, str]] = {kind: kind for kind in SAME} | BETA
    names_answers: ClassVar[bool] = False
    truncates: ClassVar[bool] = False

    def __init__(self, settings: QwenOmniSettings, api_key: str) -> None:
        self.url = f"{settings.base_url}/realtime?{urlencode({'model': settings.model})}"
        self.headers = {"Authorization": f"Bearer {api_key}"}
        self.input_format, self.output_format = SPEECH_FORMAT, OUTPUT_FORMAT
        self.tells_transcripts = settings.transcription_model is not None
        self.max_session_minutes = settings.max_session_minutes
        self._settings = settings

    def session_update(self, request: RealtimeRequest) -> JsonObject:
        settings = self._settings
        transcriber = settings.transcription_model
        session: JsonObject = {
            # ["audio"] alone is refused.
            "modalities": ["text", "audio"],
            "input_audio_format": "pcm",
            "output_audio_format": "pcm",
            "input_audio_transcription": None if transcriber is None else {"model": transcriber},
            "turn_detection": None,
        }
        if settings.voice is not None:
            session["voice"] = settings.voice
        # No item of the past is documented: what was said before stands in the instructions.
        before = as_text(request.messages)
        parts = [request.instructions or "", f"What was said before:\n{before}" if before else ""]
        if instructions := "\n\n".join(part for part in parts if part):
            session["instructions"] = instructions
        if request.tools:
            session["tools"] = [_tool(tool) for tool in request.tools]
        return {"type": "session.update", "event_id": "session_1", "session": session}

    def complaint(self, session: JsonObject, request: RealtimeRequest) -> str | None:
        if session.get("turn_detection") is not None:
            return "the provider did not let this side end turns; choose another model"
        return None

    def closing(self) -> Iterable[JsonObject]:
        # Its answer, `session.finished`, is optional, and nothing is waited for. Qwen-Audio has neither.
        if not self._settings.model.startswith("qwen-audio-"):
            yield {"type": "session.finish", "event_id": "finish_1"}

    def ends_session(self, fault: Fault) -> bool:
        # As the vendor's own client has it.
        return fault.type != "invalid_request_error"


def _tool(tool: ToolDefinition) -> JsonObject:
    function: JsonObject = {"name": tool.name, "description": tool.description, "parameters": parameters_of(tool)}
    return {"type": "function", "function": function}


def make_model(settings: QwenOmniSettings, api_key: str, limits: RealtimeLimits | None = None) -> SocketRealtimeModel:
    """The model of these settings."""
    dialect = QwenOmniDialect(settings, api_key)
    able = replace(OFFERS, input_transcripts=dialect.tells_transcripts)
    return SocketRealtimeModel(dialect, able, limits=limits, allow_plain=settings.allow_plain)


def _make(settings: QwenOmniSettings, secrets: Secrets) -> SocketRealtimeModel:
    return make_model(settings, secrets.read("api_key_env", settings.api_key_env))


OFFERS = RealtimeCapabilities(
    takes_turns=True, cancel=True, tool_calls=True, input_transcripts=True, usage=True, replay=True
)

PROVIDER = Provider(
    title="Qwen-Omni realtime (DashScope)",
    settings=QwenOmniSettings,
    make=_make,
    describe=lambda settings: f"DashScope {settings.model}",
    offers=OFFERS,
)
