from __future__ import annotations

import anyio
import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from voicechart.adapters.testing import ClientGone, Pause, Refusal, ScriptedSocketServer, SocketPeer

pytestmark = pytest.mark.anyio


async def test_a_script_sees_the_address_the_headers_and_every_message() -> None:
    async def script(peer: SocketPeer) -> None:
        begin = await peer.expect({"type": "begin"})
        assert begin.json() == {"type": "begin", "rate": 16_000}
        await peer.expect(bytes)
        await peer.send_json({"type": "ready"})
        await peer.send_text("so be it")
        await peer.send_bytes(b"\x01\x02")
        await peer.close(1000, "done")

    server = ScriptedSocketServer(script)
    async with (
        server.running() as url,
        connect(f"{url}/v1/listen?model=m&model_version=", additional_headers={"Authorization": "Token abc"}) as client,
    ):
        await client.send('{"type": "begin", "rate": 16000}')
        await client.send(b"\x00\x00")
        assert [message async for message in client] == ['{"type":"ready"}', "so be it", b"\x01\x02"]
        await server.has_completed()
    (peer,) = server.peers
    assert peer.path == "/v1/listen"
    assert peer.query == {"model": "m", "model_version": ""}
    assert peer.headers["authorization"] == "Token abc"
    assert [message.is_text for message in peer.received] == [True, False]
    assert peer.received[1].data == b"\x00\x00"


async def test_what_comes_after_the_script_is_recorded_until_the_client_goes() -> None:
    async def script(peer: SocketPeer) -> None:
        await peer.skip_to({"type": "end"})

    server = ScriptedSocketServer(script)
    async with server.running() as url:
        async with connect(url) as client:
            await client.send("anything")
            await client.send('{"type": "end"}')
            await server.has_completed()
            await client.send("more")
        (peer,) = server.peers
        assert await peer.hung_up() == 1000
        await server.has_connections(0)
    assert [message.data for message in peer.received] == ["anything", '{"type": "end"}', "more"]


async def test_what_a_script_raises_is_raised_at_the_end_of_the_block() -> None:
    async def script(peer: SocketPeer) -> None:
        await peer.expect({"type": "begin"})

    async def talk() -> None:
        async with ScriptedSocketServer(script).running() as url, connect(url) as client:
            await client.send("good day")
            with pytest.raises(ConnectionClosed):
                await client.recv()

    with pytest.raises(AssertionError, match=r"expected .*begin.*, and good day came"):
        await talk()


async def test_a_client_that_leaves_is_counted_and_no_failure() -> None:
    async def script(peer: SocketPeer) -> None:
        await peer.expect()

    async def talkative(peer: SocketPeer) -> None:
        await peer.hung_up()
        with pytest.raises(ClientGone):
            await peer.send_text("are you there?")
        raise ClientGone

    server = ScriptedSocketServer(script, talkative)
    async with server.running() as url:
        for left in (1, 2):
            async with connect(url):
                await server.has_connections(1)
            await server.has_connections(0)
            assert server.cut_off == left
    assert server.completed == 0


async def test_the_opening_handshake_is_refused_with_a_status_headers_and_a_body() -> None:
    server = ScriptedSocketServer(Refusal(429, {"Retry-After": "3"}, b'{"error": {"code": "busy"}}'))
    async with server.running() as url:
        with pytest.raises(InvalidStatus) as refused:
            await connect(url)
        assert refused.value.response.status_code == 429
        assert refused.value.response.headers["Retry-After"] == "3"
        assert refused.value.response.body == b'{"error": {"code": "busy"}}'
        with pytest.raises(InvalidStatus) as refused:
            await connect(url)
        assert refused.value.response.status_code == 503
    assert server.requests == 2
    assert server.peers == []


async def test_a_dropped_connection_has_no_closing_handshake() -> None:
    async def script(peer: SocketPeer) -> None:
        await peer.send_text("half of")
        peer.drop()

    async with ScriptedSocketServer(script).running() as url, connect(url) as client:
        assert await client.recv() == "half of"
        with pytest.raises(ConnectionClosed) as closed:
            await client.recv()
        assert closed.value.rcvd is None


async def test_scripts_that_stall_and_handshakes_that_hang_are_ended_with_the_block() -> None:
    async def script(peer: SocketPeer) -> None:
        await anyio.sleep_forever()

    server = ScriptedSocketServer(script, Pause(anyio.Event()))
    async with server.running() as url, connect(url), anyio.create_task_group() as group:

        async def hang() -> None:
            await connect(url)

        group.start_soon(hang)
        await server.has_requests(2)
        group.cancel_scope.cancel()
    assert server.open_connections == 0
