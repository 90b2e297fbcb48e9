"""Small shared vocabulary: choices and measures that facts, actions and records use."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class PositionSource(StrEnum):
    """Where a played position comes from."""

    MEASURED = "measured"
    """The device clock told it."""
    ESTIMATED = "estimated"
    """Derived from what was written and when."""
    UNKNOWN = "unknown"


class TurnAuthority(StrEnum):
    """Who may end a user turn. Exactly one is configured."""

    VAD = "vad"
    RECOGNIZER = "recognizer"
    SEMANTIC = "semantic"
    ENGINE = "engine"
    MANUAL = "manual"
    CLIENT = "client"
    """Text that was submitted whole: committed on arrival, never configured."""


class InterruptionSource(StrEnum):
    """Where a request to interrupt comes from."""

    BUTTON = "button"
    SPEECH = "speech"
    PROVIDER = "provider"
    CLIENT = "client"


class SideEffectState(StrEnum):
    """What is known about the side effects of a tool or an attempt."""

    NONE = "none"
    DONE = "done"
    UNKNOWN = "unknown"


class DeliveryStatus(StrEnum):
    """What became of a reply at the user's ear."""

    DELIVERED = "delivered"
    INTERRUPTED = "interrupted"
    UNKNOWN = "unknown"
    FAILED = "failed"
    TEXT_ONLY = "text_only"


class Outcome(StrEnum):
    """The one terminal outcome of a run, response, attempt, synthesis or tool call."""

    COMPLETED = "completed"
    CANCELLED = "cancelled"
    FAILED = "failed"


class AnnouncementOutcome(StrEnum):
    """What became of a text that was to be said as it is."""

    PLAYED = "played"
    """Rendered to its end; without a device, shown."""
    INTERRUPTED = "interrupted"
    """Begun, and not known to have been heard to its end."""
    DROPPED = "dropped"
    """Nothing of it was heard."""


class ToolStatus(StrEnum):
    """Terminal status of a tool call."""

    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"
    UNKNOWN = "unknown"
    """Nobody can tell whether the side effect happened; never retried."""


@dataclass(frozen=True, slots=True)
class Usage:
    """Cumulative token usage of one attempt; None where the provider does not tell."""

    input_tokens: int | None = None
    output_tokens: int | None = None
