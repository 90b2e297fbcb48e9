"""OpenAI's Responses: text, tool calls, reasoning that goes back encrypted, usage at the end.

Every request holds the whole context and asks to store nothing, so that what the model sees is what was heard here. A
cancel closes the connection.
"""

from __future__ import annotations

from .....engines.ports import Responder
from ...declaration import Provider, Secrets
from .responder import OFFERS, OpenAIResponsesResponder
from .settings import OpenAIResponsesSettings


def _make(settings: OpenAIResponsesSettings, secrets: Secrets) -> Responder:
    return OpenAIResponsesResponder(
        base_url=settings.base_url,
        model=settings.model,
        api_key=secrets.read_optional("api_key_env", settings.api_key_env),
        extra=settings.extra,
        allow_plain_http=settings.allow_plain_http,
    )


PROVIDER: Provider[OpenAIResponsesSettings, Responder] = Provider(
    title="OpenAI Responses",
    settings=OpenAIResponsesSettings,
    make=_make,
    describe=lambda settings: f"{settings.model} at {settings.base_url}",
    offers=OFFERS,
)

__all__ = ["PROVIDER", "OpenAIResponsesResponder", "OpenAIResponsesSettings"]
