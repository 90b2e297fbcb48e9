"""The soak runs, finds nothing that grows, and would find what does."""

from __future__ import annotations

import importlib
import json
import re
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "soak.py"


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_five_simulated_minutes_hold_no_more_at_their_end_than_at_their_beginning() -> None:
    command = [sys.executable, str(SCRIPT), "--json", "--minutes", "5"]
    printed = subprocess.run(command, capture_output=True, text=True, check=True, timeout=110).stdout
    found = json.loads(printed)
    assert found["sound"]
    assert found["problems"] == []
    first, last = found["first"], found["last"]
    assert last["minute"] >= 5.0
    assert last["minute"] > first["minute"]
    assert last["turns"] == found["turns"] >= 40
    assert last["history_rows"] == 2 * found["turns"]
    assert found["interrupted"] >= 3
    assert found["unanswered"] == 0
    assert 0 < found["queue_peak_ms"] <= 1_000
    assert found["queue_peak_bytes"] <= 32_000


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_a_run_that_is_stopped_ends_with_the_figures_so_far() -> None:
    command = [sys.executable, str(SCRIPT), "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as run:
        assert run.stderr is not None
        while not re.search(r"minute +([2-9]|[1-5][0-9])", line := run.stderr.readline()):
            assert line, "it ended by itself"
        run.send_signal(signal.SIGINT)
        printed, _ = run.communicate(timeout=60)
    found = json.loads(printed)
    assert found["turns"] >= 10
    assert found["last"]["minute"] >= 2
    assert run.returncode == 0


@pytest.fixture
def soak(monkeypatch: pytest.MonkeyPatch) -> Any:  # noqa: ANN401 - a script
    monkeypatch.setattr(sys, "path", [str(SCRIPT.parent), *sys.path])
    return importlib.import_module("soak")


def test_what_grows_is_named(soak: Any) -> None:  # noqa: ANN401 - a script
    calm = soak.Figures(0.0, 1, 80.0, 10, 3, 16, 0, 2)
    grown = replace(calm, rss_mib=84.1, tasks=11, threads=4, descriptors=17, timers=1)

    def run(*figures: Any) -> Any:  # noqa: ANN401 - of a script
        """An hour, looked at every ten minutes."""
        placed = [replace(known, minute=10.0 * place) for place, known in enumerate(figures)]
        return soak.Notes(placed, 600, turns=600, deliveries={"delivered": 600})

    sound = run(*[calm] * 7)
    assert soak.problems_of(sound) == []
    assert soak.problems_of(run(grown, grown, *[calm] * 5)) == []
    assert soak.problems_of(run(*[calm] * 5, grown, calm)) == [], "what comes and goes has not grown"
    assert soak.problems_of(run(*[calm] * 3, grown, *[calm] * 2, grown)) == []
    problems = soak.problems_of(run(*[calm] * 4, *[grown] * 3))
    assert [problem.split()[0] for problem in problems] == ["tasks", "threads", "descriptors", "timers", "rss_mib"]
    assert soak.problems_of(replace(sound, queue_peak_ms=1_000.5)) == ["1000 ms of audio were queued at once"]
    assert soak.problems_of(replace(sound, unanswered=1)) == ["1 of 600 questions were not answered"]
    assert soak.problems_of(replace(sound, not_understood=31)) == ["31 of 600 questions were not understood"]
    assert soak.problems_of(replace(sound, not_understood=30)) == []
    assert soak.problems_of(replace(sound, turns=601)) == ["601 turns have 600 delivery records"]
    assert soak.problems_of(replace(sound, closed="inbox_full")) == ["it ended by itself: inbox_full"]
    assert soak.problems_of(run(calm)) == ["too short: there are no two figures to compare"]
