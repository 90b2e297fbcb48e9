"""Scripts, and the life of a stream that plays one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from enum import StrEnum
from typing import Generic, TypeVar

import anyio

from ...statecharts.errors import ErrorScope, ScopedError
from ..reports import (
    GenerationEnded,
    GenerationErrored,
    GenerationStopped,
    PortError,
    RecognitionEnded,
    RecognitionErrored,
    SynthesisEnded,
    SynthesisErrored,
    SynthesisStopped,
)

ReportT = TypeVar("ReportT")
ReportT_co = TypeVar("ReportT_co", covariant=True)
RequestT = TypeVar("RequestT")

TERMINAL_REPORTS = (
    RecognitionEnded,
    RecognitionErrored,
    GenerationEnded,
    GenerationStopped,
    GenerationErrored,
    SynthesisEnded,
    SynthesisStopped,
    SynthesisErrored,
)


class OnCancel(StrEnum):
    """How a scripted stream takes a cancel."""

    ACKNOWLEDGE = "acknowledge"
    """It ends, `acknowledge_after_ms` later, as a good port does."""
    IGNORE = "ignore"
    """It goes on with its script, as a provider that never hears the cancel."""
    HANG = "hang"
    """It reports nothing more until it is closed."""


@dataclass(frozen=True, slots=True)
class Step(Generic[ReportT_co]):
    """One report, given when all its conditions hold: gate, then audio, then the pause."""

    report: ReportT_co
    wait_ms: float = 0.0
    written_samples: int = 0
    """Recognition only: so much audio has been written in total."""
    input_finished: bool = False
    """Recognition only: `finish_input` was called."""
    gate: anyio.Event | None = None
    """The test sets it to let the step go."""


@dataclass(frozen=True, slots=True)
class Script(Generic[ReportT_co]):
    """What one stream reports. Without a terminal report in it the stream ends without one, as a lost connection."""

    steps: Sequence[Step[ReportT_co]] = ()
    on_cancel: OnCancel = OnCancel.ACKNOWLEDGE
    acknowledge_after_ms: float = 0.0
    open_after_ms: float = 0.0
    open_error: ScopedError | None = None


def scripted_error(code: str = "scripted", stage: str = "generation", retryable: bool = False) -> ScopedError:
    """An error to put into a script."""
    return ScopedError(code, stage, ErrorScope.RESPONSE, "the script says so", retryable=retryable)


def refusal(code: str, stage: str, message: str) -> PortError:
    """What a scripted port raises when it is misused."""
    return PortError(ScopedError(code, stage, ErrorScope.RESPONSE, message))


async def opening(open_after_ms: float, open_error: ScopedError | None) -> None:
    """Take as long as the script lets `open` take, then succeed or fail."""
    await anyio.sleep(open_after_ms / 1_000)
    if open_error is not None:
        raise PortError(open_error)


class ScriptedStream(ABC, Generic[RequestT, ReportT]):
    """The bookkeeping of the five verbs, and waits that end early when the stream does."""

    stage: str
    """For errors: "recognition", "generation", "synthesis"."""

    def __init__(self, request: RequestT, on_cancel: OnCancel, acknowledge_after_ms: float) -> None:
        self.request = request
        self.cancel_reason: str | None = None
        """The reason of the first effective `cancel`, None without one."""
        self.closed = False
        self.input_finished = False
        self._on_cancel = on_cancel
        self._acknowledge_after_ms = acknowledge_after_ms
        self._terminated = False
        self._read = False
        self._change = anyio.Event()

    def cancel(self, reason: str) -> None:
        if self.cancel_reason is None and not self._terminated:
            self.cancel_reason = reason
            self._changed()

    async def aclose(self) -> None:
        if not self.closed:
            self.cancel("closed")
            self.closed = True
            self._changed()

    async def reports(self) -> AsyncIterator[ReportT]:
        if self._read:
            raise refusal("already_reading", self.stage, "reports() is iterated once; open another stream")
        self._read = True
        async with aclosing(self._play()) as play:
            async for report in play:
                if self._ending:
                    break
                self._terminated = isinstance(report, TERMINAL_REPORTS)
                yield report
                if self._terminated:
                    return
        if self._ending:
            await self._acknowledged()
            self._terminated = True
            yield self._stopped()
        self._terminated = True

    @abstractmethod
    def _play(self) -> AsyncGenerator[ReportT, None]:
        """The script's reports; may end early when the stream is ending."""

    @abstractmethod
    def _stopped(self) -> ReportT:
        """The terminal report of a cancelled stream."""

    @property
    def _ending(self) -> bool:
        return self.closed or (self.cancel_reason is not None and self._on_cancel is not OnCancel.IGNORE)

    def _changed(self) -> None:
        self._change.set()
        self._change = anyio.Event()

    async def _until(self, holds: Callable[[], bool]) -> bool:
        """True when `holds`, False when the stream is to end first."""
        while not self._ending:
            if holds():
                return True
            await self._change.wait()
        return False

    async def _paused(self, duration_ms: float) -> bool:
        """True after `duration_ms`, False when the stream is to end first."""
        with anyio.move_on_after(duration_ms / 1_000):
            await self._until(lambda: False)
        return not self._ending

    async def _passed(self, gate: anyio.Event) -> bool:
        """True once `gate` is set, False when the stream is to end first."""

        async def announce() -> None:
            await gate.wait()
            self._changed()

        passed = False
        async with anyio.create_task_group() as group:
            group.start_soon(announce)
            passed = await self._until(gate.is_set)
            group.cancel_scope.cancel()
        return passed

    async def _acknowledged(self) -> None:
        if self._on_cancel is OnCancel.HANG:
            while not self.closed:
                await self._change.wait()
        with anyio.move_on_after(self._acknowledge_after_ms / 1_000):
            while not self.closed:
                await self._change.wait()

    def _refuse_input_after_the_end(self) -> None:
        if self.closed or self._terminated or self.cancel_reason is not None:
            raise refusal("stream_ended", self.stage, "this stream has ended; open another one")
        if self.input_finished:
            raise refusal("write_after_finish", self.stage, "finish_input() was called; open another stream")


class SteppedStream(ScriptedStream[RequestT, ReportT]):
    """A stream whose script is a list of steps."""

    def __init__(self, request: RequestT, script: Script[ReportT]) -> None:
        super().__init__(request, script.on_cancel, script.acknowledge_after_ms)
        self._steps = script.steps

    def _ready_for(self, step: Step[ReportT]) -> bool:
        """Whether the input that `step` waits for has come."""
        return True

    async def _play(self) -> AsyncGenerator[ReportT, None]:
        for step in self._steps:
            if step.gate is not None and not await self._passed(step.gate):
                return
            if not await self._until(lambda step=step: self._ready_for(step)):
                return
            if step.wait_ms > 0 and not await self._paused(step.wait_ms):
                return
            yield step.report
