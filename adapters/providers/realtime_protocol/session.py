"""One live session on one WebSocket.

There is no task here: whoever reads the reports also sends what a cancel left to be sent, and watches over the time.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable

import anyio

from ....audio.formats import AudioFrame
from ....engines.realtime import ToolOutput
from ....engines.realtime.reports import (
    AnswerStopped,
    RealtimeReport,
    SessionEnded,
    SessionExpires,
    TranscriptionEnded,
)
from ....engines.reports import PortError
from ....statecharts.errors import ScopedError
from ..websocket import JsonObject, ProviderSocket, SocketClosed
from .dialect import ANSWERS, HEARING, STAGE
from .faults import of_session
from .limits import RealtimeLimits
from .outbox import Outbox
from .outgoing_audio import OutgoingAudio
from .protocol import RealtimeProtocol
from .told import Sending, Told

EXPIRY_NOTICE = 1 / 12
"""The part of the longest session that is left when its end is told: five minutes of an hour."""


class SocketRealtimeSession:
    """Implements `RealtimeSession`."""

    def __init__(self, socket: ProviderSocket, protocol: RealtimeProtocol, limits: RealtimeLimits) -> None:
        self._socket = socket
        self._protocol = protocol
        self._limits = limits
        self._provider_turns = protocol.request.provider_turns
        self._audio = OutgoingAudio(protocol.dialect.input_format)
        self._reports: deque[RealtimeReport] = deque()
        self._outbox = Outbox(socket)
        self._last: SessionEnded | None = None
        self._told_last = False
        self._waiting: anyio.CancelScope | None = None
        self._changed = anyio.Event()
        self._utterance_id: str | None = None
        self._asking: str | None = None
        """An answer that waits for the end of another one."""
        self._is_withdrawn = False
        now = anyio.current_time()
        longest_s = protocol.dialect.max_session_minutes * 60
        self._expires_at = now + longest_s
        self._notice_at = now + longest_s * (1 - EXPIRY_NOTICE)
        self._refused_since: float | None = None

    # -- opening ---------------------------------------------------------------------------------------------------

    async def become_ready(self) -> None:
        """For `SocketRealtimeModel`: negotiated, and told what was said before. Raises `PortError`."""
        while not self._protocol.is_ready:
            self._hear(self._protocol.take(await self._socket.receive_json()))
            if self._last is not None and self._last.error is not None:
                raise PortError(self._last.error)
            await self._send()
        await self._send(*self._protocol.restored())

    # -- what is said to the model ---------------------------------------------------------------------------------

    async def begin_utterance(self, utterance_id: str) -> None:
        """Waits, bounded, for the last audio of the utterance before."""
        self._refuse_after_the_end()
        await self._until(
            lambda: self._utterance_id is None,
            self._limits.utterance_s,
            HEARING.error("utterance_open", "the utterance before was neither committed nor discarded"),
        )
        self._utterance_id = utterance_id
        self._audio.begin()

    async def write(self, frame: AudioFrame) -> None:
        self._refuse_after_the_end()
        if self._utterance_id is None and not self._provider_turns:
            raise HEARING.failure("no_utterance", "no utterance was begun; call begin_utterance() before")
        for pcm in self._audio.take(frame):
            await self._send(Sending(self._protocol.dialect.append(pcm)))

    async def commit_utterance(self, utterance_id: str) -> None:
        """One without any audio is over at once: the provider would refuse it."""
        self._refuse_after_the_end()
        if utterance_id != self._utterance_id:
            raise HEARING.failure("no_utterance", f"the utterance {utterance_id} is not open")
        try:
            if self._audio.is_empty:
                error = HEARING.error("nothing_heard", "nothing was written of this utterance")
                self._tell(TranscriptionEnded(utterance_id, error))
                return
            dialect = self._protocol.dialect
            rest = [Sending(dialect.append(pcm)) for pcm in self._audio.rest(dialect.min_commit_ms)]
            await self._send(*rest, self._protocol.utterances.commit(utterance_id))
        finally:
            self._end_utterance()

    async def discard_utterance(self, utterance_id: str) -> None:
        """Its audio is taken out of the provider's buffer; where the model has it, out of what it knows."""
        self._refuse_after_the_end()
        utterances = self._protocol.utterances
        if utterance_id == self._utterance_id or (self._provider_turns and not utterances.has_committed(utterance_id)):
            was_sent = self._audio.sent_ms > 0
            self._audio.begin()
            self._end_utterance()
            if was_sent:
                await self._send(utterances.clear())
        else:
            self._hear(utterances.discard(utterance_id))
            await self._send()

    def _end_utterance(self) -> None:
        self._utterance_id = None
        self._note_change()

    async def submit_text(self, text: str) -> None:
        self._refuse_after_the_end()
        await self._send(self._protocol.submit_text(text))

    async def submit_outputs(self, outputs: tuple[ToolOutput, ...]) -> None:
        self._refuse_after_the_end()
        await self._send(*map(self._protocol.submit_output, outputs))

    # -- answers ---------------------------------------------------------------------------------------------------

    async def respond(self, answer_id: str) -> None:
        """Raises `PortError` `answer_goes_on` when the other answer does not end in time."""
        self._refuse_after_the_end()
        if self._asking is not None:
            raise ANSWERS.failure("answer_goes_on", "another answer waits already", retryable=True)
        message = f"the answer before did not end within {self._limits.respond_s:g} s; it is asked for anew"
        late = ANSWERS.error("answer_goes_on", message, retryable=True)
        self._asking, self._is_withdrawn = answer_id, False
        answers = self._protocol.answers
        try:
            await self._until(lambda: answers.is_free or self._is_withdrawn, self._limits.respond_s, late)
        finally:
            self._asking = None
        if self._is_withdrawn:
            self._tell(AnswerStopped(answer_id))
            return
        refused, self._protocol.refused_input = self._protocol.refused_input, None
        if refused is not None:
            raise PortError(refused)
        self._hear((answers.ask(answer_id),))
        try:
            await self._send()
        except BaseException:
            # It may have been sent: nobody would hear the answer.
            self.cancel(answer_id, "it could not be asked for")
            raise

    def cancel(self, answer_id: str, reason: str) -> None:
        if self._last is not None:
            return
        if answer_id == self._asking:
            self._is_withdrawn = True
            self._note_change()
        self._hear(self._protocol.answers.cancel(answer_id))
        self._wake()

    async def truncate(self, item_id: str, played_ms: int) -> None:
        self._refuse_after_the_end()
        if not self._protocol.dialect.truncates:
            raise ANSWERS.failure("cannot_truncate", "this model cannot be told how much of it was heard")
        self._hear(self._protocol.cuts.cut(item_id, played_ms))
        await self._send()
        self._wake()

    # -- reports ---------------------------------------------------------------------------------------------------

    async def reports(self) -> AsyncIterator[RealtimeReport]:
        while not self._told_last:
            if self._reports:
                yield self._reports.popleft()
            elif self._last is not None:
                self._told_last = True
                yield self._last
            else:
                await self._advance()

    async def _advance(self) -> None:
        """One message, or one thing that is due."""
        message: JsonObject | None = None
        try:
            await self._send()
            with anyio.CancelScope(deadline=self._next_due()) as self._waiting:
                if self._outbox.is_empty and not self._reports:
                    message = await self._socket.receive_json()
            self._waiting = None
            if message is not None:
                self._hear(self._protocol.take(message))
            self._do_what_is_due()
        except PortError as failure:
            self._end(of_session(failure.error))
        finally:
            self._waiting = None

    def _next_due(self) -> float:
        busy = math.inf if self._refused_since is None else self._refused_since + self._limits.respond_s
        return min(self._notice_at, busy)

    def _do_what_is_due(self) -> None:
        now = anyio.current_time()
        if now >= self._notice_at:
            self._notice_at = math.inf
            self._tell(SessionExpires(within_ms=max(0, round((self._expires_at - now) * 1_000))))
        answers = self._protocol.answers
        if not answers.is_refused:
            self._refused_since = None
        elif self._refused_since is None:
            self._refused_since = now
        elif now >= self._refused_since + self._limits.respond_s:
            self._refused_since = None
            self._hear(answers.give_up_refused())

    def _hear(self, heard: Iterable[Told]) -> None:
        for one in heard:
            match one:
                case Sending(message):
                    self._outbox.put(message)
                case SessionEnded(error):
                    self._end(error)
                    return
                case _:
                    self._reports.append(one)
        self._note_change()

    def _tell(self, report: RealtimeReport) -> None:
        self._reports.append(report)
        self._wake()

    # -- sending ---------------------------------------------------------------------------------------------------

    async def _send(self, *messages: Sending) -> None:
        """After what waits to be sent. Raises `PortError`."""
        try:
            await self._outbox.send(*messages)
        except SocketClosed:
            # The reader finds out too, and may find the provider's own explanation before.
            self._wake()
            raise

    async def _until(self, is_so: Callable[[], bool], within_s: float, late: ScopedError) -> None:
        try:
            with anyio.fail_after(within_s):
                while not is_so():
                    await self._changed.wait()
                    self._refuse_after_the_end()
        except TimeoutError:
            raise PortError(late) from None

    def _note_change(self) -> None:
        self._changed.set()
        self._changed = anyio.Event()

    def _wake(self) -> None:
        """There is something to send or to tell."""
        if self._waiting is not None:
            self._waiting.cancel()

    # -- the end ---------------------------------------------------------------------------------------------------

    def _refuse_after_the_end(self) -> None:
        if self._last is not None:
            raise STAGE.failure("session_ended", "this session has ended; open another one", retryable=True)

    def _end(self, error: ScopedError | None) -> None:
        self._last = self._last or SessionEnded(error)
        self._note_change()
        self._wake()

    async def aclose(self) -> None:
        """Say so to the provider where it wants that, and close the connection."""
        was_open = self._last is None
        self._end(None)
        with anyio.CancelScope(shield=True):
            if was_open and self._socket.closing is None:
                await self._say_goodbye()
            await self._socket.aclose()

    async def _say_goodbye(self) -> None:
        with anyio.move_on_after(self._limits.socket.close_s):
            try:
                await self._send(*map(Sending, self._protocol.dialect.closing()))
            except PortError:
                return  # It is gone already, or takes nothing: closing is all that is left.
