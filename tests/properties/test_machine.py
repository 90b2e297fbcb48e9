"""The machine that embedders subclass: it reaches far, finds what is broken, and tells the way there."""

from __future__ import annotations

from collections.abc import Callable
from math import ceil
from typing import ClassVar

import pytest

from voicechart.statecharts import Conversation, InterruptionPolicy, Policies
from voicechart.statecharts.errors import ChartError
from voicechart.statecharts.explorer.faults import SEEDED_FAULTS, DeliveredTwice, SeededFault
from voicechart.statecharts.facts import Fact
from voicechart.statecharts.invariants import InvariantViolation
from voicechart.statecharts.testing.properties import ConversationMachine, check_conversation
from voicechart.statecharts.values import InterruptionSource

PAUSE_FIRST = Policies(
    interruption=InterruptionPolicy(frozenset(InterruptionSource), full_duplex=True, pause_first=True)
)


class Noting(ConversationMachine):
    """Notes where it has been."""

    leaves: ClassVar[set[str]] = set()

    def tell(self, fact: Fact) -> None:
        super().tell(fact)
        self.leaves.update(self.conversation.leaves)


@pytest.mark.slow
def test_a_few_conversations_reach_nearly_every_state() -> None:
    Noting.leaves.clear()
    check_conversation(PAUSE_FIRST, machine=Noting, examples=40, derandomize=True)
    assert {"playing", "draining", "drained", "cancelling", "reconnecting", "closed", "committed"} <= Noting.leaves


def test_a_broken_chart_fails_with_the_name_of_what_it_broke() -> None:
    with pytest.raises(InvariantViolation, match="a_reply_is_delivered_once"):
        check_conversation(definition=DeliveredTwice, examples=100, derandomize=True, shrink=False)


def is_caught(fault: SeededFault) -> bool:
    for policies in (Policies(), PAUSE_FIRST):
        try:
            check_conversation(
                policies, definition=fault.definition, examples=100, steps=50, derandomize=True, shrink=False
            )
        except (ChartError, AssertionError):
            return True
    return False


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_two_hundred_conversations_catch_at_least_four_fifths_of_the_seeded_faults() -> None:
    needed = ceil(0.8 * len(SEEDED_FAULTS))
    caught, missed = 0, list[str]()
    for fault in SEEDED_FAULTS:
        if is_caught(fault):
            caught += 1
        else:
            missed.append(fault.name)
        if caught == needed:
            return
    raise AssertionError(f"{caught} of {needed} caught; not caught: {', '.join(missed)}")


def test_the_fixtures_of_the_plugin_check_and_make_conversations(
    checked_conversation: Callable[..., Conversation],
) -> None:
    conversation = checked_conversation(definition=DeliveredTwice)
    assert conversation.definition is DeliveredTwice
