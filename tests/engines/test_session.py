"""The session: order, timers, observers, and every way in which it can end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace

import anyio
import anyio.lowlevel
import pytest
from trio.testing import MockClock

from voicechart.engines import Closed, Session
from voicechart.engines.clock import LoopClock
from voicechart.engines.engine import Desk
from voicechart.engines.reports import PortError
from voicechart.engines.testing import scripted_error
from voicechart.statecharts import actions as do
from voicechart.statecharts.capabilities import Capabilities
from voicechart.statecharts.chart import Step
from voicechart.statecharts.context import Context
from voicechart.statecharts.conversation import Conversation
from voicechart.statecharts.errors import ChartError, ErrorScope, ScopedError
from voicechart.statecharts.facts import (
    CancelAcknowledged,
    ClientCancelled,
    ConnectionReady,
    Fact,
    OpenRequested,
    SpeechProgressed,
    SpeechStarted,
    TextSubmitted,
)
from voicechart.statecharts.policies import ConnectionPolicy, Policies, TurnPolicy

pytestmark = pytest.mark.anyio
SHUTDOWN_MS = 500
POLICIES = Policies(connection=ConnectionPolicy(shutdown_ms=SHUTDOWN_MS, connect_ms=300))


@pytest.fixture(params=["virtual-time", "asyncio"])
def anyio_backend(request: pytest.FixtureRequest) -> object:
    return ("trio", {"clock": MockClock(autojump_threshold=0)}) if request.param == "virtual-time" else "asyncio"


class NoteTaker:
    """An engine that writes down what it is asked, and does what the test puts into `does`."""

    def __init__(self, *, connects: bool = True, acknowledges: bool = True) -> None:
        self.asked: list[do.Action] = []
        self.does: dict[type[do.Action], Callable[[do.Action], None]] = {}
        self.released = False
        self.close_takes_s = 0.0
        self.close_raises: Exception | None = None
        self._connects = connects
        self._acknowledges = acknowledges
        self._desk: Desk | None = None

    @property
    def desk(self) -> Desk:
        assert self._desk is not None
        return self._desk

    def attach(self, desk: Desk) -> None:
        self._desk = desk

    def carry_out(self, action: do.Action) -> None:
        self.asked.append(action)
        if isinstance(action, do.Connect) and self._connects:
            self.desk.report(ConnectionReady(at=self.desk.clock.now_ns(), capabilities=Capabilities()))
        if isinstance(action, do.CancelGeneration) and self._acknowledges:
            self.desk.report(CancelAcknowledged(at=self.desk.clock.now_ns(), attempt_id=action.attempt_id))
        if type(action) in self.does:
            self.does[type(action)](action)

    async def aclose(self) -> None:
        await anyio.sleep(self.close_takes_s)
        self.released = True
        if self.close_raises is not None:
            raise self.close_raises

    def of(self, kind: type[do.Action]) -> list[do.Action]:
        return [action for action in self.asked if isinstance(action, kind)]


def session_with(engine: NoteTaker) -> Session:
    return Session(Conversation("test", policies=POLICIES), engine)


def steps_of(session: Session) -> list[Fact]:
    """Every fact that the chart has handled, as it handles them."""
    handled: list[Fact] = []

    def note(step: Step[Context]) -> None:
        handled.append(step.fact)

    session.conversation.observe(note)
    return handled


async def run_until_closed(session: Session, *facts: Fact) -> Closed:
    for fact in facts:
        session.report(fact)
    session.close("done")
    with anyio.fail_after(30):
        return await session.run()


def text(at: int) -> TextSubmitted:
    return TextSubmitted(at=at, text="hello")


async def test_a_session_opens_handles_facts_in_order_and_closes() -> None:
    engine = NoteTaker()
    session = session_with(engine)
    handled = steps_of(session)

    def close_after_the_last(step: Step[Context]) -> None:
        if isinstance(step.fact, OpenRequested):
            session.close("done")

    session.conversation.observe(close_after_the_last)
    for at in (1, 2, 3):
        session.report(SpeechProgressed(at=at, speech_ms=at))
    assert await session.run() == Closed("done")
    ordinary = [type(fact) for fact in handled if isinstance(fact, OpenRequested | SpeechProgressed)]
    assert ordinary == [SpeechProgressed, SpeechProgressed, SpeechProgressed, OpenRequested]
    assert engine.released
    assert session.closed == Closed("done")


async def test_a_cancel_is_handled_before_everything_that_waited_when_it_came() -> None:
    engine = NoteTaker(connects=False)
    session = session_with(engine)
    handled = steps_of(session)
    for at in range(50):
        session.report(SpeechProgressed(at=at, speech_ms=at))
    session.report(ClientCancelled(at=99))
    await run_until_closed(session)
    assert isinstance(handled[0], ClientCancelled)


async def test_what_one_fact_decides_is_carried_out_before_another_task_runs() -> None:
    engine = NoteTaker()
    session = session_with(engine)
    seen: list[str] = []
    engine.does[do.StartGeneration] = lambda _: seen.append("carried out")

    def note(step: Step[Context]) -> None:
        if isinstance(step.fact, TextSubmitted):
            seen.append("decided")

    session.conversation.observe(note)

    async def another() -> None:
        while not session.closed:
            seen.append("another")
            await anyio.lowlevel.checkpoint()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(session.run)
        tasks.start_soon(another)
        while not engine.of(do.Connect):
            await anyio.lowlevel.checkpoint()
        session.report(text(1))
        while not engine.of(do.StartGeneration):
            await anyio.lowlevel.checkpoint()
        session.close()
    assert seen[seen.index("decided") + 1] == "carried out"


async def test_a_flood_of_facts_lets_other_tasks_run() -> None:
    engine = NoteTaker(connects=False)
    session = session_with(engine)
    turns = 0

    async def another() -> None:
        nonlocal turns
        while session.closed is None:
            turns += 1
            await anyio.lowlevel.checkpoint()

    def close_at_the_end(step: Step[Context]) -> None:
        if step.fact == SpeechProgressed(at=399, speech_ms=399):
            session.close("done")

    session.conversation.observe(close_at_the_end)
    for at in range(400):
        session.report(SpeechProgressed(at=at, speech_ms=at))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(another)
        tasks.start_soon(session.run)
    assert turns >= 400 // 32


async def test_more_facts_than_fit_end_the_session_with_a_typed_error() -> None:
    engine = NoteTaker()
    session = session_with(engine)
    for at in range(600):
        session.report(SpeechProgressed(at=at, speech_ms=at))
    with anyio.fail_after(30):
        closed = await session.run()
    assert closed.error is not None
    assert (closed.reason, closed.error.code) == ("inbox_full", "inbox_full")
    assert "event loop is blocked" in closed.error.message
    assert engine.released


async def test_facts_after_the_end_are_ignored() -> None:
    engine = NoteTaker()
    session = session_with(engine)
    await run_until_closed(session)
    waiting = len(session.inbox)
    session.report(text(1))
    session.close("again")
    assert len(session.inbox) == waiting
    assert session.closed == Closed("done")


async def test_a_session_runs_once() -> None:
    session = session_with(NoteTaker())
    await run_until_closed(session)
    with pytest.raises(RuntimeError, match="make another one"):
        await session.run()


# -- timers --------------------------------------------------------------------------------------------------------


async def test_a_timer_that_the_chart_started_fires_and_one_that_it_cancelled_does_not() -> None:
    engine = NoteTaker(connects=False)
    session = session_with(engine)
    with anyio.fail_after(30):
        closed = await session.run()
    assert closed.reason == "connect_timed_out"
    assert closed.error is not None
    assert "audio service" in closed.error.message

    ready = NoteTaker()
    session = session_with(ready)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(session.run)
        await anyio.sleep(POLICIES.connection.connect_ms / 1_000 + 0.5)
        assert session.closed is None
        session.close()


async def test_a_superseded_timer_fires_once_at_its_new_time() -> None:
    session = Session(
        Conversation("test", policies=replace(POLICIES, turn=TurnPolicy(input_timeout_ms=1_000))), NoteTaker()
    )
    fired: list[int] = []

    def note(step: Step[Context]) -> None:
        if step.event == "input_timed_out":
            fired.append(step.fact.at)

    session.conversation.observe(note)
    superseded_at = 0
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(session.run)
        session.report(SpeechStarted(at=session.clock.now_ns()))
        await anyio.sleep(0.2)
        superseded_at = session.clock.now_ns()
        session.report(SpeechProgressed(at=superseded_at, speech_ms=200))
        await anyio.sleep(1.1)
        session.close()
    assert len(fired) == 1
    assert fired[0] - superseded_at >= 999_000_000


# -- observers -----------------------------------------------------------------------------------------------------


async def test_observers_get_every_event_numbered_and_the_end() -> None:
    engine = NoteTaker()
    session = session_with(engine)
    with session.public.subscribe() as subscription:
        session.report(text(1))
        await run_until_closed(session)
        events = [event async for event in subscription.events()]
    assert [event.sequence for event in events] == list(range(1, len(events) + 1))
    assert events[-1].type == "session.closed"


async def test_watchers_see_every_action_after_it_was_carried_out() -> None:
    engine = NoteTaker()
    session = session_with(engine)
    seen: list[tuple[do.Action, bool]] = []
    session.watch(lambda action: seen.append((action, action in engine.asked)))
    await run_until_closed(session)
    assert {type(action) for action, _ in seen} >= {do.StopPlayback, do.Publish, do.Release}
    assert all(carried_out for action, carried_out in seen if isinstance(action, do.StopPlayback))


async def test_what_a_watcher_raises_ends_the_session_and_is_raised_as_it_is() -> None:
    engine = NoteTaker()
    session = session_with(engine)

    def watcher(action: do.Action) -> None:
        raise ZeroDivisionError

    session.watch(watcher)
    with anyio.fail_after(30), pytest.raises(ZeroDivisionError):
        await session.run()
    assert engine.released


# -- a broken chart, a broken engine -------------------------------------------------------------------------------


async def test_a_broken_chart_is_raised_plainly_and_everything_is_released() -> None:
    engine = NoteTaker()
    session = session_with(engine)

    def broken(step: Step[Context]) -> None:
        if isinstance(step.fact, TextSubmitted):
            raise ZeroDivisionError

    session.conversation.observe(broken)
    lasting = _Lasting(engine)
    lasting.then = lambda: session.report(text(1))
    with session.public.subscribe() as subscription:
        with anyio.fail_after(30), pytest.raises(ChartError, match="TextSubmitted was undone"):
            await session.run()
        assert [event.type async for event in subscription.events()] == ["session.ready"]
    assert engine.released
    assert lasting.ended


async def test_a_broken_chart_inside_a_task_is_raised_plainly_too() -> None:
    engine = NoteTaker()
    session = session_with(engine)

    async def nested() -> None:
        raise ChartError("the smaller chart is broken")

    async def task() -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(nested)

    engine.does[do.Connect] = lambda _: engine.desk.start_task(task, name="a task")
    with anyio.fail_after(30), pytest.raises(ChartError, match="smaller chart"):
        await session.run()
    assert engine.released


async def test_a_task_that_raises_ends_the_conversation_properly_with_a_typed_error() -> None:
    engine = NoteTaker()
    session = session_with(engine)

    async def task() -> None:
        await anyio.lowlevel.checkpoint()
        raise ZeroDivisionError("secret text")

    engine.does[do.Connect] = lambda _: engine.desk.start_task(task, name="the adapter's task")
    with session.public.subscribe() as subscription:
        with anyio.fail_after(30):
            closed = await session.run()
        events = [event.type async for event in subscription.events()]
    assert closed.error is not None
    assert (closed.error.code, closed.error.stage, closed.error.scope) == (
        "internal_error",
        "session",
        ErrorScope.SESSION,
    )
    assert "the adapter's task failed unexpectedly (ZeroDivisionError)" in closed.error.message
    assert "secret" not in closed.error.message
    assert events[-2:] == ["session.closing", "session.closed"]
    assert engine.released


async def test_an_engine_that_cannot_carry_out_an_action_ends_the_session_after_the_rest_of_the_macrostep() -> None:
    engine = NoteTaker()
    session = session_with(engine)
    full = ScopedError("history_failed", "history", ErrorScope.SESSION, "the disk is full; make room")

    def refuse(_: do.Action) -> None:
        raise PortError(full)

    engine.does[do.StoreUserTurn] = refuse
    engine.does[do.Connect] = lambda _: session.report(text(1))
    with anyio.fail_after(30):
        closed = await session.run()
    assert closed == Closed("history_failed", full)
    assert engine.of(do.StartGeneration)


async def test_an_engine_that_cannot_be_attached_is_raised_as_it_is() -> None:
    class Broken(NoteTaker):
        def attach(self, desk: Desk) -> None:
            raise ZeroDivisionError

    engine = Broken()
    with anyio.fail_after(30), pytest.raises(ZeroDivisionError):
        await session_with(engine).run()
    assert engine.released


async def test_a_port_that_cannot_be_released_is_told_and_does_not_hide_how_it_ended() -> None:
    engine = NoteTaker()
    engine.close_raises = PortError(scripted_error("history_failed", "history"))
    closed = await run_until_closed(session_with(engine))
    assert closed.reason == "done"
    assert closed.error is not None
    assert closed.error.code == "history_failed"


# -- cancellation --------------------------------------------------------------------------------------------------


class _Lasting:
    """A task of the session that never ends by itself."""

    def __init__(self, engine: NoteTaker) -> None:
        self.begun = False
        self.ended = False
        self.then: Callable[[], None] = lambda: None
        engine.does[do.Connect] = lambda _: engine.desk.start_task(self._last, name="lasting")

    async def _last(self) -> None:
        self.begun = True
        self.then()
        try:
            await anyio.sleep_forever()
        finally:
            self.ended = True


async def test_cancelling_run_closes_through_the_chart_and_leaves_no_task_behind() -> None:
    before = {task.id for task in anyio.get_running_tasks()}
    engine = NoteTaker()
    session = session_with(engine)
    lasting = _Lasting(engine)
    with session.public.subscribe() as subscription:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(session.run)
            while not lasting.begun:
                await anyio.lowlevel.checkpoint()
            tasks.cancel_scope.cancel()
        events = [event.type async for event in subscription.events()]
    assert events[-2:] == ["session.closing", "session.closed"]
    assert session.closed == Closed("cancelled")
    assert session.conversation.is_closed
    assert engine.released
    assert lasting.ended
    assert {task.id for task in anyio.get_running_tasks()} == before


async def test_a_cancelled_session_waits_for_what_the_chart_waits_for_but_not_beyond_the_shutdown_deadline() -> None:
    engine = NoteTaker(acknowledges=False)
    session = session_with(engine)
    session.report(text(1))
    began_s = 0.0
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(session.run)
        while not engine.of(do.StartGeneration):
            await anyio.lowlevel.checkpoint()
        began_s = anyio.current_time()
        # The model never acknowledges its cancel; only the chart's deadline ends the wait.
        tasks.cancel_scope.cancel()
    took_s = anyio.current_time() - began_s
    assert session.closed == Closed("cancelled")
    assert session.conversation.is_closed
    assert took_s >= SHUTDOWN_MS / 1_000 - 0.01
    assert took_s < SHUTDOWN_MS / 1_000 + 5
    assert engine.of(do.CancelGeneration)


class _StuckClock(LoopClock):
    """No timer is ever due: not even the chart's own shutdown deadline."""

    async def sleep_until(self, deadline_ns: int) -> None:
        await anyio.sleep_forever()


async def test_a_chart_that_never_comes_to_rest_does_not_keep_a_cancelled_session_open() -> None:
    engine = NoteTaker(acknowledges=False)
    session = Session(Conversation("test", policies=POLICIES), engine, clock=_StuckClock())
    session.report(text(1))
    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(session.run)
            while not engine.of(do.StartGeneration):
                await anyio.lowlevel.checkpoint()
            tasks.cancel_scope.cancel()
    assert session.closed is not None
    assert session.closed.error is not None
    assert (session.closed.reason, session.closed.error.code) == ("cancelled", "shutdown_overrun")
    assert engine.released


async def test_a_port_that_is_never_released_does_not_keep_the_session_open() -> None:
    engine = NoteTaker()
    engine.close_takes_s = 3_600
    session = session_with(engine)
    session.close("done")
    with anyio.fail_after(30):
        assert (await session.run()).reason == "done"
    assert not engine.released


async def test_being_cancelled_before_it_began_closes_and_releases_all_the_same() -> None:
    engine = NoteTaker()
    session = session_with(engine)
    with anyio.CancelScope() as scope:
        scope.cancel()
        await session.run()
    assert session.closed == Closed("cancelled")
    assert engine.released


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_task_that_asyncio_itself_cancels_closes_properly_as_with_an_interrupt_from_the_keyboard() -> None:
    engine = NoteTaker()
    session = session_with(engine)
    lasting = _Lasting(engine)
    task = asyncio.ensure_future(session.run())
    while not lasting.begun:
        await anyio.lowlevel.checkpoint()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert session.closed == Closed("cancelled")
    assert lasting.ended
    assert engine.released
