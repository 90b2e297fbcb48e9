"""Shared fixtures. Everything under test is imported as `voicechart…`, from where it is installed."""

from __future__ import annotations

import pytest
from hypothesis import settings

# No deadline: a test does not time. In continuous integration hypothesis brings a profile of its own, without deadline
# and with the same examples every time. `quick` is for `make quick`.
settings.register_profile("house", deadline=None)
settings.register_profile("quick", deadline=None, max_examples=20)
if settings.get_current_profile_name() == "default":
    settings.load_profile("house")


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """Run every `@pytest.mark.anyio` test on asyncio, which is what production runs on.

    A test that needs trio's virtual clock says so itself: `@pytest.mark.parametrize("anyio_backend", ["trio"])`.
    """
    return "asyncio"
