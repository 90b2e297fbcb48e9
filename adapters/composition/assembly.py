"""A configuration as an engine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ...engines import CascadeEngine, CascadePorts, History, MemoryHistory
from ...engines.background import BackgroundTasks
from ...engines.realtime import RealtimeEngine, RealtimePorts
from ...statecharts.values import TurnAuthority
from ..configuration import Configuration
from ..local import RuleBasedEndOfTurn
from ..providers.declaration import Prepared
from .cascade import CascadeParts, make_cascade
from .device import BoardDevice
from .native import NativeParts, make_native
from .packages import require
from .parts import Part
from .tools import OfferedTools, make_tools


@dataclass(frozen=True, slots=True)
class Composition:
    """What a session needs, and how its parts are called."""

    engine: CascadeEngine | RealtimeEngine
    parts: CascadeParts | NativeParts
    tools: OfferedTools
    """Its servers are reached inside `tools.serving()` only."""

    @property
    def ports(self) -> CascadePorts:
        """Of a cascade. Raises `TypeError` where a native realtime model holds the conversation."""
        if not isinstance(self.engine, CascadeEngine):
            raise TypeError("a native realtime model has no ports of a cascade")
        return self.engine.ports


def compose(
    configuration: Configuration,
    environment: Mapping[str, str],
    *,
    history: History | None = None,
    tasks: BackgroundTasks | None = None,
) -> Composition:
    """Build every port; nothing is loaded or connected yet. Raises `ConfigurationRefused`."""
    require_telemetry(configuration)
    if configuration.realtime is not None:
        return _compose_native(configuration, environment, history, tasks)
    parts = make_cascade(configuration, environment)
    calls_tools = parts.responder.port.capabilities.tool_calls
    tools = make_tools(configuration, environment).for_a_model(calls_tools=calls_tools)
    ports = CascadePorts(
        device=_board(configuration),
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
        end_of_turn=RuleBasedEndOfTurn(configuration.end_of_turn),
        fallback_recognizer=parts.fallback_recognizer.port if parts.fallback_recognizer is not None else None,
    )
    return Composition(CascadeEngine(ports), parts, tools)


def _compose_native(
    configuration: Configuration,
    environment: Mapping[str, str],
    history: History | None,
    tasks: BackgroundTasks | None,
) -> Composition:
    parts = make_native(configuration, environment)
    calls_tools = parts.model.port.capabilities.tool_calls
    tools = make_tools(configuration, environment).for_a_model(calls_tools=calls_tools)
    ports = RealtimePorts(
        device=_board(configuration),
        model=parts.model.port,
        voice_activity=parts.voice_activity,
        history=history or MemoryHistory(),
        tools=tools.tools,
        tasks=tasks,
        system_prompt=parts.system_prompt,
        context=configuration.context,
        voice_activity_settings=configuration.voice_activity,
        end_of_turn=parts.end_of_turn,
        announcer=parts.announcer.port if parts.announcer is not None else None,
    )
    return Composition(RealtimeEngine(ports), parts, tools)


def _board(configuration: Configuration) -> BoardDevice:
    by_button = configuration.turn.authority is TurnAuthority.MANUAL
    return BoardDevice(configuration.audio.endpoint.path, needs_talk_button=by_button)


def require_telemetry(configuration: Configuration) -> None:
    """Raises `ConfigurationRefused` when it is wanted and not installed."""
    if configuration.telemetry.enabled:
        require("telemetry.enabled", "telemetry", "opentelemetry.sdk", "opentelemetry.exporter.otlp.proto.http")


def make_parts(configuration: Configuration, environment: Mapping[str, str]) -> tuple[Part[Prepared], ...]:
    """Who takes part, neither loaded nor connected: a cascade of three, or one native realtime model.

    Raises `ConfigurationRefused`.
    """
    if configuration.realtime is not None:
        return make_native(configuration, environment).all
    return make_cascade(configuration, environment).all
