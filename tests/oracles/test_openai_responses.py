"""Responses, judged by openai."""

from __future__ import annotations

import pytest
from material import CALLS, FIXTURES, each_fixture, each_golden, json_of, judge, messages_of
from openai import AsyncOpenAI
from openai.types.responses import ResponseStreamEvent
from openai.types.responses.response_create_params import ResponseCreateParamsStreaming
from strict import Json, check

from voicechart.adapters.testing import ScriptedHttpServer, WireFixture, response_events

pytestmark = pytest.mark.anyio


@each_fixture("openai-responses")
def test_what_the_scripted_server_says_is_what_the_vendor_declares(fixture: WireFixture) -> None:
    judge(fixture, lambda event: check(json_of(event), ResponseStreamEvent))


@each_golden("openai-responses")
def test_what_we_ask_is_what_the_vendor_declares(golden: dict[str, Json]) -> None:
    assert (golden["method"], golden["path"]) == ("POST", "/v1/responses")
    check(golden["body"], ResponseCreateParamsStreaming, exact_types=True)


async def played(name: str) -> list[Json]:
    """What the vendor's client makes of a fixture."""
    server = ScriptedHttpServer({"/responses": [FIXTURES[f"openai/responses/{name}"].exchange()]})
    async with (
        server.running() as base_url,
        AsyncOpenAI(api_key="k", base_url=base_url, max_retries=0) as client,
    ):
        return [event async for event in await client.responses.create(model="m", input="x", stream=True)]


async def test_the_vendors_client_understands_the_scripted_server() -> None:
    events = await played("text")
    assert "".join(event.delta for event in events if event.type == "response.output_text.delta") == "It is noon."
    assert events[-1].response.output_text == "It is noon."
    assert events[-1].response.usage.total_tokens == 21


async def test_the_vendors_client_gets_the_calls_that_our_adapter_gets() -> None:
    items = [event.item for event in await played("tool-calls") if event.type == "response.output_item.done"]
    assert [(item.call_id, item.name, item.arguments) for item in items] == [
        ("call_a", "get_time", '{"zone": "UTC"}'),
        ("call_b", "get_weather", '{"city": "Oslo"}'),
    ]


async def test_the_vendors_client_takes_a_flat_error_for_an_event_which_ours_must_not() -> None:
    assert "error" in [event.type for event in await played("error-flat")]


def test_the_answers_of_the_test_kit_are_what_the_vendor_declares() -> None:
    for message in messages_of(response_events("It is noon.", calls=CALLS)):
        check(message, ResponseStreamEvent)
