"""Answers that go on: events of a conversation as server-sent events, and of one run as lines of JSON.

A connection that takes nothing for `write_timeout_s` is given up. What waits for it is bounded by its buffer, whatever
it does; the conversation does not notice.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, suppress

import anyio
from starlette.types import Receive, Scope, Send

from .chatting import Chat, ChatRefused, OnDisconnect, chatting
from .conversations import Hosted
from .cursors import Cursor
from .errors import ApiError
from .observing import Observer

RETRY_MS = 2_000
PIECE_BYTES = 32_768


class Stalled(Exception):
    """A connection took nothing for too long."""


class EventStream:
    """An ASGI answer: everything that an observer gets, as server-sent events."""

    def __init__(
        self,
        subscribe: Callable[[], AbstractContextManager[Observer]],
        watermark: Callable[[], Cursor],
        *,
        follow: bool,
        keep_alive_s: float,
        write_timeout_s: float,
        release: Callable[[], None],
    ) -> None:
        self._subscribe = subscribe
        self._watermark = watermark
        self._follow = follow
        self._keep_alive_s = keep_alive_s
        self._write_timeout_s = write_timeout_s
        self._release = release

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(_until_gone, receive, tasks.cancel_scope)
                with suppress(Stalled), self._subscribe() as observer:
                    await self._send(observer, send)
                tasks.cancel_scope.cancel()
        finally:
            self._release()

    async def _send(self, observer: Observer, send: Send) -> None:
        await _begin(send, b"text/event-stream; charset=utf-8")
        first = f"retry: {RETRY_MS}\n\n".encode()
        while True:
            batch = await observer.take(self._keep_alive_s if self._follow else 0)
            body = first + batch.sse if first else batch.sse
            first = b""
            is_last = batch.is_last or not self._follow
            if not body and not is_last:
                # Nothing waits, so this observer has seen everything up to here that it may see.
                body = f"id: {self._watermark()}\n: keep-alive\n\n".encode()
            await _write(send, body, more=not is_last, timeout_s=self._write_timeout_s)
            if is_last:
                return


class ChatStream:
    """An ASGI answer: what becomes of one message, as lines of JSON. Its connection owns the run."""

    def __init__(
        self, hosted: Hosted, text: str, *, on_disconnect: OnDisconnect, keep_alive_s: float, write_timeout_s: float
    ) -> None:
        self._hosted = hosted
        self._text = text
        self._on_disconnect: OnDisconnect = on_disconnect
        self._keep_alive_s = keep_alive_s
        self._write_timeout_s = write_timeout_s

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            async with chatting(self._hosted, self._text) as chat:
                await self._talk(chat, receive, send)
        except ChatRefused as refused:
            raise ApiError(409, refused.code, str(refused)) from refused

    async def _talk(self, chat: Chat, receive: Receive, send: Send) -> None:
        is_whole = False
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_until_gone, receive, tasks.cancel_scope)
            try:
                await self._send(chat, send)
                is_whole = True
            except Stalled:
                pass
            finally:
                if not is_whole and self._on_disconnect == "cancel":
                    chat.abandon()
            tasks.cancel_scope.cancel()

    async def _send(self, chat: Chat, send: Send) -> None:
        await _begin(send, b"application/x-ndjson; charset=utf-8")
        while True:
            batch = await chat.events(self._keep_alive_s)
            # An empty line says that the connection lives; readers of NDJSON skip it.
            body = b"".join(event.ndjson for event in batch.events) or (b"" if batch.is_last else b"\n")
            await _write(send, body, more=not batch.is_last, timeout_s=self._write_timeout_s)
            if batch.is_last:
                return


async def _begin(send: Send, content_type: bytes) -> None:
    headers = [(b"content-type", content_type), (b"x-accel-buffering", b"no")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})


async def _write(send: Send, body: bytes, *, more: bool, timeout_s: float) -> None:
    """In pieces, so that little of what somebody does not take is copied for them."""
    with anyio.move_on_after(timeout_s) as bounded:
        for start in range(0, max(len(body), 1), PIECE_BYTES):
            piece = body[start : start + PIECE_BYTES]
            is_end = not more and start + PIECE_BYTES >= len(body)
            await send({"type": "http.response.body", "body": piece, "more_body": not is_end})
    if bounded.cancelled_caught:
        raise Stalled


async def _until_gone(receive: Receive, scope: anyio.CancelScope) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    scope.cancel()
