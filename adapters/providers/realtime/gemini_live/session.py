"""One live session on one WebSocket.

There is no task here: whoever reads the reports also sends what a cancel left to be sent, and watches over the time.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import AsyncIterator, Iterable
from dataclasses import replace

import anyio

from .....audio.formats import AudioFrame
from .....engines.realtime import ToolOutput
from .....engines.realtime.reports import AnswerStopped, RealtimeReport, SessionEnded
from .....engines.reports import PortError
from .....statecharts.errors import ErrorScope, ScopedError
from ...realtime_protocol import STAGE, RealtimeLimits, Sending, Told
from ...realtime_protocol.dialect import ANSWERS, HEARING
from ...websocket import JsonObject, ProviderSocket, SocketClosed
from .protocol import GeminiProtocol


class GeminiLiveSession:
    """Implements `RealtimeSession`."""

    def __init__(self, socket: ProviderSocket, protocol: GeminiProtocol, limits: RealtimeLimits) -> None:
        self._socket = socket
        self._protocol = protocol
        self._limits = limits
        self._reports: deque[RealtimeReport] = deque()
        self._outbox: deque[JsonObject] = deque()
        """What is to be sent, in order, by whoever sends next."""
        self._sending = anyio.Lock()
        self._last: SessionEnded | None = None
        self._told_last = False
        self._waiting: anyio.CancelScope | None = None
        self._changed = anyio.Event()
        self._asking: str | None = None
        """An answer that waits until it can be told from another one."""
        self._is_withdrawn = False

    async def become_ready(self, setup: JsonObject) -> None:
        """For `GeminiLiveModel`: set up, and told what was said before. Raises `PortError`."""
        self._hear((Sending(setup),))
        await self._send()
        while not self._protocol.is_ready:
            self._hear(self._protocol.take(await self._socket.receive_json()))
            if self._last is not None and self._last.error is not None:
                raise PortError(self._last.error)
        self._hear(self._protocol.restored())
        await self._send()

    # -- what is said to the model ---------------------------------------------------------------------------------

    async def begin_utterance(self, utterance_id: str) -> None:
        """Waits, bounded, for the last audio of the utterance before."""
        self._refuse_after_the_end()
        hearing = self._protocol.hearing
        try:
            with anyio.fail_after(self._limits.utterance_s):
                while hearing.utterance_id is not None:
                    await self._changed.wait()
                    self._refuse_after_the_end()
        except TimeoutError:
            raise HEARING.failure(
                "utterance_open", "the utterance before was neither committed nor discarded"
            ) from None
        hearing.begin(utterance_id)

    async def write(self, frame: AudioFrame) -> None:
        self._refuse_after_the_end()
        if self._protocol.hearing.utterance_id is None:
            raise HEARING.failure("no_utterance", "no utterance was begun; call begin_utterance() before")
        await self._hear_and_send(self._protocol.write(frame))

    async def commit_utterance(self, utterance_id: str) -> None:
        """The service is told only when an answer is asked for: it answers at once."""
        self._refuse_after_the_end()
        if utterance_id != self._protocol.hearing.utterance_id:
            raise HEARING.failure("no_utterance", f"the utterance {utterance_id} is not open")
        await self._hear_and_send(self._protocol.commit(utterance_id))

    async def discard_utterance(self, utterance_id: str) -> None:
        """One that was held back never reaches the service; the model's turn after another one is dropped."""
        self._refuse_after_the_end()
        await self._hear_and_send(self._protocol.discard(utterance_id))

    async def submit_text(self, text: str) -> None:
        self._refuse_after_the_end()
        self._protocol.submit_text(text)

    async def submit_outputs(self, outputs: tuple[ToolOutput, ...]) -> None:
        self._refuse_after_the_end()
        self._protocol.submit_outputs(outputs)

    # -- answers ---------------------------------------------------------------------------------------------------

    async def respond(self, answer_id: str) -> None:
        """Waits, bounded, until what comes can be told from what still comes of an answer before.

        Raises `PortError` `answer_goes_on` when that does not end in time.
        """
        self._refuse_after_the_end()
        if self._asking is not None:
            raise ANSWERS.failure("answer_goes_on", "another answer waits already", retryable=True)
        self._asking, self._is_withdrawn = answer_id, False
        self._protocol.is_asked = False
        try:
            with anyio.fail_after(self._limits.respond_s):
                await self._ask(answer_id)
        except TimeoutError:
            message = f"the answer before did not end within {self._limits.respond_s:g} s; it is asked for anew"
            raise ANSWERS.failure("answer_goes_on", message, retryable=True) from None
        finally:
            self._asking = None
        if self._is_withdrawn:
            self._tell(AnswerStopped(answer_id))

    async def _ask(self, answer_id: str) -> None:
        while True:
            asked_at = anyio.current_time()
            try:
                await self._hear_and_send(self._protocol.ask(answer_id))
            except BaseException:
                # It may have been sent: nobody would hear the answer.
                self._hear(self._protocol.cancel(answer_id))
                raise
            if self._protocol.is_asked or self._is_withdrawn:
                return
            with anyio.CancelScope(deadline=self._protocol.turns.settles_at(asked_at) or math.inf):
                await self._changed.wait()
            self._refuse_after_the_end()
            if self._is_withdrawn:
                return

    def cancel(self, answer_id: str, reason: str) -> None:
        if self._last is not None:
            return
        if answer_id == self._asking and not self._protocol.is_asked:
            self._is_withdrawn = True
            self._note_change()
        self._hear(self._protocol.cancel(answer_id))
        self._wake()

    async def truncate(self, item_id: str, played_ms: int) -> None:
        raise ANSWERS.failure("cannot_truncate", "this model cannot be told how much of it was heard")

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
            with anyio.CancelScope(deadline=self._protocol.turns.next_due() or math.inf) as self._waiting:
                if not (self._outbox or self._reports or self._last):
                    message = await self._socket.receive_json()
            self._waiting = None
            if message is not None:
                self._hear(self._protocol.take(message))
            self._hear(self._protocol.do_what_is_due())
        except PortError as failure:
            self._end(_of_session(failure.error))
        finally:
            self._waiting = None

    def _hear(self, heard: Iterable[Told]) -> None:
        for one in heard:
            match one:
                case Sending(message):
                    self._outbox.append(message)
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

    async def _hear_and_send(self, heard: Iterable[Told]) -> None:
        before = len(self._reports)
        self._hear(heard)
        if len(self._reports) > before:
            self._wake()
        await self._send()

    async def _send(self) -> None:
        """What waits to be sent. Raises `PortError`."""
        async with self._sending:
            while self._outbox:
                try:
                    await self._socket.send_json(self._outbox.popleft())
                except SocketClosed:
                    # The reader finds out too, and may find the provider's own explanation before.
                    self._wake()
                    raise

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
        """Close the connection: another one can go on with the session only then."""
        self._end(None)
        with anyio.CancelScope(shield=True):
            await self._socket.aclose()


def _of_session(error: ScopedError) -> ScopedError:
    """What ends a session ends all of it; what nobody could read may not come again in another one."""
    retryable = error.retryable or error.code == "provider_malformed"
    return replace(error, scope=ErrorScope.SESSION, retryable=retryable)
