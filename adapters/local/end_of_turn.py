"""A judge of turns by rules, for English and Chinese: what the last words leave open.

It knows what never ends a sentence ("and", "the", 因为), what often does (吗, 吧), dependent clauses without their main
clause, and numbers that are still being dictated. It costs microseconds and needs no weights; docs/decisions/0013 says
why rules, and `benchmarks/end_of_turn.py` how good they are. It is deaf to intonation.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from ...engines.end_of_turn import TurnJudgement, TurnSoFar
from ...statecharts.policies import PolicyError
from .chinese_endings import chinese_probability
from .english_endings import english_probability

_CHINESE = re.compile(r"[\u3400-\u9fff]")
# Both the ASCII signs and the full-width ones of Chinese text.
_ASKED = ("?", "\uff1f", "!", "\uff01")
_GOES_ON = (",", "\uff0c", "\u3001", "\u2026", "...", "-", "\u2014", ":", "\uff1a")
CLEARLY = 0.85


@dataclass(frozen=True, slots=True)
class EndOfTurnWaits:
    """How much silence suffices, in ms, by how finished the words sound. Raises `PolicyError` outside 0–10,000."""

    finished_ms: int = 300
    """The words are clearly complete."""
    likely_ms: int = 600
    """Nothing is left open, nothing proves the end."""
    unfinished_ms: int = 2_000
    unheard_ms: int = 1_000
    """No word was recognised so far."""

    def __post_init__(self) -> None:
        for name in ("finished_ms", "likely_ms", "unfinished_ms", "unheard_ms"):
            value: int = getattr(self, name)
            if not 0 <= value <= 10_000:
                raise PolicyError(f"{name} = {value} is outside 0–10000")


def probability_of_end(text: str, language: str | None = None) -> float:
    """0 to 1: how likely nothing more comes behind `text`. Without a `language` (BCP 47) the script decides."""
    said = text.strip()
    if said.endswith(_GOES_ON):
        return 0.1
    chinese = bool(_CHINESE.search(said)) if language is None else language.lower().startswith("zh")
    found = chinese_probability(said) if chinese else english_probability(said)
    return max(found, 0.5) if said.endswith(_ASKED) else found


class RuleBasedEndOfTurn:
    """Implements `engines.end_of_turn.EndOfTurn`."""

    def __init__(self, waits: EndOfTurnWaits | None = None) -> None:
        self.waits = waits or EndOfTurnWaits()

    async def prepare(self) -> None:
        """There is nothing to load."""

    async def judge(self, turn: TurnSoFar) -> TurnJudgement:
        if not turn.text.strip():
            return TurnJudgement(0.3, self.waits.unheard_ms)
        probability = probability_of_end(turn.text, turn.language)
        if probability >= CLEARLY:
            return TurnJudgement(probability, self.waits.finished_ms)
        if probability >= 0.5:
            return TurnJudgement(probability, self.waits.likely_ms)
        return TurnJudgement(probability, self.waits.unfinished_ms)
