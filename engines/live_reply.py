"""One reply while it is being made: what the model wrote and asked for, and what it sees when it goes on."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from typing import Protocol

from ..statecharts.values import Outcome, ToolStatus
from .attempt import Attempt
from .engine import Desk
from .history import Delivery, History, Reply, ToolExchange, messages_of_calls, with_later_output, with_tool_output
from .hold_lines import HoldLadder
from .ports import GenerationRequest, Message, Responder, SpeechUnit, ToolRequest
from .public_events import TextAppended, TextFinished
from .reply_text import Heard, ReplyText
from .reports import ProviderState
from .spoken import UnitGrain
from .tools import Judged, ToolCalls

Context = Callable[["LiveReply"], Awaitable[tuple[Message, ...]]]
"""What was said before this reply. May wait, bounded."""


class Voice(Protocol):
    """Where the text of a reply goes besides the public stream: to a speaker, or nowhere else."""

    @property
    def grain(self) -> UnitGrain:
        """How much it takes at a time."""
        ...

    def speak(self, unit: SpeechUnit) -> None:
        """Say this next."""
        ...

    def close_text(self) -> None:
        """Nothing more is to be said."""
        ...

    def cancel(self) -> None:
        """Stop now, from wherever it is."""
        ...

    @property
    def can_be_heard(self) -> bool:
        """Something that was handed in has not been played to its end yet, as far as is known."""
        ...

    def note_end(self) -> None:
        """The model's side has its outcome."""
        ...

    def heard(self, text: ReplyText, units: int, measured_samples: int | None) -> Heard:
        """What of an unfinished reply reached the user, when `units` units of speech are confirmed."""
        ...


@dataclass
class _Step:
    """From one request to the model until it waits for its tools."""

    starts_at_char: int
    call_ids: list[str] = field(default_factory=list[str])
    provider_state: ProviderState | None = None


class LiveReply:
    """What this side holds of one reply; the user of its attempts."""

    def __init__(
        self, desk: Desk, record: Reply, voice: Voice, tools: ToolCalls, history: History, context: Context
    ) -> None:
        self.record = record
        self.voice = voice
        self.attempt: Attempt | None = None
        self._desk = desk
        self._tools = tools
        self._history = history
        self._context = context
        self._text = ReplyText(voice.grain)
        self._text_is_over = False
        self._final_text: str | None = None
        self._steps: list[_Step] = []
        self._proposed: dict[str, ToolRequest] = {}
        self._judged: dict[str, Judged] = {}
        self._holding = HoldLadder(desk, self)
        self.note: str | None = None
        """What the model is told besides, once it is known."""

    @property
    def is_settled(self) -> bool:
        """Nothing about it will change any more."""
        calls_are_settled = all(exchange.status is not None for exchange in self.record.tools)
        return self.record.outcome is not None and self.record.delivery is not None and calls_are_settled

    @property
    def awaits_delivery(self) -> bool:
        """It has ended, and what was heard of it is not known yet."""
        return self.record.outcome is not None and self.record.delivery is None

    @property
    def generated(self) -> str:
        """The whole visible text so far."""
        return self._text.written if self._final_text is None else self._final_text

    def heard(self, units: int, measured_samples: int | None) -> Heard:
        """The first `units` units of its speech, and the words after them up to a position that was measured."""
        return self.voice.heard(self._text, units, measured_samples)

    def begin_attempt(self, responder: Responder, attempt_id: str) -> Attempt:
        """Ask the model: for the first time, again, or to go on after its tools."""
        if not self._steps or self._steps[-1].call_ids:
            self._place_calls()
            self._steps.append(_Step(len(self._text.written)))
        self.attempt = Attempt(self._desk, responder, attempt_id, self)
        return self.attempt

    # -- for its attempts (`AttemptUser`) --------------------------------------------------------------------------

    async def request(self, attempt_id: str) -> GenerationRequest:
        messages = (*await self._context(self), *self._own_messages())
        return GenerationRequest(self.record.response_id, attempt_id, messages, self._tools.definitions())

    def append(self, text: str) -> None:
        units = self._text.append(text)
        self._desk.publish(TextAppended(text), response_id=self.record.response_id)
        self._speak(units)

    def close_text(self, final_text: str | None = None) -> None:
        """No more text; closing again changes nothing."""
        if self._text_is_over:
            return
        self._text_is_over = True
        if final_text is not None and self._steps:
            self._final_text = self._text.written[: self._steps[-1].starts_at_char] + final_text
        self._speak(self._text.close())
        self.voice.close_text()
        self._desk.publish(TextFinished(self.generated), response_id=self.record.response_id)

    def keep_state(self, state: ProviderState) -> None:
        self._steps[-1].provider_state = state

    async def propose(self, request: ToolRequest) -> Judged:
        if request.call_id not in self._judged:
            judged = await self._tools.judge(self.record.response_id, request)
            self._judged[request.call_id] = judged
            self._proposed[request.call_id] = request
            self._steps[-1].call_ids.append(request.call_id)
        return self._judged[request.call_id]

    # -- tools -----------------------------------------------------------------------------------------------------

    def begin_call(self, call_id: str) -> ToolRequest:
        """A proposed call is about to run."""
        request = self.keep_call(call_id)
        self._holding.begin(call_id, self._tools.hold_lines(request))
        return request

    def keep_call(self, call_id: str) -> ToolRequest:
        """A proposed call becomes part of the record."""
        request = self._proposed[call_id]
        if all(exchange.request.call_id != call_id for exchange in self.record.tools):
            call = ToolExchange(request, text_position=len(self._text.written))
            self.record = replace(self.record, tools=(*self.record.tools, call))
            self.store()
        return request

    def settle_call(self, call_id: str, status: ToolStatus) -> None:
        """Its one outcome, with what it said."""
        request = self.keep_call(call_id)
        output = self._tools.conclude(self.record.response_id, call_id)
        if not output and status is ToolStatus.FAILED:
            output = self._judged[call_id].refusal or "refused: another call is open under this identity"
        failed = status in (ToolStatus.FAILED, ToolStatus.UNKNOWN)
        self._holding.end(call_id, self._tools.hold_lines(request).failed if failed else None)
        self.record = with_tool_output(self.record, call_id, status, output)
        self.store()

    def note_task(self, call_id: str, output: str) -> None:
        """The background task of one of its calls has ended."""
        self.record = with_later_output(self.record, call_id, output)
        self.store()

    @property
    def can_be_heard(self) -> bool:
        """For the hold lines."""
        return self.voice.can_be_heard

    def say_aside(self, text: str) -> None:
        """Say what the model never wrote, behind what it wrote so far."""
        self._speak(self._text.flush())
        self.voice.speak(self._text.aside(text))

    def hush(self) -> None:
        """No hold line is said any more."""
        self._holding.stop(for_good=True)

    # -- the record ------------------------------------------------------------------------------------------------

    def store(self) -> None:
        """Keep what is known of it, from its first moment on: a crash must leave a trace of what was begun."""
        self._history.store_reply(self.record)

    def end(self, outcome: Outcome, reason: str) -> None:
        """The model's side has ended, whether or not the model knows."""
        if self.attempt is not None and not self.attempt.is_finished:
            self.attempt.abandon(reason or outcome)
        self._holding.stop()
        if outcome is Outcome.FAILED:
            # What exists is spoken to its end; a synthesis that is cancelled already takes nothing more.
            self.close_text()
        self._place_calls()
        self.record = replace(self.record, generated=self.generated, outcome=outcome, reason=reason)
        self.store()
        self.voice.note_end()

    def deliver(self, delivery: Delivery, position: int) -> None:
        """What was heard is known."""
        self.record = replace(self.record, position=position, generated=self.generated, delivery=delivery)
        self.store()

    # -- inside ----------------------------------------------------------------------------------------------------

    def _speak(self, units: list[SpeechUnit]) -> None:
        if units:
            self.record = replace(self.record, generated=self.generated)
            self.store()
        for unit in units:
            self.voice.speak(unit)

    def _place_calls(self) -> None:
        """The calls of the last step stand behind all of its text, whenever they were proposed."""
        own = self._steps[-1].call_ids if self._steps else []
        position = len(self._text.written)
        calls = self.record.tools
        placed = (replace(call, text_position=position) if call.request.call_id in own else call for call in calls)
        self.record = replace(self.record, tools=tuple(placed))

    def _own_messages(self) -> list[Message]:
        """The steps so far: text as it was written, calls, and what came of them."""
        messages: list[Message] = []
        ends = [step.starts_at_char for step in self._steps[1:]]
        for step, end in zip(self._steps, ends, strict=False):
            exchanges = [known for known in self.record.tools if known.request.call_id in step.call_ids]
            text = self._text.written[step.starts_at_char : end]
            messages.extend(messages_of_calls(exchanges, text, step.provider_state))
        return messages
