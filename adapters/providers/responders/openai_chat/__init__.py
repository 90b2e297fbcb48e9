"""OpenAI's Chat Completions, and every server that speaks it (`base_url`): llama.cpp, vLLM, Ollama, most clouds.

Text and tool-call deltas, usage where the server counts; a cancel closes the connection. Compatible servers differ in
how they number tool calls and how they end: `assembly.py` has the rules.
"""

from __future__ import annotations

from .....engines.ports import Responder
from ...declaration import Provider, Secrets
from .responder import OFFERS, OpenAIChatResponder
from .settings import OpenAIChatSettings


def _make(settings: OpenAIChatSettings, secrets: Secrets) -> Responder:
    return OpenAIChatResponder(
        base_url=settings.base_url,
        model=settings.model,
        api_key=secrets.read_optional("api_key_env", settings.api_key_env),
        extra=settings.extra,
        include_usage=settings.include_usage,
        allow_plain_http=settings.allow_plain_http,
    )


PROVIDER: Provider[OpenAIChatSettings, Responder] = Provider(
    title="OpenAI Chat Completions",
    settings=OpenAIChatSettings,
    make=_make,
    describe=lambda settings: f"{settings.model} at {settings.base_url}",
    offers=OFFERS,
)

__all__ = ["PROVIDER", "OpenAIChatResponder", "OpenAIChatSettings"]
