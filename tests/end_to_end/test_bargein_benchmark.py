"""The barge-in benchmark runs, and what it must never find it does not find."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "bargein.py"


@pytest.mark.slow
def test_the_barge_in_benchmark_prints_one_object_and_finds_nothing_stale() -> None:
    command = [sys.executable, str(SCRIPT), "--json", "--trials", "4"]
    printed = subprocess.run(command, capture_output=True, text=True, check=True, timeout=50).stdout
    found = json.loads(printed)
    for section in ("in_process", "socket"):
        one = found[section]
        assert one["interruptions"] == 4
        assert one["stale_frames"]["passed_after_acceptance"] == one["stale_frames"]["heard"] == 0
        assert one["interrupt_api"]["accepted_to_speaker_told_ms"]["n"] == 4
        assert one["interrupt_api"]["reported_minus_true_position_samples"].get("max", 0) == 0
        assert one["peak_queue_ms"] <= 1_000
    assert set(found["targets"]) >= {"in_process_speaker_told_p95_ms", "socket_last_old_pcm_p95_ms"}
