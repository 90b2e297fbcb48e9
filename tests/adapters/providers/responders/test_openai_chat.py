"""The OpenAI-compatible responder against a real server on the loopback address."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable
from dataclasses import replace

import anyio
import pytest
from anyio.abc import SocketAttribute
from pydantic import JsonValue

from voicechart.adapters.providers.http_service import HttpLimits
from voicechart.adapters.providers.responders.openai_chat import OpenAIChatResponder
from voicechart.adapters.testing import ChatExchange, Pause, ScriptedChatServer, chat_chunks, sse
from voicechart.engines.ports import GenerationRequest, Message, ToolDefinition, ToolRequest
from voicechart.engines.reports import (
    GenerationEnded,
    GenerationErrored,
    GenerationReport,
    GenerationStopped,
    PortError,
    TextDelta,
    ToolCallProposed,
    UsageUpdated,
)
from voicechart.statecharts.errors import ErrorScope, ScopedError
from voicechart.statecharts.values import Usage

pytestmark = pytest.mark.anyio

KEY = "sk-very-secret"
DEADLINE_S = 10.0
LIMITS = HttpLimits()


def request(*messages: Message, tools: tuple[ToolDefinition, ...] = ()) -> GenerationRequest:
    return GenerationRequest("r1", "a1", messages or (Message("user", "Hi."),), tools)


def responder(base_url: str, limits: HttpLimits = LIMITS) -> OpenAIChatResponder:
    return OpenAIChatResponder(base_url=base_url, model="m-1", api_key=KEY, limits=limits)


async def read(reports: AsyncIterator[GenerationReport]) -> list[GenerationReport]:
    with anyio.fail_after(DEADLINE_S):
        return [report async for report in reports]


async def reply(exchange: ChatExchange, limits: HttpLimits = LIMITS) -> list[GenerationReport]:
    """What one exchange becomes."""
    async with ScriptedChatServer(exchange).running() as base_url:
        chat = responder(base_url, limits)
        stream = await chat.open(request())
        reports = await read(stream.reports())
        await stream.aclose()
        await chat.aclose()
    return reports


async def error_of(exchange: ChatExchange, limits: HttpLimits = LIMITS) -> ScopedError:
    last = (await reply(exchange, limits))[-1]
    assert isinstance(last, GenerationErrored)
    return last.error


async def refusal(exchange: ChatExchange) -> ScopedError:
    """The error with which `open` refuses."""
    async with ScriptedChatServer(exchange).running() as base_url:
        chat = responder(base_url)
        with pytest.raises(PortError) as raised:
            await chat.open(request())
        await chat.aclose()
    return raised.value.error


async def test_an_answer_is_streamed_with_its_usage() -> None:
    assert await reply(ChatExchange(chat_chunks("It is noon."))) == [
        TextDelta("It"),
        TextDelta(" is"),
        TextDelta(" noon."),
        UsageUpdated(Usage(7, 3)),
        GenerationEnded(),
    ]


async def test_the_first_words_come_before_the_answer_is_complete() -> None:
    rest = anyio.Event()
    chunks = chat_chunks("It is noon.")
    async with ScriptedChatServer(ChatExchange((*chunks[:2], Pause(rest), *chunks[2:]))).running() as base_url:
        chat = responder(base_url)
        reports = (await chat.open(request())).reports()
        with anyio.fail_after(DEADLINE_S):
            assert await anext(reports) == TextDelta("It")
        rest.set()
        assert (await read(reports))[-1] == GenerationEnded()
        await chat.aclose()


async def test_the_request_has_the_shape_of_chat_completions(golden: Callable[[str, JsonValue], None]) -> None:
    tool = ToolDefinition("get_time", "Tells the time.", '{"type": "object", "properties": {}}')
    messages = (
        Message("system", "Be brief."),
        Message("user", "What time is it?"),
        Message("assistant", "", tool_calls=(ToolRequest("c1", "get_time", "{}"),)),
        Message("tool", "noon", call_id="c1"),
    )
    server = ScriptedChatServer(ChatExchange(chat_chunks("Noon.")))
    async with server.running() as base_url:
        chat = OpenAIChatResponder(base_url=base_url + "/", model="m-1", api_key=KEY, extra={"temperature": 0.3})
        await read((await chat.open(request(*messages, tools=(tool,)))).reports())
        await chat.aclose()
    (received,) = server.requests
    assert received.headers["authorization"] == f"Bearer {KEY}"
    golden("openai-chat/tool-result", received.recorded(KEY))


async def test_neither_key_nor_usage_is_sent_unless_wanted() -> None:
    server = ScriptedChatServer(ChatExchange(chat_chunks("Noon.", usage=False)))
    async with server.running() as base_url:
        chat = OpenAIChatResponder(base_url=base_url, model="m-1", include_usage=False)
        await read((await chat.open(request())).reports())
        await chat.aclose()
    assert "authorization" not in server.requests[0].headers
    assert "stream_options" not in server.requests[0].json()
    assert not chat.capabilities.usage


async def test_a_tool_call_is_proposed_when_it_is_whole() -> None:
    def part(**call: JsonValue) -> JsonValue:
        return {"choices": [{"index": 0, "delta": {"tool_calls": [{"index": 0, **call}]}, "finish_reason": None}]}

    chunks = sse(
        part(id="c1", type="function", function={"name": "get_time", "arguments": '{"zo'}),
        part(function={"arguments": 'ne": 1}'}),
        {"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]},
        "[DONE]",
    )
    assert await reply(ChatExchange(chunks)) == [
        ToolCallProposed("c1", "get_time", '{"zone": 1}'),
        GenerationEnded(awaits_tools=True),
    ]


async def test_comments_other_fields_and_line_ends_are_understood() -> None:
    body = b"".join(chat_chunks("It is noon.")).replace(b"\n", b"\r\n")
    noisy = b": ping\r\n\r\nevent: message\r\nretry: 3\r\n\r\n" + body
    assert (await reply(ChatExchange([bytes([byte]) for byte in noisy])))[-1] == GenerationEnded()


async def test_a_character_cut_between_two_pieces_is_whole() -> None:
    body = 'data: {"choices": [{"delta": {"content": "你好!"}}]}\n\ndata: [DONE]\n\n'.encode()
    reports = await reply(ChatExchange([body[index : index + 1] for index in range(len(body))]))
    assert reports[0] == TextDelta("你好!")


async def test_a_stream_that_breaks_in_the_middle_was_cut() -> None:
    error = await error_of(ChatExchange(chat_chunks("It is noon.")[:3], whole=False))
    assert (error.code, error.retryable, error.partial_output) == ("connection_lost", False, True)


async def test_a_stream_that_ends_in_the_middle_was_cut() -> None:
    error = await error_of(ChatExchange(chat_chunks("It is noon.")[:1]))
    assert (error.code, error.retryable, error.partial_output) == ("stream_truncated", True, False)


async def test_an_answer_that_is_complete_does_not_wait_for_the_end_of_the_connection() -> None:
    chunks = chat_chunks("It is noon.", usage=False)[:-1]
    limits = replace(LIMITS, after_finish_s=0.01)
    assert (await reply(ChatExchange((*chunks, Pause(anyio.Event()))), limits))[-1] == GenerationEnded()


async def test_an_error_inside_the_stream_fails_it() -> None:
    error = await error_of(ChatExchange(sse({"error": {"code": "server_error", "message": "secret"}}, "[DONE]")))
    assert (error.code, error.retryable) == ("provider_error", True)
    assert "secret" not in str(error)


@pytest.mark.parametrize("data", ["{", "[]", '"text"', '{"choices": [{"delta": 3}]}', '{"choices": 7}'])
async def test_a_chunk_of_another_form_fails_the_response(data: str) -> None:
    assert (await error_of(ChatExchange(sse(data)))).code == "malformed_chunk"


async def test_an_answer_that_is_no_stream_is_named_so() -> None:
    exchange = ChatExchange((b'{"choices": []}',), headers={"Content-Type": "application/json"})
    assert (await error_of(exchange)).code == "not_a_stream"


async def test_a_silent_provider_fails_the_response() -> None:
    limits = replace(LIMITS, idle_s=0.05)
    error = await error_of(ChatExchange((*chat_chunks("It is")[:2], Pause(anyio.Event()))), limits)
    assert (error.code, error.partial_output) == ("provider_silent", True)


async def test_a_response_that_never_ends_is_ended() -> None:
    limits = replace(LIMITS, total_s=0.05)
    error = await error_of(ChatExchange((*chat_chunks("It is")[:2], Pause(anyio.Event()))), limits)
    assert error.code == "response_too_long"


async def test_a_response_may_have_exactly_the_largest_size() -> None:
    chunks = chat_chunks("It is noon.")
    size = len(b"".join(chunks))
    assert (await reply(ChatExchange(chunks), replace(LIMITS, max_response_bytes=size)))[-1] == GenerationEnded()
    error = await error_of(ChatExchange(chunks), replace(LIMITS, max_response_bytes=size - 1))
    assert error.code == "response_too_large"


async def test_a_line_may_have_exactly_the_largest_size() -> None:
    line = b"data: " + b" " * 100 + b"[DONE]"
    pieces = (line[:50], line[50:] + b"\n", b"\n")
    assert await reply(ChatExchange(pieces), replace(LIMITS, max_line_bytes=len(line))) == [GenerationEnded()]
    error = await error_of(ChatExchange(pieces), replace(LIMITS, max_line_bytes=len(line) - 1))
    assert error.code == "response_too_large"


async def test_a_cancel_closes_the_connection() -> None:
    server = ScriptedChatServer(ChatExchange((*chat_chunks("It is noon.")[:2], Pause(anyio.Event()))))
    async with server.running() as base_url:
        chat = responder(base_url)
        stream = await chat.open(request())
        reports = stream.reports()
        with anyio.fail_after(DEADLINE_S):
            await anext(reports)
            stream.cancel("barge-in")
            assert await read(reports) == [GenerationStopped()]
            await server.has_hung_up()
        await chat.aclose()


async def test_closing_an_unread_stream_closes_the_connection() -> None:
    server = ScriptedChatServer(ChatExchange((*chat_chunks("It is noon.")[:2], Pause(anyio.Event()))))
    async with server.running() as base_url:
        chat = responder(base_url)
        stream = await chat.open(request())
        with anyio.fail_after(DEADLINE_S):
            await stream.aclose()
            await server.has_hung_up()
        await chat.aclose()


@pytest.mark.parametrize(
    ("status", "code"),
    [(401, "auth_refused"), (404, "not_found"), (500, "provider_unavailable"), (302, "request_refused")],
)
async def test_a_refused_request_says_what_to_check(status: int, code: str) -> None:
    assert (await refusal(ChatExchange((b"{}",), status, {}))).code == code


async def test_a_rate_limit_says_how_long_to_wait() -> None:
    error = await refusal(ChatExchange((b"{}",), 429, {"Retry-After": "3"}))
    assert (error.code, error.retryable, error.retry_after_ms) == ("rate_limited", True, 3_000)


async def test_an_endless_body_of_a_refusal_is_not_read_to_its_end() -> None:
    exchange = ChatExchange((b"x" * 100_000, Pause(anyio.Event())), 500, {})
    with anyio.fail_after(DEADLINE_S):
        assert (await refusal(exchange)).code == "provider_unavailable"


async def test_preparing_finds_a_wrong_key_before_anybody_speaks() -> None:
    async with ScriptedChatServer(models_status=401).running() as base_url:
        chat = responder(base_url)
        with pytest.raises(PortError) as raised:
            await chat.prepare()
        await chat.aclose()
    assert (raised.value.error.code, raised.value.error.scope) == ("auth_refused", ErrorScope.SESSION)


@pytest.mark.parametrize("status", [200, 404, 405])
async def test_preparing_accepts_a_server_without_a_list_of_models(status: int) -> None:
    async with ScriptedChatServer(models_status=status).running() as base_url:
        chat = responder(base_url)
        await chat.prepare()
        await chat.aclose()


async def test_a_server_that_is_not_there_is_unreachable() -> None:
    async with ScriptedChatServer().running() as base_url:
        pass
    chat = responder(base_url)
    with pytest.raises(PortError) as raised:
        await chat.open(request())
    await chat.aclose()
    assert (raised.value.error.code, raised.value.error.retryable) == ("unreachable", True)


async def test_a_server_that_never_answers_is_given_up() -> None:
    async with await anyio.create_tcp_listener(local_host="127.0.0.1") as listener:
        port = listener.extra(SocketAttribute.local_port)
        chat = responder(f"http://127.0.0.1:{port}/v1", replace(LIMITS, first_byte_s=0.05))
        with pytest.raises(PortError) as raised:
            await chat.open(request())
        await chat.aclose()
    assert (raised.value.error.code, raised.value.error.retryable) == ("provider_silent", True)


async def test_a_context_may_have_exactly_the_largest_size() -> None:
    server = ScriptedChatServer(ChatExchange(chat_chunks("Noon.")), ChatExchange(chat_chunks("Noon.")))
    async with server.running() as base_url:
        chat = responder(base_url)
        await read((await chat.open(request())).reports())
        size = len(server.requests[0].body)
        await chat.aclose()
        exact = responder(base_url, replace(LIMITS, max_request_bytes=size))
        await read((await exact.open(request())).reports())
        await exact.aclose()
        small = responder(base_url, replace(LIMITS, max_request_bytes=size - 1))
        with pytest.raises(PortError, match="request_too_large"):
            await small.open(request())
        await small.aclose()
    assert len(server.requests) == 2


async def test_a_tool_schema_that_is_no_object_is_refused() -> None:
    chat = OpenAIChatResponder(base_url="http://127.0.0.1:9", model="m")
    for schema in ("[]", "{"):
        with pytest.raises(PortError, match="bad_tool_schema"):
            await chat.open(request(tools=(ToolDefinition("f", "", schema),)))
    await chat.aclose()


@pytest.mark.parametrize(
    "base_url",
    ["", "ftp://host/v1", "host/v1", "https://user:pass@host/v1", "https://host/v1?key=1", "http://host.example/v1", "https://"],
)  # fmt: skip
def test_an_address_that_cannot_be_right_is_refused(base_url: str) -> None:
    with pytest.raises(PortError) as raised:
        OpenAIChatResponder(base_url=base_url, model="m", api_key=KEY)
    assert raised.value.error.code == "bad_setting"
    assert KEY not in str(raised.value)


def test_plain_http_to_another_machine_must_be_allowed() -> None:
    OpenAIChatResponder(base_url="http://board.example/v1", model="m", api_key=KEY, allow_plain_http=True)
    OpenAIChatResponder(base_url="http://board.example/v1", model="m")
    OpenAIChatResponder(base_url="http://localhost:8080/v1", model="m", api_key=KEY)
    OpenAIChatResponder(base_url="http://[::1]:8080/v1", model="m", api_key=KEY)


@pytest.mark.parametrize("api_key", ["", " ", "a b", "key\n", "schlüssel"])
def test_a_key_that_no_header_can_hold_is_refused_unseen(api_key: str) -> None:
    with pytest.raises(PortError) as raised:
        OpenAIChatResponder(base_url="https://host.example/v1", model="m", api_key=api_key)
    assert "schlüssel" not in str(raised.value)


@pytest.mark.parametrize("name", ["model", "messages", "stream", "tools", "n"])
def test_extra_options_may_not_replace_what_voicechart_sets(name: str) -> None:
    with pytest.raises(PortError, match="bad_setting"):
        OpenAIChatResponder(base_url="https://host.example/v1", model="m", extra={name: 1})


async def test_the_key_shows_neither_in_logs_nor_in_the_object(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    async with ScriptedChatServer(ChatExchange(chat_chunks("Noon."))).running() as base_url:
        chat = responder(base_url)
        await chat.prepare()
        await read((await chat.open(request())).reports())
        await chat.aclose()
    assert KEY not in caplog.text
    assert KEY not in repr(chat)
