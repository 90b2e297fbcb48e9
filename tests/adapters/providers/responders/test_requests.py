"""What each model is asked: the requests in `tests/conformance/golden`, which the oracles hold against their types."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping

import pytest
from pydantic import JsonValue

from voicechart.adapters.providers.responders.anthropic import AnthropicResponder
from voicechart.adapters.providers.responders.openai_chat import OpenAIChatResponder
from voicechart.adapters.providers.responders.openai_responses import OpenAIResponsesResponder
from voicechart.adapters.testing import ScriptedHttpServer
from voicechart.engines.ports import GenerationRequest, Message, Responder, ToolDefinition, ToolRequest
from voicechart.engines.reports import PortError, ProviderState

pytestmark = pytest.mark.anyio

KEY = "sk-very-secret"
Golden = Callable[[str, JsonValue], None]
SCHEMA = {"type": "object", "properties": {"zone": {"type": "string"}}, "required": ["zone"]}
TOOL = ToolDefinition("get_time", "Tells the time.", json.dumps(SCHEMA))
CALLS = (ToolRequest("call_a", "get_time", '{"zone": "UTC"}'), ToolRequest("call_b", "get_time", '{"zone": "CET"}'))
MAKERS: Mapping[str, Callable[[str], Responder]] = {
    "anthropic": lambda base_url: AnthropicResponder(
        base_url=base_url, model="m-1", api_key=KEY, extra={"thinking": {"type": "adaptive"}}
    ),
    "openai-chat": lambda base_url: OpenAIChatResponder(
        base_url=base_url, model="m-1", api_key=KEY, extra={"temperature": 0.3}
    ),
    "openai-responses": lambda base_url: OpenAIResponsesResponder(
        base_url=base_url, model="m-1", api_key=KEY, extra={"reasoning": {"effort": "low"}}
    ),
}
STATES: Mapping[str, JsonValue] = {
    "anthropic": [
        {"type": "thinking", "thinking": "They want two times.", "signature": "EqQB-opaque"},
        {"type": "text", "text": "Let me see."},
        *({"type": "tool_use", "id": call.call_id, "name": call.name, "input": {"zone": "UTC"}} for call in CALLS),
    ],
    "openai-responses": [
        {"id": "rs_1", "type": "reasoning", "summary": [], "encrypted_content": "gAAAA-opaque"},
        *(
            {"type": "function_call", "call_id": call.call_id, "name": call.name, "arguments": call.arguments_json}
            for call in CALLS
        ),
    ],
}
CONVERSATION = (
    Message("system", "Be brief."),
    Message("user", "Hello."),
    Message("assistant", "Hi. [interrupted by the user]"),
    Message("user", "What time is it?"),
    Message("system", "The alarm that was asked for is set."),
    Message("user", "In London and in Oslo?"),
)


def after_tools(state: ProviderState | None = None) -> tuple[Message, ...]:
    """A run that goes on after two calls."""
    asked = Message("assistant", "Let me see.", tool_calls=CALLS, provider_state=state)
    return (*CONVERSATION, asked, Message("tool", "noon", call_id="call_a"), Message("tool", "one", call_id="call_b"))


async def asked(kind: str, *messages: Message, tools: tuple[ToolDefinition, ...] = (TOOL,)) -> JsonValue:
    """The request that reaches the server; it refuses it, which does not matter here."""
    server = ScriptedHttpServer({})
    async with server.running() as base_url:
        responder = MAKERS[kind](base_url)
        with pytest.raises(PortError, match="provider_unavailable"):
            await responder.open(GenerationRequest("r1", "a1", messages, tools))
        await responder.aclose()
    return server.requests[0].recorded(KEY)


@pytest.mark.parametrize("kind", MAKERS)
async def test_a_plain_conversation_is_asked_in_the_providers_words(kind: str, golden: Golden) -> None:
    golden(f"{kind}/conversation", await asked(kind, *CONVERSATION, tools=()))


@pytest.mark.parametrize("kind", MAKERS)
async def test_a_run_goes_on_after_its_tools(kind: str, golden: Golden) -> None:
    golden(f"{kind}/after-tools", await asked(kind, *after_tools()))


@pytest.mark.parametrize("kind", STATES)
async def test_what_a_provider_wants_back_goes_back_as_it_is(kind: str, golden: Golden) -> None:
    state = ProviderState(kind, json.dumps(STATES[kind]))
    golden(f"{kind}/after-tools-with-state", await asked(kind, *after_tools(state)))


@pytest.mark.parametrize("kind", MAKERS)
async def test_what_another_provider_wants_back_stays_here(kind: str) -> None:
    state = ProviderState("another", '[{"type": "thinking", "thinking": "secret", "signature": "s"}]')
    assert await asked(kind, *after_tools(state)) == await asked(kind, *after_tools())


@pytest.mark.parametrize("kind", STATES)
async def test_a_state_of_other_calls_than_the_messages_stays_here(kind: str) -> None:
    state = ProviderState(kind, json.dumps(STATES[kind]).replace("call_b", "call_c"))
    assert await asked(kind, *after_tools(state)) == await asked(kind, *after_tools())


@pytest.mark.parametrize("kind", MAKERS)
@pytest.mark.parametrize("schema", ["[]", "{"])
async def test_a_tool_schema_that_is_no_object_is_refused(kind: str, schema: str) -> None:
    responder = MAKERS[kind]("http://127.0.0.1:9/v1")
    request = GenerationRequest("r1", "a1", CONVERSATION, (ToolDefinition("f", "", schema),))
    with pytest.raises(PortError, match="bad_tool_schema"):
        await responder.open(request)
    await responder.aclose()


@pytest.mark.parametrize(
    ("make", "reserved"),
    [(AnthropicResponder, "max_tokens"), (OpenAIResponsesResponder, "store"), (OpenAIChatResponder, "n")],
)
def test_extra_options_may_not_replace_what_voicechart_sets(make: Callable[..., Responder], reserved: str) -> None:
    with pytest.raises(PortError, match="bad_setting"):
        make(base_url="https://host.example/v1", model="m", extra={reserved: 1})


@pytest.mark.parametrize("kind", MAKERS)
def test_a_model_behind_plain_http_on_another_machine_gets_no_key(kind: str) -> None:
    with pytest.raises(PortError, match="unencrypted") as refused:
        MAKERS[kind]("http://host.example/v1")
    assert KEY not in str(refused.value)


async def test_an_old_gateway_gets_the_key_in_a_header_of_its_own() -> None:
    server = ScriptedHttpServer({})
    async with server.running() as base_url:
        responder = AnthropicResponder(
            base_url=base_url, model="m", api_key=KEY, key_header="x-api-key", api_version="2023-06-01"
        )
        with pytest.raises(PortError):
            await responder.open(GenerationRequest("r1", "a1", CONVERSATION))
        await responder.aclose()
    headers = server.requests[0].headers
    assert (headers["x-api-key"], headers["anthropic-version"]) == (KEY, "2023-06-01")
    assert "authorization" not in headers
