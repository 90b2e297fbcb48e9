"""A background task that lives exactly as long as a `with` block."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import anyio
from anyio.abc import TaskStatus


class Readiness(TaskStatus[None]):
    """A task status that others may wait for; telling it twice changes nothing."""

    def __init__(self) -> None:
        self._told = anyio.Event()

    def started(self, value: None = None) -> None:
        self._told.set()

    async def wait(self) -> None:
        """Return once `started` was called."""
        await self._told.wait()


@asynccontextmanager
async def background(run: Callable[[], Coroutine[Any, Any, None]]) -> AsyncGenerator[None, None]:
    """Run `run()` during the block; it is cancelled at the end of the block.

    An error of the block leaves as it is, not wrapped in a group.
    """
    failure: Exception | None = None
    async with anyio.create_task_group() as group:
        group.start_soon(run)
        try:
            yield
        except Exception as error:
            failure = error
        group.cancel_scope.cancel()
    if failure is not None:
        raise failure
