"""A missing package says how to get it."""

from __future__ import annotations

import math

import pytest

from voicechart.adapters.local.extras import required
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
