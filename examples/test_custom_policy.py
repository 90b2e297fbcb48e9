"""Ten lines that prove that a policy of your own cannot break the conversation."""

from custom_policy import MagicWordPolicy

from voicechart.statecharts import Policies
from voicechart.statecharts.testing.properties import check_conversation
from voicechart.statecharts.values import InterruptionSource


def test_the_magic_word_keeps_every_invariant() -> None:
    policy = MagicWordPolicy(sources=frozenset(InterruptionSource), full_duplex=True)
    check_conversation(Policies(interruption=policy), examples=30)
