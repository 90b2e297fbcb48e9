"""Shared fixtures. Everything under test is imported as `voicechart…`, from where it is installed."""

from __future__ import annotations

import pytest


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """Run every `@pytest.mark.anyio` test on asyncio, which is what production runs on.

    A test that needs trio's virtual clock says so itself: `@pytest.mark.parametrize("anyio_backend", ["trio"])`.
    """
    return "asyncio"
