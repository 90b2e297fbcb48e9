"""The tables and keys of `voicechart.toml`, with their types, bounds and defaults."""

from __future__ import annotations

from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    PlainSerializer,
    PlainValidator,
    StringConstraints,
)

from ...audio.voice_activity import VoiceActivitySettings
from ...engines.history import ContextLimits
from ...statecharts.policies import (
    ConnectionPolicy,
    GenerationPolicy,
    InterruptionPolicy,
    PlaybackPolicy,
    Policies,
    TurnPolicy,
)
from ..board.endpoint import AudioEndpoint, EndpointRefused, parse_endpoint
from ..local.end_of_turn import EndOfTurnWaits
from ..providers.declaration import FilePath
from ..providers.recognizers.whisper import WhisperSettings
from ..providers.responders.companion import CompanionSettings
from ..providers.synthesizers.auto import AutomaticVoice
from ..tracing import TraceLimits
from .records import ModelRecord, RecognizerChoice, RecordName, ResponderChoice, VoiceChoice, VoiceRecord
from .tool_settings import McpServerSettings, ServerName, ToolSettings
from .web_settings import WebSettings


class Settings(BaseModel):
    """Immutable; unknown keys and silent conversions are refused."""

    # A refused value may be a secret that somebody wrote into the wrong place.
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, hide_input_in_errors=True)


def _endpoint(text: object) -> AudioEndpoint:
    if not isinstance(text, str):
        raise EndpointRefused("an audio endpoint is a text: unix:/path/of/the/socket")
    return parse_endpoint(text)


def _collector(text: str) -> str:
    url = urlsplit(text)
    if url.scheme not in ("http", "https") or not url.hostname:
        raise ValueError("must begin with https:// (or http:// on your own machine)")
    if url.username or url.password or url.query or url.fragment:
        raise ValueError("holds no user, query or fragment; secret headers stand in OTEL_EXPORTER_OTLP_HEADERS")
    return text


CollectorUrl = Annotated[str, AfterValidator(_collector)]
Endpoint = Annotated[AudioEndpoint, PlainValidator(_endpoint), PlainSerializer(str)]
Identity = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_.-]{1,64}$")]


class AudioSettings(Settings):
    """The board's audio service: the only microphone and the only speaker."""

    endpoint: Endpoint
    """`unix:/path/of/the/socket`"""
    echo_cancellation: Literal["none", "validated"] = "none"
    """"validated": `voicechart audio-check` measured on this board that the microphone does not hear the speaker."""


class HistorySettings(Settings):
    """What is remembered across restarts, and how much of it the model is shown."""

    path: FilePath
    """A SQLite file."""
    conversation: Identity | None = None
    """Which conversation of the file goes on; the configuration's `conversation_id` without one."""
    enabled: bool = True
    """False: nothing is read or written, and what is said is forgotten at the end."""
    context_records: int = Field(default=ContextLimits().records, ge=1, le=10_000)
    """The newest turns and replies that a model is shown at most."""
    context_chars: int = Field(default=ContextLimits().chars, ge=1, le=10_000_000)
    """The same in characters."""


class TraceSettings(Settings):
    """Every state change, one line of JSON each."""

    path: FilePath
    enabled: bool = True
    """Recorded from the start; SIGUSR2 switches a running daemon's trace on and off."""
    text_shown: bool = False
    """What people say is written as it is, instead of redacted."""
    limits: TraceLimits = TraceLimits()


class TelemetrySettings(Settings):
    """What turns cost, exported as OpenTelemetry spans and metrics (the extra `telemetry`)."""

    enabled: bool = False
    endpoint: CollectorUrl | None = None
    """The base of an OTLP/HTTP collector, e.g. "http://127.0.0.1:4318"; the standard variables decide without one."""
    content: bool = False
    """What people say, and what is answered, goes out too."""


class Configuration(Settings):
    """Everything a daemon needs to know."""

    conversation_id: Identity = "voicechart"
    audio: AudioSettings
    recognizer: RecognizerChoice = WhisperSettings(kind="whisper")
    fallback_recognizer: RecordName | None = None
    """The record of who hears the recording of what the recogniser failed at; it is asked once more itself without."""
    responder: ResponderChoice = CompanionSettings(kind="companion")
    voice: VoiceChoice = AutomaticVoice(kind="auto")
    realtime: RecordName | None = None
    """The record of a native realtime model, instead of recogniser and responder; a voice says what is announced."""
    model_settings: dict[RecordName, ModelRecord] = {}
    """Models by name: text models and native realtime ones."""
    voice_settings: dict[RecordName, VoiceRecord] = {}
    """Recognisers and synthesisers by name."""
    numbers_in_words: bool = False
    """Give the voice words for numbers, times and units: for one that reads them badly."""
    voice_activity: VoiceActivitySettings = VoiceActivitySettings()
    turn: TurnPolicy = TurnPolicy()
    end_of_turn: EndOfTurnWaits = EndOfTurnWaits()
    """How long pauses are under the turn authority "semantic"."""
    interruption: InterruptionPolicy = InterruptionPolicy()
    generation: GenerationPolicy = GenerationPolicy()
    playback: PlaybackPolicy = PlaybackPolicy()
    connection: ConnectionPolicy = ConnectionPolicy()
    history: HistorySettings | None = None
    trace: TraceSettings | None = None
    telemetry: TelemetrySettings = TelemetrySettings()
    web: WebSettings = WebSettings()
    tools: ToolSettings = ToolSettings()
    mcp: dict[ServerName, McpServerSettings] = {}
    """Tool servers by name."""
    checks: Literal["on", "off"] = "off"
    """Check every invariant of the chart after each macrostep, and report what breaks."""

    @property
    def context(self) -> ContextLimits:
        """How much of the history the model is shown."""
        settings = self.history
        return ContextLimits() if settings is None else ContextLimits(settings.context_records, settings.context_chars)

    @property
    def policies(self) -> Policies:
        """The chart's policies."""
        return Policies(
            turn=self.turn,
            interruption=self.interruption,
            generation=self.generation,
            playback=self.playback,
            connection=self.connection,
        )
