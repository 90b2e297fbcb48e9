"""The link: the present session with the model, and who is told what comes back through it.

Everybody who waits for something of the session - an utterance for its words, an answer for its text, a reply for its
audio - has a mailbox here; one task reads the session and fills them. It never waits for anybody: an answer that comes
faster than it is played waits in its voice, bounded, and beyond that it fails instead of filling memory.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

import anyio

from ...statecharts.errors import ErrorScope, ScopedError
from ...statecharts.facts import ProviderInterrupted, SessionExpiring, UsageReported
from ..engine import Desk
from ..port_calls import let_go, reading
from ..public_events import ContextTruncated
from ..reports import PortError
from .ports import RealtimeModel, RealtimeRequest, RealtimeSession
from .reports import (
    AnswerAudio,
    AnswerEnd,
    AnswerEnded,
    AnswerFailed,
    AnswerReport,
    AnswerStopped,
    AnswerUsage,
    ProviderInterruption,
    RealtimeReport,
    SessionEnded,
    SessionExpires,
    SessionResumable,
    SpeechCommitted,
    SpeechDetected,
    ToolCallsWithdrawn,
    Transcribed,
    TranscriptionEnded,
    Truncated,
    TruncationRefused,
)

OPEN_TIMEOUT_S = 15.0

T = TypeVar("T")


class Mailbox(Generic[T]):
    """What was told to one who waits, in order, until it is closed."""

    def __init__(self) -> None:
        self._letters: deque[T] = deque()
        self._changed = anyio.Event()
        self._closed = False

    def put(self, letter: T) -> None:
        """Never waits; after the close it is dropped."""
        if not self._closed:
            self._letters.append(letter)
            self._changed.set()

    def close(self) -> None:
        """Nothing more will come."""
        self._closed = True
        self._changed.set()

    async def take(self) -> T | None:
        """The next letter, waiting for it; None when it is closed and empty. For one reader."""
        while not self._letters:
            if self._closed:
                return None
            self._changed = anyio.Event()
            await self._changed.wait()
        return self._letters.popleft()


@dataclass(frozen=True, slots=True)
class AnswerSpoke:
    """More of its audio came; the audio itself goes another way."""

    answer_id: str
    is_first: bool


class Answer:
    """One answer that was asked for."""

    def __init__(self, answer_id: str, take_audio: Callable[[AnswerAudio], None]) -> None:
        self.answer_id = answer_id
        self.mail: Mailbox[AnswerReport | AnswerSpoke | AnswerEnd] = Mailbox()
        self.is_over = False
        self._take_audio = take_audio
        self._spoke = False

    def take(self, report: AnswerReport) -> None:
        """Audio goes to the voice at once, the rest to whoever reads the answer."""
        if isinstance(report, AnswerAudio):
            self._take_audio(report)
            self.mail.put(AnswerSpoke(self.answer_id, is_first=not self._spoke))
            self._spoke = True
        else:
            self.mail.put(report)

    def end(self, report: AnswerEnd) -> None:
        """Its one terminal."""
        if not self.is_over:
            self.is_over = True
            self.mail.put(report)
            self.mail.close()


class ModelLink:
    """The present session with the model; there is at most one."""

    def __init__(self, desk: Desk, model: RealtimeModel) -> None:
        self.model = model
        self._desk = desk
        self._session: RealtimeSession | None = None
        self._utterances: dict[str, Mailbox[Transcribed | TranscriptionEnded]] = {}
        self._answers: dict[str, Answer] = {}
        self._open_inputs: set[str] = set()
        self._changed = anyio.Event()
        self.resumption: str | None = None
        """The latest handle by which a session can be gone on with."""
        self.on_speech: Callable[[SpeechDetected | SpeechCommitted], None] | None = None
        self.on_withdrawn: Callable[[tuple[str, ...]], None] | None = None

    @property
    def session(self) -> RealtimeSession:
        """Raises `PortError` while there is none."""
        if self._session is None:
            raise PortError(session_gone())
        return self._session

    # -- its life --------------------------------------------------------------------------------------------------

    async def open(self, request: RealtimeRequest) -> RealtimeSession:
        """Raises `PortError`. A handle that the provider refuses is forgotten: the next attempt begins anew."""
        with anyio.move_on_after(OPEN_TIMEOUT_S):
            try:
                self._session = await self.model.open(request)
            except PortError:
                self.resumption = None
                raise
        if self._session is None:
            message = f"the model's session was not ready within {OPEN_TIMEOUT_S:.0f} s"
            raise PortError(ScopedError("model_not_opened", "connection", ErrorScope.SESSION, message, retryable=True))
        return self._session

    async def follow(self, session: RealtimeSession) -> ScopedError:
        """Read the session to its end; returns why it ended."""
        async with reading(session.reports()) as reports:
            async for report in reports:
                if isinstance(report, SessionEnded):
                    return report.error or session_gone()
                self._take(report)
        return session_gone()

    async def close(self) -> None:
        """Let go of the session; whoever waits for something of it is told that it failed."""
        session, self._session = self._session, None
        for mailbox in self._utterances.values():
            mailbox.close()
        for answer in tuple(self._answers.values()):
            answer.end(AnswerFailed(answer.answer_id, session_gone()))
        self._utterances.clear()
        self._answers.clear()
        self._open_inputs.clear()
        self._note_change()
        await let_go(session, "the model's session")

    # -- utterances ------------------------------------------------------------------------------------------------

    def hear(self, utterance_id: str) -> Mailbox[Transcribed | TranscriptionEnded]:
        """The words of an utterance, as they come."""
        return self._utterances.setdefault(utterance_id, Mailbox())

    def forget(self, utterance_id: str) -> None:
        """Nobody waits for its words any more."""
        mailbox = self._utterances.pop(utterance_id, None)
        if mailbox is not None:
            mailbox.close()

    def hold_answers(self, utterance_id: str) -> None:
        """It is on its way to the model, and no answer is asked for before it has arrived."""
        self._open_inputs.add(utterance_id)

    def let_answers_go(self, utterance_id: str) -> None:
        """It has arrived, or will not."""
        self._open_inputs.discard(utterance_id)
        self._note_change()

    async def until_all_is_heard(self) -> None:
        """Return when every utterance that was finished has arrived."""
        while self._open_inputs:
            await self._changed.wait()

    # -- answers ---------------------------------------------------------------------------------------------------

    async def ask(self, answer_id: str, take_audio: Callable[[AnswerAudio], None]) -> Answer:
        """Ask for an answer. Raises `PortError`."""
        session = self.session
        self._answers[answer_id] = answer = Answer(answer_id, take_audio)
        try:
            await session.respond(answer_id)
        except BaseException:
            del self._answers[answer_id]
            raise
        return answer

    def drop(self, answer: Answer) -> None:
        """Nobody listens to it any more."""
        self._answers.pop(answer.answer_id, None)

    # -- what comes back -------------------------------------------------------------------------------------------

    def _take(self, report: RealtimeReport) -> None:
        now_ns = self._desk.clock.now_ns()
        match report:
            case Transcribed() | TranscriptionEnded():
                mailbox = self._utterances.get(report.utterance_id)
                if mailbox is not None:
                    mailbox.put(report)
                if isinstance(report, TranscriptionEnded):
                    self.forget(report.utterance_id)
            case AnswerEnded() | AnswerStopped() | AnswerFailed():
                answer = self._answers.pop(report.answer_id, None)
                if answer is not None:
                    answer.end(report)
            case SpeechDetected() | SpeechCommitted():
                if self.on_speech is not None:
                    self.on_speech(report)
            case ToolCallsWithdrawn(call_ids):
                if self.on_withdrawn is not None:
                    self.on_withdrawn(call_ids)
            case ProviderInterruption():
                self._desk.report(ProviderInterrupted(at=now_ns))
            case Truncated(_, played_ms):
                self._desk.publish(ContextTruncated(played_ms, applied=True))
            case TruncationRefused(_, error):
                self._desk.publish(ContextTruncated(None, applied=False, reason=error.code))
            case SessionExpires(within_ms):
                self._desk.report(SessionExpiring(at=now_ns, within_ms=within_ms))
            case SessionResumable(handle):
                self.resumption = handle
            case SessionEnded():
                raise AssertionError("the end of a session is its reader's affair")
            case _:
                self._take_answer(report)

    def _take_answer(self, report: AnswerReport) -> None:
        answer = self._answers.get(report.answer_id)
        if answer is not None:
            answer.take(report)
        elif isinstance(report, AnswerUsage):
            # What an answer took may be told behind its end.
            attempt_id = attempt_of(report.answer_id)
            self._desk.report(UsageReported(at=self._desk.clock.now_ns(), attempt_id=attempt_id, usage=report.usage))

    def _note_change(self) -> None:
        self._changed.set()
        self._changed = anyio.Event()


def answer_of(attempt_id: str, number: int) -> str:
    """The name of an answer: one attempt may take several, before and after its tools."""
    return f"{attempt_id}.{number}"


def attempt_of(answer_id: str) -> str:
    """Which attempt an answer belongs to."""
    return answer_id.rpartition(".")[0]


def session_gone() -> ScopedError:
    """What everybody is told who still waited for something of it."""
    return ScopedError(
        "model_session_ended",
        "connection",
        ErrorScope.SESSION,
        "the session with the model has ended; a new one is being made",
        retryable=True,
    )
