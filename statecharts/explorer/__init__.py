"""An exhaustive explorer: walks every configuration a chart can reach in a bounded world and checks every step.

    report = explore(ExploreSettings.quick())
    assert report.is_clean, report.as_json()

A world is a `Scenario`: policies, abilities, which families of facts exist, and how much of everything. Configurations
are compared by an abstraction of the context, so that the walk ends; prefixes are shared by restoring snapshots.
"""

from .bounds import Bounds, Family
from .exploring import ExploreSettings, Job, Runner, explore, run_here
from .report import Counterexample, ExploreReport, Progress, ScenarioReport
from .scenario import SCENARIOS, Scenario

__all__ = [
    "SCENARIOS",
    "Bounds",
    "Counterexample",
    "ExploreReport",
    "ExploreSettings",
    "Family",
    "Job",
    "Progress",
    "Runner",
    "Scenario",
    "ScenarioReport",
    "explore",
    "run_here",
]
