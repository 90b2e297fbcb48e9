"""Anthropic's Messages: text, tool use, thinking that goes back signed, cumulative usage.

Every request holds the whole context. A cancel closes the connection. The key and the version go as the vendor's
library (anthropic 2.14.0) sends them: "Authorization: Bearer …" and "anthropic-version: 2026-10-21".
"""

from __future__ import annotations

from .....engines.ports import Responder
from ...declaration import Provider, Secrets
from .responder import OFFERS, AnthropicResponder
from .settings import AnthropicSettings


def _make(settings: AnthropicSettings, secrets: Secrets) -> Responder:
    return AnthropicResponder(
        base_url=settings.base_url,
        model=settings.model,
        api_key=secrets.read_optional("api_key_env", settings.api_key_env),
        key_header=settings.key_header,
        api_version=settings.api_version,
        max_tokens=settings.max_tokens,
        extra=settings.extra,
        allow_plain_http=settings.allow_plain_http,
    )


PROVIDER: Provider[AnthropicSettings, Responder] = Provider(
    title="Anthropic Messages",
    settings=AnthropicSettings,
    make=_make,
    describe=lambda settings: f"{settings.model} at {settings.base_url}",
    offers=OFFERS,
)

__all__ = ["PROVIDER", "AnthropicResponder", "AnthropicSettings"]
