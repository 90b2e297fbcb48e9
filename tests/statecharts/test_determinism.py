"""The same facts always give the same actions, whoever runs the declarations."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import get_args

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from voicechart.statecharts import Conversation, Policies, SeededIds, TurnPolicy
from voicechart.statecharts.capabilities import Capabilities, SpeakerCapabilities
from voicechart.statecharts.chart import Selection
from voicechart.statecharts.context import Context
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
from voicechart.statecharts.testing import HANDS_FREE, ScriptedConversation
from voicechart.statecharts.values import ToolStatus, TurnAuthority, Usage

SELECTIONS: tuple[Selection, ...] = get_args(Selection)
ERRORS = tuple(ScopedError("scripted", "test", ErrorScope.SESSION, "scripted", retryable=r) for r in (True, False))
TEXTS = ("", "ok", "stop it now", "嗯", "停一下")
SAMPLES = (0, 100, 16_000, 48_000)

Teller = Callable[[Context, int, int], Fact]
"""A fact of one kind about what the context knows; the two numbers, 0 to 3, choose. 3 is mostly a foreign identity."""


def attempt(context: Context, choice: int) -> str:
    return context.response.attempt_id if context.response is not None and choice < 3 else "another"


def epoch(context: Context, choice: int) -> int:
    return context.output_epoch if choice < 3 else context.output_epoch - 1


def stream(context: Context, choice: int) -> int:
    known = [*context.stopping, *([context.output] if context.output is not None else [])]
    return known[choice % len(known)].stream_id if known and choice < 3 else 99


def recognition(context: Context, choice: int) -> str:
    known = context.turn.recognitions if context.turn is not None else ()
    return known[choice % len(known)] if known and choice < 3 else "another"


def timer(context: Context, choice: int, other: int) -> Fact:
    place = choice + 4 * other
    known = context.timers
    return TimerFired(at=context.now, timer_id=known[place % len(known)].timer_id if known else "another")


def receipt(kind: type[PrebufferFilled | PlaybackProgressed | Underrun | PlaybackDrained | PlaybackStopped]) -> Teller:
    return lambda c, a, b: kind(
        at=c.now, output_epoch=epoch(c, a), stream_id=stream(c, a), played_samples=(None, *SAMPLES[1:])[b]
    )


TELLERS: tuple[Teller, ...] = (
    lambda c, a, b: OpenRequested(at=c.now),
    lambda c, a, b: ConnectionReady(at=c.now, capabilities=Capabilities(speaker=SpeakerCapabilities(pause=a < 2))),
    lambda c, a, b: ConnectionFailed(at=c.now, error=ERRORS[a % 2]),
    lambda c, a, b: ConnectionLost(at=c.now, error=ERRORS[0]),
    lambda c, a, b: SessionExpiring(at=c.now),
    lambda c, a, b: CloseRequested(at=c.now) if a == b == 3 else SpeechStarted(at=c.now),
    lambda c, a, b: SpeechStarted(at=c.now, authority=(TurnAuthority.VAD, TurnAuthority.MANUAL)[a // 3]),
    lambda c, a, b: SpeechProgressed(at=c.now, speech_ms=100 * a),
    lambda c, a, b: TranscriptUpdated(
        at=c.now, recognition_id=recognition(c, a), segment_id="ab"[b % 2], revision=c.sequence, text=TEXTS[a]
    ),
    lambda c, a, b: SegmentFinalized(
        at=c.now, recognition_id=recognition(c, a), segment_id=("a", "b", None)[b % 3], text=TEXTS[b + 1]
    ),
    lambda c, a, b: RecognitionClosed(at=c.now, recognition_id=recognition(c, a)),
    lambda c, a, b: RecognitionFailed(
        at=c.now, recognition_id=recognition(c, a), error=ERRORS[0], recorded_ms=500 * (b % 2)
    ),
    lambda c, a, b: TurnEnded(at=c.now, authority=(TurnAuthority.VAD, TurnAuthority.RECOGNIZER)[a % 2]),
    lambda c, a, b: TurnCancelled(at=c.now),
    lambda c, a, b: InputDiscontinuity(at=c.now, lost_ms=150 * a),
    lambda c, a, b: TextSubmitted(at=c.now, text=TEXTS[a]),
    lambda c, a, b: ButtonPressed(at=c.now),
    lambda c, a, b: ProviderInterrupted(at=c.now),
    lambda c, a, b: ClientCancelled(at=c.now),
    lambda c, a, b: OutputStarted(at=c.now, attempt_id=attempt(c, a)),
    lambda c, a, b: GenerationProgressed(at=c.now, attempt_id=attempt(c, a)),
    lambda c, a, b: ToolCallReady(
        at=c.now, attempt_id=attempt(c, a), call_id=f"call-{b}", name="tool", valid=a < 2, background=b == 3
    ),
    lambda c, a, b: ToolFinished(at=c.now, call_id=f"call-{b}", status=tuple(ToolStatus)[a]),
    lambda c, a, b: StepCompleted(at=c.now, attempt_id=attempt(c, a)),
    lambda c, a, b: GenerationCompleted(at=c.now, attempt_id=attempt(c, a)),
    lambda c, a, b: GenerationFailed(at=c.now, attempt_id=attempt(c, a), error=ERRORS[b % 2]),
    lambda c, a, b: CancelAcknowledged(at=c.now, attempt_id=attempt(c, a)),
    lambda c, a, b: UsageReported(at=c.now, attempt_id=attempt(c, a), usage=Usage(a, b)),
    lambda c, a, b: AudioStarted(at=c.now, output_epoch=epoch(c, a), sample_rate_hz=16_000),
    lambda c, a, b: SpeechUnitSynthesized(
        at=c.now, output_epoch=epoch(c, a), unit_index=b, start_sample=0, end_sample=SAMPLES[b]
    ),
    lambda c, a, b: AudioEnded(at=c.now, output_epoch=epoch(c, a), end_sample=SAMPLES[b]),
    lambda c, a, b: SynthesisFailed(at=c.now, output_epoch=epoch(c, a), end_sample=SAMPLES[b], error=ERRORS[0]),
    lambda c, a, b: SpeakerFailed(at=c.now, output_epoch=epoch(c, a), error=ERRORS[0]),
    receipt(PrebufferFilled),
    receipt(PlaybackProgressed),
    receipt(Underrun),
    receipt(PlaybackDrained),
    receipt(PlaybackStopped),
    timer,
    timer,
)

MOVES = st.lists(
    st.tuples(st.sampled_from(TELLERS), st.integers(0, 3), st.integers(0, 3), st.sampled_from([0, 1, 400, 2_500])),
    min_size=20,
    max_size=80,
)


def policies_of(authority: TurnAuthority, pause_first: bool, min_words: int, merge_pending: bool) -> Policies:
    return Policies(
        interruption=replace(HANDS_FREE, pause_first=pause_first, min_words=min_words),
        turn=TurnPolicy(authority=authority, merge_pending=merge_pending),
    )


POLICIES = st.builds(
    policies_of,
    st.sampled_from([TurnAuthority.VAD, TurnAuthority.RECOGNIZER]),
    st.booleans(),
    st.integers(1, 2),
    st.booleans(),
)
QUIET = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)


def talking(conversation: Conversation) -> None:
    """To where most of it happens: a reply is being heard."""
    ScriptedConversation(conversation=conversation).opened().user_says("tell me a story")
    response = conversation.context.response
    assert response is not None
    conversation.handle(OutputStarted(at=0, attempt_id=response.attempt_id))
    conversation.handle(AudioStarted(at=0, output_epoch=1, sample_rate_hz=16_000))
    conversation.handle(PrebufferFilled(at=0, output_epoch=1, stream_id=1, played_samples=50))


@pytest.mark.slow
@QUIET
@given(moves=MOVES, policies=POLICIES)
def test_every_engine_takes_the_same_facts_to_the_same_actions_states_and_contexts(
    moves: list[tuple[Teller, int, int, int]], policies: Policies
) -> None:
    conversations = [Conversation("same", policies=policies, selection=selection) for selection in SELECTIONS]
    for conversation in conversations:
        talking(conversation)
    first, *others = conversations
    for teller, choice, other, later_ms in moves:
        context = replace(first.context, now=first.context.now + later_ms * 1_000_000)
        fact = teller(context, choice, other)
        actions = first.handle(fact)
        for conversation in others:
            assert conversation.handle(fact) == actions
            assert conversation.leaves == first.leaves
            assert conversation.context == first.context


@pytest.mark.slow
@QUIET
@given(moves=MOVES, policies=POLICIES)
def test_a_conversation_that_was_left_and_restored_goes_on_as_if_it_had_not_been(
    moves: list[tuple[Teller, int, int, int]], policies: Policies
) -> None:
    straight = Conversation("same", policies=policies)
    talking(straight)
    for teller, choice, other, later_ms in moves:
        elsewhere = Conversation("same", policies=policies)
        elsewhere.restore(straight.snapshot())
        fact = teller(replace(straight.context, now=straight.context.now + later_ms), choice, other)
        before = straight.snapshot()
        assert elsewhere.handle(fact) == straight.handle(fact)
        assert elsewhere.snapshot() == straight.snapshot()
        assert before.context.sequence + 1 == straight.context.sequence, "a snapshot does not move with its chart"


def test_the_same_facts_give_the_same_actions_again() -> None:
    def told() -> ScriptedConversation:
        script = ScriptedConversation().opened()
        script.user_says("tell me a story")
        script.reply_is_playing((16_000, 32_000), played_samples=20_000)
        script.user_says("stop it")
        script.wait(5_000)
        script.connects()
        return script

    assert told().record.entries == told().record.entries


def test_other_seeds_give_other_identities_and_the_same_decisions() -> None:
    def kinds(seed: str) -> tuple[list[str], str]:
        script = ScriptedConversation(conversation=Conversation(ids=SeededIds(seed))).opened()
        script.user_says("hello")
        return [type(action).__name__ for action in script.record.actions], script.generation.response_id

    (one, first), (two, second) = kinds("one"), kinds("two")
    assert one == two
    assert first != second


@pytest.mark.parametrize("selection", SELECTIONS)
def test_every_engine_carries_a_scripted_conversation(selection: Selection) -> None:
    script = ScriptedConversation(selection=selection).opened()
    script.user_says("tell me a story")
    script.reply_is_playing((16_000, 32_000), played_samples=20_000)
    script.user_says("stop it")
    assert script.leaves == "ready | committed | cancelling | stopped"
