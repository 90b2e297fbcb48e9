"""What every event of a vendor's stream becomes: each fixture, played by a scripted server to the adapter."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import anyio
import pytest
from pydantic import JsonValue

from voicechart.adapters.providers.responders.anthropic import AnthropicResponder
from voicechart.adapters.providers.responders.openai_chat import OpenAIChatResponder
from voicechart.adapters.providers.responders.openai_responses import OpenAIResponsesResponder
from voicechart.adapters.testing import ScriptedHttpServer, WireFixture, load_fixtures
from voicechart.engines.ports import GenerationRequest, Message, Responder
from voicechart.engines.reports import GenerationErrored, GenerationReport, PortError, UsageUpdated
from voicechart.statecharts.errors import ScopedError

pytestmark = pytest.mark.anyio

KEY = "sk-very-secret"
DEADLINE_S = 10.0
REQUEST = GenerationRequest("r1", "a1", (Message("user", "What time is it?"),))

MAKERS: Mapping[str, tuple[str, Callable[[str], Responder]]] = {
    "anthropic": (
        "/messages",
        lambda base_url: AnthropicResponder(base_url=base_url, model="m", api_key=KEY),
    ),
    "openai-responses": (
        "/responses",
        lambda base_url: OpenAIResponsesResponder(base_url=base_url, model="m", api_key=KEY),
    ),
    "openai-chat": (
        "/chat/completions",
        lambda base_url: OpenAIChatResponder(base_url=base_url, model="m", api_key=KEY),
    ),
}
"""The route and the adapter of each protocol."""

FIXTURES = {
    name: fixture
    for name, fixture in load_fixtures(Path(__file__).parent / "fixtures").items()
    if fixture.protocol in MAKERS
}


@pytest.mark.parametrize("fixture", [pytest.param(fixture, id=name) for name, fixture in FIXTURES.items()])
async def test_a_fixture_becomes_the_reports_that_it_names(fixture: WireFixture) -> None:
    route, make = MAKERS[fixture.protocol]
    async with ScriptedHttpServer({route: [fixture.exchange()]}).running() as base_url:
        responder = make(base_url)
        reports = await played(responder)
        await responder.aclose()
    seen = [shown(report) for report in reports]
    assert [restricted(one, expected) for one, expected in zip(seen, fixture.expected, strict=False)] == list(
        fixture.expected
    )
    assert len(seen) == len(fixture.expected), seen
    assert KEY not in str(reports)


async def played(responder: Responder) -> list[GenerationReport | PortError]:
    with anyio.fail_after(DEADLINE_S):
        try:
            stream = await responder.open(REQUEST)
        except PortError as refused:
            return [refused]
        try:
            return [report async for report in stream.reports()]
        finally:
            await stream.aclose()


def shown(report: GenerationReport | PortError) -> dict[str, JsonValue]:
    """A report as fixtures write it."""
    kind: dict[str, JsonValue] = {"report": type(report).__name__}
    if isinstance(report, PortError | GenerationErrored):
        return kind | of_error(report.error)
    if isinstance(report, UsageUpdated):
        return kind | {name: getattr(report.usage, name) for name in report.usage.__slots__}
    return kind | {name: getattr(report, name) for name in report.__slots__}


def of_error(error: ScopedError) -> dict[str, JsonValue]:
    return {
        "code": error.code,
        "scope": error.scope.value,
        "retryable": error.retryable,
        "retry_after_ms": error.retry_after_ms,
        "partial_output": error.partial_output,
    }


def restricted(seen: Mapping[str, JsonValue], expected: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """What was seen, as far as the fixture says anything about it."""
    return {name: value for name, value in seen.items() if name in expected}
