"""DashScope's speech in real time: CosyVoice as tasks, Qwen-TTS as a session. The model's name tells which."""

from __future__ import annotations

from collections.abc import Callable
from uuid import uuid4

from .....engines.ports import Synthesizer
from .....statecharts.capabilities import SynthesizerCapabilities
from ...declaration import Provider, Secrets
from ...synthesis import SocketSynthesizer, SpeechLimits, SpeechVendor
from .session import QwenSpeech
from .settings import DashScopeVoice, Protocol
from .tasks import CosyVoice

__all__ = ["PROVIDER", "DashScopeVoice", "make"]


def make(
    settings: DashScopeVoice,
    secrets: Secrets,
    *,
    limits: SpeechLimits | None = None,
    new_id: Callable[[], str] = lambda: uuid4().hex,
) -> Synthesizer:
    """Not connected. Raises `SecretMissing`. `new_id` names tasks and events: never the same one twice on a socket."""
    api_key = secrets.read("api_key_env", settings.api_key_env)
    vendor: SpeechVendor
    if settings.protocol_in_use is Protocol.TASKS:
        vendor = CosyVoice(settings, api_key, new_id)
    else:
        vendor = QwenSpeech(settings, api_key, new_id)
    return SocketSynthesizer(vendor, limits)


def _make(settings: DashScopeVoice, secrets: Secrets) -> Synthesizer:
    return make(settings, secrets)


def _describe(settings: DashScopeVoice) -> str:
    return f"{settings.model}, voice {settings.voice}, at {settings.base_url}"


PROVIDER = Provider(
    title="DashScope speech (CosyVoice, Qwen-TTS)",
    settings=DashScopeVoice,
    make=_make,
    describe=_describe,
    offers=SynthesizerCapabilities(incremental_pcm=True, alignment=True),
)
