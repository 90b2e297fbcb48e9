"""What a daemon writes into its log: which events there were, and why. Never what anybody said."""

from __future__ import annotations

import logging
from dataclasses import fields

from ...statecharts import published as told
from ...statecharts.actions import Action, Publish
from ...statecharts.errors import ScopedError
from ...statecharts.published import Payload

logger = logging.getLogger(__name__)

SHOWN = frozenset(
    {
        "acknowledged",
        "attempt",
        "authority",
        "degradations",
        "limit",
        "lost_ms",
        "outcome",
        "played_samples",
        "reason",
        "recorded_ms",
        "revision",
        "source",
        "status",
        "underruns",
        "units",
    }
)
"""Fields that hold no words of a user or of a model."""
TOO_MANY = (told.PlaybackMoved, told.TranscriptChanged, told.UsageChanged)


def write_down(action: Action) -> None:
    """Log a published event. Errors are logged whole: they hold no words and no secrets."""
    if not isinstance(action, Publish) or isinstance(action.payload, TOO_MANY):
        return
    error = getattr(action.payload, "error", None)
    if isinstance(error, ScopedError):
        logger.error("%s: %s", action.payload.type, error)
    else:
        logger.info("%s", line_of(action.payload))


def line_of(payload: Payload) -> str:
    """The kind of an event, and its fields that hold no words."""
    shown = (field.name for field in fields(payload) if field.name in SHOWN)
    values = ((name, getattr(payload, name)) for name in shown)
    return " ".join((payload.type, *(f"{name}={value}" for name, value in values if value not in (None, "", ()))))
