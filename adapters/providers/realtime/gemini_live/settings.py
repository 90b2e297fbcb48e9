"""A record of the configuration, and the message that it becomes."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, JsonValue

from .....engines.realtime import RealtimeRequest
from ...declaration import ProviderSettings, VariableName, WebSocketUrl
from ...websocket import JsonObject
from .messages import declaration, history


class GeminiLiveSettings(ProviderSettings):
    kind: Literal["gemini-live"] = "gemini-live"
    base_url: WebSocketUrl = "wss://generativelanguage.googleapis.com"
    """Ends before "/ws/"."""
    api_version: str = Field(default="v1beta", pattern=r"^v[0-9]+[a-z0-9]*$")
    api_key_env: VariableName = "GEMINI_API_KEY"
    model: str = Field(default="gemini-3.8-live", min_length=1)
    voice: str | None = Field(default=None, min_length=1)
    """None: the model's own default."""
    language: str | None = Field(default=None, min_length=2)
    """Of what it says, as in "en-US"; None: that of the conversation."""
    system_prompt: str | None = None
    max_output_tokens: int | None = Field(default=None, ge=1, le=65_536)
    temperature: float | None = Field(default=None, ge=0.0, le=2.0)
    context_compression: bool = True
    """What was said long ago is forgotten; without that a session lasts a quarter of an hour at most."""
    resumption: bool = True
    """A session that is made anew goes on with what the service remembers."""
    allow_plain: bool = False
    """Let speech and key travel unencrypted to another machine."""

    @property
    def url(self) -> str:
        """Of a session."""
        service = f"google.ai.generativelanguage.{self.api_version}.GenerativeService.BidiGenerateContent"
        return f"{self.base_url}/ws/{service}"


def setup_of(settings: GeminiLiveSettings, request: RealtimeRequest) -> JsonObject:
    """The first message. `realtimeInputConfig` is what the vendor's client sends, though its own type of this message
    lacks it.
    """
    model = settings.model if "/" in settings.model else f"models/{settings.model}"
    setup: JsonObject = {
        "model": model,
        "generationConfig": _generation(settings),
        "realtimeInputConfig": {"automaticActivityDetection": {"disabled": True}},
        "inputAudioTranscription": {},
        "outputAudioTranscription": {},
    }
    if request.instructions:
        setup["systemInstruction"] = {"parts": [{"text": request.instructions}]}
    if request.tools:
        setup["tools"] = [{"functionDeclarations": [declaration(tool) for tool in request.tools]}]
    if settings.resumption:
        setup["sessionResumption"] = {} if request.resumption is None else {"handle": request.resumption}
    if settings.context_compression:
        setup["contextWindowCompression"] = {"slidingWindow": {}}
    if request.resumption is None and history(request.messages):
        setup["historyConfig"] = {"initialHistoryInClientContent": True}
    return {"setup": setup}


def _generation(settings: GeminiLiveSettings) -> JsonObject:
    generation: JsonObject = {"responseModalities": ["AUDIO"]}
    speech: dict[str, JsonValue] = {}
    if settings.voice is not None:
        speech["voiceConfig"] = {"prebuiltVoiceConfig": {"voiceName": settings.voice}}
    if settings.language is not None:
        speech["languageCode"] = settings.language
    if speech:
        generation["speechConfig"] = speech
    if settings.max_output_tokens is not None:
        generation["maxOutputTokens"] = settings.max_output_tokens
    if settings.temperature is not None:
        generation["temperature"] = settings.temperature
    return generation
