"""The one serialiser: events as they go over the wire, each made into bytes once for everybody who gets it."""

from __future__ import annotations

import json
from functools import cached_property
from typing import Any

from ...engines.public_events import SCHEMA_VERSION, PublicEvent
from .cursors import Cursor

Json = dict[str, Any]

TERMINAL_TYPES = frozenset(
    {
        "delivery.recorded",
        "response.terminal",
        "run.terminal",
        "session.closed",
        "tool.completed",
        "tool.ended",
        "tool.failed",
        "turn.discarded",
        "turn.dropped",
    }
)
"""The ends of things: never left out, whoever is slow."""
SNAPSHOT = "snapshot"
RESYNC_REQUIRED = "resync_required"
NO_CURSOR = "resync"
"""As the id of a server-sent event: whoever comes back with it gets a fresh snapshot."""

_COMPACT = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))


def compact(value: object) -> bytes:
    """One line of JSON. What is no proper Unicode is replaced: the wire is UTF-8."""
    return _COMPACT.encode(value).encode("utf-8", "replace")


class WireEvent:
    """An event on its way out. `value` is plain JSON that nobody changes; without `id_text` it moves no cursor."""

    def __init__(self, value: Json, cursor: Cursor | None, id_text: str | None = None) -> None:
        self.value = value
        self.cursor = cursor
        self.type: str = value["type"]
        self.id_text = str(cursor) if cursor is not None and id_text is None else id_text

    @classmethod
    def of(cls, event: PublicEvent) -> WireEvent:
        """The public event, with nothing added and nothing left out."""
        return cls(event.as_json(), Cursor(event.session_epoch, event.sequence))

    @cached_property
    def line(self) -> bytes:
        """Compact JSON without a line end."""
        return compact(self.value)

    @cached_property
    def ndjson(self) -> bytes:
        """A line of NDJSON."""
        return self.line + b"\n"

    @cached_property
    def sse(self) -> bytes:
        """A server-sent event of the default type, so that `onmessage` gets every kind."""
        head = b"" if self.id_text is None else f"id: {self.id_text}\n".encode()
        return head + b"data: " + self.line + b"\n\n"

    @property
    def size_bytes(self) -> int:
        return len(self.line)

    @property
    def is_terminal(self) -> bool:
        """It ends something."""
        return self.type in TERMINAL_TYPES

    @property
    def coalescing_key(self) -> tuple[str, Any] | None:
        """Events of one key that wait together may become one; None where each counts."""
        match self.type:
            case "text.delta":
                return self.type, self.value.get("response_id")
            case "transcript.updated":
                return self.type, self.value["payload"]["segment_id"]
            case "playback.progress":
                return self.type, self.value.get("stream_id")
            case _:
                return None

    def without_cursor(self) -> WireEvent:
        """The same, for somebody who has missed something before it: it must not move a cursor across the hole."""
        return WireEvent(self.value, None)


def snapshot_event(conversation_id: str, watermark: Cursor, state: Json) -> WireEvent:
    """Everything that the events up to `watermark` amount to."""
    value = {
        "schema_version": SCHEMA_VERSION,
        "type": SNAPSHOT,
        "conversation_id": conversation_id,
        "session_epoch": watermark.session_epoch,
        "sequence": watermark.sequence,
        "payload": {"watermark": str(watermark), "state": state},
    }
    return WireEvent(value, watermark)


def resync_event(conversation_id: str, reason: str) -> WireEvent:
    """The last event of an observer that did not keep up: take a fresh snapshot."""
    value = {
        "schema_version": SCHEMA_VERSION,
        "type": RESYNC_REQUIRED,
        "conversation_id": conversation_id,
        "payload": {"reason": reason},
    }
    return WireEvent(value, None, NO_CURSOR)
