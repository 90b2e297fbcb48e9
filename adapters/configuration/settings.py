"""The tables and keys of `voicechart.toml`, with their types, bounds and defaults."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    JsonValue,
    PlainValidator,
    StringConstraints,
    ValidationInfo,
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
from ..tracing import TraceLimits


class Settings(BaseModel):
    """Immutable; unknown keys and silent conversions are refused."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


def _endpoint(text: object) -> AudioEndpoint:
    if not isinstance(text, str):
        raise EndpointRefused("an audio endpoint is a text: unix:/path/of/the/socket")
    return parse_endpoint(text)


def _beside_the_file(path: Path, info: ValidationInfo) -> Path:
    """A relative path is meant from where the configuration stands: a daemon is started anywhere."""
    folder: Path | None = info.context
    return path if folder is None else folder / path.expanduser()


def _collector(text: str) -> str:
    url = urlsplit(text)
    if url.scheme not in ("http", "https") or not url.hostname:
        raise ValueError("must begin with https:// (or http:// on your own machine)")
    if url.username or url.password or url.query or url.fragment:
        raise ValueError("holds no user, query or fragment; secret headers stand in OTEL_EXPORTER_OTLP_HEADERS")
    return text


CollectorUrl = Annotated[str, AfterValidator(_collector)]
Endpoint = Annotated[AudioEndpoint, PlainValidator(_endpoint)]
FilePath = Annotated[Path, AfterValidator(_beside_the_file)]
VariableName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,127}$")]
Identity = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_.-]{1,64}$")]


class AudioSettings(Settings):
    """The board's audio service: the only microphone and the only speaker."""

    endpoint: Endpoint
    """`unix:/path/of/the/socket`"""
    echo_cancellation: Literal["none", "validated"] = "none"
    """"validated": somebody measured on this board that the microphone does not hear the speaker."""


class WhisperSettings(Settings):
    """Recognition on this machine."""

    kind: Literal["whisper"] = "whisper"
    model_path: FilePath | None = None
    """A folder of CTranslate2 Whisper weights; the packaged tiny.en without one."""
    threads: int = Field(default=2, ge=1, le=16)


class CompanionSettings(Settings):
    """The offline pattern companion."""

    kind: Literal["companion"]
    token_ms: float = Field(default=30.0, ge=0, le=1_000)


class LocalModelSettings(Settings):
    """A small language model in this process (the extra `local-llm`)."""

    kind: Literal["local"]
    model_path: FilePath | None = None
    """GGUF weights with a chat template; the packaged SmolLM2 without one."""
    threads: int = Field(default=2, ge=1, le=16)
    temperature: float = Field(default=0.2, ge=0, le=2)
    system_prompt: str | None = None


class OpenAISettings(Settings):
    """A service that speaks OpenAI's Chat Completions, far away or on this machine."""

    kind: Literal["openai"]
    base_url: str
    """Without "/chat/completions", e.g. "https://api.openai.com/v1"."""
    model: str = Field(min_length=1)
    api_key_env: VariableName | None = None
    """The environment variable that holds the key; None where the service needs none."""
    system_prompt: str | None = None
    include_usage: bool = True
    allow_plain_http: bool = False
    extra: dict[str, JsonValue] = {}
    """Goes into every request as it is, e.g. {temperature = 0.3}."""


class AutomaticVoice(Settings):
    """Piper where it is installed, else eSpeak NG."""

    kind: Literal["auto"]


class PiperVoice(Settings):
    kind: Literal["piper"]
    model_path: FilePath | None = None
    """`NAME.onnx` with `NAME.onnx.json` beside it; the packaged voice without one."""
    length_scale: float = Field(default=1.0, ge=0.5, le=2)


class EspeakVoice(Settings):
    kind: Literal["espeak"]
    name: str = "en-us"
    rate_wpm: int = Field(default=165, ge=80, le=450)
    pitch: int = Field(default=50, ge=0, le=99)


class PicoVoice(Settings):
    kind: Literal["pico"]
    name: str = "en-GB"
    speed: float = Field(default=1.0, ge=0.2, le=5)


ResponderSettings = CompanionSettings | LocalModelSettings | OpenAISettings
VoiceSettings = AutomaticVoice | PiperVoice | EspeakVoice | PicoVoice


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
    recognizer: WhisperSettings = WhisperSettings()
    responder: ResponderSettings = Field(default=CompanionSettings(kind="companion"), discriminator="kind")
    voice: VoiceSettings = Field(default=AutomaticVoice(kind="auto"), discriminator="kind")
    voice_activity: VoiceActivitySettings = VoiceActivitySettings()
    turn: TurnPolicy = TurnPolicy()
    interruption: InterruptionPolicy = InterruptionPolicy()
    generation: GenerationPolicy = GenerationPolicy()
    playback: PlaybackPolicy = PlaybackPolicy()
    connection: ConnectionPolicy = ConnectionPolicy()
    history: HistorySettings | None = None
    trace: TraceSettings | None = None
    telemetry: TelemetrySettings = TelemetrySettings()
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
