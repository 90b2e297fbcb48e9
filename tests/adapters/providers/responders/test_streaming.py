"""What holds for every model over HTTP, whatever its wire: waits, sizes, cancels, and that the key stays unseen."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import replace
from typing import Protocol

import anyio
import pytest

from voicechart.adapters.providers.http_service import HttpLimits
from voicechart.adapters.testing import HttpExchange, Pause, ScriptedHttpServer
from voicechart.engines.ports import GenerationRequest, Message, Responder, ToolRequest
from voicechart.engines.reports import (
    GenerationEnded,
    GenerationErrored,
    GenerationReport,
    GenerationStopped,
    PortError,
    TextDelta,
    ToolCallProposed,
)
from voicechart.statecharts.errors import ErrorScope, ScopedError

pytestmark = pytest.mark.anyio

KEY = "sk-very-secret"
DEADLINE_S = 10.0
LIMITS = HttpLimits()
REQUEST = GenerationRequest("r1", "a1", (Message("user", "Hi."),))


class Model(Protocol):
    """As `conftest.py` has it."""

    route: str
    answer: Callable[..., tuple[bytes, ...]]
    make: Callable[[str, HttpLimits], Responder]


async def read(reports: AsyncIterator[GenerationReport]) -> list[GenerationReport]:
    with anyio.fail_after(DEADLINE_S):
        return [report async for report in reports]


async def reply(model: Model, pieces: Sequence[bytes | Pause], limits: HttpLimits = LIMITS) -> list[GenerationReport]:
    """What one answer of the server becomes."""
    async with ScriptedHttpServer({model.route: [HttpExchange(pieces)]}).running() as base_url:
        responder = model.make(base_url, limits)
        stream = await responder.open(REQUEST)
        reports = await read(stream.reports())
        await stream.aclose()
        await responder.aclose()
    return reports


async def error_of(model: Model, pieces: Sequence[bytes | Pause], limits: HttpLimits = LIMITS) -> ScopedError:
    last = (await reply(model, pieces, limits))[-1]
    assert isinstance(last, GenerationErrored)
    return last.error


def begun(model: Model) -> tuple[bytes | Pause, ...]:
    """An answer that stalls after its first word."""
    pieces = model.answer("It is noon.")
    first_word = next(place for place, piece in enumerate(pieces) if b'"It"' in piece)
    return (*pieces[: first_word + 1], Pause(anyio.Event()))


async def test_the_words_of_an_answer_come_one_by_one(model: Model) -> None:
    reports = await reply(model, model.answer("It is noon."))
    assert [report.text for report in reports if isinstance(report, TextDelta)] == ["It", " is", " noon."]
    assert reports[-1] == GenerationEnded()


async def test_calls_come_whole_and_in_their_order(model: Model) -> None:
    calls = (ToolRequest("call_a", "get_time", '{"zone": "UTC"}'), ToolRequest("call_b", "get_time", "{}"))
    reports = await reply(model, model.answer("Let me see.", calls=calls))
    proposed = [report for report in reports if isinstance(report, ToolCallProposed)]
    assert proposed == [ToolCallProposed(call.call_id, call.name, call.arguments_json) for call in calls]
    assert reports[-1] == GenerationEnded(awaits_tools=True)


async def test_an_answer_in_single_bytes_with_other_line_ends_and_comments_is_the_same(model: Model) -> None:
    body = b": hello\r\n\r\nretry: 3\r\n\r\n" + b"".join(model.answer("It is noon.")).replace(b"\n", b"\r\n")
    reports = await reply(model, [bytes([byte]) for byte in body])
    assert reports == await reply(model, model.answer("It is noon."))


async def test_a_cancel_closes_the_connection(model: Model) -> None:
    server = ScriptedHttpServer({model.route: [HttpExchange(begun(model))]})
    async with server.running() as base_url:
        responder = model.make(base_url, LIMITS)
        stream = await responder.open(REQUEST)
        seen: list[GenerationReport] = []
        with anyio.fail_after(DEADLINE_S):
            async for report in stream.reports():
                seen.append(report)
                if isinstance(report, TextDelta):
                    stream.cancel("barge-in")
            await server.has_hung_up()
        await responder.aclose()
    assert seen[-2:] == [TextDelta("It"), GenerationStopped()]


async def test_an_answer_may_have_exactly_the_largest_size(model: Model) -> None:
    pieces = model.answer("It is noon.")
    size = len(b"".join(pieces))
    assert (await reply(model, pieces, replace(LIMITS, max_response_bytes=size)))[-1] == GenerationEnded()
    assert (await error_of(model, pieces, replace(LIMITS, max_response_bytes=size - 1))).code == "response_too_large"


async def test_a_line_may_have_exactly_the_largest_size(model: Model) -> None:
    pieces = model.answer("It is noon.")
    size = max(len(line) for line in b"".join(pieces).split(b"\n"))
    assert (await reply(model, pieces, replace(LIMITS, max_line_bytes=size)))[-1] == GenerationEnded()
    assert (await error_of(model, pieces, replace(LIMITS, max_line_bytes=size - 1))).code == "response_too_large"


async def test_a_provider_that_falls_silent_fails_the_response(model: Model) -> None:
    error = await error_of(model, begun(model), replace(LIMITS, idle_s=0.05))
    assert (error.code, error.retryable, error.partial_output) == ("provider_silent", False, True)


async def test_an_answer_that_never_ends_is_ended(model: Model) -> None:
    error = await error_of(model, begun(model), replace(LIMITS, total_s=0.05))
    assert (error.code, error.partial_output) == ("response_too_long", True)


async def test_a_character_that_is_no_utf_8_fails_the_response(model: Model) -> None:
    assert (await error_of(model, (b"data: \xff\n\n",))).code == "malformed_chunk"


async def test_an_adapter_never_asks_again_by_itself(model: Model) -> None:
    server = ScriptedHttpServer({})
    async with server.running() as base_url:
        responder = model.make(base_url, LIMITS)
        with pytest.raises(PortError) as refused:
            await responder.open(REQUEST)
        await responder.aclose()
    assert refused.value.error.retryable
    assert len(server.requests) == 1


async def test_one_connection_serves_the_preparation_and_turn_after_turn(model: Model) -> None:
    answers = [HttpExchange(model.answer("It is noon."))] * 3
    server = ScriptedHttpServer({model.route: answers}, keeps_alive=True)
    async with server.running() as base_url:
        responder = model.make(base_url, LIMITS)
        await responder.prepare()
        for _ in answers:
            stream = await responder.open(REQUEST)
            assert (await read(stream.reports()))[-1] == GenerationEnded()
            await stream.aclose()
        await responder.aclose()
    assert len(server.requests) == 4
    assert server.connections == 1


async def test_a_body_that_goes_on_behind_its_last_event_does_not_hold_up_the_answer(model: Model) -> None:
    rest = (b": nothing\n\n", Pause(anyio.Event()))
    assert (await reply(model, (*model.answer("It is noon."), *rest)))[-1] == GenerationEnded()


async def test_preparing_finds_a_wrong_key_before_anybody_speaks(model: Model) -> None:
    async with ScriptedHttpServer({}, models_status=401).running() as base_url:
        responder = model.make(base_url, LIMITS)
        with pytest.raises(PortError) as refused:
            await responder.prepare()
        await responder.aclose()
    assert (refused.value.error.code, refused.value.error.scope) == ("auth_refused", ErrorScope.SESSION)


async def test_the_key_shows_neither_in_logs_nor_in_the_object(model: Model, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    async with ScriptedHttpServer({model.route: [HttpExchange(model.answer("Noon."))]}).running() as base_url:
        responder = model.make(base_url, LIMITS)
        await responder.prepare()
        await read((await responder.open(REQUEST)).reports())
        await responder.aclose()
    assert KEY not in caplog.text
    assert KEY not in repr(responder)
