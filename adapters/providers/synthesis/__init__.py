"""What synthesisers over the network share: one life of a reply, exact ranges, connections in hand."""

from .letters import AlignedLetters
from .reply import SpeechLimits, SpokenReply
from .socket_synthesizer import (
    Answer,
    Heard,
    SocketSynthesizer,
    SpeechDialect,
    SpeechVendor,
    UnitAudio,
    UnitSpoken,
    UnitWords,
    decoded,
    malformed,
)
from .track import SYNTHESIS, SpokenTrack

__all__ = [
    "SYNTHESIS",
    "AlignedLetters",
    "Answer",
    "Heard",
    "SocketSynthesizer",
    "SpeechDialect",
    "SpeechLimits",
    "SpeechVendor",
    "SpokenReply",
    "SpokenTrack",
    "UnitAudio",
    "UnitSpoken",
    "UnitWords",
    "decoded",
    "malformed",
]
