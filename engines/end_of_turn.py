"""The end of a turn by its meaning: what a judge is asked, and what it answers.

Under the turn authority `semantic` a judge looks at the words so far whenever the user pauses, and says how much
silence suffices. A finished question is answered after a breath; an "and then ..." is waited for.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from ..statecharts.policies import PolicyError
from .reports import Word


@dataclass(frozen=True, slots=True)
class TurnSoFar:
    """An open turn in which the user pauses."""

    text: str
    """Final segments and hypotheses, in the order of speaking; it may lag behind what was said."""
    silence_ms: float
    """How long the pause has lasted."""
    language: str | None = None
    """BCP 47, where the recogniser tells."""
    words: tuple[Word, ...] = ()
    """Of the latest segment, in samples of the recognition's audio, where the recogniser aligns."""


@dataclass(frozen=True, slots=True)
class TurnJudgement:
    """How likely it is that the user has finished, and when to stop waiting. `PolicyError` outside the bounds."""

    probability: float
    """0 to 1."""
    wait_ms: int
    """The turn is over once the pause has lasted so long, and no new word has come; 0 to 10,000. The engine's own bound
    (`MAX_SILENCE_MS`) comes first.
    """

    def __post_init__(self) -> None:
        if not (0 <= self.probability <= 1 and 0 <= self.wait_ms <= 10_000):
            raise PolicyError(
                f"a judgement of {self.probability} and {self.wait_ms} ms is outside 0–1 and 0–10000 ms: "
                "the end-of-turn judge needs a correction"
            )

    @property
    def finished(self) -> bool:
        """More likely than not."""
        return self.probability >= 0.5


class EndOfTurn(Protocol):
    """A judge of turns: rules, or a small model."""

    async def prepare(self) -> None:
        """Load what is needed. Raises `PortError`. Safe to call twice."""
        ...

    async def judge(self, turn: TurnSoFar) -> TurnJudgement:
        """Asked when a pause begins and again with every newer transcript, one question at a time.

        It has half a second; what it answers later, or raises, is replaced by a fixed wait.
        """
        ...
