"""What a vendor's server says, as a file: the same one is played to our adapter and held against the vendor's types."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, JsonValue, model_validator

from .http_server import EVENT_STREAM, HttpExchange
from .socket_peer import ReceivedMessage, SocketPeer
from .socket_server import Refusal, Script

UNTYPED = ("close_context", "flush", "cancel")
"""What a client's message is called that has no type (ElevenLabs, Cartesia): the flag that it sets."""
SOLE_KEYS = frozenset({"setup", "realtimeInput", "clientContent", "toolResponse"})
"""Gemini's messages have one key, which is what they are called; of `realtimeInput` it is the key within."""


class _Recorded(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class WireEvent(_Recorded):
    """One message of the server: exactly one of `data`, `raw` and `binary`."""

    event: str | None = None
    """The name of a server-sent event."""
    data: JsonValue = None
    """A JSON message."""
    raw: str | None = None
    """Text that is sent as it is, because it is no JSON."""
    binary: str | None = None
    """A binary frame, in base 64."""
    after: str | None = None
    """Of a WebSocket: it is sent when the client has sent this, by `type` or `header.action`; "audio": binary data."""
    deviates: str | None = None
    """Why the vendor's own types refuse this message; without it they must accept it."""

    @model_validator(mode="after")
    def _has_one_content(self) -> WireEvent:
        if sum(content is not None for content in (self.data, self.raw, self.binary)) != 1:
            raise ValueError("give exactly one of data, raw and binary")
        return self

    @property
    def text(self) -> str:
        """What stands in the message. Raises `ValueError` for a binary one."""
        if self.binary is not None:
            raise ValueError("a binary message has no text")
        return self.raw if self.raw is not None else json.dumps(self.data, ensure_ascii=False)

    @property
    def content(self) -> bytes:
        """What stands in the message, whatever it is."""
        return base64.b64decode(self.binary) if self.binary is not None else self.text.encode()

    def as_sse(self) -> bytes:
        """The message as a server-sent event."""
        name = f"event: {self.event}\n" if self.event is not None else ""
        return f"{name}data: {self.text}\n\n".encode()


class WireFixture(_Recorded):
    """One exchange as a vendor's server would have it, and what the adapter must make of it."""

    vendor: str
    protocol: str
    """The `kind` of the adapter that speaks it: "openai-chat"."""
    model: str
    api_version: str
    date: str
    """When it was written or recorded: 2026-11-30."""
    about: str
    """What happens, in a sentence."""
    status: int = 200
    headers: dict[str, str] = {}
    ends: Literal["whole", "cut"] = "whole"
    """"cut": the connection breaks after the last event."""
    events: tuple[WireEvent, ...] = ()
    body: JsonValue = None
    """Of a plain answer (a refusal, say) instead of events."""
    close_code: int | None = None
    """Of a WebSocket: the server closes with it after the last event; without one it leaves that to the client."""
    close_reason: str = ""
    texts: tuple[str, ...] = ()
    """What a synthesiser is asked to say."""
    acts: tuple[str, ...] = ()
    """What a session with a realtime model is asked, in order: "speak u1", "respond a1", "until AnswerAudio"."""
    expected: tuple[dict[str, JsonValue], ...] = ()
    """The reports of the adapter: each with `report`, its type, and the fields that matter."""

    def exchange(self) -> HttpExchange:
        """The exchange for a `ScriptedHttpServer`: server-sent events, or the plain body."""
        if self.body is not None:
            headers = {"Content-Type": "application/json", **self.headers}
            return HttpExchange((json.dumps(self.body).encode(),), self.status, headers, self.ends == "whole")
        headers = {**EVENT_STREAM, **self.headers}
        return HttpExchange([event.as_sse() for event in self.events], self.status, headers, self.ends == "whole")

    def script(self) -> Script | Refusal:
        """The same for a `ScriptedSocketServer`: a refused handshake (`status`, `body`), or the events."""
        if self.status >= 400:
            return Refusal(self.status, self.headers, b"" if self.body is None else json.dumps(self.body).encode())
        return self._play

    async def _play(self, peer: SocketPeer) -> None:
        for event in self.events:
            if event.after is not None:
                while _name_of(await peer.expect()) != event.after:
                    pass
            await (peer.send_bytes(event.content) if event.binary is not None else peer.send_text(event.text))
        if self.ends == "cut":
            peer.drop()
        elif self.close_code is not None:
            await peer.close(self.close_code, self.close_reason)


def _name_of(message: ReceivedMessage) -> JsonValue:
    """How an event's `after` calls a client's message."""
    if not message.is_text:
        return "audio"
    value = message.json()
    header = value.get("header")
    if isinstance(header, dict):
        return header.get("action")
    if len(value) == 1 and value.keys() <= SOLE_KEYS:
        ((kind, body),) = value.items()
        return next(iter(body)) if kind == "realtimeInput" and isinstance(body, dict) else kind
    return value.get("type") or next((name for name in UNTYPED if value.get(name)), None)


def load_fixture(path: Path) -> WireFixture:
    """Raises pydantic's `ValidationError` (with the place) for a file of another form."""
    return WireFixture.model_validate_json(path.read_bytes())


def load_fixtures(folder: Path, protocol: str | None = None) -> dict[str, WireFixture]:
    """Every fixture below `folder`, or those of one protocol, by path relative to it without suffix."""
    found = {
        str(path.relative_to(folder).with_suffix("")): load_fixture(path) for path in sorted(folder.rglob("*.json"))
    }
    return {name: fixture for name, fixture in found.items() if protocol in (None, fixture.protocol)}
