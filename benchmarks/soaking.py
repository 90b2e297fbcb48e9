"""One conversation that goes on and on, and what it holds while it does. For `soak.py`."""

from __future__ import annotations

import gc
import os
import signal
import sys
import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Protocol

import anyio

from voicechart.adapters.history import HistoryStore
from voicechart.engines import CascadeEngine, Session
from voicechart.statecharts.actions import Publish
from voicechart.statecharts.chart import Step
from voicechart.statecharts.context import Context
from voicechart.statecharts.facts import ButtonPressed
from voicechart.statecharts.published import DeliveryRecorded, PlaybackBegan, SessionReady, TurnCommitted, TurnDiscarded

INTERRUPTED_SHARE = 0.4
"""Some replies are over before they can be interrupted."""
LONGEST_LISTEN_S = 1.8
"""A reply is interrupted after 0.2 s to this."""
LONGEST_PAUSE_S = 0.8
"""What the user leaves between a reply and the next question."""
PATIENCE_S = 60.0
"""A question without an answer for so long is counted, and the next one asked."""
ALLOCATIONS_SHOWN = 12


@dataclass(frozen=True, slots=True)
class Figures:
    """What the process held at one moment between two turns."""

    minute: float
    """Of the conversation's own clock."""
    turns: int
    rss_mib: float
    """Resident memory after a collection of garbage."""
    tasks: int
    threads: int
    descriptors: int
    timers: int
    """That the chart has started and that have neither fired nor been cancelled."""
    history_rows: int
    service_rss_mib: float | None = None
    """Of the audio service, where it is a process of its own."""
    service_descriptors: int | None = None


@dataclass
class Notes:
    """What a run wrote down."""

    figures: list[Figures] = field(default_factory=list[Figures])
    asked: int = 0
    not_understood: int = 0
    """Nothing was made of a question: its turn was discarded."""
    unanswered: int = 0
    interrupted: int = 0
    turns: int = 0
    deliveries: dict[str, int] = field(default_factory=dict[str, int])
    stale_frames: int = 0
    underruns: int = 0
    inbox_peak: int = 0
    queue_peak_ms: float = 0.0
    queue_peak_bytes: int = 0
    closed: str = ""
    """The error that ended it; empty when it ended as it should."""
    allocations: list[str] = field(default_factory=list[str])
    """Where memory grew most between the first and the last figures, when asked."""


class Room(Protocol):
    """Where the user speaks, and what else is to be looked at."""

    async def say(self, number: int, *, interrupted: bool) -> None:
        """Speak the question of that number; return when its last sample was captured.

        `interrupted`: its answer will be; it should be long.
        """
        ...

    def note_queues(self, notes: Notes) -> None:
        """The longest queues so far."""
        ...

    def service_process(self) -> int | None:
        """The process of the audio service, where it is one of its own."""
        ...


class Soak:
    """Asks, listens, interrupts and looks around, until the time is over or somebody asks for the end."""

    def __init__(
        self,
        session: Session,
        engine: CascadeEngine,
        room: Room,
        store: HistoryStore,
        notes: Notes,
        *,
        minutes: float,
        seed: int,
        every_minutes: float,
        warm_up: float,
        between: Callable[[], None] = lambda: None,
        trace_allocations: bool = False,
    ) -> None:
        """`warm_up`: share of the time before the first figures that count; `between` runs after every turn."""
        self._session = session
        self._engine = engine
        self._room = room
        self._store = store
        self._notes = notes
        self._end_s = minutes * 60
        self._warm_s = warm_up * minutes * 60
        self._every_s = every_minutes * 60
        self._random = Random(seed)
        self._between = between
        self._trace_allocations = trace_allocations
        self._before: tracemalloc.Snapshot | None = None
        self._counts: dict[type[object], int] = {}
        self._changed = anyio.Event()
        session.conversation.observe(self._observe)

    async def run(self) -> None:
        """The whole of it; what was found stands in the notes, also when it is cut short by SIGINT or SIGTERM."""
        notes, session = self._notes, self._session
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._stop_when_asked, tasks.cancel_scope)
            try:
                async with anyio.create_task_group() as running:
                    running.start_soon(self._converse)
                    closed = await session.run()
                    notes.closed = str(closed.error) if closed.error is not None else ""
                    running.cancel_scope.cancel()
            finally:
                self._sum_up()
            tasks.cancel_scope.cancel()

    # -- the conversation ----------------------------------------------------------------------------------------------

    async def _converse(self) -> None:
        await self._until(lambda: bool(self._count(SessionReady)))
        began_s = anyio.current_time()
        next_look_s, looked = 0.0, False
        into_a_reply = False
        while (passed_s := anyio.current_time() - began_s) < self._end_s:
            into_a_reply = await self._turn(into_a_reply)
            self._between()
            if passed_s >= next_look_s and not into_a_reply:
                next_look_s = passed_s + self._every_s
                await self._look(passed_s)
                if not looked and passed_s >= self._warm_s:
                    looked, self._before = True, self._snapshot()
        await self._until(self._is_quiet)
        await self._look(anyio.current_time() - began_s)
        self._note_growth()
        self._session.close("soaked")

    async def _turn(self, into_a_reply: bool) -> bool:
        """One question, and its answer or the beginning of it. True: the next question interrupts this answer."""
        notes = self._notes
        if not into_a_reply:
            await anyio.sleep(self._random.uniform(0, LONGEST_PAUSE_S))
        replies, deliveries = self._count(PlaybackBegan), self._count(DeliveryRecorded)
        turns, discards = self._count(TurnCommitted), self._count(TurnDiscarded)
        notes.asked += 1
        interrupts = self._random.random() < INTERRUPTED_SHARE
        await self._room.say(notes.asked, interrupted=interrupts)
        with anyio.move_on_after(PATIENCE_S) as answering:
            await self._until(lambda: self._count(TurnCommitted) > turns or self._count(TurnDiscarded) > discards)
            if self._count(TurnCommitted) == turns:
                notes.not_understood += 1
                await self._until(self._is_quiet)
                return False
            await self._until(lambda: self._count(PlaybackBegan) > replies)
            if interrupts:
                with anyio.move_on_after(self._random.uniform(0.2, LONGEST_LISTEN_S)):
                    await self._until(self._is_quiet)
                interrupts = not self._is_quiet()
            if interrupts and self._random.random() < 0.5:
                return True
            if interrupts:
                self._session.report(ButtonPressed(at=self._session.clock.now_ns()))
            await self._until(lambda: self._count(DeliveryRecorded) > deliveries and self._is_quiet())
        if answering.cancelled_caught:
            notes.unanswered += 1
            print(f"question {notes.asked} has no answer: {self._session.conversation.leaves}", file=sys.stderr)
        return False

    def _is_quiet(self) -> bool:
        context = self._session.conversation.context
        return context.pending is None and context.reply_is_over and not context.stopping

    def _count(self, payload: type[object]) -> int:
        return self._counts.get(payload, 0)

    def _observe(self, step: Step[Context]) -> None:
        for action in step.actions:
            if isinstance(action, Publish):
                kind = type(action.payload)
                self._counts[kind] = self._counts.get(kind, 0) + 1
                if isinstance(action.payload, TurnDiscarded):
                    print(f"question {self._notes.asked} was discarded: {action.payload.reason}", file=sys.stderr)
        self._changed.set()

    async def _until(self, holds: Callable[[], bool]) -> None:
        while not holds():
            self._changed = anyio.Event()
            await self._changed.wait()

    async def _stop_when_asked(self, scope: anyio.CancelScope) -> None:
        with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
            async for _ in signals:
                print("stopped: the figures so far", file=sys.stderr)
                scope.cancel()
                return

    # -- looking around ------------------------------------------------------------------------------------------------

    async def _look(self, passed_s: float) -> None:
        # What ends with the turn, such as a timer that was cancelled, gets the time to do so.
        for _ in range(2):
            await anyio.sleep(0.05)
            await self._engine.history.flush()
        gc.collect()
        self._room.note_queues(self._notes)
        service = self._room.service_process()
        summaries = self._store.conversations()
        figures = Figures(
            minute=round(passed_s / 60, 1),
            turns=self._session.metrics.totals.turns,
            rss_mib=resident_mib(os.getpid()),
            tasks=len(anyio.get_running_tasks()),
            threads=len(os.listdir("/proc/self/task")),
            descriptors=len(os.listdir("/proc/self/fd")),
            timers=len(self._session.conversation.context.timers),
            history_rows=sum(summary.turns + summary.replies for summary in summaries),
            service_rss_mib=None if service is None else resident_mib(service),
            service_descriptors=None if service is None else len(os.listdir(f"/proc/{service}/fd")),
        )
        self._notes.figures.append(figures)
        print(
            f"minute {figures.minute:5.1f}: {figures.turns} turns, {figures.rss_mib} MiB, {figures.tasks} tasks, "
            f"{figures.descriptors} descriptors",
            file=sys.stderr,
        )

    def _snapshot(self) -> tracemalloc.Snapshot | None:
        if not self._trace_allocations:
            return None
        if not tracemalloc.is_tracing():
            tracemalloc.start()
        return tracemalloc.take_snapshot()

    def _note_growth(self) -> None:
        if self._before is None:
            return
        grown = tracemalloc.take_snapshot().compare_to(self._before, "lineno")
        self._notes.allocations = [str(line) for line in grown[:ALLOCATIONS_SHOWN]]
        tracemalloc.stop()

    def _sum_up(self) -> None:
        notes, totals = self._notes, self._session.metrics.totals
        notes.turns, notes.interrupted = totals.turns, totals.interruptions
        notes.deliveries, notes.underruns = totals.deliveries, totals.underruns
        notes.stale_frames = self._engine.gate.stale_frames
        notes.inbox_peak = self._session.inbox.peak


def resident_mib(process: int) -> float:
    """Resident memory of a process of this machine."""
    pages = int(Path(f"/proc/{process}/statm").read_text(encoding="ascii").split()[1])
    return round(pages * os.sysconf("SC_PAGE_SIZE") / 1_048_576, 1)
