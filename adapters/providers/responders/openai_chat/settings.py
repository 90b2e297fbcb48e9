"""How a record of this provider looks."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, JsonValue

from ...declaration import HttpUrl, ProviderSettings, VariableName


class OpenAIChatSettings(ProviderSettings):
    """A service that speaks OpenAI's Chat Completions, far away or on this machine."""

    kind: Literal["openai-chat"]
    base_url: HttpUrl = "https://api.openai.com/v1"
    """Without "/chat/completions"."""
    model: str = Field(min_length=1)
    api_key_env: VariableName | None = None
    """The environment variable that holds the key; None where the service needs none."""
    system_prompt: str | None = None
    include_usage: bool = True
    """Off for a server that refuses `stream_options`."""
    allow_plain_http: bool = False
    """Let the key travel unencrypted, on a network that you trust."""
    extra: dict[str, JsonValue] = Field(default_factory=dict)
    """Goes into every request as it is, e.g. {temperature = 0.3}."""
