"""A missing package says how to get it."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from pathlib import Path

import pytest

from voicechart.adapters.local.extras import SILENCED, required
from voicechart.engines.reports import PortError
from voicechart.statecharts.errors import ErrorScope


def test_a_missing_package_names_the_extra_that_brings_it() -> None:
    with pytest.raises(PortError) as refusal:
        required("no_such_package", "local", "synthesis")
    error = refusal.value.error
    assert (error.code, error.stage, error.scope, error.retryable) == (
        "missing_package",
        "synthesis",
        ErrorScope.SESSION,
        False,
    )
    assert "no_such_package" in error.message
    assert "pip install 'voicechart[local]'" in error.message


def test_an_installed_package_is_imported() -> None:
    assert required("math", "local", "synthesis") is math


def test_a_package_that_would_report_usage_to_its_vendor_is_silenced(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    code = "from voicechart.adapters.local.extras import required; required('onnxruntime', 'local', 'synthesis')"
    environment = {name: value for name, value in os.environ.items() if name not in SILENCED}
    ran = subprocess.run(
        [sys.executable, "-c", code], env={**environment, "TMPDIR": str(tmp_path)}, check=False, timeout=50
    )
    assert ran.returncode == 0
    # Not silenced, it leaves its session file there.
    assert list(tmp_path.iterdir()) == []


def test_what_the_operator_says_about_it_stands(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in SILENCED:
        monkeypatch.setenv(name, "as the operator says")
    required("math", "local", "synthesis")
    assert all(os.environ[name] == "as the operator says" for name in SILENCED)
