"""Looking for seeded faults: every broken chart is explored until something is seen."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from .exploring import Job, Runner, run_here
from .faults import SEEDED_FAULTS, SeededFault
from .report import Counterexample, Progress
from .scenario import SCENARIOS, Scenario

_FIRST_LOOKS = (20, 150)
"""Configurations a scenario: most faults are near."""


@dataclass(frozen=True, slots=True)
class FoundFault:
    """What the explorer made of one seeded fault; `found` None: nothing was seen."""

    fault: SeededFault
    found: Counterexample | None
    steps: int


def find_faults(
    faults: Sequence[SeededFault] = SEEDED_FAULTS,
    *,
    scenarios: Sequence[Scenario] = SCENARIOS,
    configurations: int = 1_000,
    on_progress: Callable[[Progress], None] | None = None,
    run: Runner = run_here,
) -> tuple[FoundFault, ...]:
    """Explore each broken chart until the first violation: every scenario a little, then further."""
    jobs = [
        Job(
            tuple(
                replace(scenario, definition=fault.definition, configurations=bound)
                for bound in (*(bound for bound in _FIRST_LOOKS if bound < configurations), configurations)
                for scenario in scenarios
            ),
            stop_at_first=True,
        )
        for fault in faults
    ]
    found: list[FoundFault] = []
    for fault, reports in zip(faults, run(jobs, on_progress), strict=True):
        first = next((violation for report in reports for violation in report.violations), None)
        found.append(FoundFault(fault, first, sum(report.steps for report in reports)))
    return tuple(found)
