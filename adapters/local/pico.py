"""SVOX Pico as a synthesiser: small, clear, six European languages.

Licence: Apache-2.0, like the package `py-nanotts` that holds it with its voices: the local voice without GPL.
"""

from __future__ import annotations

from typing import Protocol, cast

from ...audio.formats import SPEECH_FORMAT, AudioFormat
from ...engines.reports import Word
from ...statecharts.capabilities import SynthesizerCapabilities
from ...statecharts.errors import ErrorScope
from .extras import required
from .synthesis_stream import Deliver, SpeechEngine, SynthesisBounds, synthesis_error
from .synthesizer import ThreadedSynthesizer

VOICES = ("en-GB", "en-US", "de-DE", "es-ES", "fr-FR", "it-IT")


class _NanoTTS(Protocol):
    """The part of `py_nanotts.NanoTTS` in use."""

    def speak(self, text: str, voice: str, speed: float | None) -> bytes: ...


class _Package(Protocol):
    def NanoTTS(self) -> _NanoTTS: ...


class PicoSynthesizer(ThreadedSynthesizer):
    """Speaks 16 kHz mono, one unit at a time: a unit of two seconds takes 10 to 20 ms, and holds the interpreter for
    so long (the package does not release the GIL). Output made after a cancel is dropped.
    """

    name = "pico"

    def __init__(self, *, voice: str = "en-GB", speed: float = 1.0, bounds: SynthesisBounds | None = None) -> None:
        """`speed`: 0.2 to 5. Raises `PortError` outside."""
        if not 0.2 <= speed <= 5:
            raise synthesis_error("bad_setting", f"speed = {speed} must be 0.2–5", ErrorScope.SESSION)
        super().__init__(voice, bounds or SynthesisBounds())
        self._speed = speed

    @property
    def capabilities(self) -> SynthesizerCapabilities:
        return SynthesizerCapabilities()

    def _load(self) -> SpeechEngine:
        package = cast("_Package", required("py_nanotts", "local", "synthesis"))
        return _PicoEngine(package.NanoTTS(), self._speed)


class _PicoEngine:
    format: AudioFormat = SPEECH_FORMAT
    contended = False

    def __init__(self, pico: _NanoTTS, speed: float) -> None:
        self._pico = pico
        self._speed = speed

    def check_voice(self, voice: str) -> None:
        if voice not in VOICES:
            message = f"Pico has no voice {voice!r}; it has {', '.join(VOICES)}"
            raise synthesis_error("unknown_voice", message, ErrorScope.SESSION)

    def speak(self, text: str, voice: str, deliver: Deliver) -> tuple[Word, ...]:
        try:
            pcm = self._pico.speak(text, voice, self._speed)
        except (RuntimeError, ValueError) as failure:
            raise synthesis_error("engine_failed", f"Pico refused the text ({type(failure).__name__})") from failure
        deliver(pcm)
        return ()
