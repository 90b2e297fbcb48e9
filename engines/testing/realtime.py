"""A scripted model that hears and speaks by itself: the test tells what it does, and reads what it was asked."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field

import anyio

from ...audio.formats import AudioFormat, AudioFrame
from ...statecharts.capabilities import RealtimeCapabilities
from ...statecharts.errors import ErrorScope, ScopedError
from ..realtime.ports import RealtimeRequest, ToolOutput
from ..realtime.reports import (
    AnswerAudio,
    AnswerEnded,
    AnswerStopped,
    AnswerText,
    RealtimeReport,
    SessionEnded,
    Truncated,
)
from ..reports import PortError

REALTIME_FORMAT = AudioFormat(24_000)
ABLE = RealtimeCapabilities(
    ends_turns=True,
    takes_turns=True,
    cancel=True,
    truncate=True,
    tool_calls=True,
    input_transcripts=True,
    usage=True,
    replay=True,
    resume=True,
)

Answering = Callable[["ScriptedRealtimeSession", str], None]
"""What the model does when it is asked to answer: called with the session and the answer's name."""


def answers(text: str, milliseconds: int = 1_000) -> Answering:
    """A whole spoken answer of one item, faster than it can be played."""

    def answer(session: ScriptedRealtimeSession, answer_id: str) -> None:
        session.says(answer_id, text, milliseconds)
        session.tell(AnswerEnded(answer_id))

    return answer


def nothing(session: ScriptedRealtimeSession, answer_id: str) -> None:
    """The test tells what comes, when it comes."""


@dataclass
class ScriptedRealtimeSession:
    """One live session. `asked`: every call on it, in order, but for audio."""

    request: RealtimeRequest
    answering: Answering = nothing
    acknowledges: bool = True
    asked: list[tuple[str, ...]] = field(default_factory=list[tuple[str, ...]])
    heard_samples: int = 0
    closed: bool = False

    def __post_init__(self) -> None:
        self._reports: list[RealtimeReport] = []
        self._changed = anyio.Event()
        self._positions: dict[str, int] = {}

    # -- what the test says ----------------------------------------------------------------------------------------

    def tell(self, *reports: RealtimeReport) -> None:
        """These come back next."""
        self._reports.extend(reports)
        self._changed.set()

    def says(self, answer_id: str, text: str, milliseconds: int, item_id: str | None = None) -> None:
        """A piece of an answer: its words and its audio, in frames of 20 ms."""
        item_id = item_id or f"item of {answer_id}"
        if text:
            self.tell(AnswerText(answer_id, text))
        samples = REALTIME_FORMAT.samples_for_ms(20)
        for _ in range(milliseconds // 20):
            start = self._positions.get(item_id, 0)
            self._positions[item_id] = start + samples
            self.tell(AnswerAudio(answer_id, item_id, AudioFrame(b"\x01\x00" * samples, REALTIME_FORMAT, start)))

    def is_lost(self) -> None:
        """The provider is gone."""
        message = "the provider closed the session"
        self.tell(SessionEnded(ScopedError("provider_gone", "connection", ErrorScope.SESSION, message, retryable=True)))

    def asked_for(self, what: str) -> list[tuple[str, ...]]:
        """Every call of that kind, without its name."""
        return [call[1:] for call in self.asked if call[0] == what]

    # -- `RealtimeSession` -----------------------------------------------------------------------------------------

    async def begin_utterance(self, utterance_id: str) -> None:
        self.asked.append(("begin", utterance_id))

    async def write(self, frame: AudioFrame) -> None:
        assert frame.format == REALTIME_FORMAT
        self.heard_samples += frame.samples

    async def commit_utterance(self, utterance_id: str) -> None:
        self.asked.append(("commit", utterance_id))

    async def discard_utterance(self, utterance_id: str) -> None:
        self.asked.append(("discard", utterance_id))

    async def submit_text(self, text: str) -> None:
        self.asked.append(("text", text))

    async def submit_outputs(self, outputs: tuple[ToolOutput, ...]) -> None:
        self.asked.extend(("output", output.call_id, output.output) for output in outputs)

    async def respond(self, answer_id: str) -> None:
        self.asked.append(("respond", answer_id))
        self.answering(self, answer_id)

    def cancel(self, answer_id: str, reason: str) -> None:
        self.asked.append(("cancel", answer_id))
        if self.acknowledges:
            self.tell(AnswerStopped(answer_id))

    async def truncate(self, item_id: str, played_ms: int) -> None:
        self.asked.append(("truncate", item_id, str(played_ms)))
        self.tell(Truncated(item_id, played_ms))

    async def reports(self) -> AsyncIterator[RealtimeReport]:
        while True:
            while self._reports:
                report = self._reports.pop(0)
                yield report
                if isinstance(report, SessionEnded):
                    return
            if self.closed:
                yield SessionEnded()
                return
            self._changed = anyio.Event()
            await self._changed.wait()

    async def aclose(self) -> None:
        self.closed = True
        self._changed.set()


class ScriptedRealtimeModel:
    """Opens one session after another; each answer is the next of `answering`, and then nothing."""

    def __init__(
        self,
        *answering: Answering,
        capabilities: RealtimeCapabilities = ABLE,
        acknowledges: bool = True,
        refusals: tuple[ScopedError, ...] = (),
    ) -> None:
        self._answering = list(answering)
        self._capabilities = capabilities
        self._acknowledges = acknowledges
        self.refusals = list(refusals)
        self.sessions: list[ScriptedRealtimeSession] = []
        self.closed = False

    @property
    def session(self) -> ScriptedRealtimeSession:
        """The latest one."""
        return self.sessions[-1]

    @property
    def capabilities(self) -> RealtimeCapabilities:
        return self._capabilities

    @property
    def input_format(self) -> AudioFormat:
        return REALTIME_FORMAT

    @property
    def output_format(self) -> AudioFormat:
        return REALTIME_FORMAT

    async def prepare(self) -> None:
        """There is nothing to check."""

    async def open(self, request: RealtimeRequest) -> ScriptedRealtimeSession:
        """Raises the next refusal, if one is left."""
        if self.refusals:
            raise PortError(self.refusals.pop(0))
        session = ScriptedRealtimeSession(request, self._answer, self._acknowledges)
        self.sessions.append(session)
        return session

    def _answer(self, session: ScriptedRealtimeSession, answer_id: str) -> None:
        (self._answering.pop(0) if self._answering else nothing)(session, answer_id)

    async def aclose(self) -> None:
        self.closed = True
