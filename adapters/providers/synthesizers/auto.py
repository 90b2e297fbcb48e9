"""Piper where it is installed, else eSpeak NG."""

from __future__ import annotations

from typing import Literal

from ....engines.ports import Synthesizer
from ..declaration import Provider, ProviderSettings, Secrets
from ..installed import missing_modules
from . import espeak, piper


class AutomaticVoice(ProviderSettings):
    kind: Literal["auto"]


def _has_piper() -> bool:
    return not missing_modules(*piper.RUNTIME, *piper.WEIGHTS)


def _make(settings: AutomaticVoice, secrets: Secrets) -> Synthesizer:
    if _has_piper():
        return piper.make(piper.PiperVoice(kind="piper"), secrets)
    return espeak.make(espeak.EspeakVoice(kind="espeak"), secrets)


def _describe(settings: AutomaticVoice) -> str:
    if _has_piper():
        return piper.describe(piper.PiperVoice(kind="piper"))
    return espeak.describe(espeak.EspeakVoice(kind="espeak"))


PROVIDER = Provider(
    title="Piper where it is installed, else eSpeak NG",
    settings=AutomaticVoice,
    make=_make,
    describe=_describe,
    modules=espeak.RUNTIME,
    modules_of=lambda settings: (*piper.RUNTIME, *piper.WEIGHTS) if _has_piper() else espeak.RUNTIME,
    extra="local",
    offers=piper.PROVIDER.offers,
)
