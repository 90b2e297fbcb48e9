"""The bounds of an explored world: which facts exist, and how much of everything."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Family(StrEnum):
    """Facts that belong together. Opening, closing, timers and the passing of time are in every world."""

    TYPING = "typing"
    BUTTONS = "buttons"
    SAYING = "saying"
    """Announcements, asked for and withdrawn."""
    SPEECH = "speech"
    UNHEARD = "unheard"
    """Speech that comes to nothing: gaps, failures, empty and dismissed words."""
    MODEL = "model"
    FAILURES = "failures"
    """Of the model: failed attempts and retries."""
    TOOLS = "tools"
    AUDIO = "audio"
    TROUBLE = "trouble"
    """Of the speaker: underruns, breaks, unknown positions, synthesis that ends early."""
    OUTAGES = "outages"
    """Of the connection."""
    STALE = "stale"
    """Facts of dead attempts, epochs, streams, recognitions and timers, and of foreign authorities."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """Which facts an explored world knows, and how much of everything it may hold at once."""

    families: frozenset[Family] = frozenset(Family)
    waiting_turns: int = 1
    announcements: int = 1
    segments: int = 1
    recognitions: int = 2
    carried_segments: int = 1
    calls: int = 1
    background_calls: int = 1
    units: int = 1
    stopping_streams: int = 1
