"""One connected socket in hand, so that a reply does not wait for the network's handshakes."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass

import anyio

from ....engines.reports import PortError
from ..provider_socket import ProviderSocket
from .track import SYNTHESIS

logger = logging.getLogger(__name__)

Connect = Callable[[str], Awaitable[ProviderSocket]]
"""Opens a socket for a key (a voice, say) and makes it ready. Raises `PortError`."""


@dataclass(frozen=True, slots=True)
class _Idle:
    key: str
    socket: ProviderSocket
    since_s: float


class WarmSockets:
    """At most one idle socket; those that are taken belong to whoever took them.

    A socket that idled for `max_idle_s` is not used any more: the provider may be about to close it.
    """

    def __init__(self, connect: Connect, *, max_idle_s: float, close_s: float = 2.0) -> None:
        self._connect = connect
        self._max_idle_s = max_idle_s
        self._close_s = close_s
        self._idle: _Idle | None = None
        self._warming: tuple[str, anyio.Event, anyio.CancelScope] | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._closed = False

    async def prepare(self, key: str) -> None:
        """Have one ready. Raises `PortError`."""
        self.give_back(key, await self.take(key))

    async def take(self, key: str) -> ProviderSocket:
        """A ready socket: the idle one, the one that is being opened, or a new one. Raises `PortError`."""
        if self._warming is not None and self._warming[0] == key:
            await self._warming[1].wait()
        self._refuse_when_closed()
        idle, self._idle = self._idle, None
        if idle is not None:
            is_fresh = anyio.current_time() - idle.since_s < self._max_idle_s
            if idle.key == key and is_fresh and idle.socket.is_open:
                return idle.socket
            self._later(idle.socket.aclose())
        socket = await self._connect(key)
        if self._closed:
            await socket.aclose()
        self._refuse_when_closed()
        return socket

    def give_back(self, key: str, socket: ProviderSocket) -> None:
        """It may serve again. Never blocks."""
        if self._closed or self._idle is not None or not socket.is_open:
            self._later(socket.aclose())
        else:
            self._idle = _Idle(key, socket, anyio.current_time())

    def warm(self, key: str) -> None:
        """Open one in the background, if there is none. A failure shows when the next one is taken."""
        if not self._closed and self._idle is None and self._warming is None:
            self._warming = _, done, scope = key, anyio.Event(), anyio.CancelScope()
            self._later(self._warm(key, done, scope))

    def discard(self, key: str, socket: ProviderSocket) -> None:
        """It cannot serve again: close it in the background, and have another one ready. Never blocks."""
        self._later(socket.aclose())
        self.warm(key)

    def stop(self) -> None:
        """Hand out and open no more."""
        self._closed = True

    async def aclose(self) -> None:
        """Close what is idle, give up what is being opened, and wait for what is being closed, at most `close_s`."""
        self.stop()
        if self._warming is not None:
            self._warming[2].cancel()
        if self._idle is not None:
            self._later(self._idle.socket.aclose())
            self._idle = None
        with anyio.move_on_after(self._close_s, shield=True):
            while self._tasks:
                await asyncio.wait(tuple(self._tasks))
        for task in self._tasks:
            task.cancel()

    async def _warm(self, key: str, done: anyio.Event, scope: anyio.CancelScope) -> None:
        try:
            with scope:
                self.give_back(key, await self._connect(key))
        except PortError as failure:
            logger.info("no connection in advance: %s", failure.error.code)
        finally:
            self._warming = None
            done.set()

    def _later(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.get_running_loop().create_task(work, name="voicechart warm socket")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _refuse_when_closed(self) -> None:
        if self._closed:
            raise SYNTHESIS.failure("port_closed", "the synthesiser was closed")
