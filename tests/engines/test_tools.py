"""The tool loop: each call once, each with one outcome, and the model told of it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace

import anyio
import pytest
from pydantic import BaseModel
from trio.testing import MockClock

from voicechart.engines import SideEffects, Tool, ToolError
from voicechart.engines.ports import Message, ToolRequest
from voicechart.engines.reports import GenerationEnded, GenerationReport, TextDelta, ToolCallProposed
from voicechart.engines.testing import HANDS_FREE, Rehearsal, Script, ScriptedResponder, Step, says
from voicechart.engines.tools import PERHAPS
from voicechart.statecharts import actions as do
from voicechart.statecharts.policies import GenerationPolicy
from voicechart.statecharts.values import DeliveryStatus, Outcome, ToolStatus

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> object:
    return "trio", {"clock": MockClock(autojump_threshold=0)}


class Place(BaseModel):
    city: str


async def sunny(place: Place) -> str:
    return f"sunny in {place.city}"


def weather(
    run: Callable[[Place], Awaitable[str]] = sunny, *, background: bool = False, has_side_effects: bool = True
) -> Tool:
    side_effects = SideEffects.YES if has_side_effects else SideEffects.NONE
    return Tool("weather", "The weather in a city.", Place, run, background, side_effects)


def calls(*requests: tuple[str, str, str], text: str = "") -> Script[GenerationReport]:
    """A step of the model: some text, then these calls (id, name, arguments), then waiting for them."""
    steps = [Step(TextDelta(text))] if text else []
    steps += [Step(ToolCallProposed(*request)) for request in requests]
    return Script([*steps, Step(GenerationEnded(awaits_tools=True))])


OSLO = ("c1", "weather", '{"city": "Oslo"}')
ROME = ("c2", "weather", '{"city": "Rome"}')


def outcomes(rehearsal: Rehearsal) -> list[tuple[str, ToolStatus]]:
    return [(action.call_id, action.status) for action in rehearsal.decided(do.RecordToolOutcome)]


def told(responder: ScriptedResponder, index: int = 1) -> list[tuple[str, str]]:
    return [(message.role, message.text) for message in responder.requests[index].messages]


async def test_a_call_runs_once_its_outcome_is_in_the_next_request_and_the_model_goes_on() -> None:
    ran: list[str] = []

    async def run(place: Place) -> str:
        ran.append(place.city)
        return await sunny(place)

    responder = ScriptedResponder(calls(OSLO, text="Let me look."), Script(says(" It is sunny there.")))
    rehearsal = Rehearsal(responder=responder, tools=(weather(run),))
    async with rehearsal.running():
        rehearsal.say("how is Oslo")
        await rehearsal.until("delivery.recorded")
    assert ran == ["Oslo"]
    assert outcomes(rehearsal) == [("c1", ToolStatus.COMPLETED)]
    request = ToolRequest(*OSLO)
    assert responder.requests[1].messages == (
        Message("user", "how is Oslo"),
        Message("assistant", "Let me look.", tool_calls=(request,)),
        Message("tool", "sunny in Oslo", call_id="c1"),
    )
    assert responder.requests[0].tools[0].name == "weather"
    assert '"city"' in responder.requests[0].tools[0].parameters_schema
    reply = rehearsal.replies[0]
    assert reply.generated == "Let me look. It is sunny there."
    assert [exchange.output for exchange in reply.tools] == ["sunny in Oslo"]
    assert reply.outcome is Outcome.COMPLETED
    assert len(rehearsal.of("response.started")) == 1


async def test_each_step_of_a_long_run_is_shown_to_the_model_as_it_was() -> None:
    responder = ScriptedResponder(calls(OSLO, text="First. "), calls(ROME, text="Then. "), Script(says("Done now.")))
    rehearsal = Rehearsal(responder=responder, tools=(weather(),))
    async with rehearsal.running():
        rehearsal.say("how are they")
        await rehearsal.until("delivery.recorded")
    assert told(responder, 2) == [
        ("user", "how are they"),
        ("assistant", "First. "),
        ("tool", "sunny in Oslo"),
        ("assistant", "Then. "),
        ("tool", "sunny in Rome"),
    ]


async def test_calls_of_one_step_run_beside_each_other_and_the_model_waits_for_all() -> None:
    began: list[float] = []

    async def slow(place: Place) -> str:
        began.append(anyio.current_time())
        await anyio.sleep(1 if place.city == "Oslo" else 3)
        return place.city

    responder = ScriptedResponder(calls(OSLO, ROME), Script(says("Both are fine.")))
    rehearsal = Rehearsal(responder=responder, tools=(weather(slow),))
    async with rehearsal.running():
        rehearsal.say("how are they")
        await rehearsal.until("delivery.recorded")
    assert began[0] == pytest.approx(began[1], abs=0.01)
    assert told(responder)[-2:] == [("tool", "Oslo"), ("tool", "Rome")]


@pytest.mark.parametrize(
    ("name", "arguments", "reason"),
    [
        ("weather", '{"town": "Oslo"}', "refused: city: Field required"),
        ("weather", '{"city": 3}', "refused: city: Input should be a valid string"),
        ("weather", "{", "refused: arguments: Invalid JSON"),
        ("forecast", "{}", "refused: there is no tool named 'forecast'"),
    ],
)
async def test_an_invalid_call_never_runs_and_the_model_is_told_why(name: str, arguments: str, reason: str) -> None:
    ran: list[Place] = []

    async def run(place: Place) -> str:
        ran.append(place)
        return ""

    responder = ScriptedResponder(calls(("c1", name, arguments)), Script(says("I cannot do that.")))
    rehearsal = Rehearsal(responder=responder, tools=(weather(run),))
    async with rehearsal.running():
        rehearsal.say("how is Oslo")
        await rehearsal.until("delivery.recorded")
    assert ran == []
    assert outcomes(rehearsal) == [("c1", ToolStatus.FAILED)]
    role, text = told(responder)[-1]
    assert role == "tool"
    assert text.startswith(reason)


async def test_the_same_identity_in_a_later_reply_is_another_call() -> None:
    responder = ScriptedResponder(
        calls(OSLO), Script(says("Fine in Oslo.")), calls(("c1", "weather", '{"city": "Rome"}')), Script(says("Fine."))
    )
    rehearsal = Rehearsal(responder=responder, tools=(weather(),))
    async with rehearsal.running():
        rehearsal.say("how is Oslo")
        await rehearsal.until("delivery.recorded")
        rehearsal.say("how is Rome")
        await rehearsal.until("delivery.recorded", 2)
    assert [reply.tools[0].output for reply in rehearsal.replies] == ["sunny in Oslo", "sunny in Rome"]


async def test_a_call_that_is_repeated_in_one_reply_runs_once() -> None:
    ran: list[str] = []

    async def run(place: Place) -> str:
        ran.append(place.city)
        return place.city

    responder = ScriptedResponder(calls(OSLO, OSLO), Script(says("Fine in Oslo.")))
    rehearsal = Rehearsal(responder=responder, tools=(weather(run),))
    async with rehearsal.running():
        rehearsal.say("how is Oslo")
        await rehearsal.until("delivery.recorded")
    assert ran == ["Oslo"]
    assert outcomes(rehearsal) == [("c1", ToolStatus.COMPLETED)]


async def test_what_a_tool_says_is_bounded() -> None:
    async def run(_: Place) -> str:
        return "x" * 20_000

    responder = ScriptedResponder(calls(OSLO), Script(says("That is long.")))
    rehearsal = Rehearsal(responder=responder, tools=(weather(run),))
    async with rehearsal.running():
        rehearsal.say("how is Oslo")
        await rehearsal.until("delivery.recorded")
    assert len(told(responder)[-1][1]) == 16_384


@pytest.mark.parametrize(
    ("error", "status", "said"),
    [
        (ToolError("the city is unknown"), ToolStatus.FAILED, "the city is unknown"),
        (ZeroDivisionError("secret"), ToolStatus.UNKNOWN, PERHAPS.format("the tool failed (ZeroDivisionError)")),
    ],
)
async def test_a_tool_that_raises_has_an_outcome_and_the_model_goes_on(
    error: Exception, status: ToolStatus, said: str
) -> None:
    async def run(_: Place) -> str:
        raise error

    responder = ScriptedResponder(calls(OSLO), Script(says("I could not find out.")))
    rehearsal = Rehearsal(responder=responder, tools=(weather(run),))
    async with rehearsal.running():
        rehearsal.say("how is Oslo")
        await rehearsal.until("delivery.recorded")
    assert outcomes(rehearsal) == [("c1", status)]
    assert told(responder)[-1] == ("tool", said)


async def test_a_call_is_cancelled_with_the_reply_that_made_it_and_stays_so() -> None:
    """Case 27."""
    ended: list[str] = []

    async def lasting(_: Place) -> str:
        try:
            await anyio.sleep_forever()
        finally:
            ended.append("cancelled")
        raise AssertionError

    responder = ScriptedResponder(calls(OSLO), Script(says("Very well.")))
    rehearsal = Rehearsal(responder=responder, tools=(weather(lasting, has_side_effects=False),))
    async with rehearsal.running():
        rehearsal.say("how is Oslo")
        await rehearsal.until("tool.started")
        await anyio.wait_all_tasks_blocked()
        rehearsal.cancel()
        await rehearsal.until("response.terminal")
        rehearsal.say("never mind")
        await rehearsal.until("playback.drained")
    assert ended == ["cancelled"]
    assert len(rehearsal.of("cancel.acknowledged")) == 1
    assert outcomes(rehearsal) == [("c1", ToolStatus.CANCELLED)]
    assert ("tool", "(cancelled)") in told(responder)
    assert rehearsal.left_behind == ()


async def test_a_tool_that_ignores_its_cancel_changes_nothing_when_it_ends() -> None:
    released = anyio.Event()

    async def stubborn(_: Place) -> str:
        with anyio.CancelScope(shield=True):
            await released.wait()
        return "done after all"

    responder = ScriptedResponder(calls(OSLO), Script(says("Very well.")))
    rehearsal = Rehearsal(responder=responder, tools=(weather(stubborn),))
    async with rehearsal.running():
        rehearsal.say("how is Oslo")
        await rehearsal.until("tool.started")
        await anyio.wait_all_tasks_blocked()
        rehearsal.cancel()
        await rehearsal.until("response.terminal")
        released.set()
        rehearsal.say("never mind")
        await rehearsal.until("playback.drained")
    assert outcomes(rehearsal) == [("c1", ToolStatus.CANCELLED)]
    assert rehearsal.session.closed is not None
    assert rehearsal.session.closed.error is None


async def test_a_tool_that_finished_before_the_interruption_is_in_the_next_context_and_never_runs_again() -> None:
    """Case 28."""
    ran: list[str] = []

    async def run(place: Place) -> str:
        ran.append(place.city)
        return await sunny(place)

    responder = ScriptedResponder(
        calls(OSLO), Script(says("It is very sunny indeed in Oslo today.", token_ms=500)), Script(says("Very well."))
    )
    rehearsal = Rehearsal(responder=responder, tools=(weather(run),))
    async with rehearsal.running():
        rehearsal.say("how is Oslo")
        await rehearsal.until("text.delta", 3)
        rehearsal.press_button()
        await rehearsal.until("delivery.recorded")
        rehearsal.say("and now")
        await rehearsal.until("delivery.recorded", 2)
    assert ran == ["Oslo"]
    assert told(responder, 2) == [
        ("user", "how is Oslo"),
        ("assistant", ""),
        ("tool", "sunny in Oslo"),
        ("user", "and now"),
    ]


async def test_background_work_outlives_the_interruption_and_its_result_is_kept() -> None:
    released = anyio.Event()

    async def lasting(place: Place) -> str:
        await released.wait()
        return await sunny(place)

    responder = ScriptedResponder(
        calls(OSLO),
        Script(says("I am looking it up for you now, one moment.", token_ms=300)),
        Script(says("Very well.")),
        Script(says("It is sunny.")),
    )
    rehearsal = Rehearsal(responder=responder, tools=(weather(lasting, background=True),))
    async with rehearsal.running():
        rehearsal.say("how is Oslo")
        await rehearsal.until("text.delta", 3)
        assert told(responder)[-1] == ("tool", "(still running)")
        rehearsal.press_button()
        await rehearsal.until("delivery.recorded")
        rehearsal.say("something else")
        await rehearsal.until("delivery.recorded", 2)
        assert outcomes(rehearsal) == []
        released.set()
        await rehearsal.until("tool.ended")
        rehearsal.say("and Oslo")
        await rehearsal.until("delivery.recorded", 3)
    assert outcomes(rehearsal) == [("c1", ToolStatus.COMPLETED)]
    assert ("tool", "sunny in Oslo") in told(responder, 3)
    assert rehearsal.left_behind == ()


async def test_a_call_under_the_identity_of_open_background_work_is_refused_and_leaves_it_alone() -> None:
    released = anyio.Event()

    async def lasting(place: Place) -> str:
        await released.wait()
        return await sunny(place)

    responder = ScriptedResponder(
        calls(OSLO),
        Script(says("I am looking.")),
        calls(OSLO),
        Script(says("I am looking already.")),
        Script(says("Ok.")),
    )
    rehearsal = Rehearsal(responder=responder, tools=(weather(lasting, background=True),))
    async with rehearsal.running():
        rehearsal.say("how is Oslo")
        await rehearsal.until("delivery.recorded")
        rehearsal.say("how is Oslo")
        await rehearsal.until("delivery.recorded", 2)
        released.set()
        await rehearsal.until("tool.ended", 2)
    assert outcomes(rehearsal) == [("c1", ToolStatus.FAILED), ("c1", ToolStatus.COMPLETED)]
    assert told(responder, 3)[-1] == ("tool", "refused: another call is open under this identity")
    assert [reply.tools[0].output for reply in rehearsal.replies] == [
        "sunny in Oslo",
        "refused: another call is open under this identity",
    ]


async def test_a_tool_that_hangs_is_stopped_at_its_deadline_and_the_model_goes_on() -> None:
    ended: list[str] = []

    async def hanging(_: Place) -> str:
        try:
            await anyio.sleep_forever()
        finally:
            ended.append("stopped")
        raise AssertionError

    responder = ScriptedResponder(calls(OSLO), Script(says("I could not find out.")))
    rehearsal = Rehearsal(
        responder=responder,
        tools=(weather(hanging),),
        policies=replace(HANDS_FREE, generation=GenerationPolicy(tool_ms=2_000)),
    )
    async with rehearsal.running():
        rehearsal.say("how is Oslo")
        await rehearsal.until("delivery.recorded")
        assert ended == ["stopped"]
    assert outcomes(rehearsal) == [("c1", ToolStatus.UNKNOWN)]
    assert told(responder)[-1] == ("tool", "(unknown)")
    assert rehearsal.left_behind == ()


async def test_a_model_that_only_ever_calls_tools_is_ended_and_the_user_gets_what_was_said() -> None:
    responder = ScriptedResponder(
        answers=lambda request: calls((f"c{len(request.messages)}", "weather", '{"city": "Oslo"}'), text="Once more. ")
    )
    rehearsal = Rehearsal(
        responder=responder,
        tools=(weather(),),
        policies=replace(HANDS_FREE, generation=GenerationPolicy(max_tool_steps=3)),
    )
    async with rehearsal.running():
        rehearsal.say("how is Oslo")
        await rehearsal.until("delivery.recorded")
    reply = rehearsal.replies[0]
    assert (reply.outcome, reply.reason) == (Outcome.FAILED, "too_many_tool_steps")
    assert reply.delivery is not None
    assert (reply.delivery.status, reply.delivery.text) == (
        DeliveryStatus.FAILED,
        "Once more. Once more. Once more.",
    )
    assert len(responder.requests) == 3
    assert rehearsal.left_behind == ()
