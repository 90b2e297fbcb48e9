"""What hears and speaks on this machine, without a network or a key: the extra `local`.

Importing this folder needs nothing of the extra; a port says in `prepare` what is missing and how to install it. The
eSpeak and Piper adapters use GPL packages, see there.
"""

from .end_of_turn import EndOfTurnWaits, RuleBasedEndOfTurn
from .espeak import EspeakSynthesizer
from .pico import PicoSynthesizer
from .piper import PiperSynthesizer
from .silero import SileroProbability
from .synthesis_stream import SynthesisBounds
from .whisper import WhisperRecognizer
from .whisper_stream import WhisperBounds

__all__ = [
    "EndOfTurnWaits",
    "EspeakSynthesizer",
    "PicoSynthesizer",
    "PiperSynthesizer",
    "RuleBasedEndOfTurn",
    "SileroProbability",
    "SynthesisBounds",
    "WhisperBounds",
    "WhisperRecognizer",
]
