"""How engines call ports: everything bounded, everything released, and whatever a port raises made a typed error."""

from __future__ import annotations

import logging
import traceback
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Protocol, TypeVar, cast

import anyio
import anyio.lowlevel

from ..statecharts.errors import ChartError, ErrorScope, ScopedError
from .reports import PortError

logger = logging.getLogger(__name__)

CLOSE_TIMEOUT_S = 2.0

ReportT = TypeVar("ReportT")


class Closable(Protocol):
    """A stream, as far as letting it go is concerned."""

    async def aclose(self) -> None: ...


@asynccontextmanager
async def reading(reports: AsyncIterator[ReportT]) -> AsyncGenerator[AsyncIterator[ReportT], None]:
    """Read a port's reports: other tasks run between two of them, and an iterator left early is closed."""

    async def fairly() -> AsyncGenerator[ReportT, None]:
        async for report in reports:
            yield report
            await anyio.lowlevel.checkpoint()

    fair = fairly()
    try:
        yield fair
    finally:
        with anyio.move_on_after(CLOSE_TIMEOUT_S, shield=True):
            await fair.aclose()
            if isinstance(reports, AsyncGenerator):
                await reports.aclose()


async def let_go(stream: Closable | None, what: str, timeout_s: float = CLOSE_TIMEOUT_S) -> None:
    """Release a stream whose end is known; what goes wrong then changes nothing any more, but is logged."""
    if stream is None:
        return
    try:
        with anyio.move_on_after(timeout_s, shield=True) as bounded:
            await stream.aclose()
        if bounded.cancelled_caught:
            logger.warning("%s was not released within %g s", what, timeout_s)
    except Exception as failure:
        logger.error("%s could not be released: %s", what, origin_of(failure))


def error_of(failure: Exception, what: str, stage: str, scope: ErrorScope = ErrorScope.RESPONSE) -> ScopedError:
    """The typed error of what a port raised. `PortError` carries it; anything else breaks the port's contract, and the
    log has the traceback. A broken chart is nobody's report: `ChartError` is raised again.
    """
    for leaf in leaves_of(failure):
        if isinstance(leaf, ChartError):
            raise leaf
    if isinstance(failure, PortError):
        return failure.error
    logger.error("%s breaks its contract: %s", what, origin_of(failure))
    message = f"{what} failed unexpectedly ({type(failure).__name__}); the log has more, its adapter needs a correction"
    return ScopedError("port_broken", stage, scope, message)


def leaves_of(error: BaseException) -> Iterator[BaseException]:
    """The errors in a group of groups; a plain error is its own leaf."""
    if isinstance(error, BaseExceptionGroup):
        for member in cast("BaseExceptionGroup[BaseException]", error).exceptions:
            yield from leaves_of(member)
    else:
        yield error


def origin_of(error: BaseException) -> str:
    """For the log: which errors, raised where. Not their messages, which may hold what a provider or a user said."""
    return "\n".join(
        f"{type(leaf).__name__} raised at\n{''.join(traceback.format_tb(leaf.__traceback__))}"
        for leaf in leaves_of(error)
    )
