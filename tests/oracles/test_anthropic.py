"""Messages, judged by anthropic."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest
from anthropic import APIStatusError, AsyncAnthropic
from anthropic.types import RawMessageStreamEvent
from anthropic.types.message_create_params import MessageCreateParamsStreaming
from material import CALLS, FIXTURES, each_fixture, each_golden, json_of, judge, messages_of
from strict import Json, check

from voicechart.adapters.testing import ScriptedHttpServer, WireFixture, message_events

pytestmark = pytest.mark.anyio


@each_fixture("anthropic")
def test_what_the_scripted_server_says_is_what_the_vendor_declares(fixture: WireFixture) -> None:
    judge(fixture, lambda event: check(json_of(event), RawMessageStreamEvent))


@each_golden("anthropic")
def test_what_we_ask_is_what_the_vendor_declares(golden: dict[str, Json]) -> None:
    assert (golden["method"], golden["path"]) == ("POST", "/v1/messages")
    check(golden["body"], MessageCreateParamsStreaming, exact_types=True)


@asynccontextmanager
async def playing(name: str) -> AsyncGenerator[tuple[ScriptedHttpServer, AsyncAnthropic], None]:
    """A server with a fixture, and the vendor's client that asks it."""
    server = ScriptedHttpServer({"/messages": [FIXTURES[f"anthropic/messages/{name}"].exchange()]})
    async with server.running() as base_url:
        address = base_url.removesuffix("/v1")
        async with AsyncAnthropic(api_key="secret", base_url=address, max_retries=0) as client:
            yield server, client


async def message_of(name: str) -> Json:
    """What the vendor's client makes of a fixture."""
    async with playing(name) as (_, client):
        return await answer(client)


async def answer(client: AsyncAnthropic) -> Json:
    asked: Json = {"model": "m", "max_tokens": 10, "messages": [{"role": "user", "content": "x"}]}
    async with client.messages.stream(**asked) as stream:
        return await stream.get_final_message()


async def test_the_vendors_client_understands_the_scripted_server() -> None:
    message = await message_of("text")
    assert [block.text for block in message.content] == ["It is noon."]
    assert (message.stop_reason, message.usage.input_tokens, message.usage.output_tokens) == ("end_turn", 18, 3)


async def test_the_vendors_client_gets_the_calls_and_the_thinking_that_our_adapter_gets() -> None:
    thinking, redacted, text, call = (await message_of("thinking-and-tool")).content
    assert (thinking.thinking, thinking.signature) == ("They want the time.", "EqQB-opaque")
    assert (redacted.data, text.text) == ("opaque", "Let me see.")
    assert (call.id, call.name, call.input) == ("toolu_a", "f", {"a": 1})


async def test_the_vendors_client_takes_a_tool_without_input_for_an_empty_object_as_ours_does() -> None:
    assert [call.input for call in (await message_of("tool-use-without-arguments")).content] == [{}, {}]


async def test_the_vendors_client_raises_for_an_error_in_the_stream() -> None:
    async with playing("error-overloaded") as (_, client):
        with pytest.raises(APIStatusError, match="overloaded_error"):
            await answer(client)


async def test_the_vendors_client_takes_a_cut_message_for_a_message_which_ours_must_not() -> None:
    assert (await message_of("empty")).stop_reason is None


@each_golden("anthropic")
async def test_key_and_version_go_where_the_vendors_client_puts_them(golden: dict[str, Json]) -> None:
    async with playing("text") as (server, client):
        await client.messages.create(model="m", max_tokens=1, messages=[{"role": "user", "content": "x"}], stream=True)
    theirs = server.requests[0].recorded("secret")
    assert isinstance(theirs, dict)
    names = ("authorization", "x-api-key", "anthropic-version")
    assert [golden["headers"].get(name) for name in names] == [theirs["headers"].get(name) for name in names]


def test_the_answers_of_the_test_kit_are_what_the_vendor_declares() -> None:
    for message in messages_of(message_events("It is noon.", calls=CALLS)):
        if message["type"] != "ping":
            check(message, RawMessageStreamEvent)
