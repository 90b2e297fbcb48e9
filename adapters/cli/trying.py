"""`voicechart check-config --connect`: every part is loaded or called once, and let go."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, cast

import anyio
import typer

from ...engines.port_calls import error_of, let_go
from ...engines.realtime import RealtimeModel, RealtimeRequest
from ...engines.reports import PortError
from ...statecharts.errors import ErrorScope, ScopedError
from ..composition import Part
from ..providers.declaration import Prepared
from ..providers.registry import Role

DEADLINE_S = 60.0
"""For each part: loading a model takes its time."""
CLOSE_S = 5.0
STAGES = {
    Role.RECOGNIZER: "recognition",
    Role.RESPONDER: "generation",
    Role.SYNTHESIZER: "synthesis",
    Role.REALTIME: "connection",
}


@dataclass(frozen=True, slots=True)
class Tried:
    """What became of one part."""

    key: str
    name: str
    elapsed_ms: float
    error: ScopedError | None

    def as_json(self) -> dict[str, Any]:
        """For `--json`."""
        error = asdict(self.error) if self.error is not None else None
        return {
            "part": self.key,
            "name": self.name,
            "ok": self.error is None,
            "elapsed_ms": round(self.elapsed_ms, 1),
            "error": error,
        }


def try_parts(parts: Sequence[Part[Prepared]], deadline_s: float = DEADLINE_S) -> list[Tried]:
    """One after the other, so that each time is its own; what happens is told on stderr."""
    # An adapter that breaks its contract is told of by its error; a traceback is for the daemon's log.
    logging.getLogger("voicechart").addHandler(logging.NullHandler())
    return anyio.run(_try_all, parts, deadline_s)


async def _try_all(parts: Sequence[Part[Prepared]], deadline_s: float) -> list[Tried]:
    tried: list[Tried] = []
    try:
        for part in parts:
            typer.echo(f"{part.key}: {part.name} …", err=True)
            tried.append(await _try(part, deadline_s))
            typer.echo(_line(tried[-1]), err=True)
    finally:
        for part in parts:
            await let_go(part.port, part.name, CLOSE_S)
    return tried


async def _try(part: Part[Prepared], deadline_s: float) -> Tried:
    began_at = time.monotonic()
    error: ScopedError | None = None
    stage = STAGES[part.role]
    try:
        with anyio.fail_after(deadline_s):
            await _call(part)
    except TimeoutError:
        message = f"it was not ready within {deadline_s:.0f} s; check the network and the provider"
        error = ScopedError("not_ready_in_time", stage, ErrorScope.SESSION, message, retryable=True)
    except PortError as failure:
        error = failure.error
    except Exception as failure:  # an adapter that breaks its contract is told of as any other failure
        error = error_of(failure, part.name, stage, ErrorScope.SESSION)
    return Tried(part.key, part.name, (time.monotonic() - began_at) * 1_000, error)


async def _call(part: Part[Prepared]) -> None:
    """Raises what the part raises. A native realtime model shows only in a session whether it works."""
    await part.port.prepare()
    if part.role is Role.REALTIME:
        session = await cast("RealtimeModel", part.port).open(RealtimeRequest())
        await let_go(session, f"a session with {part.name}", CLOSE_S)


def _line(tried: Tried) -> str:
    outcome = "ok" if tried.error is None else str(tried.error)
    return f"{tried.key}: {outcome}, after {tried.elapsed_ms:.0f} ms"
