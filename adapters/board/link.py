"""One connection of the board-audio socket, seen from either end: lanes, keep-alive, and one end with one reason.

Two lanes go out. The control lane is served first and its messages never wait for audio; what is posted `first` goes
ahead of the rest of it, and onto the wire before `post` returns where the socket takes it. The media lane is asked for
one item at a time, so that a message posted now is behind at most the one frame that is being sent. Both lanes are
numbered only when they reach the wire.
"""

from __future__ import annotations

from collections import deque
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

import anyio
import anyio.lowlevel
from anyio.abc import SocketStream

from .messages import ClientMessage, Closing, Ping, Pong, ServiceMessage
from .notification import Notification
from .protocol import (
    CaptureAudio,
    FrameDecoder,
    FrameEncoder,
    Inbound,
    Outbound,
    PlaybackAudio,
    ProtocolViolation,
    Side,
)
from .socket_io import SocketIo

RECEIVE_BYTES = 65_536
GOODBYE_DEADLINE_MS = 500


@dataclass(frozen=True, slots=True)
class LinkLimits:
    """Deadlines and bounds of one connection."""

    greeting_deadline_ms: int = 2_000
    """From connecting to the peer's greeting."""
    keep_alive_interval_ms: int = 1_000
    keep_alive_deadline_ms: int = 3_000
    """From a ping to its answer."""
    send_deadline_ms: int = 3_000
    """For one frame to leave: a peer that does not read is given up."""
    max_control_messages: int = 1_024
    """Waiting to be sent: a peer that reads too slowly is given up."""


class EndCause(Enum):
    """Why a connection ended."""

    CLOSED_HERE = "closed_here"
    CLOSED_THERE = "closed_there"
    """The peer said so, and why."""
    VANISHED = "vanished"
    """The peer went without a word."""
    VIOLATION = "protocol_violation"
    UNRESPONSIVE = "unresponsive"


@dataclass(frozen=True, slots=True)
class LinkEnd:
    """How a connection ended. `code` is the peer's where the peer closed it, else the cause's."""

    cause: EndCause
    code: str
    reason: str


class LinkUser(Protocol):
    """The one who uses a link. All methods are called on the event loop and must not block."""

    def handle(self, item: Inbound) -> None:
        """One message came. Raises `ProtocolViolation` to end the connection with that reason."""
        ...

    def handled_batch(self) -> None:
        """Everything that came at once has been handled."""
        ...

    def next_media(self) -> CaptureAudio | PlaybackAudio | ClientMessage | ServiceMessage | None:
        """The next item of the media lane, None when there is none now."""
        ...


class Link:
    """Carries messages until it ends, for one of many reasons; `run` returns the first."""

    def __init__(self, stream: SocketStream, peer: Side, user: LinkUser, limits: LinkLimits) -> None:
        self._socket = SocketIo(stream)
        self._peer = peer
        self._user = user
        self._limits = limits
        self._encoder = FrameEncoder()
        self._decoder = FrameDecoder(peer)
        self._control: deque[ClientMessage | ServiceMessage] = deque()
        self._wake = Notification()
        self._greeted = anyio.Event()
        self._keep_alive = anyio.Event()
        self._pongs = Notification()
        self._ping_number = 0
        self._answered = 0
        self._ended = anyio.Event()
        self._end: LinkEnd | None = None
        self._sender_done = anyio.Event()
        self._unsent = bytearray()

    @property
    def end(self) -> LinkEnd | None:
        """How it ended; None while it lives."""
        return self._end

    def post(self, message: ClientMessage | ServiceMessage, *, first: bool = False) -> None:
        """Put a message into the control lane; never blocks. Ignored once the link has ended."""
        if self._end is not None:
            return
        if len(self._control) >= self._limits.max_control_messages:
            self._finish(EndCause.UNRESPONSIVE, f"{len(self._control)} messages wait for a {self._peer.value} to read")
            return
        if first:
            self._control.appendleft(message)
            self._send_head()
        else:
            self._control.append(message)
        self._wake.notify()

    def media_ready(self) -> None:
        """`next_media` has something."""
        self._wake.notify()

    def greeted(self, *, keep_alive: bool) -> None:
        """The peer's greeting came; `keep_alive`: it answers pings."""
        self._greeted.set()
        if keep_alive:
            self._keep_alive.set()

    def close(self, code: str, reason: str) -> None:
        """End it from here; the peer is told why."""
        self._finish(EndCause.CLOSED_HERE, reason, code=code)

    async def run(self) -> LinkEnd:
        """Carry messages until the end; the stream is closed when this returns."""
        try:
            async with anyio.create_task_group() as group:
                group.start_soon(self._receive)
                group.start_soon(self._send)
                group.start_soon(self._await_greeting)
                group.start_soon(self._ping)
                await self._ended.wait()
                with anyio.move_on_after(GOODBYE_DEADLINE_MS / 1_000):
                    await self._sender_done.wait()
                group.cancel_scope.cancel()
        finally:
            with anyio.move_on_after(GOODBYE_DEADLINE_MS / 1_000, shield=True):
                await self._say_why_cancelled()
                await self._socket.aclose()
        assert self._end is not None
        return self._end

    # -- inside ----------------------------------------------------------------------------------------------------

    def _finish(self, cause: EndCause, reason: str, *, code: str | None = None) -> None:
        if self._end is not None:
            return
        self._end = LinkEnd(cause, code or cause.value, reason)
        if cause in (EndCause.CLOSED_HERE, EndCause.VIOLATION, EndCause.UNRESPONSIVE):
            self._control.append(Closing(code=self._end.code, reason=reason[:1_000]))
        else:
            self._control.clear()
        self._ended.set()
        self._wake.notify()

    async def _say_why_cancelled(self) -> None:
        if self._end is None:
            self._finish(EndCause.CLOSED_HERE, "this end was stopped", code="stopped")
        # The sender was cancelled too, perhaps before it had sent the goodbye of an orderly `close`.
        if self._control and isinstance(self._control[-1], Closing):
            self._control = deque([self._control[-1]])
            self._send_head()

    def _send_head(self) -> None:
        """Send the head of the control lane as far as the socket takes it now; the sender sends the rest."""
        if self._unsent:
            return
        self._unsent += self._encoder.encode(self._control.popleft())
        # A peer that is gone is the sender's and the receiver's to notice.
        with suppress(ConnectionError):
            self._send_now()

    def _send_now(self) -> None:
        del self._unsent[: self._socket.send_now(self._unsent)]

    async def _receive(self) -> None:
        try:
            while data := await self._socket.receive(RECEIVE_BYTES):
                for item in self._decoder.feed(data):
                    self._handle(item)
                self._user.handled_batch()
            self._handle_silence()
        except ProtocolViolation as violation:
            self._finish(EndCause.VIOLATION, violation.reason)

    def _handle_silence(self) -> None:
        try:
            self._decoder.end()
        except ProtocolViolation as violation:
            self._finish(EndCause.VIOLATION, violation.reason)
        self._finish(EndCause.VANISHED, f"the {self._peer.value} went without a word")

    def _handle(self, item: Inbound) -> None:
        if self._end is not None:
            return
        match item:
            case Ping():
                self.post(Pong(number=item.number))
            case Pong():
                self._answered = max(self._answered, item.number)
                self._pongs.notify()
            case Closing():
                self._finish(EndCause.CLOSED_THERE, item.reason, code=item.code)
            case _:
                self._user.handle(item)

    async def _send(self) -> None:
        try:
            while True:
                await anyio.lowlevel.checkpoint()
                if not self._unsent and (item := self._next_outbound()) is not None:
                    self._unsent += self._encoder.encode(item)
                if self._unsent:
                    await self._send_rest()
                elif self._end is None:
                    await self._wake.wait()
                else:
                    break
        except TimeoutError:
            self._finish(EndCause.UNRESPONSIVE, f"the {self._peer.value} does not read")
        except ConnectionError:
            # The receiver sees the same, behind what the peer said last, which may be the reason.
            with anyio.move_on_after(GOODBYE_DEADLINE_MS / 1_000):
                await self._ended.wait()
            self._finish(EndCause.VANISHED, f"the {self._peer.value} went without a word")
        finally:
            self._sender_done.set()

    async def _send_rest(self) -> None:
        with anyio.fail_after(self._limits.send_deadline_ms / 1_000):
            self._send_now()
            while self._unsent:
                await self._socket.wait_writable()
                self._send_now()

    def _next_outbound(self) -> Outbound | None:
        if self._control:
            return self._control.popleft()
        return self._user.next_media() if self._end is None else None

    async def _await_greeting(self) -> None:
        deadline_ms = self._limits.greeting_deadline_ms
        with anyio.move_on_after(deadline_ms / 1_000):
            await self._greeted.wait()
            return
        self._finish(EndCause.UNRESPONSIVE, f"the {self._peer.value} did not greet within {deadline_ms} ms")

    async def _ping(self) -> None:
        await self._keep_alive.wait()
        deadline_ms = self._limits.keep_alive_deadline_ms
        while True:
            self._ping_number += 1
            self.post(Ping(number=self._ping_number))
            with anyio.move_on_after(deadline_ms / 1_000) as waiting:
                while self._answered < self._ping_number:
                    await self._pongs.wait()
            if waiting.cancelled_caught:
                self._finish(EndCause.UNRESPONSIVE, f"the {self._peer.value} did not answer within {deadline_ms} ms")
                return
            await anyio.sleep(self._limits.keep_alive_interval_ms / 1_000)
