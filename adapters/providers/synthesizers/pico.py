"""Pico on this machine: the extra `local`."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from ....engines.ports import Synthesizer
from ....statecharts.capabilities import SynthesizerCapabilities
from ..declaration import Provider, ProviderSettings, Secrets


class PicoVoice(ProviderSettings):
    kind: Literal["pico"]
    name: str = "en-GB"
    speed: float = Field(default=1.0, ge=0.2, le=5)


def _make(settings: PicoVoice, secrets: Secrets) -> Synthesizer:
    from ...local.pico import PicoSynthesizer

    return PicoSynthesizer(voice=settings.name, speed=settings.speed)


PROVIDER = Provider(
    title="Pico on this machine",
    settings=PicoVoice,
    make=_make,
    describe=lambda settings: f"Pico {settings.name}",
    modules=("py_nanotts",),
    extra="local",
    offers=SynthesizerCapabilities(),
)
