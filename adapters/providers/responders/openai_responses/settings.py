"""How a record of this provider looks."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, JsonValue

from ...declaration import HttpUrl, ProviderSettings, VariableName


class OpenAIResponsesSettings(ProviderSettings):
    """OpenAI's Responses, or a service that speaks it."""

    kind: Literal["openai-responses"]
    base_url: HttpUrl = "https://api.openai.com/v1"
    """Without "/responses"."""
    model: str = Field(min_length=1)
    api_key_env: VariableName | None = None
    """The environment variable that holds the key; None where the service needs none."""
    system_prompt: str | None = None
    allow_plain_http: bool = False
    """Let the key travel unencrypted, on a network that you trust."""
    extra: dict[str, JsonValue] = Field(default_factory=dict)
    """Goes into every request as it is, e.g. {reasoning = {effort = "low"}, max_output_tokens = 500}."""
