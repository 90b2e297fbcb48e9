"""One utterance on one WebSocket.

There is no task here: whoever reads the reports also keeps the connection alive and watches over it. So a stream that
nobody reads does nothing, and one that was let go leaves nothing behind.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass, field, replace

import anyio

from ....audio.formats import AudioFrame
from ....engines.reports import (
    PortError,
    RecognitionEnded,
    RecognitionErrored,
    RecognitionReport,
    SegmentFinal,
    SegmentHypothesis,
    Word,
)
from ..websocket import ClosedBy, JsonObject, ProviderSocket, SocketClosed, SocketLimits
from .dialect import STAGE, Dialect, Heard, Outgoing, Ready, Sending
from .input_track import InputTrack


def _socket_limits() -> SocketLimits:
    return SocketLimits(
        open_s=8.0,
        send_s=5.0,
        close_s=1.0,
        ping_interval_s=10.0,
        ping_timeout_s=10.0,
        max_message_bytes=1 << 20,
    )


@dataclass(frozen=True, slots=True)
class RecognitionLimits:
    """Every wait of a recogniser over a network."""

    ready_s: float = 8.0
    """From `open` to the provider's readiness."""
    finish_s: float = 5.0
    """From the end of the utterance, or the last message after it, to the next message."""
    silent_s: float = 10.0
    """A provider that answers all audio may say nothing for so long while audio goes out."""
    keep_alive_s: float = 4.0
    """Without audio, a keep-alive message is due. Deepgram asks for 3 to 5 s, and closes after 10."""
    socket: SocketLimits = field(default_factory=_socket_limits)


class SocketRecognitionStream:
    """Implements `RecognitionStream`."""

    def __init__(self, socket: ProviderSocket, dialect: Dialect, limits: RecognitionLimits) -> None:
        self._socket = socket
        self._dialect = dialect
        self._limits = limits
        self._track = InputTrack(
            dialect.request.format,
            dialect.format,
            dialect.min_chunk_ms,
            dialect.max_chunk_ms,
            dialect.pads_last_chunk,
        )
        self._queue: deque[RecognitionReport] = deque()
        self._last: RecognitionEnded | RecognitionErrored | None = None
        self._told_last = False
        self._is_ready = dialect.ready_at_once
        self._waiting: anyio.CancelScope | None = None
        self._finished_at: float | None = None
        self._sent_at = self._heard_at = anyio.current_time()
        self._unanswered_since: float | None = None

    # -- opening ---------------------------------------------------------------------------------------------------

    async def become_ready(self) -> None:
        """For `SocketRecognizer`: no audio is sent before the provider says that it is ready. Raises `PortError`."""
        for message in self._dialect.opening():
            await self._send(message)
        while not self._is_ready:
            await self._hear(self._dialect.take(await self._socket.receive_json()))
            if isinstance(self._last, RecognitionErrored):
                raise PortError(self._last.error)

    # -- audio -----------------------------------------------------------------------------------------------------

    async def write(self, frame: AudioFrame) -> None:
        """Raises `PortError`, and takes nothing of the frame, when the stream has ended, for another format and for a
        hole; `provider_stalled` when the network takes nothing. Why a connection was closed the reports tell.
        """
        self._refuse_after_the_end()
        self._track.take(frame)
        for pcm in self._track.messages():
            await self._send_audio(pcm)

    async def finish_input(self) -> None:
        """Sends what is left and says that it was all. Raises `PortError` as `write` does."""
        if self._finished_at is not None or self._last is not None:
            return
        self._finished_at = anyio.current_time()
        for pcm in self._track.rest():
            await self._send_audio(pcm)
        for message in self._dialect.finishing(self._track.written_samples > 0):
            await self._send_or_leave(message)
        self._heard_at = max(self._heard_at, anyio.current_time())
        self._end_if_complete()
        self._wake()

    def _refuse_after_the_end(self) -> None:
        if self._last is not None:
            raise STAGE.failure("stream_ended", "this stream has ended; open another one")
        if self._finished_at is not None:
            raise STAGE.failure("write_after_finish", "finish_input() was called; open another stream")

    async def _send_audio(self, pcm: bytes) -> None:
        await self._send_or_leave(self._dialect.audio(pcm))
        if self._dialect.answers_audio and self._unanswered_since is None:
            self._unanswered_since = anyio.current_time()
            self._wake()

    async def _send_or_leave(self, message: Outgoing) -> None:
        try:
            await self._send(message)
        except SocketClosed:
            # The reader finds out too, and may find the provider's own explanation before.
            self._wake()

    async def _send(self, message: Outgoing) -> None:
        if isinstance(message, bytes):
            await self._socket.send_bytes(message)
        else:
            await self._socket.send_json(message)
        self._sent_at = anyio.current_time()

    # -- reports ---------------------------------------------------------------------------------------------------

    async def reports(self) -> AsyncIterator[RecognitionReport]:
        while not self._told_last:
            if self._queue:
                yield self._queue.popleft()
            elif self._last is not None:
                self._told_last = True
                yield self._last
            else:
                await self._advance()

    async def _advance(self) -> None:
        """One message, or one thing that is due."""
        message: JsonObject | None = None
        try:
            with anyio.CancelScope(deadline=self._next_due()) as self._waiting:
                message = await self._socket.receive_json()
            self._waiting = None
            if message is None:
                await self._do_what_is_due()
            else:
                self._heard_at, self._unanswered_since = anyio.current_time(), None
                await self._hear(self._dialect.take(message))
        except SocketClosed as closed:
            await self._end_closed(closed)
        except PortError as failure:
            self._end(RecognitionErrored(failure.error))
        finally:
            self._waiting = None

    async def _hear(self, heard: Iterable[Heard]) -> None:
        for one in heard:
            match one:
                case Ready():
                    self._is_ready = True
                case Sending(message):
                    await self._send(message)
                case RecognitionErrored():
                    self._end(one)
                    return
                case SegmentHypothesis() | SegmentFinal():
                    self._queue.append(self._within_the_audio(one))
                case _:
                    self._queue.append(one)
        self._end_if_complete()

    def _end_if_complete(self) -> None:
        if self._dialect.is_complete:
            self._end(RecognitionEnded())

    def _end(self, last: RecognitionEnded | RecognitionErrored) -> None:
        self._last = self._last or last

    async def _end_closed(self, closed: SocketClosed) -> None:
        if closed.closing.by is not ClosedBy.US:
            await self._hear(self._dialect.take_closing(closed.closing))
        self._end(RecognitionErrored(closed.error))

    def _within_the_audio(self, report: SegmentHypothesis | SegmentFinal) -> SegmentHypothesis | SegmentFinal:
        """Providers round times up, and count silence that was filled in."""
        last = self._track.written_samples
        words = tuple(
            Word(word.text, min(word.start_sample, last), min(word.end_sample, last), word.confidence)
            for word in report.words
        )
        if isinstance(report, SegmentHypothesis):
            return replace(report, words=words)
        start = None if report.start_sample is None else min(report.start_sample, last)
        end = None if report.end_sample is None else min(report.end_sample, last)
        return replace(report, words=words, start_sample=start, end_sample=end)

    # -- what is due -----------------------------------------------------------------------------------------------

    def _next_due(self) -> float:
        return min(self._keep_alive_due(), self._silence_due(), self._finish_due())

    def _keep_alive_due(self) -> float:
        if self._dialect.keep_alive is None or self._finished_at is not None:
            return math.inf
        return self._sent_at + self._limits.keep_alive_s

    def _silence_due(self) -> float:
        return math.inf if self._unanswered_since is None else self._unanswered_since + self._limits.silent_s

    def _finish_due(self) -> float:
        if self._finished_at is None:
            return math.inf
        return max(self._finished_at, self._heard_at) + self._limits.finish_s

    def _wake(self) -> None:
        """Something is due earlier than the reader knows."""
        if self._waiting is not None:
            self._waiting.deadline = anyio.current_time() if self._last is not None else self._next_due()

    async def _do_what_is_due(self) -> None:
        now = anyio.current_time()
        if self._last is not None:
            return
        if now >= self._finish_due():
            message = (
                f"the provider did not finish the utterance within {self._limits.finish_s} s; "
                "check the network and the provider"
            )
            self._end(RecognitionErrored(STAGE.error("provider_silent", message, retryable=True)))
        elif now >= self._silence_due():
            message = f"the provider said nothing about {self._limits.silent_s} s of audio; check the network"
            self._end(RecognitionErrored(STAGE.error("provider_silent", message, retryable=True)))
        elif now >= self._keep_alive_due() and self._dialect.keep_alive is not None:
            await self._send(self._dialect.keep_alive)

    # -- the end ---------------------------------------------------------------------------------------------------

    def cancel(self, reason: str) -> None:
        """`reports()` ends with `RecognitionEnded(cancelled=True)`, unless another terminal report was read already."""
        if self._told_last:
            return
        self._queue.clear()
        self._last = RecognitionEnded(cancelled=True)
        self._wake()

    async def aclose(self) -> None:
        """Close the connection; on an utterance that was not over, say so to the provider before. Idempotent."""
        unfinished = self._last is None or self._last == RecognitionEnded(cancelled=True)
        self.cancel("closed")
        with anyio.CancelScope(shield=True):
            if unfinished and self._socket.closing is None:
                await self._say_goodbye()
            await self._socket.aclose()

    async def _say_goodbye(self) -> None:
        with anyio.move_on_after(self._limits.socket.close_s):
            try:
                for message in self._dialect.abandoning():
                    await self._send(message)
            except PortError:
                return  # It is gone already, or takes nothing: closing is all that is left.
