"""A configuration as ports and policies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ...engines import CascadePorts, History, MemoryHistory
from ...engines.reports import PortError
from ...statecharts.capabilities import Capabilities
from ..configuration import CompanionSettings, Configuration, ConfigurationRefused, Problem
from .device import BoardDevice
from .packages import require
from .responders import describe_responder, make_responder
from .speech import describe_recognizer, make_recognizer, make_synthesizer, make_voice_activity

_PATHS = {"recognition": "recognizer", "generation": "responder", "synthesis": "voice", "capture": "voice_activity"}
"""Where in the file the settings of a port's stage stand."""


@dataclass(frozen=True, slots=True)
class Composition:
    """What a session needs, and how its parts are called."""

    ports: CascadePorts
    recognizer: str
    responder: str
    voice: str


def compose(
    configuration: Configuration, environment: Mapping[str, str], *, history: History | None = None
) -> Composition:
    """Build every port; nothing is loaded or connected yet. Raises `ConfigurationRefused`."""
    try:
        return _compose(configuration, environment, history or MemoryHistory())
    except PortError as refused:
        error = refused.error
        raise ConfigurationRefused(Problem(_PATHS.get(error.stage, ""), error.message)) from refused


def _compose(configuration: Configuration, environment: Mapping[str, str], history: History) -> Composition:
    if configuration.telemetry.enabled:
        require("telemetry.enabled", "telemetry", "opentelemetry.sdk", "opentelemetry.exporter.otlp.proto.http")
    recognizer = make_recognizer(configuration.recognizer)
    responder = make_responder(configuration.responder, environment)
    voice = make_synthesizer(configuration.voice)
    offered = Capabilities(recognizer.capabilities, responder.capabilities, voice.synthesizer.capabilities)
    if missing := offered.missing_for(configuration.connection.streaming):
        message = f'"required" cannot be had: these parts lack {", ".join(missing)}; choose others, or write "prefer"'
        raise ConfigurationRefused(Problem("connection.streaming", message))
    settings = configuration.responder
    ports = CascadePorts(
        device=BoardDevice(configuration.audio.endpoint.path),
        recognizer=recognizer,
        responder=responder,
        synthesizer=voice.synthesizer,
        voice_activity=make_voice_activity(),
        history=history,
        system_prompt=None if isinstance(settings, CompanionSettings) else settings.system_prompt,
        context=configuration.context,
        voice_activity_settings=configuration.voice_activity,
    )
    return Composition(ports, describe_recognizer(configuration.recognizer), describe_responder(settings), voice.name)
