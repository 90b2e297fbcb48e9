"""The benchmark of the web interface runs; how quick it is, is no test."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "web.py"


@pytest.mark.slow
def test_the_web_benchmark_prints_one_object() -> None:
    command = [
        *(sys.executable, str(SCRIPT), "--json", "--observers", "6", "--stalled", "2", "--rounds", "1"),
        *("--tokens", "10"),
    ]
    printed = subprocess.run(command, capture_output=True, text=True, check=False, timeout=50)
    found = json.loads(printed.stdout)
    assert found["alone"]["tokens"] == found["watched"]["tokens"] == 10
    assert set(found["target"]) == {"ratio", "met"}
    assert printed.returncode == (0 if found["target"]["met"] else 1)
