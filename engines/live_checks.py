"""Live checks: the invariants of the chart, run on a conversation that is in use.

Checks that are switched on never change what a conversation does: a macrostep that breaks an invariant has taken
effect, and the conversation goes on. What was broken is reported once for each invariant, as an error that holds the
way there.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter_ns

from ..statecharts import Conversation
from ..statecharts.chart import Step
from ..statecharts.context import Context
from ..statecharts.errors import ErrorScope, ScopedError
from ..statecharts.invariants import Ledger, Violation, check_step

TRACE_STEPS = 64
"""Macrosteps before a violation that are kept to show the way there."""


class CheckFailed(Exception):
    """An invariant of the chart was broken: a defect of the chart, of a policy or of an extension.

    The text holds names only, never what was said. `violations` tell the values, which may: keep them out of logs.
    """

    def __init__(self, violations: tuple[Violation, ...], trace: tuple[str, ...]) -> None:
        self.violations = violations
        self.trace = trace
        """The last macrosteps, oldest first: fact, configurations, actions; without texts."""
        names = ", ".join(sorted({violation.invariant for violation in violations}))
        super().__init__(
            f"macrostep {violations[0].sequence} broke {names}. The conversation goes on; report this with its trace, "
            "and what `voicechart trace replay` says about the recorded one"
        )

    @property
    def scoped(self) -> ScopedError:
        """The same as the error value that events carry."""
        return ScopedError("invariant_violated", "session", ErrorScope.SESSION, str(self))


@dataclass(frozen=True, slots=True)
class CheckCost:
    """What the checks have cost so far."""

    steps: int
    mean_us: float
    """Microseconds a macrostep."""
    worst_us: float


class LiveChecks:
    """Checks every macrostep of `conversation` from its first on, and tells `report` what was broken.

        checks = LiveChecks(conversation, report=log_it)
        ...
        checks.cost

    Attach it before the first fact. `report` is called in the macrostep and must not wait.
    """

    def __init__(
        self,
        conversation: Conversation,
        report: Callable[[CheckFailed], None],
        *,
        now_ns: Callable[[], int] = perf_counter_ns,
    ) -> None:
        self._report = report
        self._now_ns = now_ns
        self._trace: deque[str] = deque(maxlen=TRACE_STEPS)
        self._reported: set[str] = set()
        self._steps = 0
        self._spent_ns = 0
        self._worst_ns = 0
        self.broken = 0
        """Violations so far, those included that were not reported again."""
        self._policies = conversation.policies
        self._ledger = Ledger()
        self._detach = conversation.observe(self._check)

    @property
    def cost(self) -> CheckCost:
        """What the checks have cost so far."""
        mean_us = self._spent_ns / self._steps / 1_000 if self._steps else 0.0
        return CheckCost(self._steps, mean_us, self._worst_ns / 1_000)

    def detach(self) -> None:
        """Check no further macrosteps."""
        self._detach()

    def _check(self, step: Step[Context]) -> None:
        began_ns = self._now_ns()
        self._trace.append(_line_of(step))
        found, self._ledger = check_step(step, self._ledger, self._policies)
        spent_ns = self._now_ns() - began_ns
        self._steps += 1
        self._spent_ns += spent_ns
        self._worst_ns = max(self._worst_ns, spent_ns)
        if not found:
            return
        self.broken += len(found)
        fresh = tuple(violation for violation in found if violation.invariant not in self._reported)
        self._reported.update(violation.invariant for violation in fresh)
        if fresh:
            self._report(CheckFailed(fresh, tuple(self._trace)))


def _line_of(step: Step[Context]) -> str:
    before, after = "/".join(step.before.leaves), "/".join(step.after.leaves)
    told = " ".join(type(action).__name__ for action in step.actions)
    way = before if before == after else f"{before} -> {after}"
    return f"{step.after.context.sequence} {type(step.fact).__name__} ({step.event}) {way}: {told or 'nothing'}"
