"""From names to ports: the one place where the program chooses its recogniser, model, voice and device.

Nothing is loaded here. What is not installed is found out before anybody speaks, and nothing stands in for it silently.
"""

from .assembly import Composition, compose
from .device import BoardDevice
from .responders import make_responder
from .speech import SpeechParts, make_recognizer, make_synthesizer

__all__ = [
    "BoardDevice",
    "Composition",
    "SpeechParts",
    "compose",
    "make_recognizer",
    "make_responder",
    "make_synthesizer",
]
