"""Whatever happens, in whatever order, under whatever policy: every invariant holds, quiet rests and closing closes."""

from __future__ import annotations

import pytest

from voicechart.statecharts import ConnectionPolicy, GenerationPolicy, InterruptionPolicy, Policies, TurnPolicy
from voicechart.statecharts.testing.properties import check_conversation
from voicechart.statecharts.values import InterruptionSource, TurnAuthority

ALL = frozenset(InterruptionSource)
HANDS_FREE = InterruptionPolicy(ALL, full_duplex=True, backoff_ms=500, min_words=2)
FEW = GenerationPolicy(max_attempts=2, max_tool_steps=2)

POLICIES = {
    "button": Policies(),
    "speech": Policies(interruption=HANDS_FREE, generation=FEW),
    "pause first": Policies(interruption=InterruptionPolicy(ALL, full_duplex=True, pause_first=True)),
    "long speech": Policies(interruption=InterruptionPolicy(ALL, full_duplex=True, min_duration_ms=600)),
    "recognizer": Policies(turn=TurnPolicy(TurnAuthority.RECOGNIZER), interruption=HANDS_FREE),
    "manual": Policies(turn=TurnPolicy(TurnAuthority.MANUAL, merge_pending=False), generation=FEW),
    "half duplex": Policies(interruption=InterruptionPolicy(ALL), turn=TurnPolicy(max_restarts=0, max_hold_ms=0)),
    "impatient": Policies(
        turn=TurnPolicy(continuation_window_ms=0, max_turn_words=1, max_gap_ms=0, max_fallback_ms=0),
        interruption=InterruptionPolicy(frozenset()),
        generation=GenerationPolicy(max_attempts=1, max_tool_steps=1, retry_ms=0),
        connection=ConnectionPolicy(max_attempts=1, backoff_ms=0),
    ),
}


@pytest.mark.parametrize("name", POLICIES)
def test_a_policy_keeps_every_invariant(name: str) -> None:
    check_conversation(POLICIES[name], examples=25, steps=30)
