"""One reply being spoken by a provider: what every synthesiser over the network has in common.

The life of it is a task of its own, which takes units and delivers reports until everything is said, something fails or
it is cancelled. A cancel drops at once whatever was not read yet, and lets the task say good-bye on the wire.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from dataclasses import dataclass, replace

import anyio
from anyio.lowlevel import checkpoint

from ....engines.port_calls import error_of
from ....engines.ports import SpeechUnit
from ....engines.reports import (
    SynthesisEnded,
    SynthesisErrored,
    SynthesisReport,
    SynthesisStopped,
    Synthesized,
)
from .track import SYNTHESIS


@dataclass(frozen=True, slots=True)
class SpeechLimits:
    """Every wait and every size of one spoken reply."""

    max_unit_chars: int = 2_000
    max_waiting_chars: int = 2_000
    """Text that was written and not asked for; one unit of any length always may wait."""
    max_unread_bytes: int = 4 << 20
    """PCM that was made and not read. Beyond it the network is not read."""
    silence_s: float = 10.0
    """Without any audio or end of a unit, while the provider owes some."""
    write_s: float = 30.0
    read_s: float = 60.0
    """A reader that takes nothing for so long, with everything full, fails the reply."""
    close_s: float = 1.5


class SpokenReply:
    """Implements `SynthesisStream`. `speak` does the work, with `next_unit` and `deliver`."""

    def __init__(self, speak: Callable[[SpokenReply], Awaitable[None]], limits: SpeechLimits) -> None:
        """Starts at once: call it in a running event loop, and `aclose` it."""
        self.limits = limits
        self._speak = speak
        self._units: deque[SpeechUnit] = deque()
        self._input_finished = False
        self._reports: deque[SynthesisReport] = deque()
        self._unread_bytes = 0
        self._last: SynthesisReport | None = None
        self._is_read_out = False
        self._end_sample = 0
        self._changed = anyio.Event()
        self._scope = anyio.CancelScope()
        self._task = asyncio.get_running_loop().create_task(self._run(), name="voicechart spoken reply")

    def when_done(self, call: Callable[[], object]) -> None:
        """`call` once the task is over."""
        self._task.add_done_callback(lambda _: call())

    # -- for the engine --------------------------------------------------------------------------------------------

    async def write(self, unit: SpeechUnit) -> None:
        """Raises `PortError` when the stream has ended or its input was finished, for a unit that is too long, and when
        there is no room within the deadline.
        """
        if len(unit.text) > self.limits.max_unit_chars:
            message = (
                f"{len(unit.text)} characters in one unit, at most {self.limits.max_unit_chars}; cut it at clauses"
            )
            raise SYNTHESIS.failure("unit_too_long", message)
        self._refuse_after_the_end()
        with anyio.move_on_after(self.limits.write_s):
            await self._until(lambda: self._last is not None or self._has_room(unit))
        self._refuse_after_the_end()
        if not self._has_room(unit):
            message = f"no room for the unit within {self.limits.write_s} s; read the reports"
            raise SYNTHESIS.failure("backpressure", message)
        self._units.append(unit)
        self._note_change()

    async def finish_input(self) -> None:
        self._input_finished = True
        self._note_change()

    async def reports(self) -> AsyncIterator[SynthesisReport]:
        while not self._is_read_out:
            await self._until(lambda: bool(self._reports) or self._last is not None)
            if self._reports:
                report = self._reports.popleft()
                self._unread_bytes -= _size(report)
                self._note_change()
            else:
                assert self._last is not None
                report, self._is_read_out = self._last, True
            yield report

    def cancel(self, reason: str) -> None:
        if not self._is_read_out:
            self._reports.clear()
            self._unread_bytes = 0
            self._last = SynthesisStopped()
        self._scope.cancel()
        self._note_change()

    async def aclose(self) -> None:
        """Cancels, then waits until the provider has been told, at most `close_s`."""
        self.cancel("closed")
        with anyio.move_on_after(self.limits.close_s, shield=True):
            await asyncio.wait((self._task,))
            return
        self._task.cancel()
        with anyio.CancelScope(shield=True):
            await checkpoint()

    # -- for `speak` -----------------------------------------------------------------------------------------------

    async def next_unit(self) -> SpeechUnit | None:
        """The next text to be spoken, as soon as there is one; None when no more comes. A cancelled call loses none."""
        await self._until(lambda: bool(self._units) or self._input_finished)
        if not self._units:
            return None
        unit = self._units.popleft()
        self._note_change()
        return unit

    def put_back(self, unit: SpeechUnit) -> None:
        """It was not asked for after all: it is the next one again."""
        self._units.appendleft(unit)
        self._note_change()

    async def deliver(self, reports: Iterable[SynthesisReport]) -> None:
        """Hand reports to the reader, and wait while too much is unread. Raises `PortError` `reader_stalled`."""
        if self._last is not None:
            return  # cancelled, and this task has not noticed yet
        for report in reports:
            self._reports.append(report)
            self._unread_bytes += _size(report)
            if isinstance(report, Synthesized):
                self._end_sample = report.frame.end_sample
        self._note_change()
        await checkpoint()
        try:
            with anyio.fail_after(self.limits.read_s):
                await self._until(lambda: self._unread_bytes <= self.limits.max_unread_bytes)
        except TimeoutError as stalled:
            raise SYNTHESIS.failure("reader_stalled", f"nobody read for {self.limits.read_s} s") from stalled

    # -- the task --------------------------------------------------------------------------------------------------

    async def _run(self) -> None:
        with self._scope:
            try:
                await self._speak(self)
            except Exception as failure:  # whatever it is, nobody may wait for the end for ever
                error = error_of(failure, "the synthesiser", SYNTHESIS.name)
                # What was heard cannot be taken back: trying again would say it twice.
                heard = self._end_sample > 0
                error = replace(error, partial_output=heard, retryable=error.retryable and not heard)
                self._end(SynthesisErrored(error))
            else:
                self._end(SynthesisEnded(self._end_sample))

    def _end(self, last: SynthesisReport) -> None:
        self._last = self._last or last
        self._note_change()

    def _refuse_after_the_end(self) -> None:
        if self._last is not None:
            raise SYNTHESIS.failure("stream_ended", "this stream has ended; open another one")
        if self._input_finished:
            raise SYNTHESIS.failure("write_after_finish", "finish_input() was called; open another stream")

    def _has_room(self, unit: SpeechUnit) -> bool:
        waiting = sum(len(other.text) for other in self._units)
        return not waiting or waiting + len(unit.text) <= self.limits.max_waiting_chars

    async def _until(self, is_so: Callable[[], bool]) -> None:
        while not is_so():
            await self._changed.wait()

    def _note_change(self) -> None:
        self._changed.set()
        self._changed = anyio.Event()


def _size(report: SynthesisReport) -> int:
    return len(report.frame.data) if isinstance(report, Synthesized) else 0
