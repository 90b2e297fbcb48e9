"""Qwen-TTS in real time: one session for each socket, one response for each unit.

A session is configured once, before anything else: it refuses a second `session.update`. In the mode "commit" every
commit makes one response, and its end is the end of the unit's samples. How a session ends differs between models, so
nobody waits for `session.finished`: the socket is just closed, and one that ends by itself in the middle has failed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import anyio
from pydantic import BaseModel, ConfigDict, ValidationError

from .....audio.formats import AudioFormat
from .....engines.ports import SpeechUnit
from .....engines.reports import PortError
from .....statecharts.capabilities import SynthesizerCapabilities
from ...synthesis import SYNTHESIS, Heard, UnitAudio, UnitSpoken, decoded, malformed
from ...websocket import JsonObject, ProviderSocket, open_socket
from .settings import MAX_IDLE_S, DashScopeVoice, error_of

READY_S = 10.0


class _Part(BaseModel):
    model_config = ConfigDict(strict=True, extra="ignore")


class _Response(_Part):
    id: str
    status: str | None = None


class _Failure(_Part):
    code: str | None = None


class _Event(_Part):
    type: str
    response: _Response | None = None
    response_id: str | None = None
    delta: str | None = None
    error: _Failure | None = None


class SessionDialect:
    """One reply."""

    def __init__(self, new_id: Callable[[], str]) -> None:
        self._new_id = new_id
        self._unit: SpeechUnit | None = None
        self._response_id: str | None = None
        self._spoken: set[str] = set()

    def say(self, unit: SpeechUnit) -> Sequence[JsonObject]:
        self._unit = unit
        self._response_id = None
        return (
            self._event("input_text_buffer.append", text=unit.text),
            self._event("input_text_buffer.commit"),
        )

    def hear(self, message: JsonObject | bytes) -> Sequence[Heard]:
        event = parsed(message)
        if event.type == "error":
            raise PortError(error_of(event.error.code if event.error is not None else None))
        if event.type == "session.finished":
            raise SYNTHESIS.failure(
                "closed_by_provider", "the provider ended the session; it is tried again", retryable=True
            )
        if self._unit is None:
            return ()
        match event.type:
            case "response.created" if event.response is not None and self._response_id is None:
                self._response_id = event.response.id
                return ()
            case "response.audio.delta" if self._is_ours(event.response_id) and event.delta is not None:
                return (UnitAudio(self._unit.index, decoded(event.delta)),)
            case "response.audio.delta" if event.delta is None:
                raise malformed("audio without audio")
            case "response.done" if event.response is not None and self._is_ours(event.response.id):
                return self._done(self._unit, event.response)
            case _:
                return ()

    def finish(self) -> Sequence[JsonObject]:
        return ()

    def cancel(self) -> Sequence[JsonObject]:
        return () if self._unit is None else (self._event("response.cancel"),)

    def _is_ours(self, response_id: str | None) -> bool:
        return response_id is not None and response_id == self._response_id

    def _done(self, unit: SpeechUnit, response: _Response) -> Sequence[Heard]:
        if response.status not in (None, "completed"):
            message = "the provider did not finish a response; it is tried again"
            raise SYNTHESIS.failure("cut_off", message, retryable=True)
        self._unit = None
        return (UnitSpoken(unit.index),)

    def _event(self, type: str, **fields: str) -> JsonObject:
        return {"event_id": self._new_id(), "type": type, **fields}


def parsed(message: JsonObject | bytes) -> _Event:
    """Raises `PortError` `provider_malformed`."""
    try:
        return _Event.model_validate(message)
    except ValidationError as invalid:
        raise malformed("a message of another form") from invalid


class QwenSpeech:
    """Implements `SpeechVendor`."""

    max_units_ahead = 1
    max_idle_s = MAX_IDLE_S
    survives_cancel = False
    capabilities = SynthesizerCapabilities(incremental_pcm=True)

    def __init__(self, settings: DashScopeVoice, api_key: str, new_id: Callable[[], str]) -> None:
        self._settings = settings
        self._api_key = api_key
        self._new_id = new_id
        self.format = AudioFormat(settings.sample_rate_hz)
        self.default_voice = settings.voice

    async def connect(self, voice: str) -> ProviderSocket:
        socket = await open_socket(
            f"{self._settings.base_url}/realtime?model={self._settings.model}",
            stage=SYNTHESIS,
            headers={"Authorization": f"Bearer {self._api_key}"},
        )
        try:
            with anyio.fail_after(READY_S):
                await self._get_ready(socket, voice)
        except TimeoutError as late:
            await socket.aclose()
            message = f"the provider's session was not ready within {READY_S} s; check the network and the model"
            raise SYNTHESIS.failure("provider_silent", message, retryable=True) from late
        except BaseException:
            await socket.aclose()
            raise
        return socket

    def dialect(self, voice: str) -> SessionDialect:
        return SessionDialect(self._new_id)

    async def _get_ready(self, socket: ProviderSocket, voice: str) -> None:
        await self._expect(socket, "session.created")
        session: JsonObject = {
            "mode": "commit",
            "voice": voice,
            "response_format": "pcm",
            "sample_rate": self.format.sample_rate_hz,
        }
        if self._settings.language is not None:
            session["language_type"] = self._settings.language
        if self._settings.rate != 1.0:
            session["speech_rate"] = self._settings.rate
        await socket.send_json({"event_id": self._new_id(), "type": "session.update", "session": session})
        await self._expect(socket, "session.updated")

    async def _expect(self, socket: ProviderSocket, type: str) -> None:
        while (event := parsed(await socket.receive_json())).type != type:
            if event.type == "error":
                raise PortError(error_of(event.error.code if event.error is not None else None))
