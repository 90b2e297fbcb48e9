"""From names to ports: the one place where the program chooses its recogniser, model, voice and device.

Nothing is loaded here. What is not installed is found out before anybody speaks, and nothing stands in for it silently.
"""

from .abilities import Ability, abilities_of, playback_abilities
from .assembly import Composition, compose, make_parts, require_telemetry
from .cascade import CascadeParts, make_cascade
from .collecting import CollectingRecognizer, CollectingResponder, CollectingSynthesizer
from .device import BoardDevice
from .native import NativeParts, make_native
from .parts import (
    Part,
    make_recognizer,
    make_responder,
    make_synthesizer,
    make_voice,
    make_voice_activity,
    system_prompt_of,
)
from .tools import OfferedTools, make_tools

__all__ = [
    "Ability",
    "BoardDevice",
    "CascadeParts",
    "CollectingRecognizer",
    "CollectingResponder",
    "CollectingSynthesizer",
    "Composition",
    "NativeParts",
    "OfferedTools",
    "Part",
    "abilities_of",
    "compose",
    "make_cascade",
    "make_native",
    "make_parts",
    "make_recognizer",
    "make_responder",
    "make_synthesizer",
    "make_tools",
    "make_voice",
    "make_voice_activity",
    "playback_abilities",
    "require_telemetry",
    "system_prompt_of",
]
