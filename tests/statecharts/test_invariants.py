"""The invariants: named, stated, and told with values; a macrostep that breaks one is undone."""

from __future__ import annotations

import pytest

from voicechart.statecharts import Conversation, ConversationChart, InterruptionPolicy, Policies
from voicechart.statecharts.capabilities import Capabilities
from voicechart.statecharts.errors import ChartError
from voicechart.statecharts.facts import (
    ButtonPressed,
    CancelAcknowledged,
    ConnectionReady,
    Fact,
    GenerationCompleted,
    OpenRequested,
    TextSubmitted,
    TimerFired,
)
from voicechart.statecharts.invariants import INVARIANTS, Checker, InvariantViolation

SECOND = 1_000_000_000


class HastyChart(ConversationChart):
    """Forgets to move the epoch when the user interrupts."""

    def invalidate_output(self, reason: str) -> None:
        epoch = self.context.output_epoch
        super().invalidate_output(reason)
        self.context.output_epoch = epoch


def conversation_of(definition: type[ConversationChart] = ConversationChart) -> Conversation:
    return Conversation("test", policies=Policies(interruption=InterruptionPolicy()), definition=definition)


def a_reply_begins(conversation: Conversation, at: int = 0) -> str:
    facts: list[Fact] = [
        OpenRequested(at=at),
        ConnectionReady(at=at, capabilities=Capabilities()),
        TextSubmitted(at=at, text="hello"),
    ]
    for fact in facts:
        conversation.handle(fact)
    response = conversation.context.response
    assert response is not None
    return response.attempt_id


def test_every_rule_of_the_design_has_a_check() -> None:
    assert {checked.rule for checked in INVARIANTS} >= set(range(1, 14))


def test_every_invariant_has_a_name_of_its_own_and_a_statement() -> None:
    names = [checked.name for checked in INVARIANTS]
    assert len(set(names)) == len(names)
    assert all(checked.statement.endswith(".") for checked in INVARIANTS)


def test_an_epoch_that_does_not_move_is_refused_by_the_chart_itself() -> None:
    conversation = conversation_of(HastyChart)
    a_reply_begins(conversation)
    with pytest.raises(ChartError, match="before the epoch moved"):
        conversation.handle(ButtonPressed(at=SECOND))


class MuteChart(ConversationChart):
    """Forgets the deadline of an acknowledgement."""

    def cancel_reply(self) -> None:
        super().cancel_reply()
        self.cancel_timers(*[timer.kind for timer in self.context.timers])


def test_a_macrostep_that_breaks_an_invariant_is_undone() -> None:
    conversation = conversation_of(MuteChart)
    checker = Checker(conversation)
    a_reply_begins(conversation)
    before = conversation.snapshot()

    with pytest.raises(InvariantViolation) as raised:
        conversation.handle(ButtonPressed(at=SECOND))

    assert conversation.snapshot() == before
    told = {violation.invariant for violation in raised.value.violations}
    assert "every_wait_is_bounded" in told
    assert "ButtonPressed" in str(raised.value)
    assert "cancelling without a deadline" in str(raised.value)
    assert raised.value.step.before == before
    assert checker.violations == list(raised.value.violations)


def test_violations_can_be_collected_while_the_conversation_goes_on() -> None:
    conversation = conversation_of(MuteChart)
    checker = Checker(conversation, collect=True)
    a_reply_begins(conversation)
    conversation.handle(ButtonPressed(at=SECOND))

    assert conversation.leaves[2] == "cancelling"
    assert {violation.sequence for violation in checker.violations} == {4}


def test_a_detached_checker_sees_nothing_more() -> None:
    conversation = conversation_of(MuteChart)
    checker = Checker(conversation)
    a_reply_begins(conversation)
    checker.detach()
    conversation.handle(ButtonPressed(at=SECOND))
    assert not checker.violations


def test_the_ledger_forgets_what_was_settled_however_long_the_conversation_runs() -> None:
    conversation = conversation_of()
    checker = Checker(conversation)
    attempt = a_reply_begins(conversation)
    sizes: list[int] = []
    for turn in range(200):
        at = turn * 20 * SECOND
        conversation.handle(GenerationCompleted(at=at, attempt_id=attempt))
        for timer in conversation.context.timers:
            conversation.handle(TimerFired(at=at + 10 * SECOND, timer_id=timer.timer_id))
        conversation.handle(TextSubmitted(at=at + 10 * SECOND, text="go on"))
        response = conversation.context.response
        assert response is not None
        attempt = response.attempt_id
        sizes.append(len(repr(checker.ledger)))
    assert max(sizes) < 2_000
    conversation.handle(CancelAcknowledged(at=10_000 * SECOND, attempt_id="attempt-of-nobody"))
    assert not checker.violations
