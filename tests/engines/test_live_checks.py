"""Live checks: they report once, with the way there and without words, and change nothing."""

from __future__ import annotations

from voicechart.engines.live_checks import TRACE_STEPS, CheckFailed, LiveChecks
from voicechart.statecharts import Conversation, ConversationChart
from voicechart.statecharts.explorer.faults import HypothesisFrozen
from voicechart.statecharts.explorer.prelude import ABLE, READY, began_to_speak
from voicechart.statecharts.facts import Fact, SpeechProgressed, TimerFired, TranscriptUpdated
from voicechart.statecharts.testing.natural import next_fact

SECRET = "my secret is seven"


def speaking(definition: type[ConversationChart]) -> tuple[Conversation, LiveChecks, list[CheckFailed]]:
    conversation = Conversation("live", definition=definition)
    failures: list[CheckFailed] = []
    checks = LiveChecks(conversation, failures.append)
    for happening in (*READY, began_to_speak):
        conversation.handle(happening(conversation.context))
    return conversation, checks, failures


def hypothesis(conversation: Conversation, segment_id: str) -> Fact:
    turn = conversation.context.turn
    assert turn is not None
    recognition_id = turn.recognitions[-1]
    return TranscriptUpdated(at=0, recognition_id=recognition_id, segment_id=segment_id, revision=1, text=SECRET)


def test_a_sound_conversation_is_checked_and_nothing_is_reported() -> None:
    conversation, checks, failures = speaking(ConversationChart)
    for _ in range(60):
        fact = next_fact(conversation, ABLE)
        assert fact is not None
        conversation.handle(fact)
    assert not failures
    assert checks.broken == 0
    assert checks.cost.steps == 63
    assert checks.cost.worst_us >= checks.cost.mean_us > 0


def test_a_violation_is_reported_with_its_names_and_the_way_there_but_without_words() -> None:
    conversation, _, failures = speaking(HypothesisFrozen)
    conversation.handle(hypothesis(conversation, "a"))
    (failure,) = failures
    assert "only_finals_freeze" in str(failure)
    assert SECRET not in str(failure)
    assert SECRET not in "".join(failure.trace)
    assert failure.trace[0].startswith("1 OpenRequested (open_requested)")
    assert "TranscriptUpdated" in failure.trace[-1]
    assert failure.scoped.code == "invariant_violated"


def test_the_macrostep_that_broke_something_has_taken_effect() -> None:
    conversation, _, failures = speaking(HypothesisFrozen)
    conversation.handle(hypothesis(conversation, "a"))
    assert failures
    assert conversation.leaves[1] == "hypothesis"


def test_each_invariant_is_reported_once_and_counted_always() -> None:
    conversation, checks, failures = speaking(HypothesisFrozen)
    conversation.handle(hypothesis(conversation, "a"))
    conversation.handle(hypothesis(conversation, "b"))
    assert len(failures) == 1
    assert checks.broken >= 2


def test_the_way_there_is_bounded() -> None:
    conversation, _, failures = speaking(HypothesisFrozen)
    for _ in range(TRACE_STEPS):
        conversation.handle(SpeechProgressed(at=0, speech_ms=100))
    conversation.handle(hypothesis(conversation, "a"))
    assert len(failures[0].trace) == TRACE_STEPS


def test_detached_checks_see_nothing_more() -> None:
    conversation, checks, failures = speaking(HypothesisFrozen)
    checks.detach()
    conversation.handle(hypothesis(conversation, "a"))
    conversation.handle(TimerFired(at=0, timer_id="nobody"))
    assert not failures
    assert checks.cost.steps == 3


def test_the_cost_is_told_by_the_clock_that_was_given() -> None:
    ticks = iter(range(0, 10_000_000, 2_000))
    conversation = Conversation("live")
    checks = LiveChecks(conversation, lambda failure: None, now_ns=lambda: next(ticks))
    for happening in READY:
        conversation.handle(happening(conversation.context))
    assert checks.cost.mean_us == checks.cost.worst_us == 2.0
