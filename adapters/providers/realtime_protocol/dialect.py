"""How one provider speaks the protocol: its address, its words for the messages, and what it cannot do."""

from __future__ import annotations

import base64
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import ClassVar

from pydantic import JsonValue

from ....audio.formats import AudioFormat
from ....engines.realtime import RealtimeRequest
from ....statecharts.errors import ErrorScope
from ..generation import GENERATION
from ..refusals import Stage
from ..websocket import JsonObject
from .wire import Fault

STAGE = Stage("connection", ErrorScope.SESSION)
"""Where the errors of a session arise."""
ANSWERS = GENERATION
"""Where those of its answers do."""
HEARING = Stage("recognition", ErrorScope.TURN)
"""Where those of what was said to it do."""

ANSWER_KEY = "voicechart_answer"
"""Names an answer in the metadata of its response."""


class RealtimeDialect(ABC):
    """One provider's way to say things. The names of the GA protocol are the common ones."""

    vendor: ClassVar[str]
    kinds: ClassVar[Mapping[str, str]]
    """The name of every message of the server's that means something, and the common name for it."""
    names_answers: ClassVar[bool] = True
    """A response carries the metadata that was asked for with it, and `response.cancel` names a response."""
    truncates: ClassVar[bool] = True
    deletes_items: ClassVar[bool] = True
    min_commit_ms: ClassVar[int] = 100
    """Shorter audio is refused; it is filled up with silence."""
    max_session_minutes: float

    url: str
    headers: Mapping[str, str]
    input_format: AudioFormat
    output_format: AudioFormat
    tells_transcripts: bool = True

    @abstractmethod
    def session_update(self, request: RealtimeRequest) -> JsonObject:
        """What configures the session: `turn_detection` null, or one that neither answers nor interrupts."""

    @abstractmethod
    def complaint(self, session: JsonObject, request: RealtimeRequest) -> str | None:
        """Why the session that the provider says it made cannot be used; None where it can."""

    def restored(self, request: RealtimeRequest) -> Iterable[JsonObject]:
        """The items of what was said before, where they are not in `session_update`."""
        return ()

    def closing(self) -> Iterable[JsonObject]:
        """What is said before the connection is closed."""
        return ()

    def ends_session(self, fault: Fault) -> bool:
        """Whether the session cannot go on after an error that is about nothing in particular."""
        return False

    # -- what is sent ----------------------------------------------------------------------------------------------

    def append(self, pcm: bytes) -> JsonObject:
        return {"type": "input_audio_buffer.append", "audio": base64.b64encode(pcm).decode()}

    def commit(self, event_id: str) -> JsonObject:
        return {"type": "input_audio_buffer.commit", "event_id": event_id}

    def clear(self, event_id: str) -> JsonObject:
        return {"type": "input_audio_buffer.clear", "event_id": event_id}

    def create_item(self, event_id: str, item: Mapping[str, JsonValue]) -> JsonObject:
        return {"type": "conversation.item.create", "event_id": event_id, "item": {**item}}

    def delete_item(self, event_id: str, item_id: str) -> JsonObject:
        return {"type": "conversation.item.delete", "event_id": event_id, "item_id": item_id}

    def truncate(self, event_id: str, item_id: str, content_index: int, audio_end_ms: int) -> JsonObject:
        return {
            "type": "conversation.item.truncate",
            "event_id": event_id,
            "item_id": item_id,
            "content_index": content_index,
            "audio_end_ms": audio_end_ms,
        }

    def create_response(self, event_id: str, answer_id: str) -> JsonObject:
        message: JsonObject = {"type": "response.create", "event_id": event_id}
        if self.names_answers:
            message["response"] = {"metadata": {ANSWER_KEY: answer_id}}
        return message

    def cancel_response(self, event_id: str, response_id: str) -> JsonObject:
        message: JsonObject = {"type": "response.cancel", "event_id": event_id}
        if self.names_answers:
            message["response_id"] = response_id
        return message
