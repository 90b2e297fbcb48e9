"""Following a conversation from elsewhere: its events, across lost connections, with neither a gap nor an echo.

A follower keeps the cursor of the last event it got and comes back with it. The server then goes on behind it, or sends
a snapshot where it cannot; either way the follower says which.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from dataclasses import dataclass

import anyio
import httpx
from httpx_sse import EventSource, SSEError

from .folding import Json

RETRY_S = (0.5, 1.0, 2.0, 5.0, 10.0)
"""Between attempts to come back; the last one again and again."""
SILENCE_S = 60.0
"""A server says at least every few seconds that it lives."""


class FollowRefused(Exception):
    """The server will not have us; coming back would change nothing. The text says why."""


@dataclass(frozen=True, slots=True)
class Event:
    """One event, as it came."""

    value: Json


@dataclass(frozen=True, slots=True)
class Lost:
    """The connection is gone; there will be another attempt in `wait_s`."""

    reason: str
    wait_s: float


@dataclass(frozen=True, slots=True)
class Back:
    """Connected again. `cursor`: where it goes on; None where a snapshot follows."""

    cursor: str | None


Followed = Event | Lost | Back


class Follower:
    """Follows one conversation. `cursor` is behind the last event that was given out."""

    def __init__(
        self, client: httpx.AsyncClient, *, after: str | None = None, conversation_id: str | None = None
    ) -> None:
        self._client = client
        self._conversation_id = conversation_id
        self.cursor = after

    async def events(self) -> AsyncGenerator[Followed]:
        """Everything, until the conversation has ended. Raises `FollowRefused`."""
        failures, was_lost = 0, False
        while True:
            reason = "the server closed the connection"
            try:
                async with self._client.stream(
                    "GET", "/api/events", params=self._query(), headers=self._headers()
                ) as to:
                    await _check(to)
                    if was_lost:
                        yield Back(self.cursor)
                    failures, was_lost = 0, False
                    async for told in EventSource(to).aiter_sse():
                        self.cursor = told.id or self.cursor
                        if not told.data:
                            continue
                        value: Json = json.loads(told.data)
                        yield Event(value)
                        if value["type"] == "session.closed":
                            return
                        if value["type"] == "resync_required":
                            self.cursor, reason = None, "too slow: events were left out"
            except (httpx.TransportError, SSEError, json.JSONDecodeError) as error:
                reason = str(error) or type(error).__name__
            wait_s = RETRY_S[min(failures, len(RETRY_S) - 1)]
            failures, was_lost = failures + 1, True
            yield Lost(reason, wait_s)
            await anyio.sleep(wait_s)

    def _query(self) -> dict[str, str]:
        return {} if self._conversation_id is None else {"conversation_id": self._conversation_id}

    def _headers(self) -> dict[str, str]:
        return {} if self.cursor is None else {"last-event-id": self.cursor}


async def _check(response: httpx.Response) -> None:
    """Raises `FollowRefused`, and `httpx.TransportError` for what may pass."""
    if response.status_code == 200:
        return
    await response.aread()
    try:
        message = str(response.json()["error"]["message"])
    except (ValueError, KeyError, TypeError):
        message = f"it answered with {response.status_code}"
    if response.status_code in (429, 500, 502, 503, 504):
        raise httpx.RemoteProtocolError(message)
    raise FollowRefused(message)
