"""One run of the daemon.

Theory of operation. The session owns the conversation; this owns the process: signals, the trace, the durable history.
SIGINT or SIGTERM closes the session through the chart, a second one cancels it. SIGUSR1 is the board's stop button: a
driver of a button needs nothing but the process's number. SIGUSR2 switches the trace on and off, SIGHUP reads the
configuration anew (`reloading`). When the audio service cannot be reached, voice activation fails after the configured
attempts, with the error: there is no other microphone to fall back to.
"""

from __future__ import annotations

import logging
import secrets
import signal
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import anyio

from ...engines import Closed, Session
from ...engines.background import BackgroundTasks, TaskLimits
from ...engines.live_checks import CheckFailed, LiveChecks
from ...statecharts import Conversation, SeededIds
from ...statecharts.facts import ButtonPressed
from ..composition import Composition, compose
from ..configuration import Configuration
from ..history import HistoryStore, SqliteHistory, conversation_after
from ..stopping import Stop, stop_on_signals
from ..telemetry import open_telemetry
from ..tools import SqliteTasks
from ..tracing import TraceRecorder, TraceWriteError
from ..view.turn_figures import figures_line
from ..watched_session import Watch, run_watched
from ..web.conversations import new_session_epoch
from .journal import write_down
from .reloading import read_anew_on_signal
from .web import served

logger = logging.getLogger(__name__)

BUTTON = signal.SIGUSR1
TRACE_SWITCH = signal.SIGUSR2


@dataclass(frozen=True, slots=True)
class DaemonOutcome:
    """How a run ended, and whether a signal asked for it."""

    closed: Closed
    stop: Stop


async def run_daemon(
    configuration: Configuration,
    environment: Mapping[str, str],
    *,
    watch: Watch | None = None,
    read_anew: Callable[[], Configuration] | None = None,
) -> DaemonOutcome:
    """Hold the one conversation until it is closed.

    `watch` is started with the session and ends by itself after it. `read_anew` reads the configuration at a SIGHUP,
    in a thread, and raises `ConfigurationRefused`. Raises `ConfigurationRefused`, `HistoryError`, and
    `PortError` when a port cannot be released.
    """
    with _history(configuration) as history:
        tasks = _tasks(configuration, history)
        composition = compose(configuration, environment, history=history, tasks=tasks)
        conversation = _conversation(configuration, history)
        session = Session(conversation, composition.engine)
        composition.parts.timers.attach(session)
        session.watch(write_down)
        tasks.notify = session.say
        checks = LiveChecks(conversation, _check_failed) if configuration.checks == "on" else None
        _announce(configuration, composition)
        async with (
            stop_on_signals(lambda: session.close("stopped")) as stop,
            _telemetry(configuration) as exporting,
            composition.tools.serving(),
            served(configuration, environment, session, composition),
        ):
            recorder = _recorder(configuration, conversation)
            reload = partial(read_anew_on_signal, configuration, read_anew) if read_anew is not None else None
            await _run(session, recorder, (watch, exporting), reload, recording=_records(configuration))
        logger.info("%s", figures_line(session.metrics))
        if checks is not None:
            cost = checks.cost
            logger.info(
                "checks: %d broken, %.0f µs a macrostep, %d macrosteps", checks.broken, cost.mean_us, cost.steps
            )
    return DaemonOutcome(session.closed or Closed("cancelled"), stop)


def _tasks(configuration: Configuration, history: SqliteHistory | None) -> BackgroundTasks:
    """What goes on in the background; it survives a restart where there is a history to keep it in."""
    settings = configuration.tools.tasks
    limits = TaskLimits(settings.open_tasks, settings.running_tasks, settings.run_ms)
    store = None if history is None else SqliteTasks(history.store, history.start.conversation_id)
    return BackgroundTasks(store, limits=limits)


@contextmanager
def _history(configuration: Configuration) -> Generator[SqliteHistory | None]:
    settings = configuration.history
    if settings is None or not settings.enabled:
        yield None
        return
    with HistoryStore(settings.path) as store:
        yield SqliteHistory(store, settings.conversation or configuration.conversation_id)


def _conversation(configuration: Configuration, history: SqliteHistory | None) -> Conversation:
    """A fresh chart; with a history it begins behind everything that an earlier run used."""
    name, policies = configuration.conversation_id, configuration.policies
    # Identities of two runs must differ: the history keeps both. So must epochs, for those who come back on the web.
    ids = SeededIds(f"{name}/{secrets.token_hex(8)}")
    if history is None:
        epoch = new_session_epoch() if configuration.web.enabled else 1
        return Conversation(name, policies=policies, ids=ids, session_epoch=epoch)
    start = history.start
    if start.recovered_replies:
        logger.warning("the former run was cut off: %d replies are of unknown delivery", start.recovered_replies)
    return conversation_after(start, name, policies=policies, ids=ids)


def _recorder(configuration: Configuration, conversation: Conversation) -> TraceRecorder | None:
    if configuration.trace is None:
        return None
    settings = configuration.trace
    return TraceRecorder(
        conversation,
        settings.path,
        limits=settings.limits,
        text_shown=settings.text_shown,
        on_failure=_trace_failed,
    )


@asynccontextmanager
async def _telemetry(configuration: Configuration) -> AsyncGenerator[Watch | None]:
    """What reads the session for the collector; at the end what waits is exported, within a bound."""
    settings = configuration.telemetry
    if not settings.enabled:
        yield None
        return
    telemetry = open_telemetry(settings.endpoint, content=settings.content)
    try:
        yield telemetry.follow
    finally:
        await telemetry.aclose()


def _records(configuration: Configuration) -> bool:
    return configuration.trace is not None and configuration.trace.enabled


def _check_failed(failure: CheckFailed) -> None:
    """Names only: what was said stays out of the log."""
    logger.error("%s", failure.scoped)
    for line in failure.trace:
        logger.error("  %s", line)


def _trace_failed(failure: TraceWriteError) -> None:
    logger.error("%s", failure)


def _announce(configuration: Configuration, composition: Composition) -> None:
    logger.info(
        "conversation %s at %s: %s",
        configuration.conversation_id,
        configuration.audio.endpoint,
        ", ".join(composition.parts.names.values()),
    )
    for note in composition.tools.notes:
        logger.warning("%s", note)


async def _run(
    session: Session,
    recorder: TraceRecorder | None,
    watches: tuple[Watch | None, ...],
    reload: Callable[[], Coroutine[Any, Any, None]] | None,
    *,
    recording: bool,
) -> None:
    if recorder is not None and recording:
        recorder.start()
    failure: Exception | None = None
    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_press_button_on_signal, session)
            if reload is not None:
                tasks.start_soon(reload)
            if recorder is not None:
                tasks.start_soon(recorder.run)
                tasks.start_soon(_switch_trace_on_signal, recorder)
            try:
                await run_watched(session, *watches)
            except Exception as error:
                failure = error
            tasks.cancel_scope.cancel()
    finally:
        if recorder is not None:
            recorder.stop()
    if failure is not None:
        raise failure


async def _press_button_on_signal(session: Session) -> None:
    with anyio.open_signal_receiver(BUTTON) as presses:
        async for _ in presses:
            session.report(ButtonPressed(at=session.clock.now_ns()))


async def _switch_trace_on_signal(recorder: TraceRecorder) -> None:
    with anyio.open_signal_receiver(TRACE_SWITCH) as switches:
        async for _ in switches:
            if recorder.is_on:
                await anyio.to_thread.run_sync(recorder.stop)
                logger.info("the trace is off")
            else:
                recorder.start()
                logger.info("the trace is on")
