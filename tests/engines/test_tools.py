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
    run: Callable[[Place], Awaitable[str]] = sunny,
    *,
    side_effects: SideEffects = SideEffects.YES,
    timeout_ms: int | None = None,
    approve: Callable[[Place], Awaitable[bool]] | None = None,
) -> Tool:
    return Tool(
        "weather",
        "The weather in a city.",
        Place,
        run,
        side_effects=side_effects,
        timeout_ms=timeout_ms,
        approve=approve,
    )


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
    rehearsal = Rehearsal(responder=responder, tools=(weather(lasting, side_effects=SideEffects.NONE),))
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


@pytest.mark.parametrize(
    ("side_effects", "status", "said"),
    [
        (SideEffects.NONE, ToolStatus.FAILED, "the tool did not answer within 1.5 s"),
        (SideEffects.IDEMPOTENT, ToolStatus.FAILED, "the tool did not answer within 1.5 s"),
        (SideEffects.YES, ToolStatus.UNKNOWN, PERHAPS.format("the tool did not answer within 1.5 s")),
    ],
)
async def test_a_tool_has_a_deadline_of_its_own_and_only_one_with_side_effects_leaves_doubt(
    side_effects: SideEffects, status: ToolStatus, said: str
) -> None:
    async def hanging(_: Place) -> str:
        await anyio.sleep_forever()
        raise AssertionError

    responder = ScriptedResponder(calls(OSLO), Script(says("I could not find out.")))
    tools = (weather(hanging, side_effects=side_effects, timeout_ms=1_500),)
    rehearsal = Rehearsal(responder=responder, tools=tools)
    async with rehearsal.running():
        rehearsal.say("how is Oslo")
        began = anyio.current_time()
        await rehearsal.until("tool.ended")
        assert anyio.current_time() - began == pytest.approx(1.5, abs=0.05)
        await rehearsal.until("delivery.recorded")
    assert outcomes(rehearsal) == [("c1", status)]
    assert told(responder)[-1] == ("tool", said)
    assert rehearsal.left_behind == ()


async def test_an_answer_at_the_last_moment_before_the_deadline_counts() -> None:
    async def late(place: Place) -> str:
        await anyio.sleep(1.499)
        return place.city

    responder = ScriptedResponder(calls(OSLO), Script(says("Fine.")))
    rehearsal = Rehearsal(responder=responder, tools=(weather(late, timeout_ms=1_500),))
    async with rehearsal.running():
        rehearsal.say("how is Oslo")
        await rehearsal.until("delivery.recorded")
    assert outcomes(rehearsal) == [("c1", ToolStatus.COMPLETED)]


async def test_a_failure_without_side_effects_leaves_no_doubt() -> None:
    async def broken(_: Place) -> str:
        raise ZeroDivisionError("secret")

    responder = ScriptedResponder(calls(OSLO), Script(says("I could not find out.")))
    rehearsal = Rehearsal(responder=responder, tools=(weather(broken, side_effects=SideEffects.NONE),))
    async with rehearsal.running():
        rehearsal.say("how is Oslo")
        await rehearsal.until("delivery.recorded")
    assert outcomes(rehearsal) == [("c1", ToolStatus.FAILED)]
    assert told(responder)[-1] == ("tool", "the tool failed (ZeroDivisionError)")


async def test_a_call_that_may_have_had_an_effect_is_not_run_again_in_the_same_reply_under_any_identity() -> None:
    ran: list[str] = []

    async def breaking(place: Place) -> str:
        ran.append(place.city)
        raise ToolError("the line went dead", effect_unknown=True)

    again = ("c9", "weather", '{ "city" : "Oslo" }')
    responder = ScriptedResponder(calls(OSLO), calls(again, ROME), Script(says("I do not know.")))
    rehearsal = Rehearsal(responder=responder, tools=(weather(breaking),))
    async with rehearsal.running():
        rehearsal.say("how is Oslo")
        await rehearsal.until("delivery.recorded")
    assert ran == ["Oslo", "Rome"]
    assert outcomes(rehearsal) == [
        ("c1", ToolStatus.UNKNOWN),
        ("c9", ToolStatus.FAILED),
        ("c2", ToolStatus.UNKNOWN),
    ]
    assert told(responder, 2)[-2] == ("tool", "refused: the same call may have taken effect; ask the user first")


async def test_the_user_may_ask_again_for_what_had_an_unknown_end() -> None:
    ran: list[str] = []

    async def breaking(place: Place) -> str:
        ran.append(place.city)
        raise ToolError("the line went dead", effect_unknown=True)

    responder = ScriptedResponder(calls(OSLO), Script(says("No idea.")), calls(OSLO), Script(says("No idea.")))
    rehearsal = Rehearsal(responder=responder, tools=(weather(breaking),))
    async with rehearsal.running():
        rehearsal.say("how is Oslo")
        await rehearsal.until("delivery.recorded")
        rehearsal.say("try again")
        await rehearsal.until("delivery.recorded", 2)
    assert ran == ["Oslo", "Oslo"]


@pytest.mark.parametrize("answer", [True, False])
async def test_a_call_runs_only_when_it_was_approved(answer: bool) -> None:
    ran: list[str] = []
    asked: list[Place] = []

    async def run(place: Place) -> str:
        ran.append(place.city)
        return place.city

    async def approve(place: Place) -> bool:
        await anyio.sleep(3)
        asked.append(place)
        return answer

    responder = ScriptedResponder(calls(OSLO), Script(says("Very well.")))
    rehearsal = Rehearsal(responder=responder, tools=(weather(run, approve=approve),))
    async with rehearsal.running():
        rehearsal.say("how is Oslo")
        await rehearsal.until("delivery.recorded")
    assert asked == [Place(city="Oslo")]
    assert ran == (["Oslo"] if answer else [])
    assert told(responder)[-1] == ("tool", "Oslo" if answer else "refused: it was not approved")


async def test_nobody_who_answers_and_a_question_that_breaks_are_a_no() -> None:
    async def silent(_: Place) -> bool:
        await anyio.sleep_forever()
        raise AssertionError

    async def broken(_: Place) -> bool:
        raise OSError("no screen")

    for approve in (silent, broken):
        responder = ScriptedResponder(calls(OSLO), Script(says("Very well.")))
        rehearsal = Rehearsal(responder=responder, tools=(weather(approve=approve),))
        async with rehearsal.running():
            rehearsal.say("how is Oslo")
            await rehearsal.until("delivery.recorded")
        assert outcomes(rehearsal) == [("c1", ToolStatus.FAILED)]
        assert rehearsal.left_behind == ()


async def test_an_interruption_ends_the_wait_for_an_approval_and_nothing_runs() -> None:
    async def silent(_: Place) -> bool:
        await anyio.sleep_forever()
        raise AssertionError

    responder = ScriptedResponder(calls(OSLO, text="Let me look. "), Script(says("Very well.")))
    rehearsal = Rehearsal(responder=responder, tools=(weather(approve=silent),))
    async with rehearsal.running():
        rehearsal.say("how is Oslo")
        await rehearsal.until("playback.started")
        rehearsal.press_button()
        await rehearsal.until("cancel.acknowledged")
    assert rehearsal.decided(do.ExecuteTool) == []
    assert rehearsal.left_behind == ()
