"""From a turn to text: streams that behave, and every way in which they do not."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace

import anyio
import pytest
from trio.testing import MockClock

from voicechart.engines.ports import GenerationRequest, Message
from voicechart.engines.reports import (
    GenerationEnded,
    GenerationErrored,
    GenerationReport,
    GenerationStopped,
    ReasoningDelta,
    TextDelta,
    UsageUpdated,
)
from voicechart.engines.testing import (
    HANDS_FREE,
    LinkScript,
    OnCancel,
    Rehearsal,
    Script,
    ScriptedDevice,
    ScriptedResponder,
    ScriptedSynthesizer,
    SpeakerScript,
    SpeechScript,
    Step,
    says,
    scripted_error,
)
from voicechart.engines.testing.generation import ScriptedGenerationStream
from voicechart.statecharts.facts import ConnectionLost
from voicechart.statecharts.policies import GenerationPolicy
from voicechart.statecharts.published import ResponseTerminal, StreamError, UsageChanged
from voicechart.statecharts.values import DeliveryStatus, Outcome, Usage

pytestmark = pytest.mark.anyio
REFUSED: Script[GenerationReport] = Script(open_error=scripted_error("auth_refused"))
STORY = "Once upon a time there was a clock. It told the time to nobody. One day somebody asked it. And it was glad."


@pytest.fixture
def anyio_backend() -> object:
    return "trio", {"clock": MockClock(autojump_threshold=0)}


def terminal_of(rehearsal: Rehearsal, index: int = 0) -> ResponseTerminal:
    payload = rehearsal.of("response.terminal")[index].payload
    assert isinstance(payload, ResponseTerminal)
    return payload


def error_codes(rehearsal: Rehearsal) -> list[str]:
    return [
        event.payload.error.code for event in rehearsal.of("stream.error") if isinstance(event.payload, StreamError)
    ]


def steps(*reports: GenerationReport) -> Script[GenerationReport]:
    return Script([Step(report) for report in reports])


def seen_by(responder: ScriptedResponder, index: int) -> list[tuple[str, str]]:
    return [(message.role, message.text) for message in responder.requests[index].messages]


async def answered(rehearsal: Rehearsal, text: str = "go on", count: int = 1) -> None:
    rehearsal.say(text)
    await rehearsal.until("delivery.recorded", count)


# -- streaming -----------------------------------------------------------------------------------------------------


async def test_speech_begins_before_the_model_has_finished() -> None:
    rehearsal = Rehearsal(responder=ScriptedResponder(Script(says(STORY, token_ms=300))))
    async with rehearsal.running():
        await answered(rehearsal)
    kinds = [event.type for event in rehearsal.events]
    assert kinds.index("playback.started") < kinds.index("response.terminal")
    reply = rehearsal.replies[0]
    assert (reply.generated, reply.outcome) == (STORY, Outcome.COMPLETED)
    assert reply.delivery is not None
    assert (reply.delivery.status, reply.delivery.text) == (DeliveryStatus.DELIVERED, STORY)
    assert rehearsal.left_behind == ()


async def test_every_delta_is_published_and_the_final_text_is_their_sum() -> None:
    rehearsal = Rehearsal(responder=ScriptedResponder(Script(says(STORY))))
    async with rehearsal.running():
        await answered(rehearsal)
    deltas = "".join(str(event.as_json()["payload"]["text"]) for event in rehearsal.of("text.delta"))
    assert deltas == STORY == rehearsal.of("text.final")[0].as_json()["payload"]["text"]


async def test_a_model_that_does_not_stream_is_spoken_all_the_same() -> None:
    rehearsal = Rehearsal(responder=ScriptedResponder(steps(GenerationEnded(final_text=STORY))))
    async with rehearsal.running():
        await answered(rehearsal)
    assert rehearsal.replies[0].generated == STORY
    assert terminal_of(rehearsal).outcome is Outcome.COMPLETED
    assert rehearsal.replies[0].delivery is not None
    assert rehearsal.replies[0].delivery.text == STORY


async def test_what_the_final_snapshot_adds_to_the_deltas_is_spoken_too() -> None:
    synthesizer = ScriptedSynthesizer()
    responder = ScriptedResponder(steps(TextDelta("Once upon a time. "), GenerationEnded("Once upon a time. The end.")))
    rehearsal = Rehearsal(responder=responder, synthesizer=synthesizer)
    async with rehearsal.running():
        await answered(rehearsal)
    assert [unit.text for unit in synthesizer.streams[0].units] == ["Once upon a time.", "The end."]


async def test_a_final_snapshot_that_differs_replaces_the_deltas_on_record_and_is_not_spoken_again() -> None:
    synthesizer = ScriptedSynthesizer()
    responder = ScriptedResponder(steps(TextDelta("It is noon now."), GenerationEnded("It is noon.")))
    rehearsal = Rehearsal(responder=responder, synthesizer=synthesizer)
    async with rehearsal.running():
        await answered(rehearsal)
    assert rehearsal.replies[0].generated == "It is noon."
    assert [unit.text for unit in synthesizer.streams[0].units] == ["It is noon now."]


async def test_reasoning_is_neither_shown_nor_spoken() -> None:
    responder = ScriptedResponder(
        steps(ReasoningDelta("they want the time"), TextDelta("It is noon."), GenerationEnded())
    )
    rehearsal = Rehearsal(responder=responder)
    async with rehearsal.running():
        await answered(rehearsal)
    assert rehearsal.replies[0].generated == "It is noon."


async def test_a_model_that_only_thinks_for_longer_than_the_stall_deadline_is_alive() -> None:
    policies = replace(HANDS_FREE, generation=GenerationPolicy(stall_ms=5_000))
    thinking = [Step(ReasoningDelta("hm"), wait_ms=2_000) for _ in range(6)]
    responder = ScriptedResponder(Script([*thinking, *says("It is noon.")]))
    rehearsal = Rehearsal(responder=responder, policies=policies)
    async with rehearsal.running():
        await answered(rehearsal)
    assert terminal_of(rehearsal).outcome is Outcome.COMPLETED


async def test_usage_is_told() -> None:
    usage = Usage(10, 3)
    rehearsal = Rehearsal(
        responder=ScriptedResponder(steps(TextDelta("It is noon."), UsageUpdated(usage), GenerationEnded()))
    )
    async with rehearsal.running():
        await answered(rehearsal)
    assert rehearsal.of("usage.updated")[0].payload == UsageChanged(usage)


@pytest.mark.parametrize("text", ["", "```\nprint(1)\n```\n"])
async def test_a_reply_without_anything_to_say_is_text_only(text: str) -> None:
    synthesizer = ScriptedSynthesizer()
    rehearsal = Rehearsal(
        responder=ScriptedResponder(steps(TextDelta(text), GenerationEnded())), synthesizer=synthesizer
    )
    async with rehearsal.running():
        await answered(rehearsal)
    assert rehearsal.replies[0].delivery is not None
    assert rehearsal.replies[0].delivery.status is DeliveryStatus.TEXT_ONLY
    assert rehearsal.replies[0].generated == text
    assert synthesizer.opened == 0
    assert rehearsal.left_behind == ()


async def test_a_model_that_never_pauses_does_not_keep_an_interruption_waiting() -> None:
    rehearsal = Rehearsal(responder=ScriptedResponder(Script(says("and so on " * 3_000))))
    async with rehearsal.running():
        rehearsal.say("go on")
        await rehearsal.until("text.delta")
        rehearsal.press_button()
        await rehearsal.until("response.terminal")
    assert len(rehearsal.of("text.delta")) < 100


# -- failing -------------------------------------------------------------------------------------------------------


async def test_a_failure_before_any_text_is_tried_again_with_the_same_speech() -> None:
    synthesizer = ScriptedSynthesizer()
    busy = scripted_error("model_busy", retryable=True)
    responder = ScriptedResponder(
        Script(open_error=busy), steps(GenerationErrored(busy)), Script(says("It is noon, and all is well."))
    )
    rehearsal = Rehearsal(responder=responder, synthesizer=synthesizer)
    async with rehearsal.running():
        await answered(rehearsal)
    assert [event.payload.attempt for event in rehearsal.of("response.started")] == [1, 2, 3]  # type: ignore[attr-defined]
    assert len({event.attempt_id for event in rehearsal.of("response.started")}) == 3
    assert synthesizer.opened == 1
    assert [unit.text for unit in synthesizer.streams[0].units] == ["It is noon, and all is well."]
    assert len(rehearsal.replies) == 1


async def test_a_failure_after_text_is_never_tried_again_and_what_was_written_is_spoken() -> None:
    responder = ScriptedResponder(
        steps(TextDelta("Once upon a time. There"), GenerationErrored(scripted_error("model_died", retryable=True)))
    )
    rehearsal = Rehearsal(responder=responder)
    async with rehearsal.running():
        await answered(rehearsal)
    assert len(responder.requests) == 1
    assert error_codes(rehearsal) == ["model_died"]
    reply = rehearsal.replies[0]
    assert reply.outcome is Outcome.FAILED
    assert reply.delivery is not None
    assert (reply.delivery.status, reply.delivery.text) == (DeliveryStatus.FAILED, "Once upon a time. There")


@pytest.mark.parametrize(
    ("script", "code"),
    [
        (steps(TextDelta("Once upon a time. ")), "model_cut_off"),
        (steps(TextDelta("Once upon a time. "), GenerationStopped()), "model_stopped"),
        (steps(TextDelta("x" * 70_000)), "reply_too_long"),
        (REFUSED, "auth_refused"),
    ],
)
async def test_a_stream_that_does_not_end_as_it_should_is_a_failure_with_its_name(
    script: Script[GenerationReport], code: str
) -> None:
    rehearsal = Rehearsal(responder=ScriptedResponder(script, Script(says("Here I am again."))))
    async with rehearsal.running():
        rehearsal.say("go on")
        await rehearsal.until("delivery.recorded")
        await answered(rehearsal, count=2)
    assert terminal_of(rehearsal).outcome is Outcome.FAILED
    assert error_codes(rehearsal) == [code]
    assert terminal_of(rehearsal, 1).outcome is Outcome.COMPLETED
    assert rehearsal.left_behind == ()


async def test_a_reply_as_long_as_may_be_is_not_too_long() -> None:
    text = "x" * 65_536
    rehearsal = Rehearsal(
        responder=ScriptedResponder(steps(TextDelta(text), GenerationEnded())),
        synthesizer=ScriptedSynthesizer(SpeechScript(ms_per_char=0)),
    )
    async with rehearsal.running():
        await answered(rehearsal)
    assert terminal_of(rehearsal).outcome is Outcome.COMPLETED


class _Raising(ScriptedGenerationStream):
    """An adapter with a programming error."""

    async def reports(self) -> AsyncIterator[GenerationReport]:
        yield TextDelta("Once upon a time. ")
        raise ZeroDivisionError


class _RaisingResponder(ScriptedResponder):
    async def open(self, request: GenerationRequest) -> ScriptedGenerationStream:
        if not self.requests:
            self.requests.append(request)
            return _Raising(request, Script())
        return await super().open(request)


async def test_a_model_adapter_that_raises_what_it_may_not_fails_its_reply_and_nothing_else() -> None:
    responder = _RaisingResponder(Script(), Script(says("Here I am again.")))
    rehearsal = Rehearsal(responder=responder)
    async with rehearsal.running():
        await answered(rehearsal)
        await answered(rehearsal, count=2)
    assert error_codes(rehearsal) == ["port_broken"]
    assert [reply.outcome for reply in rehearsal.replies] == [Outcome.FAILED, Outcome.COMPLETED]


async def test_a_model_that_never_opens_fails_within_its_deadline() -> None:
    policies = replace(HANDS_FREE, generation=GenerationPolicy(stall_ms=600_000, max_attempts=1))
    rehearsal = Rehearsal(responder=ScriptedResponder(Script(open_after_ms=3_600_000)), policies=policies)
    async with rehearsal.running():
        rehearsal.say("go on")
        await rehearsal.until("response.terminal")
    assert error_codes(rehearsal) == ["model_not_opened"]
    assert rehearsal.left_behind == ()


# -- cancelling ----------------------------------------------------------------------------------------------------


async def test_a_stream_that_is_not_open_yet_is_never_opened_and_acknowledged_at_once() -> None:
    responder = ScriptedResponder(Script(open_after_ms=20_000), Script(says("Here I am.")))
    rehearsal = Rehearsal(responder=responder)
    async with rehearsal.running():
        rehearsal.say("go on")
        await rehearsal.until("response.started")
        await anyio.wait_all_tasks_blocked()
        began_s = anyio.current_time()
        rehearsal.cancel()
        await rehearsal.until("response.terminal")
        assert anyio.current_time() - began_s < 0.1
        await answered(rehearsal, count=2)
    assert terminal_of(rehearsal) == ResponseTerminal(Outcome.CANCELLED, "asked_for", acknowledged=True)
    assert len(responder.streams) == 1
    assert rehearsal.replies[1].generated == "Here I am."


async def test_a_reply_that_waits_to_be_tried_again_is_cancelled_at_once() -> None:
    busy = replace(scripted_error("model_busy", retryable=True), retry_after_ms=8_000)
    responder = ScriptedResponder(steps(GenerationErrored(busy)), Script(says("Here I am.")))
    rehearsal = Rehearsal(responder=responder)
    async with rehearsal.running():
        rehearsal.say("go on")
        await rehearsal.until("response.started")
        await anyio.sleep(1)
        began_s = anyio.current_time()
        rehearsal.cancel()
        await rehearsal.until("response.terminal")
        assert anyio.current_time() - began_s < 0.1
        await anyio.sleep(20)
    assert terminal_of(rehearsal).acknowledged
    assert len(responder.requests) == 1


async def test_a_cancelled_model_is_told_and_what_it_still_says_counts_for_nothing() -> None:
    responder = ScriptedResponder(Script(says(STORY, token_ms=200), on_cancel=OnCancel.IGNORE))
    rehearsal = Rehearsal(responder=responder)
    async with rehearsal.running():
        rehearsal.say("go on")
        await rehearsal.until("text.delta", 3)
        rehearsal.press_button()
        await rehearsal.until("cancel.requested")
        shown = len(rehearsal.of("text.delta"))
        await anyio.sleep(1)
        assert len(rehearsal.of("text.delta")) == shown
        await rehearsal.until("response.terminal")
    assert responder.streams[0].cancel_reason == "asked_for"
    assert STORY.startswith(rehearsal.replies[0].generated)
    assert len(rehearsal.replies[0].generated) < 30


async def test_a_model_that_never_acknowledges_is_let_go_and_the_session_is_renewed() -> None:
    responder = ScriptedResponder(
        Script(says(STORY, token_ms=200), on_cancel=OnCancel.HANG), Script(says("Here I am."))
    )
    device = ScriptedDevice()
    rehearsal = Rehearsal(responder=responder, device=device)
    async with rehearsal.running():
        rehearsal.say("go on")
        await rehearsal.until("text.delta", 3)
        rehearsal.press_button()
        await rehearsal.until("session.ready", 2)
        assert responder.streams[0].closed
        await answered(rehearsal, count=2)
    assert not terminal_of(rehearsal).acknowledged
    assert rehearsal.replies[1].generated == "Here I am."
    assert [link.left for link in device.links] == [True, True]
    assert rehearsal.left_behind == ()


async def test_a_reply_that_is_lost_with_its_session_stops_generating() -> None:
    responder = ScriptedResponder(Script(says(STORY, token_ms=2_000)))
    rehearsal = Rehearsal(responder=responder)
    async with rehearsal.running():
        rehearsal.say("go on")
        await rehearsal.until("text.delta", 3)
        rehearsal.tell(ConnectionLost(at=rehearsal.now_ns, error=scripted_error("speaker_lost", "playback")))
        await rehearsal.until("session.ready", 2)
        await anyio.wait_all_tasks_blocked()
        assert responder.streams[0].closed
        shown = len(rehearsal.of("text.delta"))
        await anyio.sleep(30)
        assert len(rehearsal.of("text.delta")) == shown
    assert rehearsal.left_behind == ()


# -- context -------------------------------------------------------------------------------------------------------


async def test_the_model_sees_what_was_heard_of_an_interrupted_reply_also_when_the_receipt_is_late() -> None:
    device = ScriptedDevice(LinkScript(speaker=SpeakerScript(stop_receipt_after_ms=400)))
    responder = ScriptedResponder(Script(says(STORY)), Script(says("Very well.")))
    rehearsal = Rehearsal(device=device, responder=responder, system_prompt="Be kind.")
    async with rehearsal.running():
        rehearsal.say("tell me a story")
        await rehearsal.until("playback.progress", 30)
        rehearsal.say("stop")
        await rehearsal.until("delivery.recorded", 2)
    assert seen_by(responder, 1) == [
        ("system", "Be kind."),
        ("user", "tell me a story"),
        ("assistant", "Once upon a time there was a clock. [interrupted by the user]"),
        ("user", "stop"),
    ]
    assert rehearsal.replies[0].delivery is not None
    assert rehearsal.replies[0].delivery.text == "Once upon a time there was a clock."


async def test_without_a_receipt_the_model_is_told_that_nobody_knows() -> None:
    device = ScriptedDevice(LinkScript(speaker=SpeakerScript(stop_receipts=False)))
    responder = ScriptedResponder(Script(says(STORY)), Script(says("Very well.")))
    rehearsal = Rehearsal(device=device, responder=responder)
    async with rehearsal.running():
        rehearsal.say("tell me a story")
        await rehearsal.until("playback.progress", 5)
        rehearsal.say("stop")
        await rehearsal.until("delivery.recorded", 2)
    assert seen_by(responder, 1) == [
        ("user", "tell me a story"),
        ("assistant", "[interrupted; how much was heard is unknown]"),
        ("user", "stop"),
    ]


async def test_a_cut_reply_stands_before_the_turn_that_cut_it() -> None:
    """Case 24: history is in the order of the start of playback."""
    responder = ScriptedResponder(Script(says(STORY)), Script(says("Very well.")))
    rehearsal = Rehearsal(responder=responder)
    async with rehearsal.running():
        rehearsal.say("tell me a story")
        await rehearsal.until("playback.progress", 5)
        rehearsal.say("stop")
        await rehearsal.until("delivery.recorded", 2)
    kinds = [type(record).__name__ for record in rehearsal.records]
    assert kinds == ["UserTurn", "Reply", "UserTurn", "Reply"]
    assert [reply.generated for reply in rehearsal.replies] == [STORY, "Very well."]


async def test_the_first_request_holds_the_turn() -> None:
    responder = ScriptedResponder(Script(says("Very well.")))
    rehearsal = Rehearsal(responder=responder)
    async with rehearsal.running():
        await answered(rehearsal, "what time is it")
    assert responder.requests[0].messages == (Message("user", "what time is it"),)
