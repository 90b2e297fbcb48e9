"""One response spoken by an engine that works in a thread."""

from __future__ import annotations

import logging
import threading
from collections.abc import AsyncIterator, Callable
from concurrent.futures import Future
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Protocol

import anyio.to_thread

from ...audio.formats import AudioFormat, AudioFrame
from ...engines.ports import SpeechUnit
from ...engines.reports import (
    PortError,
    SynthesisEnded,
    SynthesisErrored,
    SynthesisReport,
    SynthesisStopped,
    Synthesized,
    UnitSynthesized,
    Word,
)
from ...statecharts.errors import ErrorScope, ScopedError
from .bridge import ReportBridge
from .worker import Worker, WorkerClosedError

logger = logging.getLogger(__name__)

MS_PER_CHAR = 66
"""An estimate of how long a character takes to say: 15 characters a second."""


class Deliver(Protocol):
    """Takes PCM as it is made, and the words that end in it, in samples of the unit; False: the rest is not wanted."""

    def __call__(self, pcm: bytes, words: tuple[Word, ...] = ()) -> bool: ...


class SpeechEngine(Protocol):
    """What speaks one unit after another, always in the worker's thread."""

    @property
    def format(self) -> AudioFormat: ...
    @property
    def contended(self) -> bool:
        """Something outside the worker waits for this engine: hurry, even beyond the buffer's bound."""
        ...

    def check_voice(self, voice: str) -> None:
        """Raises `PortError` for a voice that is not installed."""
        ...

    def speak(self, text: str, voice: str, deliver: Deliver) -> tuple[Word, ...]:
        """Hand PCM to `deliver` as it is made, until it returns False; with the words of it that are known by then.

        Returns all words in samples of this unit where the engine aligns. Raises `PortError`.
        """
        ...


@dataclass(frozen=True, slots=True)
class SynthesisBounds:
    """How much may wait where, and for how long."""

    buffer_ms: int = 500
    """PCM that was produced and not read."""
    waiting_ms: int = 2_000
    """Estimated speech of units that were written and not begun; one unit of any length always may wait."""
    max_unit_chars: int = 2_000
    frame_ms: int = 20
    write_deadline_s: float = 30.0
    read_deadline_s: float = 60.0
    """A reader that takes nothing for so long fails the stream, and the engine is free again."""
    close_deadline_s: float = 5.0


def synthesis_error(code: str, message: str, scope: ErrorScope = ErrorScope.RESPONSE) -> PortError:
    """A `PortError` of the synthesis stage."""
    return PortError(ScopedError(code, "synthesis", scope, message))


class ThreadedSynthesisStream:
    """Units wait for the worker, PCM waits for the reader, both within bounds; `cancel` drops both at once."""

    def __init__(self, engine: SpeechEngine, voice: str, worker: Worker, bounds: SynthesisBounds) -> None:
        self._engine = engine
        self._voice = voice
        self._worker = worker
        self._bounds = bounds
        self._format = engine.format
        self._bridge = ReportBridge[SynthesisReport](
            self._format.samples_for_ms(bounds.buffer_ms),
            may_overflow=lambda: engine.contended or worker.others_wait(self),
            put_deadline_s=bounds.read_deadline_s,
        )
        self._changed = threading.Condition()
        self._waiting_chars = 0
        self._speaking = False
        self._finished = False
        self._position = 0

    async def write(self, unit: SpeechUnit) -> None:
        """Raises `PortError` when the stream has ended or its input was finished, for a unit that is too long, and when
        there is no room within the deadline.
        """
        if len(unit.text) > self._bounds.max_unit_chars:
            raise synthesis_error(
                "unit_too_long",
                f"{len(unit.text)} characters in one unit, at most {self._bounds.max_unit_chars}; cut it at clauses",
            )
        self._refuse_after_the_end()
        if not self._has_room(unit):
            await anyio.to_thread.run_sync(self._wait_for_room, unit, abandon_on_cancel=True)
            self._refuse_after_the_end()
            if not self._has_room(unit):
                raise synthesis_error(
                    "backpressure", f"no room for the unit within {self._bounds.write_deadline_s} s; read the reports"
                )
        with self._changed:
            self._waiting_chars += len(unit.text)
        self._submit(lambda: self._speak(unit))

    async def finish_input(self) -> None:
        if not self._finished:
            self._finished = True
            self._submit(lambda: self._bridge.end(SynthesisEnded(self._position)))

    def reports(self) -> AsyncIterator[SynthesisReport]:
        return self._bridge.reports()

    def cancel(self, reason: str) -> None:
        self._bridge.stop(SynthesisStopped())
        self._notify()

    async def aclose(self) -> None:
        """Cancels, then waits until the engine has let go of this stream, at most `close_deadline_s`."""
        self.cancel("closed")
        if self._speaking:
            with anyio.move_on_after(self._bounds.close_deadline_s, shield=True):
                await anyio.to_thread.run_sync(self._wait_until_silent, abandon_on_cancel=True)

    def _refuse_after_the_end(self) -> None:
        if self._bridge.ended:
            raise synthesis_error("stream_ended", "this stream has ended; open another one")
        if self._finished:
            raise synthesis_error("write_after_finish", "finish_input() was called; open another stream")

    def _has_room(self, unit: SpeechUnit) -> bool:
        return not self._waiting_chars or (
            (self._waiting_chars + len(unit.text)) * MS_PER_CHAR <= self._bounds.waiting_ms
        )

    def _wait_for_room(self, unit: SpeechUnit) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._bridge.ended or self._has_room(unit), self._bounds.write_deadline_s)

    def _wait_until_silent(self) -> None:
        with self._changed:
            self._changed.wait_for(lambda: not self._speaking, self._bounds.close_deadline_s)

    def _notify(self) -> None:
        with self._changed:
            self._changed.notify_all()

    def _submit(self, job: Callable[[], None]) -> None:
        try:
            self._worker.submit(job, self).add_done_callback(self._check)
        except WorkerClosedError as closed:
            raise synthesis_error("port_closed", "the synthesiser was closed") from closed

    def _check(self, job: Future[None]) -> None:
        """A job that raised ends the stream: nobody may wait for its reports for ever."""
        error = None if job.cancelled() else job.exception()
        if error is not None:
            logger.error("the speech engine failed", exc_info=error)
            self._fail(
                synthesis_error("engine_failed", f"the speech engine raised {type(error).__name__}; see the log")
            )

    def _fail(self, failure: PortError) -> None:
        self._bridge.end(SynthesisErrored(replace(failure.error, partial_output=self._position > 0)))
        self._notify()

    def _speak(self, unit: SpeechUnit) -> None:
        """In the worker's thread."""
        with self._changed:
            self._waiting_chars -= len(unit.text)
            self._speaking = not self._bridge.ended
            self._changed.notify_all()
        if not self._speaking:
            return
        try:
            start = self._position

            def deliver(pcm: bytes, words: tuple[Word, ...] = ()) -> bool:
                return self._deliver(pcm, unit.index, _placed(words, start))

            words = self._engine.speak(unit.text, self._voice, deliver)
            self._bridge.put(UnitSynthesized(unit.index, start, self._position, _placed(words, start)))
        except PortError as failure:
            self._fail(failure)
        except TimeoutError:
            self._fail(synthesis_error("reader_stalled", f"nobody read for {self._bounds.read_deadline_s} s"))
        finally:
            with self._changed:
                self._speaking = False
                self._changed.notify_all()

    def _deliver(self, pcm: bytes, unit_index: int, words: tuple[Word, ...]) -> bool:
        """In the worker's thread; False when the rest is not wanted."""
        pieces = even_pieces(pcm, self._format, self._bounds.frame_ms)
        for place, piece in enumerate(pieces, start=1):
            frame = AudioFrame(piece, self._format, self._position)
            told = words if place == len(pieces) else ()
            if not self._bridge.put(Synthesized(frame, unit_index, told), frame.samples):
                return False
            self._position = frame.end_sample
        return not self._bridge.ended


def _placed(words: tuple[Word, ...], start_sample: int) -> tuple[Word, ...]:
    """Words of a unit, in samples of the stream."""
    return tuple(
        replace(word, start_sample=word.start_sample + start_sample, end_sample=word.end_sample + start_sample)
        for word in words
    )


def even_pieces(pcm: bytes, audio_format: AudioFormat, frame_ms: int) -> list[bytes]:
    """`pcm` cut between samples into pieces of nearly equal length, none longer than `frame_ms`: no scrap is left."""
    samples = audio_format.samples_in(len(pcm))
    pieces = -(-samples // audio_format.samples_for_ms(frame_ms))
    cuts = [audio_format.bytes_for(samples * piece // pieces) for piece in range(pieces + 1)] if pieces else []
    return [pcm[start:end] for start, end in pairwise(cuts)]
