"""What a broken invariant is told with."""

from __future__ import annotations

from dataclasses import dataclass

from ..chart import Step
from ..context import Context
from ..errors import StepRefused


@dataclass(frozen=True, slots=True)
class Violation:
    """One invariant that one macrostep broke."""

    invariant: str
    """Its name, as in `INVARIANTS`."""
    message: str
    """What was broken, with the values that broke it."""
    sequence: int
    """The macrostep, counted from 1 in its conversation."""

    def __str__(self) -> str:
        return f"{self.invariant}: {self.message}"


class InvariantViolation(StepRefused):
    """A macrostep broke invariants of the chart: a defect of the chart, of a policy or of an extension. It was undone.

    The text names the fact, the configurations before and after, and each violation. Report it together with the trace:
    the same facts break the same invariant again.
    """

    def __init__(self, violations: tuple[Violation, ...], step: Step[Context]) -> None:
        self.violations = violations
        self.step = step
        told = "\n".join(f"  - {violation}" for violation in violations)
        super().__init__(
            f"macrostep {step.after.context.sequence}, {type(step.fact).__name__} ({step.event}): "
            f"{'/'.join(step.before.leaves)} -> {'/'.join(step.after.leaves)}\n{told}"
        )
