"""Models over HTTP in a whole session: the chart decides about tools, retries and cancels, and the wire shows it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

import anyio
import pytest
from pydantic import BaseModel

from voicechart.adapters.providers.http_service import HttpLimits
from voicechart.adapters.providers.responders.anthropic import AnthropicResponder
from voicechart.adapters.testing import HttpExchange, Pause, ReceivedRequest, ScriptedHttpServer, load_fixture
from voicechart.engines import Tool
from voicechart.engines.ports import Responder, ToolRequest
from voicechart.engines.testing import TextRehearsal
from voicechart.statecharts.values import Outcome

pytestmark = pytest.mark.anyio

DEADLINE_S = 20.0
FIXTURES = Path(__file__).parents[3] / "conformance" / "fixtures"
LIMITS = HttpLimits()


class Model(Protocol):
    """As `conftest.py` has it."""

    route: str
    answer: Callable[..., tuple[bytes, ...]]
    make: Callable[[str, HttpLimits], Responder]


class Place(BaseModel):
    zone: str = "UTC"


class Clock:
    """A tool that counts how often it runs."""

    def __init__(self) -> None:
        self.runs = 0

    async def run(self, place: Place) -> str:
        self.runs += 1
        return f"noon in {place.zone}"

    def tool(self, name: str = "get_time") -> Tool:
        return Tool(name, "Tells the time.", Place, self.run)


async def asked(
    make: Callable[[str, HttpLimits], Responder], server: ScriptedHttpServer, *tools: Tool
) -> TextRehearsal:
    """One question, until the reply has its outcome and its delivery."""
    async with server.running() as base_url:
        rehearsal = TextRehearsal(responder=make(base_url, LIMITS), tools=tools)
        with anyio.fail_after(DEADLINE_S):
            async with rehearsal.running():
                rehearsal.say("what time is it")
                await rehearsal.until("delivery.recorded")
    return rehearsal


def asked_of(server: ScriptedHttpServer) -> list[ReceivedRequest]:
    """What the model was asked; the session asks for the list of models besides."""
    return [request for request in server.requests if request.method == "POST"]


def served(model: Model, *answers: Sequence[bytes] | HttpExchange) -> ScriptedHttpServer:
    exchanges = [answer if isinstance(answer, HttpExchange) else HttpExchange(answer) for answer in answers]
    return ScriptedHttpServer({model.route: exchanges})


async def test_a_tool_runs_once_and_the_model_goes_on_with_its_result(model: Model) -> None:
    clock = Clock()
    call = ToolRequest("call_a", "get_time", '{"zone": "CET"}')
    server = served(model, model.answer("Let me see.", calls=(call,)), model.answer(" It is noon."))
    rehearsal = await asked(model.make, server, clock.tool())
    assert clock.runs == 1
    assert len(asked_of(server)) == 2
    assert b"noon in CET" in asked_of(server)[1].body
    assert rehearsal.replies[0].generated == "Let me see. It is noon."
    assert rehearsal.replies[0].outcome is Outcome.COMPLETED


async def test_a_refusal_before_anything_was_said_is_tried_again_by_the_chart(model: Model) -> None:
    busy = HttpExchange((b"{}",), 503, {"Retry-After": "0"})
    server = served(model, busy, model.answer("It is noon."))
    rehearsal = await asked(model.make, server)
    assert len(asked_of(server)) == 2
    assert rehearsal.replies[0].outcome is Outcome.COMPLETED


async def test_a_stream_that_breaks_after_its_first_words_is_not_asked_for_again(model: Model) -> None:
    pieces = model.answer("It is noon.")
    server = served(model, HttpExchange(pieces[:-3], whole=False), pieces)
    rehearsal = await asked(model.make, server)
    assert len(asked_of(server)) == 1
    assert rehearsal.replies[0].outcome is Outcome.FAILED
    assert rehearsal.replies[0].generated.startswith("It")


async def test_a_refused_key_is_not_tried_again(model: Model) -> None:
    server = served(model, HttpExchange((b"{}",), 401, {}), model.answer("It is noon."))
    rehearsal = await asked(model.make, server)
    assert len(asked_of(server)) == 1
    assert rehearsal.replies[0].outcome is Outcome.FAILED


async def test_a_cancel_of_the_reply_hangs_up(model: Model) -> None:
    pieces = model.answer("It is noon.")
    server = served(model, HttpExchange((*pieces[:-3], Pause(anyio.Event()))))
    async with server.running() as base_url:
        rehearsal = TextRehearsal(responder=model.make(base_url, LIMITS))
        with anyio.fail_after(DEADLINE_S):
            async with rehearsal.running():
                rehearsal.say("what time is it")
                await rehearsal.until("text.delta")
                rehearsal.cancel()
                await rehearsal.until("cancel.acknowledged")
                await server.has_hung_up()
    assert rehearsal.replies[0].outcome is Outcome.CANCELLED
    assert not [task for task in rehearsal.left_behind if "attempt" in task]


async def test_signed_thinking_comes_back_to_its_provider_with_the_tools_result() -> None:
    clock = Clock()
    thinking = load_fixture(FIXTURES / "anthropic" / "messages" / "thinking-and-tool.json").exchange()
    whole = load_fixture(FIXTURES / "anthropic" / "messages" / "text.json").exchange()
    server = ScriptedHttpServer({"/messages": [thinking, whole]})
    rehearsal = await asked(
        lambda base_url, limits: AnthropicResponder(base_url=base_url, model="m", limits=limits),
        server,
        clock.tool("f"),
    )
    messages = asked_of(server)[1].json()["messages"]
    assert isinstance(messages, list)
    _, step, _ = messages
    assert step == {
        "role": "assistant",
        "content": [
            {"type": "thinking", "thinking": "They want the time.", "signature": "EqQB-opaque"},
            {"type": "redacted_thinking", "data": "opaque"},
            {"type": "text", "text": "Let me see."},
            {"type": "tool_use", "id": "toolu_a", "name": "f", "input": {"a": 1}},
        ],
    }
    assert clock.runs == 1
    assert rehearsal.replies[0].generated == "Let me see.It is noon."
    assert "opaque" not in str(rehearsal.events)
