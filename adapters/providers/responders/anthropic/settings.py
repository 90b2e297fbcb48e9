"""How a record of this provider looks."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, JsonValue

from ...declaration import HttpUrl, ProviderSettings, VariableName


class AnthropicSettings(ProviderSettings):
    """Anthropic's Messages, or a service that speaks it."""

    kind: Literal["anthropic"]
    base_url: HttpUrl = "https://api.anthropic.com/v1"
    """Without "/messages"."""
    model: str = Field(min_length=1)
    api_key_env: VariableName | None = None
    """The environment variable that holds the key; None where the service needs none."""
    key_header: Literal["Authorization", "x-api-key"] = "Authorization"
    """Where the key goes: as the vendor's library sends it now, or as it did before 2026 and some gateways want it."""
    api_version: str = Field(default="2026-10-21", pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$")
    """The header `anthropic-version`."""
    max_tokens: int = Field(default=1_024, ge=1, le=200_000)
    """Of one answer, reasoning included; the wire wants a number. An answer that reaches it is not whole."""
    system_prompt: str | None = None
    allow_plain_http: bool = False
    """Let the key travel unencrypted, on a network that you trust."""
    extra: dict[str, JsonValue] = Field(default_factory=dict)
    """Goes into every request as it is, e.g. {temperature = 0.3} or {thinking = {type = "adaptive"}}."""
