"""Running the invariants: one macrostep, a whole conversation, live or collected."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..chart import Step
from ..context import Context
from ..conversation import Conversation
from ..policies import Policies
from .announcements import ANNOUNCEMENTS
from .endings import ENDINGS
from .epochs import EPOCHS
from .ledger import Ledger
from .observation import Invariant, Observation
from .playback import PLAYBACK
from .replies import REPLIES
from .turns import TURNS
from .violations import InvariantViolation, Violation

INVARIANTS: tuple[Invariant, ...] = (*EPOCHS, *TURNS, *REPLIES, *ANNOUNCEMENTS, *PLAYBACK, *ENDINGS)
"""All invariants of the conversation, each with its name and its statement."""


def check_step(
    step: Step[Context], ledger: Ledger, policies: Policies, invariants: Sequence[Invariant] = INVARIANTS
) -> tuple[tuple[Violation, ...], Ledger]:
    """Check one macrostep: what it broke, and the ledger after it."""
    now = ledger.after(step)
    observation = Observation(step, ledger, now, policies)
    sequence = step.after.context.sequence
    violations = tuple(
        Violation(checked.name, message, sequence) for checked in invariants for message in checked.check(observation)
    )
    return violations, now


class Checker:
    """Checks every macrostep of a conversation as it is taken.

        checker = Checker(conversation)              # a broken invariant raises InvariantViolation out of `handle`
        checker = Checker(conversation, collect=True)  # or is kept in `checker.violations`

    Attach it before the first fact: it must have seen every obligation begin. A macrostep that raises is undone, as
    with any observer that raises; what it would have done is in `InvariantViolation.step`.
    """

    def __init__(
        self,
        conversation: Conversation,
        *,
        invariants: Sequence[Invariant] = INVARIANTS,
        collect: bool = False,
    ) -> None:
        self.ledger = Ledger()
        self.violations: list[Violation] = []
        """Everything found so far, also what was raised."""
        self._policies = conversation.policies
        self._invariants = invariants
        self._collect = collect
        self._detach: Callable[[], None] = conversation.observe(self.check)

    def check(self, step: Step[Context]) -> None:
        """Enter one macrostep. Raises `InvariantViolation` unless violations are collected."""
        violations, ledger = check_step(step, self.ledger, self._policies, self._invariants)
        self.violations.extend(violations)
        if violations and not self._collect:
            raise InvariantViolation(violations, step)
        self.ledger = ledger

    def detach(self) -> None:
        """Check no further macrosteps."""
        self._detach()
