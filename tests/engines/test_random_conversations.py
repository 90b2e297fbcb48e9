"""Whatever people do and whatever the ports do wrong: one outcome and one delivery a reply, and nothing stale or left.

Each example is a conversation of random acts over ports with random faults, on virtual time. What was heard is read
from the samples, each of which says which epoch and which unit it belongs to.
"""

from __future__ import annotations

from collections import Counter
from itertools import groupby
from random import Random

import anyio
import pytest
import trio.testing
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from voicechart.engines import Tool, ToolError
from voicechart.engines.ports import GenerationRequest
from voicechart.engines.reports import (
    GenerationEnded,
    GenerationErrored,
    GenerationReport,
    RecognitionErrored,
    RecognitionReport,
    ToolCallProposed,
)
from voicechart.engines.testing import (
    LinkScript,
    OnCancel,
    Rehearsal,
    RehearsalOver,
    Script,
    ScriptedDevice,
    ScriptedRecognizer,
    ScriptedResponder,
    ScriptedSynthesizer,
    SpeakerScript,
    SpeechScript,
    Step,
    hears,
    says,
    scripted_error,
)
from voicechart.statecharts import actions as do
from voicechart.statecharts.errors import ErrorScope, ScopedError
from voicechart.statecharts.policies import GenerationPolicy, InterruptionPolicy, PlaybackPolicy, Policies, TurnPolicy
from voicechart.statecharts.values import DeliveryStatus, InterruptionSource

VOICE = 1_000
GONE = ScopedError("audio_service_lost", "connection", ErrorScope.SESSION, "it went away", retryable=True)
SENTENCES = ("Once there was a clock.", "It told the time to nobody.", "One day somebody asked.", "And it was glad.")


class Nothing(BaseModel):
    pass


class Chance:
    """What goes wrong in one conversation."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.calls = 0

    def ms(self, *choices: float) -> float:
        return self.random.choice(choices)

    def happens(self, probability: float) -> bool:
        return self.random.random() < probability

    def on_cancel(self) -> OnCancel:
        return self.random.choice([OnCancel.ACKNOWLEDGE] * 4 + [OnCancel.IGNORE, OnCancel.HANG])

    def reply(self, _: GenerationRequest) -> Script[GenerationReport]:
        text = " ".join(SENTENCES[: self.random.randint(0, len(SENTENCES))])
        steps = list(says(text, token_ms=self.ms(0, 20, 200), ends=False))
        if self.happens(0.3):
            self.calls += 1
            identity = self.random.choice(["c1", f"c{self.calls}"])
            name = self.random.choice(["quick", "slow", "background", "broken", "unknown"])
            steps.append(Step(ToolCallProposed(identity, name, "{}")))
            steps.append(Step(GenerationEnded(awaits_tools=True)))
        elif self.happens(0.15):
            steps.append(Step(GenerationErrored(scripted_error("model_died", retryable=self.happens(0.5)))))
        elif self.happens(0.9):
            steps.append(Step(GenerationEnded(), wait_ms=self.ms(0, 0, 0, 60_000)))
        return Script(
            steps,
            on_cancel=self.on_cancel(),
            acknowledge_after_ms=self.ms(0, 0, 100),
            open_after_ms=self.ms(0, 0, 200, 50_000),
            open_error=scripted_error("model_busy", retryable=True) if self.happens(0.1) else None,
        )

    def speech(self) -> SpeechScript:
        return SpeechScript(
            ms_per_char=20,
            first_frame_after_ms=self.ms(0, 0, 100, 20_000),
            frame_every_ms=self.ms(0, 0, 20, 40),
            fails_at_unit=self.random.choice([None, None, None, 0, 2]),
            ends_without_terminal=self.happens(0.1),
            on_cancel=self.on_cancel(),
            open_after_ms=self.ms(0, 0, 50),
            open_error=scripted_error("voice_missing", "synthesis") if self.happens(0.05) else None,
        )

    def hearing(self) -> Script[RecognitionReport]:
        steps = list(hears(self.random.choice(["", "mhm", "please stop it", "what time is it now"])))
        if self.happens(0.2):
            steps.insert(0, Step(RecognitionErrored(scripted_error("stt_died", "recognition")), written_samples=3_200))
        return Script(steps, on_cancel=self.on_cancel(), open_after_ms=self.ms(0, 0, 300, 60_000))

    def link(self) -> LinkScript:
        return LinkScript(
            connect_after_ms=self.ms(0, 50),
            connect_error=GONE if self.happens(0.1) else None,
            speaker=SpeakerScript(
                stands_still=self.happens(0.05),
                receipts=not self.happens(0.05),
                stop_receipts=not self.happens(0.1),
                stop_receipt_after_ms=self.ms(0, 0, 200, 1_500),
                knows_position=not self.happens(0.1),
                pause=self.happens(0.8),
                write_deadline_ms=1_000,
                write_error=scripted_error("queue_refused", "playback") if self.happens(0.03) else None,
                open_after_ms=self.ms(0, 0, 20),
            ),
        )

    def policies(self) -> Policies:
        return Policies(
            interruption=InterruptionPolicy(
                sources=frozenset(InterruptionSource), full_duplex=True, pause_first=self.happens(0.5)
            ),
            turn=TurnPolicy(finalization_ms=2_000),
            generation=GenerationPolicy(stall_ms=5_000, tool_ms=3_000, first_audio_ms=4_000, cancel_ack_ms=1_000),
            playback=PlaybackPolicy(stall_ms=2_000),
        )


async def quick(_: Nothing) -> str:
    return "done"


async def slow(_: Nothing) -> str:
    await anyio.sleep(10)
    return "done late"


async def broken(_: Nothing) -> str:
    raise ToolError("it is broken")


TOOLS = (
    Tool("quick", "", Nothing, quick),
    Tool("slow", "", Nothing, slow),
    Tool("background", "", Nothing, slow, background=True),
    Tool("broken", "", Nothing, broken),
)


async def act(rehearsal: Rehearsal, device: ScriptedDevice, chance: Chance) -> None:
    """One thing that people, or the world, do next."""
    choice = chance.random.randrange(10)
    if choice <= 2:
        rehearsal.say(chance.random.choice(["hello", "tell me a story", "stop"]))
    elif choice == 3:
        rehearsal.press_button()
    elif choice == 4:
        rehearsal.cancel()
    elif choice <= 7:
        await device.microphone.listen(chance.random.choice([100, 400, 900]), VOICE)
        await device.microphone.listen(chance.random.choice([0, 100, 700]))
    elif choice == 8:
        device.microphone.lose(chance.random.choice([50, 400, 1_500]))
    elif chance.happens(0.3):
        device.speaker.lose(GONE)
    await anyio.sleep(chance.random.choice([0, 0.01, 0.1, 0.5, 2, 5]))


async def converse(seed: int) -> tuple[Rehearsal, ScriptedDevice]:
    chance = Chance(seed)
    device = ScriptedDevice(LinkScript(), *(chance.link() for _ in range(6)), LinkScript())
    rehearsal = Rehearsal(
        device=device,
        recognizer=ScriptedRecognizer(*(chance.hearing() for _ in range(60))),
        responder=ScriptedResponder(answers=chance.reply),
        synthesizer=ScriptedSynthesizer(*(chance.speech() for _ in range(40))),
        tools=TOOLS,
        policies=chance.policies(),
    )
    try:
        async with rehearsal.running():
            for _ in range(chance.random.randint(1, 25)):
                if rehearsal.session.closed is None:
                    await act(rehearsal, device, chance)
            if chance.happens(0.5):
                # A quiet world comes to rest by itself.
                await anyio.sleep(120)
    except RehearsalOver:
        pass
    return rehearsal, device


def heard_of(pcm: bytes) -> list[tuple[int, int]]:
    """(epoch, unit) of each run of samples, in order."""
    return [((value - 1) // 100, (value - 1) % 100) for value, _ in groupby(memoryview(pcm).cast("h"))]


def check_the_record(rehearsal: Rehearsal) -> None:
    started = {event.response_id for event in rehearsal.of("response.started")}
    terminals = Counter(event.response_id for event in rehearsal.of("response.terminal"))
    deliveries = Counter(event.response_id for event in rehearsal.of("delivery.recorded"))
    assert terminals == Counter(started)
    assert deliveries == Counter(started)
    for reply in rehearsal.replies:
        assert reply.outcome is not None
        assert reply.delivery is not None
        assert reply.delivery.status is DeliveryStatus.TEXT_ONLY or reply.generated.startswith(reply.delivery.text)
        assert all(exchange.status is not None for exchange in reply.tools)
    executed = Counter((action.response_id, action.call_id) for action in rehearsal.decided(do.ExecuteTool))
    assert all(times == 1 for times in executed.values())
    outcomes = Counter((action.response_id, action.call_id) for action in rehearsal.decided(do.RecordToolOutcome))
    assert set(executed) <= set(outcomes)
    assert all(times == 1 for times in outcomes.values())


def check_what_was_heard(rehearsal: Rehearsal, device: ScriptedDevice) -> None:
    replies = {reply.response_id: reply for reply in rehearsal.replies}
    opened = {action.stream_id: action for action in rehearsal.decided(do.OpenOutput)}
    for link in device.links:
        assert link.left
        assert link.speaker.peak_queued_ms <= 1_000
        for stream_id, output in link.speaker.outputs.items():
            runs = heard_of(output.heard_pcm)
            assert {epoch for epoch, _ in runs} <= {output.opening.output_epoch}
            units = [unit for _, unit in runs]
            assert units == list(range(len(units)))
            delivery = replies[opened[stream_id].response_id].delivery
            assert delivery is not None
            assert delivery.units <= len(units)


@pytest.mark.slow
@settings(max_examples=80, deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_any_conversation_over_any_ports_keeps_its_promises(seed: int) -> None:
    clock = trio.testing.MockClock(autojump_threshold=0)
    rehearsal, device = anyio.run(converse, seed, backend="trio", backend_options={"clock": clock})
    assert rehearsal.left_behind == ()
    assert rehearsal.closed is not None
    assert rehearsal.closed.error is None or rehearsal.closed.error.code != "internal_error"
    check_the_record(rehearsal)
    check_what_was_heard(rehearsal, device)


@pytest.mark.parametrize("seed", range(3))
def test_the_same_on_asyncio_with_a_conversation_that_is_cut_short(seed: int) -> None:
    async def cut_short() -> Rehearsal:
        chance = Chance(seed)
        rehearsal = Rehearsal(responder=ScriptedResponder(answers=chance.reply), tools=TOOLS)
        async with rehearsal.running():
            rehearsal.say("hello")
            await anyio.sleep(0.05)
        return rehearsal

    rehearsal = anyio.run(cut_short)
    assert rehearsal.left_behind == ()
    check_the_record(rehearsal)
