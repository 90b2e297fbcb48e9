"""What goes wrong with a provider, at random moments that a seed repeats: for scripted servers of either kind.

    fate = Fate(seed, cancelled)
    ScriptedSocketServer(fate.befalls(deepgram_hears("Hello.")))
    HttpExchange(fate.spoils(chat_chunks("Good day.")))

A `Fate` tells in `happened` what it did, in order.
"""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from enum import StrEnum

import anyio

from .http_server import HttpExchange, Pause
from .socket_peer import SocketPeer
from .socket_server import Refusal, Script

FIRST_MESSAGES = 14
"""What goes wrong goes wrong among these, on each connection."""
CLOSE_CODES = (1000, 1001, 1008, 1011, 3000, 4000)
SOCKET_GARBAGE = ("", "null", "[]", "{", '{"type": 5}', '{"header": {}}', '{"type": "error"}', '{"error": 1}', "\x00")
STREAM_GARBAGE = (
    b"data: {\n\n",
    b"data: null\n\n",
    b"data: []\n\n",
    b'data: {"type": 5}\n\n',
    b'data: {"choices": 3}\n\n',
    b'event: error\ndata: {"error": {"message": "no"}}\n\n',
    b"\xff\xfe\n\n",
)


class Misfortune(StrEnum):
    """What may happen to a message."""

    LOST = "lost"
    TWICE = "twice"
    SWAPPED = "swapped"
    """It goes out behind the next one."""
    LATE = "late"
    """It waits until something was cancelled, and everything behind it too."""
    GARBAGE = "garbage"
    """Nonsense goes out before it."""
    MANGLED = "mangled"
    """Half of it goes out."""
    STALLED = "stalled"
    """It and everything behind it never comes."""
    DROPPED = "dropped"
    """The connection breaks before it."""
    CLOSED = "closed"
    """The connection is closed in due form before it."""


class Fate:
    """What goes wrong on the connections of one session, the same for the same seed.

    `cancelled` is to be set when something was cancelled. `secret` is put into what is said at closings.
    """

    def __init__(self, seed: str, cancelled: anyio.Event, *, secret: str = "") -> None:
        self.happened: list[str] = []
        self._chance = random.Random(seed)
        self._cancelled = cancelled
        self._secret = secret

    def befalls(self, script: Script, *, from_message: int = 0, strikes: int = 2) -> Script:
        """The same with at most `strikes` misfortunes, behind the first `from_message` messages."""
        interference = _Interference(self, self._drawn(strikes, from_message), random.Random(self._chance.random()))

        async def befallen(peer: SocketPeer) -> None:
            peer.interference = interference
            await script(peer)

        return befallen

    def spoils(self, exchange: HttpExchange, *, strikes: int = 2) -> HttpExchange:
        """The same with at most so many misfortunes among its pieces."""
        pieces: list[bytes | Pause] = list(exchange.pieces)
        for place, misfortune in sorted(self._drawn(strikes, 0).items(), reverse=True):
            if place >= len(pieces):
                continue
            self.happened.append(f"{misfortune} {place}")
            piece = pieces[place]
            match misfortune:
                case Misfortune.LOST:
                    del pieces[place]
                case Misfortune.TWICE:
                    pieces.insert(place, piece)
                case Misfortune.SWAPPED:
                    pieces[place : place + 2] = reversed(pieces[place : place + 2])
                case Misfortune.LATE:
                    pieces.insert(place, Pause(self._cancelled))
                case Misfortune.GARBAGE:
                    pieces.insert(place, self._chance.choice(STREAM_GARBAGE))
                case Misfortune.MANGLED if isinstance(piece, bytes):
                    pieces[place] = piece[: max(1, len(piece) // 2)]
                case Misfortune.STALLED:
                    pieces[place:] = [Pause(anyio.Event())]
                case Misfortune.CLOSED:
                    del pieces[place:]
                case _:
                    return replace(exchange, pieces=tuple(pieces[:place]), whole=False)
        return replace(exchange, pieces=tuple(pieces))

    def refuses(self) -> Refusal | Pause:
        """What may happen to an opening handshake."""
        refusal = Refusal(self._chance.choice((400, 401, 403, 429, 500, 503)), {"Retry-After": "0"}, self._body())
        return self._chance.choice((refusal, refusal, Pause(anyio.Event())))

    def answers_badly(self) -> HttpExchange:
        """What may be answered instead of a stream."""
        status = self._chance.choice((200, 204, 302, 400, 401, 403, 404, 429, 429, 500, 503))
        headers = {"Content-Type": "application/json", "Retry-After": "0", "Location": "http://127.0.0.1:9/"}
        return HttpExchange((self._body(),) if status != 204 else (), status, headers)

    def _body(self) -> bytes:
        return f'{{"error": {{"code": "refused", "message": "no {self._secret}"}}}}'.encode()

    def _drawn(self, strikes: int, from_message: int) -> dict[int, Misfortune]:
        places = [self._chance.randrange(from_message, FIRST_MESSAGES) for _ in range(self._chance.randint(0, strikes))]
        return {place: self._chance.choice(list(Misfortune)) for place in places}

    # -- for a connection ------------------------------------------------------------------------------------------

    async def until_cancelled(self, peer: SocketPeer) -> None:
        """Until something was cancelled, or the client has gone."""
        async with anyio.create_task_group() as group:

            async def wait() -> None:
                await self._cancelled.wait()
                group.cancel_scope.cancel()

            group.start_soon(wait)
            await peer.gone()
            group.cancel_scope.cancel()

    @property
    def secret(self) -> str:
        """What is said at closings."""
        return self._secret


class _Interference:
    def __init__(self, fate: Fate, strikes: dict[int, Misfortune], chance: random.Random) -> None:
        self._fate = fate
        self._strikes = strikes
        self._chance = chance
        self._number = -1
        self._held: list[str | bytes] = []

    async def pass_on(self, data: str | bytes, peer: SocketPeer) -> AsyncIterator[str | bytes]:
        self._number += 1
        held, self._held = self._held, []
        misfortune = self._strikes.get(self._number)
        if misfortune is not None:
            self._fate.happened.append(f"{misfortune} {self._number}")
        for passed in await self._befallen(misfortune, data, peer):
            yield passed
        for passed in held:
            yield passed

    async def _befallen(
        self, misfortune: Misfortune | None, data: str | bytes, peer: SocketPeer
    ) -> Sequence[str | bytes]:
        match misfortune:
            case None:
                return (data,)
            case Misfortune.LOST:
                return ()
            case Misfortune.TWICE:
                return (data, data)
            case Misfortune.SWAPPED:
                self._held.append(data)
                return ()
            case Misfortune.LATE:
                await self._fate.until_cancelled(peer)
                return (data,)
            case Misfortune.GARBAGE:
                return (self._chance.choice(SOCKET_GARBAGE), data)
            case Misfortune.MANGLED:
                return (data[: len(data) // 2],)
            case Misfortune.STALLED:
                await peer.gone()
            case Misfortune.DROPPED:
                peer.drop()
                await peer.gone()
            case Misfortune.CLOSED:
                await peer.close(self._chance.choice(CLOSE_CODES), self._fate.secret)
        return ()
