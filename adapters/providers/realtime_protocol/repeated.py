"""Messages that come twice. No I/O."""

from __future__ import annotations

from pydantic_core import to_json

from ..websocket import JsonObject

REMEMBERED = 1_024


class RepeatedMessages:
    """Every event of a session has a name of its own, so that one that comes again is the same one.

    A server that gives one name to different events has names that mean nothing, and nothing is taken for repeated.
    """

    def __init__(self) -> None:
        self._seen: dict[str, int] = {}
        self._are_names = True

    def take(self, message: JsonObject) -> bool:
        """Whether it was taken before."""
        name = message.get("event_id")
        if not (self._are_names and isinstance(name, str)):
            return False
        content = hash(to_json(message))
        before = self._seen.get(name)
        if before is not None:
            self._are_names = before == content
            return self._are_names
        self._seen[name] = content
        if len(self._seen) > REMEMBERED:
            del self._seen[next(iter(self._seen))]
        return False
