"""`voicechart explore`: every configuration that the chart can reach, every invariant on every step."""

from __future__ import annotations

import json
import os
import sys
import time
from typing import TYPE_CHECKING, Annotated

import typer

from .options import JsonOption
from .output import FAILED, REFUSED, fail, interruptible

if TYPE_CHECKING:
    from ...statecharts.explorer import ExploreSettings, Progress


def explore(
    quick: Annotated[bool, typer.Option("--quick", help="A bound that takes less than a minute.")] = False,
    depth: Annotated[int | None, typer.Option(min=1, help="At most this many facts in a row.")] = None,
    policy: Annotated[
        list[str] | None, typer.Option(help="Only this scenario, with its policies; may be given again.")
    ] = None,
    configurations: Annotated[
        int | None, typer.Option(min=1, help="At most this many configurations a scenario.")
    ] = None,
    seeded_faults: Annotated[
        bool, typer.Option("--seeded-faults", help="Explore deliberately broken charts instead: each must be caught.")
    ] = False,
    processes: Annotated[int | None, typer.Option(min=1, help="By default as many as there are cores.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Walk every configuration that the conversation can reach in bounded worlds, and check every step.

    Exit code 0: nothing broken, nothing dead, nothing unreachable (with --seeded-faults: everything caught). 1:
    something was found; it is printed with the shortest sequence of facts as a ready test. 2: it cannot be tried.
    """
    from ...statecharts.explorer import SCENARIOS, ExploreSettings
    from ...statecharts.explorer.exploring import DEFAULT_CONFIGURATIONS, QUICK_CONFIGURATIONS

    unknown = set(policy or ()) - {scenario.name for scenario in SCENARIOS}
    if unknown:
        names = ", ".join(repr(scenario.name) for scenario in SCENARIOS)
        fail(f"there is no scenario {sorted(unknown)[0]!r}; there are {names}", REFUSED, as_json=as_json)
    scenarios = tuple(scenario for scenario in SCENARIOS if not policy or scenario.name in policy)
    bound = configurations or (QUICK_CONFIGURATIONS if quick or seeded_faults else DEFAULT_CONFIGURATIONS)
    settings = ExploreSettings(scenarios, bound, depth)
    count = processes or os.cpu_count() or 1
    interruptible(lambda: _find_faults(bound, count, as_json) if seeded_faults else _explore(settings, count, as_json))


def _explore(settings: ExploreSettings, processes: int, as_json: bool) -> None:
    from ...statecharts.explorer import explore as walk
    from .exploring_processes import run_in_processes

    teller = _Teller(len(settings.scenarios))
    report = walk(settings, on_progress=teller.tell, run=run_in_processes(processes))
    teller.end()
    if as_json:
        typer.echo(report.as_json())
    else:
        typer.echo(report.as_text())
        typer.echo(f"{teller.seconds:.0f} s in {processes} processes")
    if not report.is_clean:
        raise typer.Exit(FAILED)


def _find_faults(configurations: int, processes: int, as_json: bool) -> None:
    from ...statecharts.explorer.faults import SEEDED_FAULTS
    from ...statecharts.explorer.finding import find_faults
    from .exploring_processes import run_in_processes

    teller = _Teller(len(SEEDED_FAULTS))
    found = find_faults(configurations=configurations, on_progress=teller.tell, run=run_in_processes(processes))
    teller.end()
    missed = [each for each in found if each.found is None]
    if as_json:
        told = [
            {
                "fault": each.fault.name,
                "what": each.fault.what,
                "caught": each.found is not None,
                "invariant": each.found and each.found.invariant,
                "scenario": each.found and each.found.scenario,
                "facts": len(each.found.facts) if each.found else None,
                "steps": each.steps,
            }
            for each in found
        ]
        typer.echo(json.dumps({"faults": len(found), "caught": len(found) - len(missed), "found": told}, indent=2))
    else:
        for each in found:
            how = f"{each.found.invariant}, after {len(each.found.facts)} facts" if each.found else "NOT CAUGHT"
            typer.echo(f"{each.fault.name:30} {each.fault.what}: {how}")
        typer.echo(f"{len(found) - len(missed)} of {len(found)} faults caught, {teller.seconds:.0f} s")
    if missed:
        raise typer.Exit(FAILED)


class _Teller:
    """Says on stderr how far it is: always on one line in a terminal, now and then elsewhere."""

    def __init__(self, parts: int) -> None:
        self._parts = parts
        self._known: dict[str, tuple[int, int]] = {}
        self._began = time.monotonic()
        self._told = self._began
        self._patience_seconds = 0.5 if sys.stderr.isatty() else 15.0

    @property
    def seconds(self) -> float:
        """Since the beginning."""
        return time.monotonic() - self._began

    def tell(self, progress: Progress) -> None:
        """One scenario went on."""
        self._known[progress.scenario] = (progress.known, progress.bound if progress.left else progress.known)
        now = time.monotonic()
        if now - self._told < self._patience_seconds:
            return
        self._told = now
        walked = sum(known for known, _ in self._known.values())
        unseen = self._parts - len(self._known)
        ahead = sum(bound - known for known, bound in self._known.values()) + unseen * progress.bound
        left_seconds = ahead * self.seconds / max(walked, 1)
        text = f"{walked:,} configurations, {self.seconds:.0f} s; at most {max(left_seconds / 60, 0.1):.1f} min to go"
        print(f"\r{text}\033[K" if sys.stderr.isatty() else text, end="", file=sys.stderr, flush=True)
        if not sys.stderr.isatty():
            print(file=sys.stderr, flush=True)

    def end(self) -> None:
        """Clear the line."""
        if sys.stderr.isatty():
            print("\r\033[K", end="", file=sys.stderr, flush=True)
