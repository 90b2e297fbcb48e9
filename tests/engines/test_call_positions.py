"""Where the calls of a reply stand in its text, in the record and in the context of the next turn."""

from __future__ import annotations

import pytest
from pydantic import BaseModel
from trio.testing import MockClock

from voicechart.engines import Tool
from voicechart.engines.ports import Message, ToolRequest
from voicechart.engines.reports import GenerationEnded, GenerationReport, TextDelta, ToolCallProposed
from voicechart.engines.testing import Rehearsal, Script, ScriptedResponder, Step, says

pytestmark = pytest.mark.anyio

FIRST, SECOND, THIRD = "I look at the clock. ", "Now I ask somebody else. ", "They all say that it is noon."


@pytest.fixture
def anyio_backend() -> object:
    return "trio", {"clock": MockClock(autojump_threshold=0)}


class Nothing(BaseModel):
    pass


async def noon(_: Nothing) -> str:
    return "noon"


def step(text: str, *call_ids: str, after: str = "") -> Script[GenerationReport]:
    """A step of the model: text, calls, and perhaps more text behind them."""
    calls = [Step(ToolCallProposed(call_id, "clock", "{}")) for call_id in call_ids]
    return Script([Step(TextDelta(text)), *calls, Step(TextDelta(after)), Step(GenerationEnded(awaits_tools=True))])


def asking(responder: ScriptedResponder) -> Rehearsal:
    return Rehearsal(responder=responder, tools=(Tool("clock", "The time.", Nothing, noon),))


async def test_a_finished_reply_is_remembered_with_its_calls_between_its_sentences() -> None:
    responder = ScriptedResponder(
        step(FIRST, "c1", "c2"), step(SECOND, "c3"), Script(says(THIRD)), Script(says("You are welcome."))
    )
    rehearsal = asking(responder)
    async with rehearsal.running():
        rehearsal.say("what time is it")
        await rehearsal.until("delivery.recorded")
        rehearsal.say("thank you")
        await rehearsal.until("delivery.recorded", 2)
    two = len(FIRST) + len(SECOND)
    assert [call.text_position for call in rehearsal.replies[0].tools] == [len(FIRST), len(FIRST), two]
    c1, c2, c3 = (ToolRequest(call_id, "clock", "{}") for call_id in ("c1", "c2", "c3"))
    assert responder.requests[3].messages == (
        Message("user", "what time is it"),
        Message("assistant", FIRST.strip(), tool_calls=(c1, c2)),
        Message("tool", "noon", call_id="c1"),
        Message("tool", "noon", call_id="c2"),
        Message("assistant", SECOND.strip(), tool_calls=(c3,)),
        Message("tool", "noon", call_id="c3"),
        Message("assistant", THIRD),
        Message("user", "thank you"),
    )


async def test_calls_stand_behind_all_text_of_their_step() -> None:
    rehearsal = asking(ScriptedResponder(step("I look. ", "c1", after="Wait. "), Script(says(THIRD))))
    async with rehearsal.running():
        rehearsal.say("what time is it")
        await rehearsal.until("delivery.recorded")
    assert [call.text_position for call in rehearsal.replies[0].tools] == [len("I look. Wait. ")]
