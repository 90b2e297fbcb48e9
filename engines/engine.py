"""What a session needs of an engine: carry out decisions, report facts, decide nothing."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Protocol

from ..statecharts.actions import Action
from ..statecharts.conversation import Conversation
from ..statecharts.facts import Fact
from ..statecharts.published import Payload
from .ports import Clock


class Desk(Protocol):
    """The session, as its engine sees it."""

    @property
    def clock(self) -> Clock: ...
    @property
    def conversation(self) -> Conversation:
        """For reading epochs and policies."""
        ...

    def report(self, fact: Fact) -> None: ...
    def start_task(self, function: Callable[..., Awaitable[object]], *args: object, name: str) -> None: ...
    def publish(self, payload: Payload, **identities: str | int | None) -> None: ...
    def note_stale(self, output_epoch: int) -> None:
        """A frame of a dead epoch was dropped."""
        ...


class Engine(Protocol):
    """Carries out what the chart decides."""

    def attach(self, desk: Desk) -> None:
        """Called once, before the first action."""
        ...

    def carry_out(self, action: Action) -> None:
        """Never waits and never raises for what the world does: failures come back as facts."""
        ...

    async def aclose(self) -> None:
        """Release every port. Idempotent, bounded."""
        ...
