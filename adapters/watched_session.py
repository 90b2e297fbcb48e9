"""Running a session while somebody looks on."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

import anyio

from ..engines import Closed, Session

LAST_LOOK_S = 2.0
"""How long an onlooker may take after the end."""

Watch = Callable[[Session], Coroutine[Any, Any, None]]
"""Started with a session; ends by itself after it."""


async def run_watched(session: Session, *watches: Watch | None) -> Closed:
    """Run the session to its end, and let every watch see all of it. Raises what `Session.run` raises."""
    closed: Closed | None = None
    failure: Exception | None = None
    async with anyio.create_task_group() as onlookers:
        for watch in watches:
            if watch is not None:
                onlookers.start_soon(watch, session)
        try:
            closed = await session.run()
        except Exception as error:
            failure = error
        onlookers.cancel_scope.deadline = anyio.current_time() + LAST_LOOK_S
    if failure is not None:
        raise failure
    assert closed is not None
    return closed
