"""Recording a running chart, at little cost to it, switched on and off at any time.

Theory of operation. In the macrostep the recorder does one thing: it puts the step, which is immutable, into a bounded
queue. Turning steps into lines and writing them happens in `flush`, which `run` calls now and then on a worker thread.
When the queue is full - a disk that hangs - steps are counted and the trace says where they are missing and how it goes
on. When the disk refuses, the recorder switches itself off, says so, and the conversation goes on.
"""

from __future__ import annotations

import secrets
from collections import deque
from collections.abc import Callable
from pathlib import Path
from threading import Lock
from typing import Any

import anyio
import anyio.to_thread

from ... import __version__
from ...statecharts.chart import Chart, Step
from ...statecharts.traces import TraceEncoder
from .trace_file import TraceFile, TraceLimits

_KEY_BYTES = 32
_ADVICE = "Make room or choose another place, then switch it on again"


class TraceWriteError(Exception):
    """A trace could not be written; it is off since then. The text says why and how to go on."""


class TraceRecorder:
    """Records one chart to one file. `text_shown`: what people said is written as it is, instead of redacted.

    `on_failure` is called, on the thread that flushed, when the recorder had to switch itself off.
    """

    def __init__(
        self,
        chart: Chart[Any],
        path: Path | str,
        *,
        limits: TraceLimits | None = None,
        text_shown: bool = False,
        on_failure: Callable[[TraceWriteError], None] | None = None,
    ) -> None:
        self._chart = chart
        self._path = Path(path)
        self._limits = limits or TraceLimits()
        self._on_failure = on_failure
        key = None if text_shown else secrets.token_bytes(_KEY_BYTES)
        self._encoder = TraceEncoder(chart, key, f"voicechart {__version__}")
        self._queue: deque[tuple[int, Step[Any]]] = deque()
        self._missing = 0
        self._number = 0
        self._file: TraceFile | None = None
        self._ignore: Callable[[], None] | None = None
        self._lock = Lock()
        self.failure: TraceWriteError | None = None
        """Why it is off, when that was not asked for."""
        self.missing_steps = 0
        """Macrosteps that came while the queue was full, since the recorder was made."""

    @property
    def is_on(self) -> bool:
        return self._ignore is not None

    @property
    def path(self) -> Path:
        return self._path

    def start(self) -> None:
        """Begin a new file with the next macrostep; a file of the same name is put aside. Idempotent."""
        if self._ignore is None:
            self.failure = None
            self._ignore = self._chart.observe(self._note)

    def stop(self) -> None:
        """Write what is queued and close the file. Idempotent; writes to disk, so not for the hot path."""
        self._detach()
        self._write_down()

    def flush(self) -> None:
        """Write what is queued. May be called on any thread."""
        self._write_down()

    async def run(self, interval_ms: int = 250) -> None:
        """Flush every `interval_ms` until cancelled, and once more then."""
        try:
            while True:
                await anyio.sleep(interval_ms / 1_000)
                if self._queue:
                    await self._flush_in_time()
        finally:
            await self._flush_in_time(shield=True)

    async def _flush_in_time(self, *, shield: bool = False) -> None:
        """A flush that hangs is left behind with the file; the next one finds that out and switches tracing off."""
        with anyio.move_on_after(self._timeout_s, shield=shield):
            await anyio.to_thread.run_sync(self.flush, abandon_on_cancel=True)

    @property
    def _timeout_s(self) -> float:
        return self._limits.disk_timeout_ms / 1_000

    def _write_down(self) -> None:
        """Write what is queued, and close the file when nothing more will come."""
        if not self._lock.acquire(timeout=self._timeout_s):
            # Whoever has the lock waits for the disk; the file is theirs.
            self._switch_off(f"the disk has not answered for {self._limits.disk_timeout_ms} ms. {_ADVICE}", None)
            return
        try:
            while (entry := self._next()) is not None:
                self._write(*entry)
            if not self.is_on:
                self._end_with_gap()
                self._close()
            elif self._file is not None:
                self._file.flush()
        except OSError as error:
            self._give_up(f"{error.strerror or error}. {_ADVICE}", error)
        except ValueError as error:
            self._give_up(f"a macrostep cannot be written: {error}", error)
        finally:
            self._lock.release()

    def _note(self, step: Step[Any]) -> None:
        if len(self._queue) >= self._limits.max_queued_steps:
            self._missing += 1
            self.missing_steps += 1
            return
        self._queue.append((self._missing, step))
        self._missing = 0

    def _next(self) -> tuple[int, Step[Any]] | None:
        try:
            return self._queue.popleft()
        except IndexError:
            return None

    def _write(self, missing: int, step: Step[Any]) -> None:
        self._number += missing + 1
        line = _bytes(self._encoder.record(self._number, step))
        if self._file is None:
            self._file = TraceFile(self._path, self._limits)
            self._begin_file(step)
        elif not self._file.has_room(line):
            self._file.begin_anew()
            self._begin_file(step)
        elif missing:
            self._file.append(_bytes(self._encoder.gap(missing, self._number, step.before)))
        self._file.append(line)

    def _begin_file(self, step: Step[Any]) -> None:
        assert self._file is not None
        self._file.append(_bytes(self._encoder.header(self._number, step.before)))

    def _end_with_gap(self) -> None:
        """Steps that came while the queue was full, and none after them."""
        missing, self._missing = self._missing, 0
        if missing and self._file is not None:
            self._number += missing
            gap = self._encoder.gap(missing, self._number + 1, self._chart.snapshot())
            self._file.append(_bytes(gap))

    def _give_up(self, why: str, error: Exception) -> None:
        """The disk refused, or a fact of an embedder holds what a trace cannot."""
        try:
            self._close()
        except OSError:
            self._file = None  # the same disk refuses the buffered rest; the failure is told anyway
        self._switch_off(why, error)

    def _switch_off(self, why: str, error: Exception | None) -> None:
        self._detach()
        self._queue.clear()
        self.failure = TraceWriteError(f"tracing to {self._path} was switched off: {why}")
        self.failure.__cause__ = error
        if self._on_failure is not None:
            self._on_failure(self.failure)

    def _close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def _detach(self) -> None:
        ignore, self._ignore = self._ignore, None
        if ignore is not None:
            ignore()


def _bytes(line: str) -> bytes:
    """Also of a text that is no proper Unicode, which JSON readers take as it is."""
    return line.encode("utf-8", "surrogatepass")
