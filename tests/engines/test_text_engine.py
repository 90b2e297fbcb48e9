"""Conversations in writing: the same chart, model and tools, and no device."""

from __future__ import annotations

import anyio
import pytest
from pydantic import BaseModel
from trio.testing import MockClock

from voicechart.engines import Closed, Session, TextEngine, TextPorts, Tool
from voicechart.engines.live_checks import CheckFailed, LiveChecks
from voicechart.engines.ports import GenerationRequest
from voicechart.engines.reports import (
    GenerationEnded,
    GenerationErrored,
    GenerationReport,
    PortError,
    TextDelta,
    ToolCallProposed,
)
from voicechart.engines.testing import (
    OnCancel,
    Script,
    ScriptedResponder,
    Step,
    TextRehearsal,
    says,
    scripted_error,
)
from voicechart.statecharts import Conversation
from voicechart.statecharts import actions as do
from voicechart.statecharts.capabilities import ResponderCapabilities
from voicechart.statecharts.policies import ConnectionPolicy, GenerationPolicy, Policies
from voicechart.statecharts.published import ResponseTerminal, SessionReady
from voicechart.statecharts.values import DeliveryStatus, Outcome, ToolStatus

pytestmark = pytest.mark.anyio
STORY = "Once upon a time there was a clock. It told the time to nobody. One day somebody asked it. And it was glad."


@pytest.fixture
def anyio_backend() -> object:
    return "trio", {"clock": MockClock(autojump_threshold=0)}


class City(BaseModel):
    city: str


class Checked(TextRehearsal):
    """With every invariant of the chart checked after each macrostep."""

    def __init__(
        self,
        responder: ScriptedResponder,
        tools: tuple[Tool, ...] = (),
        policies: Policies | None = None,
        system_prompt: str | None = None,
    ) -> None:
        super().__init__(responder=responder, tools=tools, policies=policies or Policies(), system_prompt=system_prompt)
        self.broken: list[CheckFailed] = []
        LiveChecks(self.session.conversation, self.broken.append)

    def is_sound(self) -> bool:
        """No invariant was broken and no task was left."""
        return not self.broken and not self.left_behind


def steps(*reports: GenerationReport) -> Script[GenerationReport]:
    return Script([Step(report) for report in reports])


def outcomes(rehearsal: TextRehearsal) -> list[Outcome]:
    payloads = [event.payload for event in rehearsal.of("response.terminal")]
    return [payload.outcome for payload in payloads if isinstance(payload, ResponseTerminal)]


def seen_by(responder: ScriptedResponder, index: int) -> list[tuple[str, str]]:
    return [(message.role, message.text) for message in responder.requests[index].messages]


async def test_a_typed_message_is_a_turn_and_its_reply_is_delivered_as_text() -> None:
    responder = ScriptedResponder(Script(says(STORY, token_ms=30)))
    rehearsal = Checked(responder, system_prompt="be brief")
    async with rehearsal.running():
        rehearsal.say("  tell me a story ")
        await rehearsal.until("delivery.recorded")
    assert seen_by(responder, 0) == [("system", "be brief"), ("user", "tell me a story")]
    (reply,) = rehearsal.replies
    assert reply.delivery is not None
    assert (reply.generated, reply.outcome) == (STORY, Outcome.COMPLETED)
    assert (reply.delivery.status, reply.delivery.text) == (DeliveryStatus.TEXT_ONLY, STORY)
    assert rehearsal.closed == Closed("rehearsed")
    assert rehearsal.is_sound()


async def test_it_is_ready_at_once_and_no_event_of_it_speaks_of_sound() -> None:
    rehearsal = Checked(ScriptedResponder(Script(says("Hello."))))
    async with rehearsal.running():
        assert rehearsal.now_ns == rehearsal.events[0].occurred_at_ns
        rehearsal.say("hello")
        await rehearsal.until("delivery.recorded")
    families = {event.type.split(".")[0] for event in rehearsal.events}
    assert families.isdisjoint({"audio", "playback", "speech", "input", "transcript"})
    assert not rehearsal.decided(do.OpenOutput)


async def test_a_reply_without_output_ends_in_the_same_moment_as_its_text() -> None:
    rehearsal = Checked(ScriptedResponder(Script(says("One two three.", token_ms=100))))
    async with rehearsal.running():
        rehearsal.say("count")
        delivered = await rehearsal.until("delivery.recorded")
    (ended,) = rehearsal.of("run.terminal")
    assert delivered.occurred_at_ns == ended.occurred_at_ns
    assert [event.type for event in rehearsal.events].index("run.terminal") < rehearsal.events.index(delivered)


async def test_an_empty_reply_is_an_end_too() -> None:
    rehearsal = Checked(ScriptedResponder(steps(GenerationEnded())))
    async with rehearsal.running():
        rehearsal.say("hm")
        await rehearsal.until("delivery.recorded")
    assert outcomes(rehearsal) == [Outcome.COMPLETED]
    assert rehearsal.is_sound()


async def test_the_next_turn_is_answered_knowing_the_former_ones() -> None:
    responder = ScriptedResponder(Script(says("It is noon.")), Script(says("Soup.")))
    rehearsal = Checked(responder)
    async with rehearsal.running():
        rehearsal.say("what time is it")
        await rehearsal.until("delivery.recorded")
        rehearsal.say("what is for lunch")
        await rehearsal.until("delivery.recorded", 2)
    assert seen_by(responder, 1) == [
        ("user", "what time is it"),
        ("assistant", "It is noon."),
        ("user", "what is for lunch"),
    ]


async def test_a_new_message_cuts_the_reply_off_and_is_answered() -> None:
    responder = ScriptedResponder(Script(says(STORY, token_ms=100)), Script(says("As you like.")))
    rehearsal = Checked(responder)
    async with rehearsal.running():
        rehearsal.say("tell me a story")
        await rehearsal.until("text.delta", 5)
        rehearsal.say("stop, something else")
        await rehearsal.until_true(lambda: rehearsal.replies[-1].outcome is Outcome.COMPLETED)
        await rehearsal.until("delivery.recorded", 2)
    assert responder.streams[0].cancel_reason is not None
    assert [event.type for event in rehearsal.events].count("interruption.accepted") == 1
    assert outcomes(rehearsal) == [Outcome.CANCELLED, Outcome.COMPLETED]
    first = next(reply for reply in rehearsal.replies if reply.outcome is Outcome.CANCELLED)
    assert first.delivery is not None
    assert (first.delivery.status, first.delivery.text) == (DeliveryStatus.INTERRUPTED, "Once upon a time there")
    assert seen_by(responder, 1) == [
        ("user", "tell me a story"),
        ("assistant", "Once upon a time there [interrupted by the user]"),
        ("user", "stop, something else"),
    ]
    assert rehearsal.is_sound()


async def test_nothing_of_a_cut_off_reply_is_shown_after_the_cut() -> None:
    responder = ScriptedResponder(Script(says(STORY, token_ms=100), on_cancel=OnCancel.IGNORE), Script(says("Yes.")))
    rehearsal = Checked(responder)
    async with rehearsal.running():
        rehearsal.say("tell me a story")
        await rehearsal.until("text.delta", 3)
        rehearsal.say("stop")
        await rehearsal.until("delivery.recorded", 2)
    first = rehearsal.of("text.delta")[0].response_id
    assert len([event for event in rehearsal.of("text.delta") if event.response_id == first]) == 3
    assert rehearsal.is_sound()


async def test_a_run_is_cancelled_by_its_identity_and_no_other() -> None:
    rehearsal = Checked(ScriptedResponder(Script(says(STORY, token_ms=100))))
    async with rehearsal.running():
        rehearsal.say("tell me a story")
        started = await rehearsal.until("response.started")
        await rehearsal.until("text.delta", 2)
        rehearsal.cancel("run-of-somebody-else")
        await rehearsal.until("text.delta", 4)
        assert not rehearsal.of("cancel.requested")
        rehearsal.cancel(started.run_id)
        await rehearsal.until("run.terminal")
        await rehearsal.until("delivery.recorded")
    assert outcomes(rehearsal) == [Outcome.CANCELLED]
    assert len(rehearsal.of("interruption.accepted")) == 1
    assert rehearsal.is_sound()


async def test_closing_in_the_middle_of_a_reply_ends_it_and_leaves_nothing() -> None:
    responder = ScriptedResponder(Script(says(STORY, token_ms=100)))
    rehearsal = Checked(responder)
    async with rehearsal.running():
        rehearsal.say("tell me a story")
        await rehearsal.until("text.delta", 2)
    assert outcomes(rehearsal) == [Outcome.CANCELLED]
    assert responder.closed
    assert [event.type for event in rehearsal.events][-1] == "session.closed"
    assert rehearsal.is_sound()


async def test_a_shared_model_stays_open_for_the_other_conversations() -> None:
    responder = ScriptedResponder()
    session = Session(Conversation("one"), TextEngine(TextPorts(responder, is_shared=True)))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(session.run)
        await anyio.sleep(1)
        session.close()
    assert session.closed == Closed("requested")
    assert not responder.closed


async def test_the_tool_loop_is_the_same() -> None:
    async def weather(arguments: City) -> str:
        return f"rain in {arguments.city}"

    tool = Tool("weather", "The weather of a city.", City, weather)
    call = ToolCallProposed("c1", "weather", '{"city": "Oslo"}')
    responder = ScriptedResponder(
        steps(TextDelta("Let me see. "), call, GenerationEnded(awaits_tools=True)),
        steps(TextDelta("It rains."), GenerationEnded()),
    )
    rehearsal = Checked(responder, (tool,))
    async with rehearsal.running():
        rehearsal.say("how is the weather in Oslo")
        await rehearsal.until("delivery.recorded")
    (reply,) = rehearsal.replies
    assert [(known.status, known.output) for known in reply.tools] == [(ToolStatus.COMPLETED, "rain in Oslo")]
    assert reply.generated == "Let me see. It rains."
    assert [definition.name for definition in responder.requests[0].tools] == ["weather"]
    assert rehearsal.is_sound()


async def test_a_model_that_fails_with_half_a_reply_keeps_that_half_on_record() -> None:
    responder = ScriptedResponder(steps(TextDelta("It is "), GenerationErrored(scripted_error("model_died"))))
    rehearsal = Checked(responder)
    async with rehearsal.running():
        rehearsal.say("what time is it")
        await rehearsal.until("delivery.recorded")
    (reply,) = rehearsal.replies
    assert reply.delivery is not None
    assert (reply.outcome, reply.delivery.status, reply.delivery.text) == (
        Outcome.FAILED,
        DeliveryStatus.FAILED,
        "It is",
    )
    assert rehearsal.is_sound()


async def test_a_model_that_is_busy_is_asked_again() -> None:
    busy: Script[GenerationReport] = Script(open_error=scripted_error("model_busy", retryable=True))
    rehearsal = Checked(ScriptedResponder(busy, Script(says("Hello."))))
    async with rehearsal.running():
        rehearsal.say("hello")
        await rehearsal.until("delivery.recorded")
    assert outcomes(rehearsal) == [Outcome.COMPLETED]
    assert [event.type for event in rehearsal.events].count("response.started") == 2


async def test_a_cancel_that_nobody_acknowledges_renews_the_session_and_the_next_turn_is_answered() -> None:
    policies = Policies(generation=GenerationPolicy(cancel_ack_ms=500))
    responder = ScriptedResponder(Script(says(STORY, token_ms=100), on_cancel=OnCancel.HANG), Script(says("Hello.")))
    rehearsal = Checked(responder, policies=policies)
    async with rehearsal.running():
        rehearsal.say("tell me a story")
        await rehearsal.until("text.delta", 2)
        rehearsal.cancel()
        await rehearsal.until("session.ready", 2)
        rehearsal.say("hello")
        await rehearsal.until("delivery.recorded", 2)
    assert outcomes(rehearsal) == [Outcome.CANCELLED, Outcome.COMPLETED]
    assert [event.session_epoch for event in rehearsal.of("session.ready")] == [1, 2]
    assert rehearsal.is_sound()


class Unprepared(ScriptedResponder):
    """Fails to prepare, `failures` times."""

    def __init__(self, failures: int, *, retryable: bool) -> None:
        super().__init__(answers=lambda _: Script(says("Hello.")))
        self.failures = failures
        self._retryable = retryable

    async def prepare(self) -> None:
        if self.failures:
            self.failures -= 1
            raise PortError(scripted_error("model_missing", retryable=self._retryable))


async def test_a_model_that_is_not_there_yet_is_waited_for() -> None:
    rehearsal = Checked(Unprepared(2, retryable=True))
    async with rehearsal.running():
        rehearsal.say("hello")
        await rehearsal.until("delivery.recorded")
    assert len(rehearsal.of("session.reconnecting")) == 2
    assert rehearsal.is_sound()


async def test_a_model_that_cannot_be_had_ends_the_session_with_its_error() -> None:
    rehearsal = Checked(Unprepared(1, retryable=False), policies=Policies(connection=ConnectionPolicy(max_attempts=1)))
    async with rehearsal.running(ready=False):
        await anyio.sleep(1)
    assert rehearsal.closed is not None
    assert rehearsal.closed.error is not None
    assert rehearsal.closed.error.code == "model_missing"
    assert rehearsal.is_sound()


async def test_a_model_that_does_not_stream_is_said_to_be_one() -> None:
    rehearsal = Checked(ScriptedResponder(capabilities=ResponderCapabilities(text_deltas=False)))
    async with rehearsal.running():
        ready = rehearsal.of("session.ready")[0].payload
    assert isinstance(ready, SessionReady)
    assert ready.degradations == ("responder: whole replies only",)


async def test_many_impatient_messages_are_all_answered_or_answered_together() -> None:
    def answers(request: GenerationRequest) -> Script[GenerationReport]:
        return Script(says("I am answering as fast as I can.", token_ms=40))

    responder = ScriptedResponder(answers=answers)
    rehearsal = Checked(responder)
    async with rehearsal.running():
        for number in range(8):
            rehearsal.say(f"question {number}")
            await anyio.sleep(0.1)
        await rehearsal.until_true(lambda: Outcome.COMPLETED in outcomes(rehearsal))
        await rehearsal.until_true(lambda: rehearsal.replies[-1].delivery is not None)
    asked = [text for role, text in seen_by(responder, -1) if role == "user"]
    assert asked == [f"question {number}" for number in range(8)]
    assert rehearsal.is_sound()
