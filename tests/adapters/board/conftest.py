"""Every asynchronous test of the board's audio runs in real time on asyncio and in virtual time on trio."""

from __future__ import annotations

import pytest
import trio.testing


@pytest.fixture(
    params=[
        pytest.param("asyncio", id="real-time"),
        pytest.param(("trio", {"clock": trio.testing.MockClock(autojump_threshold=0)}), id="virtual-time"),
    ]
)
def anyio_backend(request: pytest.FixtureRequest) -> object:
    return request.param
