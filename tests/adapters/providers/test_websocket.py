from __future__ import annotations

import asyncio
import json
import logging
import socket
from collections.abc import Awaitable, Callable

import anyio
import anyio.lowlevel
import pytest
from websockets.frames import Close, Frame, Opcode
from websockets.http11 import Request
from websockets.server import ServerProtocol

from voicechart.adapters.providers.closings import ClosedBy, Closing, SocketClosed
from voicechart.adapters.providers.refusals import Stage
from voicechart.adapters.providers.websocket import SocketLimits, open_socket
from voicechart.adapters.testing import Pause, Refusal, ScriptedSocketServer, SocketPeer
from voicechart.engines.reports import PortError
from voicechart.statecharts.errors import ErrorScope, ScopedError

pytestmark = pytest.mark.anyio

STAGE = Stage("recognition", ErrorScope.TURN)
KEY = "sk-planted-0123456789"


async def stay(peer: SocketPeer) -> None:
    await peer.hung_up()


async def refused(opening: Awaitable[object]) -> ScopedError:
    """The error that it ends with; it never shows the key."""
    with pytest.raises(PortError) as failed:
        await opening
    assert KEY not in f"{failed.value!r} {failed.value.error!r} {failed.value.__cause__!r}"
    return failed.value.error


async def test_texts_objects_and_bytes_go_both_ways_in_order() -> None:
    async def script(peer: SocketPeer) -> None:
        await peer.expect({"type": "begin", "greeting": "hej då"})
        await peer.expect(bytes)
        await peer.expect(str)
        await peer.send_json({"type": "ready"})
        await peer.send_bytes(b'{"type": "binary json"}')
        await peer.send_bytes(b"\x01\x02")
        await peer.send_text("plain")

    server = ScriptedSocketServer(script)
    async with server.running() as url, await open_socket(url, stage=STAGE) as opened:
        await opened.send_json({"type": "begin", "greeting": "hej då"})
        await opened.send_bytes(b"\x00")
        await opened.send_text("go")
        assert await opened.receive_json() == {"type": "ready"}
        assert await opened.receive_json() == {"type": "binary json"}
        assert await opened.receive_json_or_bytes() == b"\x01\x02"
        assert await opened.receive() == "plain"


async def test_headers_subprotocol_and_query_reach_the_provider() -> None:
    server = ScriptedSocketServer(stay, subprotocols=("realtime",))
    async with (
        server.running() as url,
        await open_socket(
            f"{url}/v1?model=a%20b", stage=STAGE, headers={"x-api-key": KEY}, subprotocols=("other", "realtime")
        ) as opened,
    ):
        assert opened.subprotocol == "realtime"
    (peer,) = server.peers
    assert (peer.path, peer.query, peer.headers["x-api-key"]) == ("/v1", {"model": "a b"}, KEY)


async def test_iteration_ends_at_a_normal_close_and_raises_at_any_other() -> None:
    async def good(peer: SocketPeer) -> None:
        await peer.send_text("a")
        await peer.close(1000)

    async def bad(peer: SocketPeer) -> None:
        await peer.send_text("a")
        await peer.close(1011, "out of memory")

    async with ScriptedSocketServer(good, bad).running() as url:
        async with await open_socket(url, stage=STAGE) as opened:
            assert [message async for message in opened] == ["a"]
            assert opened.closing == Closing(ClosedBy.PROVIDER, 1000, "")
        async with await open_socket(url, stage=STAGE) as opened:
            assert await opened.receive() == "a"
            with pytest.raises(SocketClosed) as closed:
                await anext(aiter(opened))
    error = closed.value.error
    assert (error.code, error.retryable, error.stage, error.scope) == (
        "provider_unavailable",
        True,
        "recognition",
        ErrorScope.TURN,
    )
    assert "1011, out of memory" in error.message


@pytest.mark.parametrize(
    ("code", "meaning", "retryable"),
    [
        (1000, "closed_by_provider", True),
        (1001, "provider_unavailable", True),
        (1008, "request_refused", False),
        (1012, "provider_unavailable", True),
        (1013, "provider_unavailable", True),
        (3000, "auth_refused", False),
        (4000, "request_refused", False),
    ],
)
async def test_a_close_code_says_whether_trying_again_helps(code: int, meaning: str, retryable: bool) -> None:
    async def script(peer: SocketPeer) -> None:
        await peer.close(code)

    async with ScriptedSocketServer(script).running() as url, await open_socket(url, stage=STAGE) as opened:
        error = await refused(opened.receive())
    assert (error.code, error.retryable) == (meaning, retryable)


async def test_a_provider_explains_its_own_closings() -> None:
    async def script(peer: SocketPeer) -> None:
        await peer.close(1008, "quota")

    async def other(peer: SocketPeer) -> None:
        await peer.close(1008, "policy")

    def explain(closing: Closing) -> ScopedError | None:
        return STAGE.error("quota_exhausted", "buy more") if closing.reason == "quota" else None

    async with ScriptedSocketServer(script, other).running() as url:
        async with await open_socket(url, stage=STAGE, explain=explain) as opened:
            assert (await refused(opened.receive())).code == "quota_exhausted"
        async with await open_socket(url, stage=STAGE, explain=explain) as opened:
            assert (await refused(opened.receive())).code == "request_refused"


async def test_the_providers_words_are_shortened_and_hold_no_key_and_no_control_characters() -> None:
    async def script(peer: SocketPeer) -> None:
        await peer.close(4001, f"bad key {KEY}\x1b[31m\nred")

    query_key = "q-planted-0123456789"

    async def other(peer: SocketPeer) -> None:
        await peer.close(4001, f"bad token {query_key}")

    async with ScriptedSocketServer(script, other).running() as url:
        async with await open_socket(url, stage=STAGE, headers={"Authorization": f"Bearer {KEY}"}) as opened:
            assert "bad key … [31m red" in (await refused(opened.receive())).message
            assert opened.closing is not None
            assert KEY not in repr(opened.closing)
        async with await open_socket(f"{url}/?token={query_key}", stage=STAGE) as opened:
            assert "bad token …" in (await refused(opened.receive())).message


async def test_a_connection_that_breaks_can_be_tried_again() -> None:
    async def script(peer: SocketPeer) -> None:
        peer.drop()

    async with ScriptedSocketServer(script).running() as url, await open_socket(url, stage=STAGE) as opened:
        error = await refused(opened.receive())
        assert (error.code, error.retryable) == ("connection_lost", True)
        assert (await refused(opened.send_text("still there?"))).code == "connection_lost"


@pytest.mark.parametrize("sent", ["{", "[1]", '"text"', "NaN", '{"a": NaN}', b"\xff\xfe", "[" * 100_000])
async def test_what_is_no_json_object_is_malformed_and_the_connection_goes_on(sent: str | bytes) -> None:
    async def script(peer: SocketPeer) -> None:
        await (peer.send_bytes(sent) if isinstance(sent, bytes) else peer.send_text(sent))
        await peer.send_text("{}")

    async with ScriptedSocketServer(script).running() as url, await open_socket(url, stage=STAGE) as opened:
        error = await refused(opened.receive_json())
        assert (error.code, error.retryable) == ("provider_malformed", False)
        assert await opened.receive_json() == {}


async def test_a_message_of_the_largest_size_is_taken_and_one_byte_more_is_refused() -> None:
    async def script(peer: SocketPeer) -> None:
        await peer.send_bytes(b"a" * 100)
        await peer.send_bytes(b"a" * 101)

    limits = SocketLimits(max_message_bytes=100)
    async with (
        ScriptedSocketServer(script).running() as url,
        await open_socket(url, stage=STAGE, limits=limits) as opened,
    ):
        assert await opened.receive() == b"a" * 100
        error = await refused(opened.receive())
    assert (error.code, error.retryable) == ("message_too_large", False)


async def test_bytes_that_are_no_websocket_are_malformed() -> None:
    async def script(peer: SocketPeer) -> None:
        peer.send_raw(b"\xff\xff\xff\xff")

    async with ScriptedSocketServer(script).running() as url, await open_socket(url, stage=STAGE) as opened:
        assert (await refused(opened.receive())).code == "provider_malformed"


@pytest.mark.parametrize(
    ("refusal", "code", "retryable", "wait_ms"),
    [
        (Refusal(401, body=b'{"error": {"code": "invalid_api_key"}}'), "auth_refused", False, None),
        (Refusal(403), "auth_refused", False, None),
        (Refusal(404), "not_found", False, None),
        (Refusal(402), "quota_exhausted", False, None),
        (Refusal(400, body=b'{"err_code": "BAD_MODEL"}'), "request_refused", False, None),
        (Refusal(429, {"Retry-After": "3"}), "rate_limited", True, 3_000),
        (Refusal(429, {"Retry-After": "86400"}), "rate_limited", True, 60_000),
        (Refusal(503), "provider_unavailable", True, None),
        (Refusal(302, {"Location": f"https://elsewhere.example/{KEY}"}), "request_refused", False, None),
        (Refusal(401, {"X-Echo": KEY}, f'{{"error": "{KEY} is wrong"}}'.encode()), "auth_refused", False, None),
    ],
)
async def test_a_refused_handshake_means_what_the_status_means(
    refusal: Refusal, code: str, retryable: bool, wait_ms: int | None
) -> None:
    server = ScriptedSocketServer(refusal)
    async with server.running() as url:
        error = await refused(open_socket(url, stage=STAGE, headers={"x-goog-api-key": KEY}))
    assert (error.code, error.retryable, error.retry_after_ms) == (code, retryable, wait_ms)
    assert server.requests == 1
    if refusal.body and KEY.encode() not in refusal.body:
        assert any(word in error.message for word in ("invalid_api_key", "BAD_MODEL"))


async def test_a_provider_that_does_not_answer_the_handshake_is_given_up() -> None:
    server = ScriptedSocketServer(Pause(anyio.Event()))
    async with server.running() as url:
        error = await refused(open_socket(url, stage=STAGE, limits=SocketLimits(open_s=0.05)))
    assert (error.code, error.retryable) == ("provider_silent", True)


async def test_nobody_at_the_address_can_be_tried_again() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        error = await refused(open_socket(f"ws://127.0.0.1:{unused.getsockname()[1]}", stage=STAGE))
    assert (error.code, error.retryable) == ("unreachable", True)


async def test_a_name_that_nobody_has_can_be_tried_again() -> None:
    error = await refused(open_socket("wss://nobody.invalid", stage=STAGE))
    assert (error.code, error.retryable) == ("unreachable", True)


async def test_an_address_that_speaks_something_else_is_no_websocket() -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"SSH-2.0-OpenSSH\r\n\r\n")
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as other:
        error = await refused(open_socket(f"ws://127.0.0.1:{other.sockets[0].getsockname()[1]}", stage=STAGE))
    assert (error.code, error.retryable) == ("provider_malformed", False)


@pytest.mark.parametrize("url", ["ws://provider.example/v1", "ws://192.0.2.1", "http://127.0.0.1", "wss://"])
async def test_an_address_without_encryption_or_of_another_kind_is_a_bad_setting(url: str) -> None:
    error = await refused(open_socket(url, stage=STAGE, headers={"x-api-key": KEY}))
    assert (error.code, error.scope) == ("bad_setting", ErrorScope.SESSION)


async def test_plain_is_spoken_to_another_machine_where_it_is_allowed() -> None:
    error = await refused(open_socket("ws://nobody.invalid", stage=STAGE, allow_plain=True))
    assert error.code == "unreachable"


@pytest.mark.parametrize("value", ["", f"{KEY}\n", f"{KEY}\r\nX-Other: 1", " "])
async def test_a_key_that_cannot_stand_in_a_header_is_a_bad_setting(value: str) -> None:
    error = await refused(open_socket("wss://provider.example", stage=STAGE, headers={"x-api-key": value}))
    assert error.code == "bad_setting"
    assert "x-api-key" in error.message


async def test_a_wait_for_a_message_has_its_deadline_and_loses_nothing() -> None:
    proceed = anyio.Event()

    async def script(peer: SocketPeer) -> None:
        await proceed.wait()
        await peer.send_text("late")

    async with ScriptedSocketServer(script).running() as url, await open_socket(url, stage=STAGE) as opened:
        error = await refused(opened.receive(within_s=0.01))
        assert (error.code, error.retryable) == ("provider_silent", True)
        proceed.set()
        assert await opened.receive() == "late"


async def test_many_senders_share_one_writer_and_no_message_is_mixed() -> None:
    expected = {f"{sender}:{number}" for sender in range(5) for number in range(20)}

    async def script(peer: SocketPeer) -> None:
        came = [str((await peer.expect(str)).data) for _ in expected]
        assert set(came) == expected
        for sender in range(5):
            assert [text for text in came if text.startswith(f"{sender}:")] == [f"{sender}:{n}" for n in range(20)]

    server = ScriptedSocketServer(script)
    async with server.running() as url, await open_socket(url, stage=STAGE) as opened:
        async with anyio.create_task_group() as group:

            async def send(sender: int) -> None:
                for number in range(20):
                    await opened.send_text(f"{sender}:{number}")

            for sender in range(5):
                group.start_soon(send, sender)
        await server.has_completed()


async def deaf_server(do: Callable[[str], Awaitable[None]], then: bytes = b"") -> None:
    """A WebSocket server that shakes hands, sends `then`, and then neither reads nor closes."""
    left = asyncio.Event()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        protocol = ServerProtocol()
        protocol.receive_data(await reader.readuntil(b"\r\n\r\n"))
        (request,) = protocol.events_received()
        assert isinstance(request, Request)
        protocol.send_response(protocol.accept(request))
        writer.write(b"".join(protocol.data_to_send()) + then)
        await left.wait()
        writer.transport.abort()

    async with await asyncio.start_server(answer, "127.0.0.1", 0, limit=1_024) as server:
        try:
            await do(f"ws://127.0.0.1:{server.sockets[0].getsockname()[1]}")
        finally:
            left.set()


async def test_a_provider_that_reads_nothing_stalls_the_sender_only_until_its_deadline() -> None:
    async def do(url: str) -> None:
        limits = SocketLimits(send_s=0.1, close_s=0.1)
        async with await open_socket(url, stage=STAGE, limits=limits) as opened:

            async def flood() -> None:
                while True:
                    await opened.send_bytes(bytes(1 << 20))

            error = await refused(flood())
            assert (error.code, error.retryable) == ("provider_stalled", True)

    await deaf_server(do)


async def test_a_provider_that_says_it_closes_and_does_not_is_left_after_the_deadline() -> None:
    async def do(url: str) -> None:
        limits = SocketLimits(close_s=0.05, ping_interval_s=None)
        async with await open_socket(url, stage=STAGE, limits=limits) as opened:
            with pytest.raises(SocketClosed) as closed:
                await opened.receive()
            assert closed.value.closing == Closing(ClosedBy.PROVIDER, 1011, "broken")

    await deaf_server(do, Frame(Opcode.CLOSE, Close(1011, "broken").serialize()).serialize(mask=False))


async def test_a_provider_that_answers_no_ping_is_given_up_where_that_is_asked() -> None:
    async def do(url: str) -> None:
        limits = SocketLimits(ping_interval_s=0.01, ping_timeout_s=0.05, close_s=0.05)
        async with await open_socket(url, stage=STAGE, limits=limits) as opened:
            error = await refused(opened.receive())
            assert (error.code, error.retryable) == ("provider_silent", True)

    await deaf_server(do)


async def test_a_close_that_the_provider_does_not_answer_is_bounded() -> None:
    async def do(url: str) -> None:
        opened = await open_socket(url, stage=STAGE, limits=SocketLimits(close_s=0.05))
        await opened.close(1000)
        assert (await refused(opened.send_text("more"))).code == "port_closed"
        await opened.aclose()

    await deaf_server(do)


async def test_closing_says_the_code_and_ends_a_waiting_receiver() -> None:
    server = ScriptedSocketServer(stay)
    async with server.running() as url:
        opened = await open_socket(url, stage=STAGE)
        async with anyio.create_task_group() as group:

            async def receive() -> None:
                with pytest.raises(SocketClosed) as closed:
                    await opened.receive()
                assert closed.value.closing.by is ClosedBy.US

            group.start_soon(receive)
            await server.has_connections(1)
            await opened.close(4000, "enough")
        assert await server.peers[0].hung_up() == 4000
        await opened.aclose()
        await opened.aclose()


async def test_a_cancel_at_any_moment_leaves_no_task_and_no_connection() -> None:
    """Each round is cancelled one step of the event loop later than the one before, until a round is whole."""

    async def script(peer: SocketPeer) -> None:
        await peer.expect(str)
        await peer.send_text("pong")

    async def talk(url: str) -> None:
        async with await open_socket(url, stage=STAGE) as opened:
            await opened.send_text("ping")
            assert await opened.receive() == "pong"
            whole.append(True)

    whole: list[bool] = []
    rounds = 400
    server = ScriptedSocketServer(*[script] * rounds)
    async with server.running() as url:
        before = _clients()
        for steps in range(rounds):
            async with anyio.create_task_group() as group:
                group.start_soon(talk, url)
                for _ in range(steps):
                    await anyio.lowlevel.checkpoint()
                group.cancel_scope.cancel()
            assert _clients() == before
            if whole:
                break
        assert whole
        await server.has_connections(0)


def _clients() -> list[str]:
    """Tasks of the library or of this test's client that are still there."""
    names = sorted(str(task.get_coro()) for task in asyncio.all_tasks())
    return [name for name in names if "keepalive" in name or "talk" in name]


async def test_nothing_of_a_conversation_is_logged_even_when_everything_is(caplog: pytest.LogCaptureFixture) -> None:
    async def script(peer: SocketPeer) -> None:
        await peer.expect(str)
        await peer.send_text("the transcript")
        await peer.close(1011, "broken")

    with caplog.at_level(logging.DEBUG):
        logging.getLogger("websockets").setLevel(logging.DEBUG)
        async with (
            ScriptedSocketServer(script).running() as url,
            await open_socket(f"{url}/?token={KEY}", stage=STAGE, headers={"x-api-key": KEY}) as opened,
        ):
            await opened.send_text(json.dumps({"text": "my secret"}))
            assert await opened.receive() == "the transcript"
            await refused(opened.receive())
    logged = caplog.text
    assert KEY not in logged
    assert "secret" not in logged
    assert "transcript" not in logged
