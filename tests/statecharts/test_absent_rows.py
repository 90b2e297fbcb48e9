"""What the tables do not hold: every fact in every state either takes a declared row or changes nothing at all."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache

import pytest

from voicechart.statecharts import ConversationChart
from voicechart.statecharts.capabilities import Capabilities
from voicechart.statecharts.chart import Step, states_of, transitions_of
from voicechart.statecharts.context import Context, TimerKind
from voicechart.statecharts.errors import ErrorScope, ScopedError
from voicechart.statecharts.facts import (
    AudioEnded,
    AudioStarted,
    ButtonPressed,
    CancelAcknowledged,
    ClientCancelled,
    CloseRequested,
    ConnectionFailed,
    ConnectionLost,
    ConnectionReady,
    Fact,
    GenerationCompleted,
    GenerationFailed,
    GenerationProgressed,
    InputDiscontinuity,
    OpenRequested,
    OutputStarted,
    PlaybackDrained,
    PlaybackProgressed,
    PlaybackStopped,
    PrebufferFilled,
    ProviderInterrupted,
    RecognitionClosed,
    RecognitionFailed,
    SegmentFinalized,
    SessionExpiring,
    SpeakerFailed,
    SpeechProgressed,
    SpeechStarted,
    SpeechUnitSynthesized,
    StepCompleted,
    SynthesisFailed,
    TextSubmitted,
    TimerFired,
    ToolCallReady,
    ToolFinished,
    TranscriptUpdated,
    TurnCancelled,
    TurnEnded,
    Underrun,
    UsageReported,
)
from voicechart.statecharts.testing import Reached, ScriptedConversation
from voicechart.statecharts.values import ToolStatus, TurnAuthority, Usage

ERROR = ScopedError("scripted", "test", ErrorScope.SESSION, "scripted")
STATES = tuple(Reached().everywhere())
RECEIPTS = (PrebufferFilled, PlaybackProgressed, Underrun, PlaybackDrained, PlaybackStopped)


@dataclass(frozen=True)
class Known:
    """What the ports were told: of the present reply and utterance, or of ones that never were."""

    attempt_id: str = "never was"
    recognition_id: str = "never was"
    call_id: str = "never was"
    number: int = 99

    @classmethod
    def by(cls, script: ScriptedConversation) -> Known:
        context = script.conversation.context
        turn, response, output = context.turn, context.response, context.output
        return cls(
            attempt_id=response.attempt_id if response else "never was",
            recognition_id=turn.recognitions[-1] if turn and turn.recognitions else "never was",
            call_id=response.tools[-1].call_id if response and response.tools else "never was",
            number=output.output_epoch if output else context.output_epoch,
        )


def facts(known: Known) -> dict[str, Fact]:
    """One of each kind. In these conversations the first stream has the number of the first epoch."""
    attempt_id, recognition_id = known.attempt_id, known.recognition_id
    told: tuple[Fact, ...] = (
        OpenRequested(at=0),
        ConnectionReady(at=0, capabilities=Capabilities()),
        ConnectionFailed(at=0, error=ERROR),
        ConnectionLost(at=0, error=ERROR),
        SessionExpiring(at=0),
        CloseRequested(at=0),
        TimerFired(at=0, timer_id="never was"),
        SpeechStarted(at=0),
        SpeechProgressed(at=0, speech_ms=100),
        TranscriptUpdated(at=0, recognition_id=recognition_id, segment_id="1", revision=99, text="well"),
        SegmentFinalized(at=0, recognition_id=recognition_id, segment_id="1", text="well"),
        RecognitionClosed(at=0, recognition_id=recognition_id),
        RecognitionFailed(at=0, recognition_id=recognition_id, error=ERROR),
        TurnEnded(at=0, authority=TurnAuthority.VAD),
        TurnCancelled(at=0),
        InputDiscontinuity(at=0, lost_ms=10),
        TextSubmitted(at=0, text="hello"),
        ButtonPressed(at=0),
        ProviderInterrupted(at=0),
        ClientCancelled(at=0),
        OutputStarted(at=0, attempt_id=attempt_id),
        GenerationProgressed(at=0, attempt_id=attempt_id),
        ToolCallReady(at=0, attempt_id=attempt_id, call_id=known.call_id, name="tool"),
        ToolFinished(at=0, call_id=known.call_id, status=ToolStatus.COMPLETED),
        StepCompleted(at=0, attempt_id=attempt_id),
        GenerationCompleted(at=0, attempt_id=attempt_id),
        GenerationFailed(at=0, attempt_id=attempt_id, error=ERROR),
        CancelAcknowledged(at=0, attempt_id=attempt_id),
        UsageReported(at=0, attempt_id=attempt_id, usage=Usage()),
        AudioStarted(at=0, output_epoch=known.number, sample_rate_hz=16_000),
        SpeechUnitSynthesized(at=0, output_epoch=known.number, unit_index=0, start_sample=0, end_sample=1),
        AudioEnded(at=0, output_epoch=known.number, end_sample=1),
        SynthesisFailed(at=0, output_epoch=known.number, end_sample=1, error=ERROR),
        SpeakerFailed(at=0, output_epoch=known.number, error=ERROR),
        *(receipt(at=0, output_epoch=known.number, stream_id=known.number) for receipt in RECEIPTS),
    )
    return {type(fact).__name__: fact for fact in told}


IDENTITIES = ("attempt_id", "recognition_id", "call_id", "timer_id", "output_epoch")
IDENTIFIED = {kind: fact for kind, fact in facts(Known()).items() if any(hasattr(fact, name) for name in IDENTITIES)}


@cache
def leaves_with_rows_for(event: str) -> set[str]:
    """Every leaf in which the tables hold something for that event, in the leaf itself or in a state around it."""
    states = {state.state_id: state for state in states_of(ConversationChart)}
    owners = {row.source for row in transitions_of(ConversationChart) if event in row.events}
    found: set[str] = set()
    for state in states.values():
        around = [state.state_id]
        while (parent := states[around[-1]].parent) is not None:
            around.append(parent)
        if not state.children and owners.intersection(around):
            found.add(state.state_id)
    return found


def changed(before: Context, after: Context) -> bool:
    """Whether more is different than that a fact came, when, and that it was ignored."""
    return replace(before, sequence=0, ignored=0) != replace(after, sequence=0, ignored=0)


@pytest.mark.parametrize("state", STATES)
def test_a_fact_either_takes_a_row_of_an_active_state_or_is_counted_and_changes_nothing(state: str) -> None:
    script: ScriptedConversation = getattr(Reached(), state)()
    steps: list[Step[Context]] = []
    script.conversation.observe(steps.append)
    beginning = script.conversation.snapshot()
    for kind, fact in facts(Known.by(script)).items():
        script.conversation.restore(beginning)
        actions = script.conversation.handle(fact)

        step = steps[-1]
        ignored = step.after.context.ignored - step.before.context.ignored
        if leaves_with_rows_for(fact.event).isdisjoint(step.before.leaves):
            assert step.taken == (), kind
        assert ignored == (0 if step.taken else 1), kind
        if not step.taken:
            assert actions == (), kind
            assert step.after.leaves == step.before.leaves, kind
            assert not changed(step.before.context, step.after.context), kind


@pytest.mark.parametrize("state", STATES)
def test_a_fact_about_something_that_never_was_changes_nothing_but_usage(state: str) -> None:
    script: ScriptedConversation = getattr(Reached(), state)()
    for kind, fact in IDENTIFIED.items():
        before = script.conversation.snapshot()
        actions = script.conversation.handle(fact)
        assert script.conversation.leaves == before.leaves, kind
        assert not changed(before.context, script.conversation.context), kind
        assert bool(actions) is (kind == "UsageReported"), kind


def test_a_timer_that_was_superseded_means_nothing(reached: Reached) -> None:
    script = reached.speech()
    [first] = script.running(TimerKind.INPUT)
    script.user_keeps_speaking(100)
    assert script.running(TimerKind.INPUT) != [first]
    before = script.leaves
    assert script.tell(TimerFired(at=script.now_ns, timer_id=first.timer_id)) == ()
    assert script.leaves == before


def test_a_timer_fires_once(reached: Reached) -> None:
    script = reached.speech()
    [timer] = script.running(TimerKind.TURN_LIMIT)
    fired = TimerFired(at=script.now_ns, timer_id=timer.timer_id)
    assert script.conversation.handle(fired) != ()
    assert script.conversation.handle(fired) == ()


def test_time_never_goes_back(reached: Reached) -> None:
    script = reached.speech()
    script.wait(1_000)
    script.user_keeps_speaking(100)
    script.tell(ButtonPressed(at=0))
    assert script.conversation.context.now == 1_000_000_000
