"""From names to ports: the one place where the program chooses its recogniser, model, voice and device.

Nothing is loaded here. What is not installed is found out before anybody speaks, and nothing stands in for it silently.
"""

from .assembly import CascadeParts, Composition, compose, make_cascade
from .collecting import CollectingRecognizer, CollectingResponder, CollectingSynthesizer
from .device import BoardDevice
from .parts import (
    Part,
    make_recognizer,
    make_responder,
    make_synthesizer,
    make_voice,
    make_voice_activity,
    system_prompt_of,
)

__all__ = [
    "BoardDevice",
    "CascadeParts",
    "CollectingRecognizer",
    "CollectingResponder",
    "CollectingSynthesizer",
    "Composition",
    "Part",
    "compose",
    "make_cascade",
    "make_recognizer",
    "make_responder",
    "make_synthesizer",
    "make_voice",
    "make_voice_activity",
    "system_prompt_of",
]
