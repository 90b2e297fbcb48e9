"""What is said while a tool is slow: in the reply's own speech, one line at a time, and never a word too late."""

from __future__ import annotations

import anyio
import pytest
from pydantic import BaseModel
from trio.testing import MockClock

from voicechart.engines import HoldLine, HoldLines, Tool, ToolError
from voicechart.engines.reports import GenerationEnded, GenerationReport, TextDelta, ToolCallProposed
from voicechart.engines.testing import (
    Rehearsal,
    Script,
    ScriptedResponder,
    ScriptedSynthesizer,
    SpeechScript,
    Step,
    says,
)
from voicechart.statecharts.values import DeliveryStatus

pytestmark = pytest.mark.anyio

LINES = HoldLines(
    (HoldLine(500, "One moment."), HoldLine(2_000, "Still looking."), HoldLine(6_000, "Sorry.")), "Oh no."
)


@pytest.fixture
def anyio_backend() -> object:
    return "trio", {"clock": MockClock(autojump_threshold=0)}


class Nothing(BaseModel):
    pass


def slow(seconds: float, *, fails: bool = False, hold: HoldLines = LINES, name: str = "look") -> Tool:
    async def run(_: Nothing) -> str:
        await anyio.sleep(seconds)
        if fails:
            raise ToolError("nothing there")
        return "found"

    return Tool(name, "Looks.", Nothing, run, hold=hold)


def asks(*names: str, text: str = "") -> Script[GenerationReport]:
    steps = [Step(TextDelta(text))] if text else []
    steps += [Step(ToolCallProposed(f"c{number}", name, "{}")) for number, name in enumerate(names)]
    return Script([*steps, Step(GenerationEnded(awaits_tools=True))])


async def said_with(*tools: Tool, text: str = "", ms_per_char: int = 20) -> tuple[list[tuple[str, float]], Rehearsal]:
    """Every unit that went to the synthesiser, with the seconds since the first tool began."""
    responder = ScriptedResponder(asks(*(tool.name for tool in tools), text=text), Script(says("Here it is.")))
    synthesizer = ScriptedSynthesizer(SpeechScript(ms_per_char=ms_per_char))
    rehearsal = Rehearsal(responder=responder, synthesizer=synthesizer, tools=tools)
    async with rehearsal.running():
        rehearsal.say("look")
        await rehearsal.until("delivery.recorded")
    began = next((event.occurred_at_ns for event in rehearsal.of("tool.started")), 0)
    units = rehearsal.of("speech.text_committed")
    return [
        (str(getattr(event.payload, "text", "")), round((event.occurred_at_ns - began) / 1e9, 1)) for event in units
    ], rehearsal


async def test_nothing_is_said_when_the_tool_is_quick() -> None:
    said, _ = await said_with(slow(0.499))
    assert [text for text, _ in said] == ["Here it is."]


async def test_the_ladder_is_climbed_as_long_as_the_tool_runs_and_the_answer_follows() -> None:
    said, _ = await said_with(slow(7))
    assert said == [("One moment.", 0.5), ("Still looking.", 2.0), ("Sorry.", 6.0), ("Here it is.", 7.0)]


async def test_a_tool_that_ends_at_once_after_the_first_rung_stops_the_ladder() -> None:
    said, _ = await said_with(slow(1.9))
    assert [text for text, _ in said] == ["One moment.", "Here it is."]


async def test_two_lines_never_overlap_and_of_rungs_that_waited_only_the_last_is_said() -> None:
    # "One moment." takes 6.6 s: both later rungs came due meanwhile.
    said, _ = await said_with(slow(10), ms_per_char=600)
    assert [text for text, _ in said] == ["One moment.", "Sorry.", "Here it is."]
    assert said[1][1] >= 0.5 + 6.6


async def test_a_rung_waits_for_what_the_model_said_before_the_call() -> None:
    said, _ = await said_with(slow(4), text="Let me look that up for you. ", ms_per_char=100)
    # Twenty-eight letters are 2.8 s of speech.
    assert [text for text, _ in said] == ["Let me look that up for you.", "Still looking.", "Here it is."]
    assert said[1][1] >= 2.8


async def test_a_failure_has_its_own_line_and_the_model_goes_on() -> None:
    said, rehearsal = await said_with(slow(1, fails=True))
    assert [text for text, _ in said] == ["One moment.", "Oh no.", "Here it is."]
    assert rehearsal.replies[0].tools[0].output == "nothing there"


async def test_a_call_that_was_refused_is_no_failure_of_a_tool() -> None:
    class Demanding(BaseModel):
        what: str

    async def run(_: Demanding) -> str:
        raise AssertionError

    said, _ = await said_with(Tool("look", "Looks.", Demanding, run, hold=LINES))
    assert [text for text, _ in said] == ["Here it is."]


async def test_calls_beside_each_other_share_one_ladder_and_one_word_of_regret() -> None:
    said, _ = await said_with(slow(3, fails=True), slow(4, fails=True, name="also"))
    assert [text for text, _ in said] == ["One moment.", "Still looking.", "Oh no.", "Here it is."]


async def test_a_tool_without_lines_is_waited_for_in_silence() -> None:
    said, _ = await said_with(slow(20, hold=HoldLines()))
    assert [text for text, _ in said] == ["Here it is."]


async def test_what_is_said_aside_is_neither_the_models_text_nor_lost_in_the_count_of_units() -> None:
    said, rehearsal = await said_with(slow(3), text="Let me look. ")
    assert [text for text, _ in said] == ["Let me look.", "One moment.", "Still looking.", "Here it is."]
    reply = rehearsal.replies[0]
    assert reply.generated == "Let me look. Here it is."
    assert reply.delivery is not None
    assert (reply.delivery.status, reply.delivery.units) == (DeliveryStatus.DELIVERED, 4)


async def test_an_interruption_silences_a_line_and_stops_the_ladder() -> None:
    responder = ScriptedResponder(asks("look", text="Let me look. "), Script(says("Very well.")))
    rehearsal = Rehearsal(
        responder=responder, synthesizer=ScriptedSynthesizer(SpeechScript(ms_per_char=20)), tools=(slow(60),)
    )
    async with rehearsal.running():
        rehearsal.say("look")
        await rehearsal.until("speech.text_committed", 2)
        rehearsal.press_button()
        await rehearsal.until("delivery.recorded")
        await anyio.sleep(30)
        reply = rehearsal.replies[0]
        assert reply.delivery is not None
        assert reply.delivery.status is DeliveryStatus.INTERRUPTED
        assert reply.delivery.text == "Let me look."
        assert len(rehearsal.of("speech.text_committed")) == 2
        rehearsal.say("never mind")
        await rehearsal.until("delivery.recorded", 2)
    assert "One moment" not in "".join(message.text for message in responder.requests[1].messages)
    assert rehearsal.left_behind == ()


async def test_an_interruption_before_the_first_rung_means_that_nothing_is_ever_said() -> None:
    rehearsal = Rehearsal(responder=ScriptedResponder(asks("look")), tools=(slow(60),))
    async with rehearsal.running():
        rehearsal.say("look")
        await rehearsal.until("tool.started")
        rehearsal.cancel()
        await rehearsal.until("delivery.recorded")
        await anyio.sleep(30)
    assert rehearsal.of("speech.text_committed") == []


@pytest.mark.parametrize(
    "ladder",
    [
        (HoldLine(2, "a"), HoldLine(1, "b")),
        (HoldLine(1, "a"), HoldLine(1, "b")),
        (HoldLine(-1, "a"),),
        (HoldLine(1, " "),),
        (HoldLine(1, "x" * 301),),
    ],
)
def test_a_ladder_that_does_not_rise_or_says_nothing_is_refused(ladder: tuple[HoldLine, ...]) -> None:
    with pytest.raises(ValueError, match="hold line"):
        HoldLines(ladder)
