"""Following a conversation across lost connections: nothing is lost, nothing comes twice, and it says so."""

from __future__ import annotations

import anyio
import httpx
import pytest

from voicechart.adapters.cli.attach_lines import Lines
from voicechart.adapters.testing.web_site import Json, Site, site, slowly
from voicechart.adapters.web.folding import empty_state, fold
from voicechart.adapters.web.following import Back, Event, Followed, Follower, FollowRefused, Lost
from voicechart.adapters.web.options import WebOptions

pytestmark = pytest.mark.anyio


class Reader:
    """Follows in the background and keeps what came."""

    def __init__(self, follower: Follower) -> None:
        self.follower = follower
        self.seen: list[Followed] = []
        self._changed = anyio.Event()

    async def run(self) -> None:
        async for followed in self.follower.events():
            self.seen.append(followed)
            self._changed.set()
            self._changed = anyio.Event()

    async def until(self, kind: str | type[Followed], count: int = 1) -> None:
        with anyio.fail_after(20):
            while len([one for one in self.seen if _is(one, kind)]) < count:
                await self._changed.wait()

    @property
    def events(self) -> list[Json]:
        return [one.value for one in self.seen if isinstance(one, Event)]


def _is(one: Followed, kind: str | type[Followed]) -> bool:
    return one.value["type"] == kind if isinstance(kind, str) and isinstance(one, Event) else type(one) is kind


class Cut(httpx.AsyncBaseTransport):
    """A network that fails when the test says so, in the middle of an answer."""

    def __init__(self) -> None:
        self._inner = httpx.AsyncHTTPTransport(verify=False)
        self.broken = anyio.Event()

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        response = await self._inner.handle_async_request(request)
        broken = self.broken
        stream = response.stream
        assert isinstance(stream, httpx.AsyncByteStream)

        class Breaking(httpx.AsyncByteStream):
            async def __aiter__(self):  # type: ignore[no-untyped-def]  # noqa: ANN204
                async for chunk in stream:
                    if broken.is_set():
                        raise httpx.ReadError("the network is gone")
                    yield chunk

            async def aclose(self) -> None:
                await stream.aclose()

        return httpx.Response(response.status_code, headers=response.headers, stream=Breaking())


async def state_of(here: Site) -> Json:
    return (await here.client.get("/api/state")).json()["state"]


async def test_a_lost_connection_is_found_again_behind_the_last_event() -> None:
    network = Cut()
    client = httpx.AsyncClient(transport=network)
    reader = Reader(Follower(client))
    async with site() as here, client, anyio.create_task_group() as tasks:
        client.base_url = here.address
        tasks.start_soon(reader.run)
        await reader.until("snapshot")
        await here.whole_chat("one")
        await reader.until("run.terminal")
        network.broken.set()
        await here.whole_chat("two")
        await reader.until(Lost)
        network.broken = anyio.Event()
        await reader.until("run.terminal", 2)
        await reader.until("delivery.recorded", 2)
        back = next(one for one in reader.seen if isinstance(one, Back))
        assert back.cursor is not None
        folded = empty_state()
        for event in reader.events:
            folded = fold(folded, event)
        assert folded == await state_of(here)
        tasks.cancel_scope.cancel()
    ids = [event["event_id"] for event in reader.events if "event_id" in event]
    assert len(ids) == len(set(ids))
    assert [event["type"] for event in reader.events].count("snapshot") == 1


async def test_the_end_of_the_conversation_is_the_end() -> None:
    async with site() as here, httpx.AsyncClient(base_url=here.address, verify=False) as client:
        reader = Reader(Follower(client))
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(reader.run)
            await reader.until("snapshot")
            front = here.conversations.foreground
            assert front is not None
            front.session.close("done")
    assert reader.events[-1]["type"] == "session.closed"
    assert not any(isinstance(one, Lost) for one in reader.seen)


async def test_whoever_is_refused_does_not_try_again() -> None:
    async with site(options=WebOptions(port=0, token="secret")) as here:
        for address, name in ((here.address, None), (here.address, "nobody")):
            async with httpx.AsyncClient(base_url=address, verify=False) as client:
                with pytest.raises(FollowRefused):
                    await Reader(Follower(client, conversation_id=name)).run()


async def test_a_terminal_shows_what_was_said_and_where_it_was_cut() -> None:
    async with site(slowly) as here, httpx.AsyncClient(base_url=here.address, verify=False) as client:
        reader = Reader(Follower(client))
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(reader.run)
            await reader.until("snapshot")
            async with here.chat("tell me a story"):
                await reader.until("text.delta", 3)
            await reader.until("delivery.recorded")
            tasks.cancel_scope.cancel()
    lines = Lines()
    shown = [line.plain for event in reader.events for line in lines.take(event)]
    assert any("tell me a story" in line for line in shown)
    assert any("INTERRUPTS by client" in line for line in shown)
    assert any("✂" in line and "Once upon" in line and "[interrupted]" in line for line in shown)
