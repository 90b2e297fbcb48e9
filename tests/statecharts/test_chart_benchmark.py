"""The chart's benchmark runs; what it measures is no matter for a test."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "chart.py"


@pytest.mark.slow
def test_the_chart_s_benchmark_prints_one_object_with_every_engine() -> None:
    ran = subprocess.run(
        [sys.executable, str(BENCHMARK), "--json", "--rounds", "1", "--steps", "2"],
        capture_output=True,
        text=True,
        check=True,
        timeout=50,
    )
    found = json.loads(ran.stdout)
    assert set(found["steps"]) == {"indexed", "library", "direct"}
    for costs in found["steps"].values():
        assert costs["barge-in"]["actions"] == found["steps"]["library"]["barge-in"]["actions"]
    assert set(found["targets"]) == {
        "dearest_ordinary_median_us",
        "barge_in_median_us",
        "recorder_adds_at_most_percent",
    }
