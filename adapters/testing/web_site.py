"""A web server on a real socket over scripted models, and a client for it: for tests of the interface and of the page.

Needs the extra `web`.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import anyio
import httpx

from ...engines import Session, TextPorts
from ...engines.ports import GenerationRequest
from ...engines.reports import GenerationReport
from ...engines.testing import Script, ScriptedResponder, says
from ...statecharts import Policies
from ..web.conversations import Conversations
from ..web.hosting import hosting, text_session
from ..web.options import WebOptions

STORY = "Once upon a time there was a clock. It told the time to nobody. One day somebody asked it. And it was glad."
Json = dict[str, Any]
Answers = Callable[[GenerationRequest], Script[GenerationReport]]


def echoes(request: GenerationRequest) -> Script[GenerationReport]:
    """Says what was said."""
    return Script(says(f"You said: {request.messages[-1].text}"))


def slowly(request: GenerationRequest) -> Script[GenerationReport]:
    """Long enough for anybody to do something meanwhile; whoever waits for its end has done something wrong."""
    return Script(says(" ".join([STORY] * 20), token_ms=20))


@dataclass
class Site:
    """A server that runs, and what to ask it with."""

    address: str
    client: httpx.AsyncClient
    conversations: Conversations
    responder: ScriptedResponder

    @asynccontextmanager
    async def chat(self, text: str, **body: str) -> AsyncGenerator[AsyncIterator[Json]]:
        """The events of a run, one after the other."""
        async with self.client.stream("POST", "/api/chat", json={"text": text, **body}) as response:
            assert response.status_code == 200, await response.aread()
            yield lines_of(response)

    async def whole_chat(self, text: str, **body: str) -> list[Json]:
        async with self.chat(text, **body) as events:
            return [event async for event in events]

    @asynccontextmanager
    async def watch(self, path: str = "/api/events", **headers: str) -> AsyncGenerator[AsyncIterator[Json]]:
        """Server-sent events, each with its `id` put in."""
        async with self.client.stream("GET", path, headers=headers) as response:
            assert response.status_code == 200, await response.aread()
            yield events_of(response)

    async def peek(self, path: str = "/api/events?follow=false", **headers: str) -> list[Json]:
        async with self.watch(path, **headers) as events:
            return [event async for event in events]


async def lines_of(response: httpx.Response) -> AsyncIterator[Json]:
    """NDJSON; an empty line means that the connection lives."""
    async for line in response.aiter_lines():
        if line:
            yield json.loads(line)


async def events_of(response: httpx.Response) -> AsyncIterator[Json]:
    """Server-sent events as JSON, with their `id`."""
    identity: str | None = None
    async for line in response.aiter_lines():
        name, _, value = line.partition(": ")
        if name == "id":
            identity = value
        elif name == "data":
            yield {**json.loads(value), "id": identity}
        elif not line:
            identity = None


async def until(events: AsyncIterator[Json], kind: str) -> list[Json]:
    """The events up to the next one of that type, with it."""
    seen: list[Json] = []
    with anyio.fail_after(20):
        async for event in events:
            seen.append(event)
            if event["type"] == kind:
                return seen
    raise AssertionError(f"no {kind} among {[event['type'] for event in seen]}")


async def eventually(holds: Callable[[], bool]) -> None:
    """Until it holds. Raises `TimeoutError`."""
    with anyio.fail_after(10):
        while not holds():  # noqa: ASYNC110 - of what happens behind a socket nobody is told
            await anyio.sleep(0.005)


@asynccontextmanager
async def site(
    answers: Answers = echoes,
    *,
    options: WebOptions | None = None,
    headers: dict[str, str] | None = None,
    policies: Policies | None = None,
) -> AsyncGenerator[Site]:
    """A server with a foreground conversation in writing, called "front"."""
    options = options or WebOptions(port=0)
    responder = ScriptedResponder(answers=answers)
    ports = TextPorts(responder, is_shared=True)
    session = text_session("front", ports, policies or Policies())
    over = anyio.Event()

    async def hold() -> None:
        await session.run()
        over.set()

    def open_text(name: str) -> Session:
        return text_session(name, ports, policies or Policies())

    async with (
        anyio.create_task_group() as tasks,
        hosting(session, "text", options, open_text) as server,
        httpx.AsyncClient(base_url=server.address, headers=headers, timeout=20, verify=False) as client,
    ):
        tasks.start_soon(hold)
        yield Site(server.address, client, server.conversations, responder)
        session.close("stopped")
        await over.wait()
