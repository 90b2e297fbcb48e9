"""The daemon's configuration: `voicechart.toml`, validated whole before anything starts.

Every table and key is known by name; one that is not is refused with its path, so that a slip of the pen is never a
silent default. Policies are the charts' own values with their own bounds. Secrets stand in the environment: the file
names the variable, and no message ever repeats a value.
"""

from .loading import load_configuration, parse_configuration
from .problems import ConfigurationRefused, Problem
from .settings import (
    AudioSettings,
    AutomaticVoice,
    CompanionSettings,
    Configuration,
    EspeakVoice,
    HistorySettings,
    LocalModelSettings,
    OpenAISettings,
    PicoVoice,
    PiperVoice,
    ResponderSettings,
    TelemetrySettings,
    TraceSettings,
    VoiceSettings,
    WhisperSettings,
)

__all__ = [
    "AudioSettings",
    "AutomaticVoice",
    "CompanionSettings",
    "Configuration",
    "ConfigurationRefused",
    "EspeakVoice",
    "HistorySettings",
    "LocalModelSettings",
    "OpenAISettings",
    "PicoVoice",
    "PiperVoice",
    "Problem",
    "ResponderSettings",
    "TelemetrySettings",
    "TraceSettings",
    "VoiceSettings",
    "WhisperSettings",
    "load_configuration",
    "parse_configuration",
]
