"""The session: owns one conversation chart, its inbox, its timers and one task group, and carries out what is decided.

Theory of operation. Facts come in through `report`, from wherever they were observed. One task takes them in order
and gives each to the chart; what the chart decides is carried out in the order given, in the same breath, before
anything else of the event loop runs - so that when a fact that interrupts has been handled, the speaker has been told.
Carrying out never waits: what takes time becomes a task of the session's group, which reports its outcome as a fact.

The session decides nothing about the conversation. `run` returns when the chart is closed, or has been cancelled from
outside, and leaves no task and no open port behind.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass

import anyio
from anyio.abc import TaskGroup

from ..statecharts.actions import Action, CancelTimer, Publish, Release, Stamp, StartTimer
from ..statecharts.conversation import Conversation
from ..statecharts.errors import ChartError, ErrorScope, ScopedError
from ..statecharts.facts import CloseRequested, Fact, OpenRequested
from ..statecharts.published import Payload
from .clock import LoopClock
from .engine import Engine
from .inbox import Inbox
from .ports import Clock
from .public_events import PublicStream
from .timers import Timers

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Closed:
    """How a conversation ended. `error` None: as somebody wished."""

    reason: str
    error: ScopedError | None = None


class Session:
    """A running conversation.

        session = Session(Conversation("kitchen"), engine)
        closed = await session.run()

    `engine` brings the ports; see `cascade.CascadeEngine`.
    """

    def __init__(self, conversation: Conversation, engine: Engine, *, clock: Clock | None = None) -> None:
        self.conversation = conversation
        self.engine = engine
        self.clock: Clock = clock or LoopClock()
        self.inbox = Inbox()
        self.public = PublicStream(conversation.context.conversation_id, self.clock.now_ns)
        self._tasks: TaskGroup | None = None
        self._timers: Timers | None = None
        self._closed: Closed | None = None
        self._watchers: list[Callable[[Action], None]] = []

    # -- for embedders ---------------------------------------------------------------------------------------------

    async def run(self) -> Closed:
        """Open the session and run it until it is closed.

        Cancelling `run` closes it within the shutdown deadline first. Raises `ChartError` when the chart is broken;
        ports are released before.
        """
        try:
            async with anyio.create_task_group() as tasks:
                self._tasks = tasks
                self._timers = Timers(self.clock, tasks, self.report)
                self.engine.attach(self)
                try:
                    self.report(OpenRequested(at=self.clock.now_ns()))
                    await self._handle_facts()
                except anyio.get_cancelled_exc_class():
                    await self._close_down("cancelled")
                    raise
                finally:
                    tasks.cancel_scope.cancel()
        finally:
            await self._release()
        return self._closed or Closed("cancelled")

    def report(self, fact: Fact) -> None:
        """Hand in a fact. Returns at once; the fact is handled in its turn. After the end it is ignored."""
        if self._closed is None:
            self.inbox.put_nowait(fact)

    def close(self, reason: str = "requested", error: ScopedError | None = None) -> None:
        """Ask for the end of the conversation."""
        self.report(CloseRequested(at=self.clock.now_ns(), reason=reason, error=error))

    @property
    def closed(self) -> Closed | None:
        """How it ended, once it has."""
        return self._closed

    def watch(self, watcher: Callable[[Action], None]) -> None:
        """Call `watcher` with every action after it was carried out. For instruments; it must not decide anything."""
        self._watchers.append(watcher)

    # -- for the engine --------------------------------------------------------------------------------------------

    def start_task(self, function: Callable[..., object], *args: object, name: str) -> None:
        """Run an async function in the session's task group."""
        assert self._tasks is not None
        self._tasks.start_soon(function, *args, name=name)  # pyright: ignore[reportArgumentType]

    def publish(self, payload: Payload, **identities: str | int | None) -> None:
        """Publish an event of the media path (deltas, units) with the epochs in force."""
        context = self.conversation.context
        stamp = Stamp(context.session_epoch, context.output_epoch)
        self.public.publish(Publish(stamp, payload, **identities))  # pyright: ignore[reportArgumentType]

    # -- the loop --------------------------------------------------------------------------------------------------

    async def _handle_facts(self) -> None:
        handled = 0
        while self._closed is None:
            await self.inbox.wait()
            while self._closed is None and (fact := self.inbox.take()) is not None:
                self._handle(fact)
                handled += 1
                if handled % 32 == 0:
                    # A flood of facts must not starve the tasks that play and listen.
                    await anyio.lowlevel.checkpoint()

    def _handle(self, fact: Fact) -> None:
        try:
            actions = self.conversation.handle(fact)
        except ChartError:
            logger.exception("the chart is broken; the session ends")
            raise
        for action in actions:
            self._carry_out(action)
            for watcher in self._watchers:
                watcher(action)

    def _carry_out(self, action: Action) -> None:
        assert self._timers is not None
        match action:
            case StartTimer():
                self._timers.start(action.timer_id, action.delay_ms)
            case CancelTimer():
                self._timers.cancel(action.timer_id)
            case Publish():
                self.public.publish(action)
            case Release():
                self._closed = Closed(action.reason, action.error)
            case _:
                self.engine.carry_out(action)

    async def _close_down(self, reason: str) -> None:
        """Cancelled from outside: go through the chart all the same, bounded."""
        if self._closed is not None:
            return
        deadline_s = self.conversation.policies.connection.shutdown_ms / 1_000
        with anyio.move_on_after(deadline_s, shield=True):
            self.close(reason)
            await self._handle_facts()
        if self._closed is None:
            error = ScopedError(
                "shutdown_overrun", "connection", ErrorScope.SESSION, "the session did not come to rest in time"
            )
            self._closed = Closed(reason, error)

    async def _release(self) -> None:
        """Whatever happened, nothing stays open."""
        deadline_s = self.conversation.policies.connection.shutdown_ms / 1_000
        with anyio.move_on_after(deadline_s, shield=True):
            await self.engine.aclose()
        self.public.end()
