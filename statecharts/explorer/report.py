"""What an exploration tells."""

from __future__ import annotations

import json
from dataclasses import dataclass

from ..chart import states_of, transitions_of
from ..conversation import ConversationChart
from ..facts import Fact
from ..library import DeclaredTransition


@dataclass(frozen=True, slots=True)
class Progress:
    """How far one scenario is. Of `known` configurations, at most `bound`, `left` are to be expanded."""

    scenario: str
    depth: int
    known: int
    bound: int
    left: int
    steps: int


@dataclass(frozen=True, slots=True)
class Counterexample:
    """The shortest sequence of facts, in its scenario, to a broken invariant."""

    scenario: str
    invariant: str
    message: str
    facts: tuple[Fact, ...]
    test: str
    """A test that fails as long as the chart does this."""


@dataclass(frozen=True, slots=True)
class ScenarioReport:
    """What one scenario found."""

    name: str
    configurations: int
    leaves: frozenset[tuple[str, ...]]
    steps: int
    depth: int
    frontier: int
    """Configurations that are known and were not expanded; 0 when the world was walked to its end."""
    covered: frozenset[tuple[int, str]]
    """Transition lines taken, by their place in `transitions_of` and by which event."""
    longest_quiet_way: int
    """Timers, at most, from a configuration to rest when nothing else happens."""
    violations: tuple[Counterexample, ...]


@dataclass(frozen=True, slots=True)
class ExploreReport:
    """What all scenarios found together."""

    scenarios: tuple[ScenarioReport, ...]
    transitions: int
    """Transition lines, each counted once for each event that may take it."""
    transitions_covered: int
    dead_transitions: tuple[str, ...]
    """Never taken: unreachable, or out of reach of the scenarios."""
    states: int
    unreachable_states: tuple[str, ...]

    @property
    def configurations(self) -> int:
        return sum(scenario.configurations for scenario in self.scenarios)

    @property
    def steps(self) -> int:
        return sum(scenario.steps for scenario in self.scenarios)

    @property
    def frontier(self) -> int:
        return sum(scenario.frontier for scenario in self.scenarios)

    @property
    def violations(self) -> tuple[Counterexample, ...]:
        return tuple(found for scenario in self.scenarios for found in scenario.violations)

    @property
    def is_clean(self) -> bool:
        """Nothing broken, nothing dead, nothing unreachable."""
        return not (self.violations or self.dead_transitions or self.unreachable_states)

    def as_text(self) -> str:
        """Counts a scenario, then whatever was found, with a test for each violation."""
        told = [f"{'scenario':26} {'configurations':>14} {'steps':>10} {'depth':>6} {'frontier':>9} {'quiet':>6}"]
        told += [
            f"{x.name:26} {x.configurations:>14,} {x.steps:>10,} {x.depth:>6} {x.frontier:>9,} {x.longest_quiet_way:>6}"
            for x in self.scenarios
        ]
        told.append(f"transitions covered: {self.transitions_covered} of {self.transitions}")
        told += [f"  dead: {line}" for line in self.dead_transitions]
        told.append(f"states reached: {self.states - len(self.unreachable_states)} of {self.states}")
        told += [f"  unreachable: {state}" for state in self.unreachable_states]
        told.append(f"violations: {len(self.violations)}")
        for found in self.violations:
            told += ["", f"{found.invariant} in {found.scenario!r}: {found.message}", "", found.test]
        return "\n".join(told)

    def as_json(self) -> str:
        """One JSON object: counts first, then what was found, then each scenario."""
        leaves = {leaf for scenario in self.scenarios for leaf in scenario.leaves}
        return json.dumps(
            {
                "violations": len(self.violations),
                "configurations": self.configurations,
                "leaf_configurations": len(leaves),
                "steps": self.steps,
                "frontier": self.frontier,
                "transitions": self.transitions,
                "transitions_covered": self.transitions_covered,
                "dead_transitions": list(self.dead_transitions),
                "states": self.states,
                "unreachable_states": list(self.unreachable_states),
                "found": [
                    {
                        "scenario": found.scenario,
                        "invariant": found.invariant,
                        "message": found.message,
                        "facts": [repr(fact) for fact in found.facts],
                        "test": found.test,
                    }
                    for found in self.violations
                ],
                "scenarios": [
                    {
                        "name": scenario.name,
                        "configurations": scenario.configurations,
                        "leaf_configurations": len(scenario.leaves),
                        "steps": scenario.steps,
                        "depth": scenario.depth,
                        "frontier": scenario.frontier,
                        "longest_quiet_way": scenario.longest_quiet_way,
                        "violations": len(scenario.violations),
                    }
                    for scenario in self.scenarios
                ],
            },
            indent=2,
        )


def put_together(scenarios: tuple[ScenarioReport, ...], definition: type[ConversationChart]) -> ExploreReport:
    """One report of several scenarios of the same chart."""
    lines = transitions_of(definition)
    every = {(place, event) for place, line in enumerate(lines) for event in line.events}
    covered = frozenset(taken for scenario in scenarios for taken in scenario.covered)
    dead = (f"{lines[place].source} --{event}--> {_rest(lines[place])}" for place, event in sorted(every - covered))
    leaves = {state.state_id for state in states_of(definition) if not state.children}
    reached = {leaf for scenario in scenarios for configuration in scenario.leaves for leaf in configuration}
    return ExploreReport(
        scenarios=scenarios,
        transitions=len(every),
        transitions_covered=len(every & covered),
        dead_transitions=tuple(dead),
        states=len(leaves),
        unreachable_states=tuple(sorted(leaves - reached)),
    )


def _rest(line: DeclaredTransition) -> str:
    target, guards = line.target or "(stays)", " and ".join(line.guards)
    return f"{target} [{guards}]" if guards else target
