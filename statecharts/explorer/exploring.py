"""Exploring a chart: several scenarios, one report."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from ..conversation import ConversationChart
from .report import ExploreReport, Progress, ScenarioReport, put_together
from .scenario import SCENARIOS, Scenario
from .search import OnProgress, Search

QUICK_CONFIGURATIONS = 600
DEFAULT_CONFIGURATIONS = 5_000


@dataclass(frozen=True, slots=True)
class Job:
    """Scenarios to be walked one after the other; with `stop_at_first`, until something is broken."""

    scenarios: tuple[Scenario, ...]
    stop_at_first: bool = False

    def run(self, on_progress: OnProgress | None = None) -> tuple[ScenarioReport, ...]:
        """Walk them, here and now."""
        reports: list[ScenarioReport] = []
        for scenario in self.scenarios:
            reports.append(Search(scenario, stop_at_first=self.stop_at_first).run(on_progress))
            if self.stop_at_first and reports[-1].violations:
                break
        return tuple(reports)


Runner = Callable[[Sequence[Job], OnProgress | None], Iterable[tuple[ScenarioReport, ...]]]
"""Runs jobs, somewhere, and gives their reports back in the order of the jobs."""


def run_here(jobs: Sequence[Job], on_progress: OnProgress | None = None) -> Iterable[tuple[ScenarioReport, ...]]:
    """One job after the other, in this process."""
    for job in jobs:
        yield job.run(on_progress)


@dataclass(frozen=True, slots=True)
class ExploreSettings:
    """What to explore. Raises `ValueError` for bounds that leave nothing to explore."""

    scenarios: tuple[Scenario, ...] = SCENARIOS
    configurations: int = DEFAULT_CONFIGURATIONS
    """At most so many configurations a scenario."""
    depth: int | None = None
    """At most so many facts in a row; None: as many as there are."""
    definition: type[ConversationChart] | None = None
    """The chart to explore instead of the one that the scenarios name: yours, extended."""

    def __post_init__(self) -> None:
        if not self.scenarios:
            raise ValueError("there is no scenario to explore")
        if self.configurations < 1:
            raise ValueError(f"configurations = {self.configurations} leaves nothing to explore; at least 1")
        if self.depth is not None and self.depth < 1:
            raise ValueError(f"depth = {self.depth} leaves nothing to explore; at least 1")

    @classmethod
    def quick(cls) -> ExploreSettings:
        """A bound that takes less than a minute and still takes every transition."""
        return cls(configurations=QUICK_CONFIGURATIONS)

    @property
    def bounded(self) -> tuple[Scenario, ...]:
        """The scenarios, with these bounds."""
        return tuple(
            replace(
                scenario,
                configurations=min(self.configurations, scenario.configurations),
                depth=self.depth if scenario.depth is None or self.depth is None else min(self.depth, scenario.depth),
                definition=self.definition or scenario.definition,
            )
            for scenario in self.scenarios
        )


def explore(
    settings: ExploreSettings | None = None,
    *,
    on_progress: Callable[[Progress], None] | None = None,
    run: Runner = run_here,
) -> ExploreReport:
    """Walk every scenario, breadth first, and check every invariant on every step.

    `run` says where: `run_here` in this process; the command line uses as many processes as there are cores.
    """
    scenarios = (settings or ExploreSettings()).bounded
    walked = run([Job((scenario,)) for scenario in scenarios], on_progress)
    return put_together(tuple(report for reports in walked for report in reports), scenarios[0].definition)


__all__ = ["ExploreSettings", "Job", "Runner", "explore", "run_here"]
