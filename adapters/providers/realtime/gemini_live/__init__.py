"""Gemini Live: a model that hears and speaks by itself, over one connection.

Turns are ended on this side: the service answers by itself where it ends them. It names neither turns nor answers, so
that the order of its messages tells them apart (`turns.py`), and it interrupts and answers by the beginning and the end
of what it is told to be speech (`hearing.py`). There is no message to cancel an answer, and none to cut it.
Sources: ai.google.dev/api/live, google-genai 3.6.1.
"""

from __future__ import annotations

from ...declaration import Provider, Secrets
from ...realtime_protocol import RealtimeLimits
from .model import OFFERS, GeminiLiveModel
from .settings import GeminiLiveSettings

__all__ = ["PROVIDER", "GeminiLiveModel", "GeminiLiveSettings", "make_model"]


def make_model(settings: GeminiLiveSettings, api_key: str, limits: RealtimeLimits | None = None) -> GeminiLiveModel:
    """The model of these settings."""
    return GeminiLiveModel(settings, api_key, limits)


def _make(settings: GeminiLiveSettings, secrets: Secrets) -> GeminiLiveModel:
    return make_model(settings, secrets.read("api_key_env", settings.api_key_env))


PROVIDER = Provider(
    title="Gemini Live",
    settings=GeminiLiveSettings,
    make=_make,
    describe=lambda settings: f"Gemini {settings.model}",
    offers=OFFERS,
)
