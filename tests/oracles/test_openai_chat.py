"""Chat Completions, judged by openai."""

from __future__ import annotations

import pytest
from material import CALLS, FIXTURES, each_fixture, each_golden, json_of, judge, messages_of
from openai import AsyncOpenAI
from openai.types.chat import ChatCompletionChunk
from openai.types.chat.completion_create_params import CompletionCreateParamsStreaming
from strict import Json, check

from voicechart.adapters.testing import ScriptedHttpServer, WireEvent, WireFixture, chat_chunks

pytestmark = pytest.mark.anyio


def is_a_chunk(event: WireEvent) -> None:
    if event.raw != "[DONE]":
        check(json_of(event), ChatCompletionChunk)


@each_fixture("openai-chat")
def test_what_the_scripted_server_says_is_what_the_vendor_declares(fixture: WireFixture) -> None:
    judge(fixture, is_a_chunk)


@each_golden("openai-chat")
def test_what_we_ask_is_what_the_vendor_declares(golden: dict[str, Json]) -> None:
    assert (golden["method"], golden["path"]) == ("POST", "/v1/chat/completions")
    check(golden["body"], CompletionCreateParamsStreaming, exact_types=True)


async def test_the_vendors_client_understands_the_scripted_server() -> None:
    server = ScriptedHttpServer({"/chat/completions": [FIXTURES["openai/chat/text"].exchange()]})
    async with (
        server.running() as base_url,
        AsyncOpenAI(api_key="k", base_url=base_url, max_retries=0) as client,
    ):
        chunks = await client.chat.completions.create(
            model="m", messages=[{"role": "user", "content": "x"}], stream=True, stream_options={"include_usage": True}
        )
        seen = [chunk async for chunk in chunks]
    assert "".join(chunk.choices[0].delta.content or "" for chunk in seen if chunk.choices) == "It is noon."
    assert [chunk.usage.total_tokens for chunk in seen if chunk.usage] == [21]


def test_the_answers_of_the_test_kit_are_what_the_vendor_declares() -> None:
    for message in messages_of(chat_chunks("It is noon.", calls=CALLS)):
        check(message, ChatCompletionChunk)
