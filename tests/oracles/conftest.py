"""Fixtures of the oracles; those of the other tests are not seen from here."""

from __future__ import annotations

import pytest


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"
