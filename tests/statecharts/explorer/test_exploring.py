"""The explorer: what it walks, what it reports, and that a found sequence is a ready test."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from voicechart.statecharts import ConversationChart, Policies
from voicechart.statecharts.context import TimerKind
from voicechart.statecharts.explorer import (
    SCENARIOS,
    Bounds,
    ExploreSettings,
    Family,
    Progress,
    Scenario,
    explore,
)
from voicechart.statecharts.explorer.faults import SEEDED_FAULTS, EpochNotMoved
from voicechart.statecharts.explorer.finding import find_faults
from voicechart.statecharts.explorer.prelude import READY, typed


def named(name: str) -> tuple[Scenario, ...]:
    return tuple(scenario for scenario in SCENARIOS if scenario.name == name)


@pytest.mark.slow
def test_a_small_world_is_walked_to_its_end_and_keeps_every_invariant() -> None:
    report = explore(ExploreSettings(named("connection")))
    assert report.frontier == 0
    assert report.violations == ()
    assert report.configurations > 100


def test_the_same_exploration_finds_the_same() -> None:
    settings = ExploreSettings(named("playback"), configurations=60)
    assert explore(settings) == explore(settings)


def test_a_bound_on_configurations_is_kept_and_the_frontier_is_told() -> None:
    (scenario,) = explore(ExploreSettings(named("playback"), configurations=50)).scenarios
    assert 50 <= scenario.configurations < 80
    assert scenario.frontier > 0


def test_a_bound_on_depth_is_kept() -> None:
    (scenario,) = explore(ExploreSettings(named("playback"), depth=2)).scenarios
    assert scenario.depth == 2
    (shallow,) = explore(ExploreSettings(named("playback"), depth=1)).scenarios
    assert shallow.configurations < scenario.configurations


@pytest.mark.parametrize("broken", [{"configurations": 0}, {"depth": 0}, {"scenarios": ()}])
def test_bounds_that_leave_nothing_to_explore_are_refused(broken: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="explore"):
        replace(ExploreSettings(), **broken)


def test_what_was_never_taken_and_never_reached_is_named() -> None:
    report = explore(ExploreSettings(named("refused capabilities")))
    assert not report.is_clean
    assert "playing" in report.unreachable_states
    assert any(line.startswith("ready --connection_lost-->") for line in report.dead_transitions)
    assert report.transitions_covered + len(report.dead_transitions) == report.transitions


def test_the_report_is_told_as_json_and_as_text() -> None:
    report = explore(ExploreSettings(named("connection"), definition=EpochNotMoved))
    told = json.loads(report.as_json())
    assert told["violations"] == len(report.violations) > 0
    assert told["found"][0]["test"].startswith("from voicechart.")
    assert "violations: " in report.as_text()


@pytest.mark.slow
def test_progress_is_told() -> None:
    heard: list[Progress] = []
    explore(ExploreSettings(named("connection")), on_progress=heard.append)
    assert heard
    assert all(progress.known <= progress.bound for progress in heard)


def test_a_violation_comes_with_the_shortest_way_as_a_test_that_fails() -> None:
    report = explore(ExploreSettings(named("connection"), definition=EpochNotMoved))
    found = next(found for found in report.violations if found.invariant == "invalidated_output_stays_silent")
    assert [type(fact).__name__ for fact in found.facts] == ["OpenRequested", "CloseRequested"]
    module: dict[str, object] = {}
    exec(found.test, module)
    test = next(value for name, value in module.items() if name.startswith("test_"))
    assert callable(test)
    with pytest.raises(AssertionError):
        test()


class NeverTired(ConversationChart):
    """Waits for the first audio again whenever it did not come in time."""

    def end_unheard(self) -> None:
        self.start_timer(TimerKind.SPEECH, self.policies.generation.first_audio_ms)


def test_timers_that_lead_in_a_circle_are_found() -> None:
    world = Bounds(frozenset({Family.MODEL}))
    scenario = Scenario("silent", Policies(), bounds=world, before=(*READY, typed))
    report = explore(ExploreSettings((scenario,), configurations=30, definition=NeverTired))
    assert "a_quiet_world_leads_to_rest" in {found.invariant for found in report.violations}


class Deaf(ConversationChart):
    """Waits for an admission that nobody asks for."""

    def settle(self) -> None:
        if self.is_in("closing"):
            self.decide("region_rested")


def test_a_configuration_in_which_nothing_happens_any_more_is_found() -> None:
    world = Bounds(frozenset({Family.TYPING, Family.MODEL, Family.BUTTONS}))
    scenario = Scenario("deaf", Policies(), bounds=world, before=READY)
    report = explore(ExploreSettings((scenario,), configurations=200, definition=Deaf))
    found = {found.invariant: found for found in report.violations}
    assert "wait for ever" in found["a_quiet_world_leads_to_rest"].message


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_every_seeded_fault_is_caught() -> None:
    missed = [each.fault.name for each in find_faults() if each.found is None]
    assert not missed
    assert len(SEEDED_FAULTS) >= 15


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_quick_exploration_takes_every_transition_and_breaks_nothing() -> None:
    report = explore(ExploreSettings.quick())
    assert report.is_clean, report.as_text()
