"""eSpeak NG on this machine: the extra `local`."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from ....engines.ports import Synthesizer
from ....statecharts.capabilities import SynthesizerCapabilities
from ..declaration import Provider, ProviderSettings, Secrets

RUNTIME = ("espeakng_loader",)


class EspeakVoice(ProviderSettings):
    kind: Literal["espeak"]
    name: str = "en-us"
    rate_wpm: int = Field(default=165, ge=80, le=450)
    pitch: int = Field(default=50, ge=0, le=99)


def make(settings: EspeakVoice, secrets: Secrets) -> Synthesizer:
    """Not loaded. Raises `PortError` for a bad setting."""
    from ...local.espeak import EspeakSynthesizer

    return EspeakSynthesizer(voice=settings.name, rate_wpm=settings.rate_wpm, pitch=settings.pitch)


def describe(settings: EspeakVoice) -> str:
    """For people: which voice."""
    return f"eSpeak NG {settings.name}"


PROVIDER = Provider(
    title="eSpeak NG on this machine",
    settings=EspeakVoice,
    make=make,
    describe=describe,
    modules=RUNTIME,
    extra="local",
    offers=SynthesizerCapabilities(incremental_pcm=True, alignment=True),
)
