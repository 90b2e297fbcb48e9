"""A configuration as ports and policies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import cast

from ...audio.voice_activity import SpeechProbability
from ...engines import CascadePorts, History, MemoryHistory
from ...engines.background import BackgroundTasks
from ...engines.ports import Recognizer, Responder, Synthesizer
from ...engines.reports import PortError
from ...engines.turn_authorities import lacking_authority
from ...statecharts.capabilities import Capabilities, StreamingPolicy
from ..configuration import CompanionSettings, Configuration, ConfigurationRefused, Problem, chosen
from ..local.spoken_forms import SpokenForms
from ..providers.declaration import Prepared
from ..providers.registry import Role
from ..responders import PatternCompanion
from .collecting import CollectingRecognizer, CollectingResponder, CollectingSynthesizer
from .device import BoardDevice
from .numbers_in_words import NumbersInWords
from .packages import require
from .parts import (
    Part,
    make_part,
    make_recognizer,
    make_responder,
    make_synthesizer,
    make_voice_activity,
    system_prompt_of,
)
from .timers import SpokenTimers
from .tools import OfferedTools, make_tools


@dataclass(frozen=True, slots=True)
class CascadeParts:
    """What hears, answers and speaks, neither loaded nor connected; as their streaming policy lets them."""

    recognizer: Part[Recognizer]
    responder: Part[Responder]
    synthesizer: Part[Synthesizer]
    voice_activity: SpeechProbability
    system_prompt: str | None
    timers: SpokenTimers
    """Those of the companion, which nobody else has: attach them to the session."""

    @property
    def names(self) -> dict[str, str]:
        """For people, by the key of the configuration."""
        return {"recognizer": self.recognizer.name, "responder": self.responder.name, "voice": self.synthesizer.name}

    @property
    def all(self) -> tuple[Part[Recognizer], Part[Responder], Part[Synthesizer]]:
        """In the order in which speech passes them."""
        return self.recognizer, self.responder, self.synthesizer


@dataclass(frozen=True, slots=True)
class Composition:
    """What a session needs, and how its parts are called."""

    ports: CascadePorts
    parts: CascadeParts
    tools: OfferedTools = field(default_factory=OfferedTools)
    """Its servers are reached inside `tools.serving()` only."""

    @property
    def recognizer(self) -> str:
        """For people: what hears."""
        return self.parts.recognizer.name

    @property
    def responder(self) -> str:
        """For people: what answers."""
        return self.parts.responder.name

    @property
    def voice(self) -> str:
        """For people: what speaks."""
        return self.parts.synthesizer.name


def compose(
    configuration: Configuration,
    environment: Mapping[str, str],
    *,
    history: History | None = None,
    tasks: BackgroundTasks | None = None,
) -> Composition:
    """Build every port; nothing is loaded or connected yet. Raises `ConfigurationRefused`."""
    require_telemetry(configuration)
    parts = make_cascade(configuration, environment)
    calls_tools = parts.responder.port.capabilities.tool_calls
    tools = make_tools(configuration, environment).for_a_model(calls_tools=calls_tools)
    ports = CascadePorts(
        device=BoardDevice(configuration.audio.endpoint.path),
        recognizer=parts.recognizer.port,
        responder=parts.responder.port,
        synthesizer=parts.synthesizer.port,
        voice_activity=parts.voice_activity,
        history=history or MemoryHistory(),
        tools=tools.tools,
        tasks=tasks,
        system_prompt=parts.system_prompt,
        context=configuration.context,
        voice_activity_settings=configuration.voice_activity,
    )
    return Composition(ports, parts, tools)


def require_telemetry(configuration: Configuration) -> None:
    """Raises `ConfigurationRefused` when it is wanted and not installed."""
    if configuration.telemetry.enabled:
        require("telemetry.enabled", "telemetry", "opentelemetry.sdk", "opentelemetry.exporter.otlp.proto.http")


def make_parts(configuration: Configuration, environment: Mapping[str, str]) -> tuple[Part[Prepared], ...]:
    """Who takes part, neither loaded nor connected: a cascade of three, or one native realtime model.

    Raises `ConfigurationRefused`.
    """
    if configuration.realtime is not None:
        return (make_part(chosen(configuration, Role.REALTIME), environment),)
    return cast("tuple[Part[Prepared], ...]", make_cascade(configuration, environment).all)


def make_cascade(configuration: Configuration, environment: Mapping[str, str]) -> CascadeParts:
    """Everything but the device and the history. Raises `ConfigurationRefused`."""
    if configuration.realtime is not None:
        raise ConfigurationRefused(Problem("realtime", "this is held by recogniser, responder and voice: leave it out"))
    recognizer = make_recognizer(chosen(configuration, Role.RECOGNIZER), environment)
    answers = chosen(configuration, Role.RESPONDER)
    responder = make_responder(answers, environment)
    synthesizer = make_synthesizer(chosen(configuration, Role.SYNTHESIZER), environment)
    timers = SpokenTimers()
    if isinstance(answers.settings, CompanionSettings):
        ringing = PatternCompanion(token_ms=answers.settings.token_ms, start_timer=timers.start)
        responder = replace(responder, port=ringing)
    if configuration.numbers_in_words:
        require("numbers_in_words", "local", "num2words", "cn2an")
        spoken_forms = SpokenForms()
        synthesizer = synthesizer.over(lambda inner: NumbersInWords(inner, spoken_forms))
    if lacking := lacking_authority(configuration.turn.authority, recognizer.port.capabilities, None):
        raise ConfigurationRefused(Problem("turn.authority", lacking))
    streaming = configuration.connection.streaming
    offered = Capabilities(recognizer.port.capabilities, responder.port.capabilities, synthesizer.port.capabilities)
    if missing := offered.missing_for(streaming):
        message = f'"required" cannot be had: these parts lack {", ".join(missing)}; choose others, or write "prefer"'
        raise ConfigurationRefused(Problem("connection.streaming", message))
    if streaming is StreamingPolicy.DISABLED:
        recognizer = recognizer.over(CollectingRecognizer)
        responder = responder.over(CollectingResponder)
        synthesizer = synthesizer.over(CollectingSynthesizer)
    try:
        voice_activity = make_voice_activity()
    except PortError as refused:
        raise ConfigurationRefused(Problem("voice_activity", refused.error.message)) from refused
    prompt = system_prompt_of(answers.settings)
    return CascadeParts(recognizer, responder, synthesizer, voice_activity, prompt, timers)
