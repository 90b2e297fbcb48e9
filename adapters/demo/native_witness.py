"""A native realtime model that is listened to, so that what was heard can be compared with what it said."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, replace

from ...audio.formats import AudioFormat, AudioFrame
from ...engines.ports import SpeechUnit
from ...engines.realtime import RealtimeModel, RealtimeRequest, RealtimeSession, ToolOutput
from ...engines.realtime.reports import (
    AnswerAudio,
    AnswerEnded,
    AnswerFailed,
    AnswerStopped,
    AnswerText,
    RealtimeReport,
)
from ...statecharts.actions import Action, ContinueGeneration, StartGeneration
from ...statecharts.capabilities import RealtimeCapabilities
from .witness import VoicedReply


@dataclass(slots=True)
class _Told:
    """How far one reply has been told, over all its answers."""

    reply: VoicedReply
    item_id: str | None = None
    chars: int = 0
    chars_before_answer: int = 0


class WitnessedModel:
    """Implements `RealtimeModel` over another one; changes nothing of what passes.

    An item of the model is a unit of speech; which words lie where in it nobody tells, so that its text counts with
    the last item of its answer. `note` must see every action: it tells which reply an answer belongs to.
    """

    def __init__(self, inner: RealtimeModel) -> None:
        self._inner = inner
        self._responses: dict[str, str] = {}
        self._told: dict[str, _Told] = {}

    @property
    def voiced(self) -> list[VoicedReply]:
        """In the order in which their first answers were told."""
        return [told.reply for told in self._told.values()]

    @property
    def capabilities(self) -> RealtimeCapabilities:
        return self._inner.capabilities

    @property
    def input_format(self) -> AudioFormat:
        return self._inner.input_format

    @property
    def output_format(self) -> AudioFormat:
        return self._inner.output_format

    async def prepare(self) -> None:
        await self._inner.prepare()

    async def open(self, request: RealtimeRequest) -> RealtimeSession:
        return _WitnessedSession(await self._inner.open(request), self)

    async def aclose(self) -> None:
        await self._inner.aclose()

    def note(self, action: Action) -> None:
        """A decision of the chart."""
        if isinstance(action, StartGeneration | ContinueGeneration):
            self._responses[action.attempt_id] = action.response_id

    def hear(self, report: RealtimeReport) -> None:
        """A report of the model, before anybody acts on it."""
        if not isinstance(report, AnswerAudio | AnswerText | AnswerEnded | AnswerStopped | AnswerFailed):
            return
        attempt_id, _, _ = report.answer_id.rpartition(".")
        response_id = self._responses.get(attempt_id, attempt_id)
        told = self._told.get(response_id)
        if told is None:
            told = self._told[response_id] = _Told(VoicedReply(response_id, 0, self.output_format))
        match report:
            case AnswerText():
                told.chars += len(report.text)
            case AnswerAudio():
                _add(told, report)
            case _:
                if told.item_id is not None:
                    last = len(told.reply.units) - 1
                    told.reply.units[last] = replace(told.reply.units[last], source_end=told.chars)
                told.chars_before_answer = told.chars


def _add(told: _Told, audio: AnswerAudio) -> None:
    reply = told.reply
    start = reply.format.samples_in(len(reply.pcm))
    if audio.item_id != told.item_id:
        told.item_id = audio.item_id
        before = told.chars_before_answer
        reply.units[len(reply.units)] = SpeechUnit(len(reply.units), audio.item_id, before, before)
    reply.pcm += audio.frame.data
    unit = len(reply.units) - 1
    reply.ranges[unit] = (reply.ranges.get(unit, (start, start))[0], start + audio.frame.samples)


class _WitnessedSession:
    def __init__(self, inner: RealtimeSession, witness: WitnessedModel) -> None:
        self._inner = inner
        self._witness = witness

    async def begin_utterance(self, utterance_id: str) -> None:
        await self._inner.begin_utterance(utterance_id)

    async def write(self, frame: AudioFrame) -> None:
        await self._inner.write(frame)

    async def commit_utterance(self, utterance_id: str) -> None:
        await self._inner.commit_utterance(utterance_id)

    async def discard_utterance(self, utterance_id: str) -> None:
        await self._inner.discard_utterance(utterance_id)

    async def submit_text(self, text: str) -> None:
        await self._inner.submit_text(text)

    async def submit_outputs(self, outputs: tuple[ToolOutput, ...]) -> None:
        await self._inner.submit_outputs(outputs)

    async def respond(self, answer_id: str) -> None:
        await self._inner.respond(answer_id)

    def cancel(self, answer_id: str, reason: str) -> None:
        self._inner.cancel(answer_id, reason)

    async def truncate(self, item_id: str, played_ms: int) -> None:
        await self._inner.truncate(item_id, played_ms)

    async def reports(self) -> AsyncIterator[RealtimeReport]:
        async for report in self._inner.reports():
            self._witness.hear(report)
            yield report

    async def aclose(self) -> None:
        await self._inner.aclose()
