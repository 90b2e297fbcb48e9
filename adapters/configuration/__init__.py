"""The daemon's configuration: `voicechart.toml`, validated whole before anything starts.

Every table and key is known by name; one that is not is refused with its path, so that a slip of the pen is never a
silent default. Policies are the charts' own values with their own bounds. Secrets stand in the environment: the file
names the variable, and no message ever repeats a value.
"""

from ..providers.recognizers.whisper import WhisperSettings
from ..providers.responders.companion import CompanionSettings
from ..providers.responders.local import LocalModelSettings
from ..providers.synthesizers.auto import AutomaticVoice
from ..providers.synthesizers.espeak import EspeakVoice
from ..providers.synthesizers.pico import PicoVoice
from ..providers.synthesizers.piper import PiperVoice
from .changes import changed_keys
from .choices import Choice, chosen, chosen_fallback
from .loading import load_configuration, parse_configuration
from .problems import ConfigurationRefused, Problem
from .selecting import selecting
from .settings import AudioSettings, Configuration, HistorySettings, TelemetrySettings, TraceSettings
from .web_settings import WebSettings, problems_of_web

__all__ = [
    "AudioSettings",
    "AutomaticVoice",
    "Choice",
    "CompanionSettings",
    "Configuration",
    "ConfigurationRefused",
    "EspeakVoice",
    "HistorySettings",
    "LocalModelSettings",
    "PicoVoice",
    "PiperVoice",
    "Problem",
    "TelemetrySettings",
    "TraceSettings",
    "WebSettings",
    "WhisperSettings",
    "changed_keys",
    "chosen",
    "chosen_fallback",
    "load_configuration",
    "parse_configuration",
    "problems_of_web",
    "selecting",
]
