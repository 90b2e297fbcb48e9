"""The one error value that travels through facts, actions and events, and the exceptions of the charts."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from .values import SideEffectState


class ErrorScope(StrEnum):
    """How far a failure reaches."""

    TURN = "turn"
    RESPONSE = "response"
    SESSION = "session"


@dataclass(frozen=True, slots=True)
class ScopedError:
    """What failed, how far it reaches, and whether trying again can help.

    `message` tells the operator what to do next and never holds secrets or unsanitised provider text.
    """

    code: str
    """Stable and machine-readable, e.g. "auth_refused", "rate_limited", "speaker_lost"."""
    stage: str
    """Where: "recognition", "generation", "synthesis", "playback", "capture", "connection", "tool", "history"."""
    scope: ErrorScope
    message: str
    retryable: bool = False
    retry_after_ms: int | None = None
    partial_output: bool = False
    side_effect_state: SideEffectState = SideEffectState.NONE

    def __str__(self) -> str:
        return f"{self.stage}/{self.code}: {self.message}"


class ChartError(Exception):
    """A programming error inside a chart: the macrostep was undone, nothing of it took effect."""


class StepRefused(ChartError):
    """Raised by an observer to have the macrostep undone that it was told of; `Chart.handle` passes it on as it is."""
