"""What the model answers, as the responder that the rest of this side knows.

The model knows the conversation by itself: it is told only what it cannot have heard - the outcomes of its calls - and
then asked to answer. A context is never sent again within a session.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Protocol

import anyio

from ...statecharts.capabilities import ResponderCapabilities
from ..ports import GenerationRequest, Message
from ..reports import (
    GenerationEnded,
    GenerationErrored,
    GenerationReport,
    GenerationStopped,
    ModelSpoke,
    PortError,
    ReasoningDelta,
    TextDelta,
    ToolCallProposed,
    UsageUpdated,
)
from .link import Answer, AnswerSpoke, ModelLink, answer_of
from .ports import ToolOutput
from .reports import (
    AnswerAudio,
    AnswerCallsTool,
    AnswerEnd,
    AnswerEnded,
    AnswerFailed,
    AnswerProgressed,
    AnswerReport,
    AnswerStopped,
    AnswerText,
    AnswerUsage,
)

HEARD_TIMEOUT_S = 5.0
"""How long an utterance that was finished may take to arrive before it is answered without it."""


class SpokenAnswers(Protocol):
    """Where the audio of answers goes: to the voice of the reply that they belong to."""

    def begin_answer(self, response_id: str, answer_id: str) -> None: ...
    def take(self, response_id: str, audio: AnswerAudio) -> None: ...
    def end_answer(self, response_id: str, answer_id: str, chars: int) -> None:
        """It is over, having said so much text."""
        ...


class ModelAnswering:
    """Implements `Responder`."""

    def __init__(self, link: ModelLink, spoken: SpokenAnswers) -> None:
        self._link = link
        self._spoken = spoken
        self._asked = 0
        self._own_calls: dict[str, str] = {}
        """Calls of the present session that the model waits for, with their names."""

    @property
    def capabilities(self) -> ResponderCapabilities:
        offered = self._link.model.capabilities
        return ResponderCapabilities(
            text_deltas=True, tool_calls=offered.tool_calls, usage=offered.usage, cancel=offered.cancel
        )

    async def prepare(self) -> None:
        """The session is made by the engine."""

    def begin_session(self) -> None:
        """Another session: it waits for no call of the former one."""
        self._own_calls.clear()

    async def open(self, request: GenerationRequest) -> AnswerStream:
        """Raises `PortError`."""
        with anyio.move_on_after(HEARD_TIMEOUT_S):
            await self._link.until_all_is_heard()
        outputs = tuple(self._outputs_in(request.messages))
        if outputs:
            await self._link.session.submit_outputs(outputs)
            for output in outputs:
                del self._own_calls[output.call_id]
        self._asked += 1
        answer_id = answer_of(request.attempt_id, self._asked)
        response_id = request.response_id
        self._spoken.begin_answer(response_id, answer_id)
        try:
            answer = await self._link.ask(answer_id, lambda audio: self._spoken.take(response_id, audio))
        except BaseException:
            self._spoken.end_answer(response_id, answer_id, 0)
            raise
        return AnswerStream(self, answer, response_id)

    def _outputs_in(self, messages: tuple[Message, ...]) -> list[ToolOutput]:
        """What came of the calls that this session waits for; each is told once."""
        said = {message.call_id: message.text for message in messages if message.role == "tool" and message.call_id}
        waiting = self._own_calls.items()
        return [ToolOutput(call_id, name, said[call_id]) for call_id, name in waiting if call_id in said]

    async def aclose(self) -> None:
        """The session is closed by the engine."""

    # -- for its streams -------------------------------------------------------------------------------------------

    def forget_calls(self, call_ids: tuple[str, ...]) -> None:
        """The model does not want to know what comes of these."""
        for call_id in call_ids:
            self._own_calls.pop(call_id, None)

    def note_call(self, call: AnswerCallsTool) -> None:
        self._own_calls[call.call_id] = call.name

    def cancel(self, answer: Answer, reason: str) -> None:
        try:
            self._link.session.cancel(answer.answer_id, reason)
        except PortError:
            # The session is gone, and the answer with it.
            answer.end(AnswerStopped(answer.answer_id))

    def let_go(self, answer: Answer, response_id: str, chars: int) -> None:
        self._link.drop(answer)
        self._spoken.end_answer(response_id, answer.answer_id, chars)


class AnswerStream:
    """One answer in flight. Implements `GenerationStream`."""

    def __init__(self, answering: ModelAnswering, answer: Answer, response_id: str) -> None:
        self._answering = answering
        self._answer = answer
        self._response_id = response_id
        self._chars = 0

    async def reports(self) -> AsyncIterator[GenerationReport]:
        while (told := await self._answer.mail.take()) is not None:
            report = self._translated(told)
            if report is not None:
                yield report

    def _translated(self, told: AnswerReport | AnswerSpoke | AnswerEnd) -> GenerationReport | None:
        match told:
            case AnswerText(_, text):
                self._chars += len(text)
                return TextDelta(text)
            case AnswerSpoke(_, is_first):
                # The first audio is visible output; what follows shows that the model is alive.
                return ModelSpoke() if is_first else ReasoningDelta("")
            case AnswerProgressed():
                return ReasoningDelta("")
            case AnswerCallsTool(_, call_id, name, arguments_json):
                self._answering.note_call(told)
                return ToolCallProposed(call_id, name, arguments_json)
            case AnswerUsage(_, usage):
                return UsageUpdated(usage)
            case AnswerEnded(_, awaits_tools):
                self._let_go()
                return GenerationEnded(awaits_tools=awaits_tools)
            case AnswerStopped():
                self._let_go()
                return GenerationStopped()
            case AnswerFailed(_, error):
                self._let_go()
                return GenerationErrored(error)
            case AnswerAudio():
                return None

    def cancel(self, reason: str) -> None:
        if not self._answer.is_over:
            self._answering.cancel(self._answer, reason)

    async def aclose(self) -> None:
        self.cancel("nobody listens to it any more")
        self._let_go()

    def _let_go(self) -> None:
        self._answering.let_go(self._answer, self._response_id, self._chars)
