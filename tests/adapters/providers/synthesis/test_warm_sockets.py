from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager

import anyio
import anyio.lowlevel
import pytest

from voicechart.adapters.providers.refusals import Stage
from voicechart.adapters.providers.synthesis.warm_sockets import WarmSockets
from voicechart.adapters.providers.websocket import ProviderSocket, open_socket
from voicechart.adapters.testing import Pause, Refusal, ScriptedSocketServer, SocketPeer
from voicechart.engines.reports import PortError

pytestmark = pytest.mark.anyio


async def stay(peer: SocketPeer) -> None:
    await peer.hung_up()


@asynccontextmanager
async def warm(
    *scripts: Callable[[SocketPeer], Awaitable[None]] | Refusal | Pause, max_idle_s: float = 60.0
) -> AsyncGenerator[tuple[WarmSockets, ScriptedSocketServer], None]:
    server = ScriptedSocketServer(*scripts)
    async with server.running() as url:

        async def connect(key: str) -> ProviderSocket:
            return await open_socket(f"{url}/{key}", stage=Stage("synthesis"))

        sockets = WarmSockets(connect, max_idle_s=max_idle_s)
        with anyio.fail_after(10):
            yield sockets, server
            await sockets.aclose()
            await server.has_connections(0)


async def test_the_one_that_was_prepared_is_taken_and_given_back() -> None:
    async with warm(stay) as (sockets, server):
        await sockets.prepare("a")
        await sockets.prepare("a")
        socket = await sockets.take("a")
        sockets.give_back("a", socket)
        assert await sockets.take("a") is socket
        sockets.give_back("a", socket)
    assert server.requests == 1


async def test_another_key_has_its_own_and_the_idle_one_is_closed() -> None:
    async with warm(stay, stay) as (sockets, server):
        await sockets.prepare("a")
        second = await sockets.take("b")
        await server.has_connections(1)
        await second.aclose()
    assert [peer.path for peer in server.peers] == ["/a", "/b"]


async def test_a_socket_that_idled_too_long_is_not_used() -> None:
    async with warm(stay, stay, max_idle_s=0.0) as (sockets, server):
        await sockets.prepare("a")
        await (await sockets.take("a")).aclose()
    assert server.requests == 2


async def test_a_socket_that_the_provider_closed_is_not_used() -> None:
    async def close(peer: SocketPeer) -> None:
        await peer.close(1008, "too long")

    async with warm(close, stay) as (sockets, server):
        first = await sockets.take("a")
        await server.has_connections(0)
        while first.is_open:
            await anyio.lowlevel.checkpoint()
        sockets.give_back("a", first)
        await (await sockets.take("a")).aclose()
    assert server.requests == 2


async def test_of_two_that_are_given_back_one_is_kept() -> None:
    async with warm(stay, stay) as (sockets, server):
        first, second = await sockets.take("a"), await sockets.take("a")
        sockets.give_back("a", first)
        sockets.give_back("a", second)
        await server.has_connections(1)
        assert await sockets.take("a") is first
        sockets.give_back("a", first)


async def test_after_a_discard_the_next_one_is_being_opened_and_is_waited_for() -> None:
    async with warm(stay, stay) as (sockets, server):
        sockets.discard("a", await sockets.take("a"))
        sockets.warm("a")
        sockets.give_back("a", await sockets.take("a"))
    assert server.requests == 2


async def test_an_opening_in_advance_that_fails_is_told_when_the_next_is_taken() -> None:
    async with warm(Refusal(503), Refusal(401)) as (sockets, _):
        sockets.warm("a")
        with pytest.raises(PortError, match="auth_refused"):
            await sockets.take("a")


async def test_nothing_is_handed_out_or_kept_after_the_end() -> None:
    async with warm(stay) as (sockets, server):
        socket = await sockets.take("a")
        await sockets.aclose()
        await sockets.aclose()
        sockets.give_back("a", socket)
        with pytest.raises(PortError, match="port_closed"):
            await sockets.take("a")
        sockets.warm("a")
    assert server.requests == 1


async def test_closing_does_not_wait_for_a_connection_that_is_not_made() -> None:
    """Its server never answers the handshake, and would be waited for as long as a connection may take."""
    async with warm(stay, Pause(anyio.Event())) as (sockets, server):
        sockets.discard("a", await sockets.take("a"))
        await server.has_requests(2)
        began_at = anyio.current_time()
        await sockets.aclose()
        assert anyio.current_time() - began_at < 1.5
