"""What a provider wants back while it goes on after its tools, and nobody else ever sees."""

from __future__ import annotations

import logging

import pytest
from pydantic import BaseModel
from trio.testing import MockClock

from voicechart.engines import Tool
from voicechart.engines.reports import GenerationEnded, GenerationReport, ProviderState, TextDelta, ToolCallProposed
from voicechart.engines.testing import Rehearsal, Script, ScriptedResponder, Step, says

pytestmark = pytest.mark.anyio

FIRST = ProviderState("anthropic", '[{"type": "thinking", "signature": "opaque-1"}]')
SECOND = ProviderState("anthropic", '[{"type": "thinking", "signature": "opaque-2"}]')


@pytest.fixture
def anyio_backend() -> object:
    return "trio", {"clock": MockClock(autojump_threshold=0)}


class Nothing(BaseModel):
    pass


async def run(_: Nothing) -> str:
    return "noon"


CLOCK = Tool("clock", "The time.", Nothing, run)


def step(call_id: str, *before: GenerationReport) -> Script[GenerationReport]:
    """The model says something, wants something back, and calls a tool."""
    reports = (*before, ToolCallProposed(call_id, "clock", "{}"), GenerationEnded(awaits_tools=True))
    return Script([Step(report) for report in reports])


async def conversation() -> tuple[Rehearsal, ScriptedResponder]:
    """A turn of three steps, of which the first two have a state, and another turn."""
    responder = ScriptedResponder(
        step("c1", TextDelta("Let me see. "), FIRST), step("c2", SECOND), Script(says("Noon.")), Script(says("Yes."))
    )
    rehearsal = Rehearsal(responder=responder, tools=(CLOCK,))
    async with rehearsal.running():
        rehearsal.say("what time is it")
        await rehearsal.until("delivery.recorded")
        rehearsal.say("are you sure")
        await rehearsal.until("delivery.recorded", count=2)
    return rehearsal, responder


async def test_it_goes_back_with_the_step_that_it_belongs_to_in_every_later_step_of_the_run() -> None:
    _, responder = await conversation()
    states = [[message.provider_state for message in request.messages] for request in responder.requests]
    assert states[0] == [None]
    assert states[1] == [None, FIRST, None]
    assert states[2] == [None, FIRST, None, SECOND, None]


async def test_the_next_turn_does_not_have_it() -> None:
    _, responder = await conversation()
    assert {message.provider_state for message in responder.requests[3].messages} == {None}


async def test_it_is_neither_said_nor_published_nor_logged_nor_kept(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    rehearsal, responder = await conversation()
    assert "opaque" not in caplog.text
    assert "opaque" not in str(rehearsal.events)
    assert "opaque" not in str(rehearsal.replies)
    assert "opaque" not in repr(responder.requests)
