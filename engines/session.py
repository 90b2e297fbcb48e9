"""The session: owns one conversation chart, its inbox, its timers and one task group, and carries out what is decided.

Theory of operation. Facts come in through `report`. One task takes them in order and gives each to the chart; what the
chart decides is carried out in the order given, in the same breath, before anything else of the event loop runs - so
that when a fact that interrupts has been handled, the speaker has been told. Carrying out never waits: what takes time
becomes a task of the session's group, which reports its outcome as a fact.

The session decides nothing. `run` returns when the chart is closed, or has been cancelled from outside, and leaves no
task and no open port behind: everything it does is shielded, and a cancellation becomes a request to close.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import anyio
import anyio.lowlevel
from anyio.abc import TaskGroup

from ..statecharts.actions import Action, CancelTimer, Publish, Release, SettleAnnouncement, Stamp, StartTimer
from ..statecharts.conversation import Conversation
from ..statecharts.errors import ChartError, ErrorScope, ScopedError
from ..statecharts.facts import CloseRequested, Fact, OpenRequested, TextSubmitted
from ..statecharts.published import Payload
from .announcing import Announcements, SayHandle
from .clock import LoopClock
from .engine import Engine
from .inbox import Inbox
from .metrics import MetricsObserver
from .port_calls import leaves_of, origin_of
from .ports import Clock
from .public_events import PublicStream, SpeechTextCommitted
from .reports import PortError
from .timers import Timers
from .turn_metrics import MetricsAggregate

logger = logging.getLogger(__name__)

FACTS_IN_ONE_BREATH = 32
"""A flood of facts must not starve the tasks that play and listen."""


@dataclass(frozen=True, slots=True)
class Closed:
    """How a conversation ended. `error` None: as somebody wished."""

    reason: str
    error: ScopedError | None = None


class Session:
    """A running conversation. Runs once.

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
        self.metrics = MetricsAggregate()
        """What its turns have cost so far; each is published as `metrics.turn` too."""
        self._observer = MetricsObserver()
        conversation.observe(self._observer)
        self._tasks: TaskGroup | None = None
        self._timers: Timers | None = None
        self._closed: Closed | None = None
        self._failure: Exception | None = None
        self._shielded: anyio.CancelScope | None = None
        self._handling: anyio.CancelScope | None = None
        self._over = anyio.Event()
        self._watchers: list[Callable[[Action], None]] = []
        self._announcements = Announcements(conversation, self.clock, self.report)

    # -- for embedders ---------------------------------------------------------------------------------------------

    async def run(self) -> Closed:
        """Open the session and run it until it is closed.

        Cancelling `run` closes it first, within the shutdown deadline. A port that breaks its contract, by raising what
        it may not raise, ends the session with a typed error (`Closed.error`); the log has the traceback. Raises what a
        broken chart (`ChartError`) or a broken observer raised, as it is. In every case all ports are released before.
        """
        if self._shielded is not None:
            raise RuntimeError("a session runs once; make another one")
        self._shielded = anyio.CancelScope(shield=True)
        async with anyio.create_task_group() as host:
            name = f"session {self.conversation.context.conversation_id}"
            host.start_soon(self._run_shielded, self._shielded, name=name)
            try:
                await self._over.wait()
            except anyio.get_cancelled_exc_class():
                await self._close_before_leaving()
                raise
        if self._failure is not None:
            raise self._failure
        assert self._closed is not None
        return self._closed

    def report(self, fact: Fact) -> None:
        """Hand in a fact. Returns at once; the fact is handled in its turn. After the end it is ignored.

        When so many wait that there is no room, the session ends with a typed error.
        """
        if self._closed is not None:
            return
        try:
            self.inbox.put_nowait(fact)
        except PortError as full:
            self.close(full.error.code, full.error)

    def submit_text(self, text: str) -> None:
        """A typed message of the user: a whole turn, which interrupts as a spoken one does."""
        self.report(TextSubmitted(at=self.clock.now_ns(), text=text))

    def say(self, text: str, *, interrupt: bool = False, interruptible: bool = True, record: bool = True) -> SayHandle:
        """Say `text` as it is, without the model, when nobody speaks and every user was answered.

        `interrupt`: silence the present reply, where the policy lets a client do that, and go before all that waits.
        `interruptible`: False for what must be heard to its end. `record`: False for a private notification, of which
        no history, model or observer learns. Raises ValueError for a text that is blank or too long.
        """
        return self._announcements.ask(text, interrupt=interrupt, interruptible=interruptible, record=record)

    def close(self, reason: str = "requested", error: ScopedError | None = None) -> None:
        """Ask for the end of the conversation."""
        self.report(CloseRequested(at=self.clock.now_ns(), reason=reason, error=error))

    @property
    def closed(self) -> Closed | None:
        """How it ended, once it has."""
        return self._closed

    def watch(self, watcher: Callable[[Action], None]) -> None:
        """Call `watcher` with every action after it was carried out. For instruments; it decides nothing."""
        self._watchers.append(watcher)

    # -- for the engine --------------------------------------------------------------------------------------------

    def start_task(self, function: Callable[..., Awaitable[object]], *args: object, name: str) -> None:
        """Run an async function in the session's task group. What it raises ends the session."""
        assert self._tasks is not None
        self._tasks.start_soon(self._run_task, function, args, name, name=name)

    def publish(self, payload: Payload, **identities: str | int | None) -> None:
        """Publish an event of the media path (deltas, units) with the epochs in force."""
        response_id = identities.get("response_id")
        if isinstance(payload, SpeechTextCommitted) and isinstance(response_id, str):
            self._observer.note_unit(response_id, self.clock.now_ns())
        context = self.conversation.context
        stamp = Stamp(context.session_epoch, context.output_epoch)
        self.public.publish(Publish(stamp, payload, **identities))  # pyright: ignore[reportArgumentType]

    def note_stale(self, output_epoch: int) -> None:
        """The gate dropped a frame of a dead epoch."""
        self._observer.note_stale(output_epoch)

    # -- living and ending -----------------------------------------------------------------------------------------

    async def _run_shielded(self, shielded: anyio.CancelScope) -> None:
        with shielded:
            try:
                await self._live()
            finally:
                await self._release()
                self._over.set()

    async def _live(self) -> None:
        async with anyio.create_task_group() as tasks:
            self._tasks = tasks
            self._timers = Timers(self.clock, tasks, self.report)
            try:
                self.engine.attach(self)
                self.report(OpenRequested(at=self.clock.now_ns()))
                with anyio.CancelScope() as self._handling:
                    await self._handle_facts()
            except Exception as error:
                self._fail(error)
            finally:
                tasks.cancel_scope.cancel()

    async def _release(self) -> None:
        """Whatever happened, nothing stays open."""
        with anyio.CancelScope(shield=True):
            try:
                with anyio.move_on_after(self._shutdown_s) as bounded:
                    await self.engine.aclose()
                if bounded.cancelled_caught:
                    logger.warning("the ports were not released within %g s", self._shutdown_s)
            except Exception as error:
                self._end_broken("releasing the ports", error)
            finally:
                self._announcements.end("closed")
                self.public.end()

    async def _close_before_leaving(self) -> None:
        """Cancelled from outside: go through the chart all the same, bounded."""
        with anyio.CancelScope(shield=True):
            self.close("cancelled")
            # The chart's own deadline comes first; this one is for a chart or a port that keeps none.
            with anyio.move_on_after(2 * self._shutdown_s):
                await self._over.wait()
            if not self._over.is_set():
                self._closed = Closed("cancelled", _overrun())
                if self._shielded is not None:
                    self._shielded.cancel()
                await self._over.wait()

    @property
    def _shutdown_s(self) -> float:
        return self.conversation.policies.connection.shutdown_ms / 1_000

    # -- the loop --------------------------------------------------------------------------------------------------

    async def _handle_facts(self) -> None:
        handled = 0
        while self._closed is None:
            await self.inbox.wait()
            while self._closed is None and (fact := self.inbox.take()) is not None:
                for action in self.conversation.handle(fact):
                    self._carry_out(action)
                handled += 1
                if handled % FACTS_IN_ONE_BREATH == 0:
                    await anyio.lowlevel.checkpoint()

    def _carry_out(self, action: Action) -> None:
        assert self._timers is not None
        match action:
            case StartTimer():
                self._timers.start(action.timer_id, action.delay_ms)
            case CancelTimer():
                self._timers.cancel(action.timer_id)
            case Publish():
                # Before what the chart says of the same step, so that its word on the end is the last.
                self._publish_finished_turns()
                self.public.publish(action)
            case SettleAnnouncement():
                self._announcements.settle(action)
            case Release():
                self._closed = Closed(action.reason, action.error)
            case _:
                self._ask_engine(action)
        for watcher in self._watchers:
            watcher(action)

    def _publish_finished_turns(self) -> None:
        for turn in self._observer.take():
            self.metrics.add(turn)
            self.publish(turn, turn_id=turn.turn_id, response_id=turn.response_id)

    def _ask_engine(self, action: Action) -> None:
        """An engine that cannot carry out an action ends the session; the rest of the macrostep is carried out."""
        try:
            self.engine.carry_out(action)
        except ChartError:
            raise
        except Exception as error:
            self._end_broken(type(action).__name__, error)

    async def _run_task(self, function: Callable[..., Awaitable[object]], args: tuple[object, ...], name: str) -> None:
        try:
            await function(*args)
        except Exception as error:
            broken_charts = [leaf for leaf in leaves_of(error) if isinstance(leaf, ChartError)]
            if broken_charts:
                self._fail(broken_charts[0])
            else:
                self._end_broken(name, error)

    def _end_broken(self, what: str, error: Exception) -> None:
        """Something raised what nobody handles: end the conversation properly, and say where."""
        if isinstance(error, PortError):
            scoped = error.error
            logger.error("%s failed: %s", what, scoped)
        else:
            logger.error("%s failed: %s", what, origin_of(error))
            message = f"{what} failed unexpectedly ({type(error).__name__}): a port breaks its contract; see the log"
            scoped = ScopedError("internal_error", "session", ErrorScope.SESSION, message)
        if self._closed is None:
            self.close(scoped.code, scoped)
        elif self._closed.error is None:
            self._closed = Closed(self._closed.reason, scoped)

    def _fail(self, error: Exception) -> None:
        """What `run` will raise; nothing more is handled."""
        self._failure = self._failure or error
        self._closed = self._closed or Closed("failed")
        if self._handling is not None:
            self._handling.cancel()


def _overrun() -> ScopedError:
    return ScopedError("shutdown_overrun", "session", ErrorScope.SESSION, "the session did not come to rest in time")
