"""Announcing: texts that are said as they are, and the handles of those who asked for it.

The chart decides when one is said and what became of it. Here it gets its voice like any reply. A private one is kept
out of everything that remembers or tells what is said: history, the model's context, and the public stream.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import anyio

from ..statecharts.actions import SettleAnnouncement
from ..statecharts.conversation import Conversation
from ..statecharts.facts import Fact, SayRequested, SayWithdrawn
from ..statecharts.published import Payload
from ..statecharts.values import AnnouncementOutcome
from .engine import Desk
from .history import Record, Reply, UserTurn
from .ports import Clock

MAX_SAY_CHARS = 10_000
"""About ten minutes of speech."""


@dataclass(frozen=True, slots=True)
class Said:
    """What became of an announcement. `reason`: a stable word, "" for one that was played."""

    outcome: AnnouncementOutcome
    reason: str = ""


class SayHandle:
    """One announcement that was asked for."""

    def __init__(self, number: int, withdraw: Callable[[int], None]) -> None:
        self.number = number
        self._withdraw = withdraw
        self._said: Said | None = None
        self._settled = anyio.Event()

    @property
    def said(self) -> Said | None:
        """What became of it, once that is known."""
        return self._said

    async def wait(self) -> Said:
        """Return when it was played, interrupted or dropped. Every announcement comes to one of these."""
        await self._settled.wait()
        assert self._said is not None
        return self._said

    def cancel(self) -> None:
        """It is not wanted any more: what waits is dropped, what is being said stops as a client's cancel does."""
        if self._said is None:
            self._withdraw(self.number)

    def settle(self, said: Said) -> None:
        """For the session."""
        self._said = self._said or said
        self._settled.set()


class Announcements:
    """The announcements of one session: numbered when asked for, settled by the chart."""

    def __init__(self, conversation: Conversation, clock: Clock, report: Callable[[Fact], None]) -> None:
        self._conversation = conversation
        self._clock = clock
        self._report = report
        self._number = conversation.context.last_announcement
        self._open: dict[int, SayHandle] = {}
        self._over: Said | None = None

    def ask(self, text: str, *, interrupt: bool, interruptible: bool, record: bool) -> SayHandle:
        """Raises ValueError for a text that is blank or too long."""
        if not text.strip():
            raise ValueError("there is nothing to say")
        if len(text) > MAX_SAY_CHARS:
            raise ValueError(f"at most {MAX_SAY_CHARS} characters are said at once, not {len(text)}")
        self._number += 1
        handle = SayHandle(self._number, self._withdraw)
        if self._over is not None:
            handle.settle(self._over)
            return handle
        self._open[handle.number] = handle
        self._report(
            SayRequested(
                at=self._clock.now_ns(),
                number=handle.number,
                text=text,
                interrupts=interrupt,
                interruptible=interruptible,
                recorded=record,
            )
        )
        return handle

    def settle(self, action: SettleAnnouncement) -> None:
        """The chart decided what became of one."""
        handle = self._open.pop(action.number, None)
        if handle is not None:
            handle.settle(Said(action.outcome, action.reason))

    def end(self, reason: str) -> None:
        """The session is over. What the chart could not settle was begun, or was not even heard of."""
        self._over = Said(AnnouncementOutcome.DROPPED, reason)
        reply = self._conversation.context.response
        begun = reply.announcement if reply is not None and reply.heard and reply.delivery is None else None
        for number, handle in self._open.items():
            is_begun = begun is not None and begun.number == number
            handle.settle(Said(AnnouncementOutcome.INTERRUPTED, reason) if is_begun else self._over)
        self._open.clear()

    def _withdraw(self, number: int) -> None:
        self._report(SayWithdrawn(at=self._clock.now_ns(), number=number))


class Discreet:
    """A desk from which nothing of a text is published. Implements `Desk`."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    @property
    def clock(self) -> Clock:
        return self._desk.clock

    @property
    def conversation(self) -> Conversation:
        return self._desk.conversation

    def report(self, fact: Fact) -> None:
        self._desk.report(fact)

    def start_task(self, function: Callable[..., Awaitable[object]], *args: object, name: str) -> None:
        self._desk.start_task(function, *args, name=name)

    def publish(self, payload: Payload, **identities: str | int | None) -> None:
        """Not this."""

    def note_stale(self, output_epoch: int) -> None:
        self._desk.note_stale(output_epoch)


class Unrecorded:
    """A history that keeps nothing. Implements `History`."""

    def store_turn(self, turn: UserTurn) -> None:
        """Keep nothing."""

    def store_reply(self, reply: Reply) -> None:
        """Keep nothing."""

    def records(self, latest: int | None = None) -> tuple[Record, ...]:
        return ()

    async def flush(self) -> None:
        """There is nothing to wait for."""
