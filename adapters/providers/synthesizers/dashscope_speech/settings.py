"""How a record of this provider looks, and what both of its protocols share."""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

from pydantic import Field

from .....statecharts.errors import ErrorScope, ScopedError
from ...declaration import ProviderSettings, VariableName, WebSocketUrl
from ...refusals import NO_CODE, shown_code
from ...synthesis import SYNTHESIS

MAX_IDLE_S = 50.0
"""The service closes a socket without a task after a minute."""


class Protocol(StrEnum):
    """How the service is spoken to."""

    TASKS = "tasks"
    """run-task … task-finished, audio in binary messages: CosyVoice."""
    SESSION = "session"
    """session.update … response.done, audio in base 64: Qwen-TTS."""


class DashScopeVoice(ProviderSettings):
    kind: Literal["dashscope-speech"]
    voice: str = Field(min_length=1, max_length=128)
    """"longanyang" (CosyVoice), "Cherry" (Qwen-TTS)."""
    model: str = "cosyvoice-v3-flash"
    api_key_env: VariableName = "DASHSCOPE_API_KEY"
    base_url: WebSocketUrl = "wss://dashscope.aliyuncs.com/api-ws/v1"
    protocol: Literal["tasks", "session"] | None = None
    """None: "session" for models whose name begins with "qwen", else "tasks"."""
    sample_rate_hz: Literal[8_000, 16_000, 22_050, 24_000, 44_100, 48_000] = 24_000
    language: str | None = Field(default=None, min_length=1, max_length=32)
    """As the model names it: "zh" (CosyVoice), "Chinese" (Qwen-TTS); None: as the text is."""
    rate: float = Field(default=1.0, ge=0.5, le=2.0)
    word_times: bool = False
    """Ask for the times of words: CosyVoice, with voices that have them."""

    @property
    def protocol_in_use(self) -> Protocol:
        """The chosen one, or the model's."""
        if self.protocol is not None:
            return Protocol(self.protocol)
        return Protocol.SESSION if self.model.startswith("qwen") else Protocol.TASKS


def error_of(code: object) -> ScopedError:
    """What the service's own error code means."""
    name = shown_code(code) or NO_CODE
    plain = name.lower().replace("_", "").replace(".", "")
    if any(part in plain for part in ("apikey", "accessdenied", "unauthorized", "modelaccess")):
        message = f"the provider refuses the key or the model ({name}); check the API key and what it may use"
        return SYNTHESIS.error("auth_refused", message, scope=ErrorScope.SESSION)
    if "throttling" in plain or "ratelimit" in plain or "toomanyrequests" in plain:
        message = f"the provider asks to slow down ({name}); it is tried again later"
        return SYNTHESIS.error("rate_limited", message, retryable=True)
    if "arrearage" in plain or "quota" in plain:
        message = f"the provider's account cannot be used ({name}); check its plan and billing"
        return SYNTHESIS.error("quota_exhausted", message, scope=ErrorScope.SESSION)
    if any(part in plain for part in ("internal", "timeout", "unavailable", "systemerror", "servererror")):
        message = f"the provider cannot go on ({name}); it is tried again later"
        return SYNTHESIS.error("provider_unavailable", message, retryable=True)
    message = f"the provider refuses to speak ({name}); check voice, model and options of this provider"
    return SYNTHESIS.error("request_refused", message)
