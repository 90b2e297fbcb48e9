"""The calls of a response: dispatched once, and each with exactly one outcome.

A call runs only when it is complete, valid and approved; a refused one gets its outcome without having run. An
interruption ends foreground calls; background work goes on, and is kept beside the responses that follow.
"""

from __future__ import annotations

from dataclasses import replace

from .actions import (
    CancelTools,
    ExecuteTool,
    RecordToolOutcome,
)
from .context import TimerKind, ToolCall
from .facts import (
    ToolCallReady,
    ToolFinished,
)
from .input_turn import InputTurnRules
from .published import (
    ToolEnded,
    ToolStarted,
)
from .values import ToolStatus


class ToolRules(InputTurnRules):
    """Guards and actions about calls, for the lines of `generation.py`."""

    def is_new_call(self) -> bool:
        fact = self.fact
        assert isinstance(fact, ToolCallReady)
        return all(call.call_id != fact.call_id for call in self.reply.tools)

    def call_may_run(self) -> bool:
        """Complete, valid, approved, and not under the identity of background work that is still open."""
        fact = self.fact
        assert isinstance(fact, ToolCallReady)
        is_taken = any(call.call_id == fact.call_id for call in self.context.background)
        return fact.complete and fact.valid and fact.approved and not is_taken

    def is_open_call(self) -> bool:
        """Dispatched, and without an outcome; of this response or, in the background, of an older one."""
        reply = self.context.response
        known = (*(reply.open_calls if reply is not None else ()), *self.context.background)
        return any(call.call_id == self.call_in_question for call in known)

    def has_eligible_calls(self) -> bool:
        """Foreground calls that outlived their generation."""
        reply = self.context.response
        return reply is not None and any(not call.background for call in reply.open_calls)

    @property
    def call_in_question(self) -> str:
        if self.fired is not None:
            return self.fired.key
        fact = self.fact
        assert isinstance(fact, ToolFinished)
        return fact.call_id

    def ends_the_step(self) -> bool:
        """The model waits, and this is the last call it waits for."""
        open_calls = [call for call in self.reply.open_calls if not call.background]
        return not self.reply.step_open and [call.call_id for call in open_calls] == [self.call_in_question]

    def every_call_is_settled(self) -> bool:
        return not any(not call.background for call in self.reply.open_calls)

    def steps_are_left(self) -> bool:
        return self.reply.steps < self.policies.generation.max_tool_steps

    def leave_former_calls(self) -> None:
        """Background work of the former response goes on; what else was open there has no outcome any more."""
        former = self.context.response
        if former is None:
            return
        self.close_calls(ToolStatus.UNKNOWN)
        self.context.background = (*self.context.background, *self.reply.open_calls)

    def dispatch_call(self) -> None:
        fact, reply = self.fact, self.reply
        assert isinstance(fact, ToolCallReady)
        self.change_reply(tools=(*reply.tools, ToolCall(fact.call_id, reply.response_id, fact.background)))
        self.start_timer(TimerKind.TOOL, self.policies.generation.tool_ms, fact.call_id)
        self.note_progress()
        self.emit(ExecuteTool(self.stamp, reply.response_id, fact.call_id, fact.background))
        self.publish(ToolStarted(fact.name, fact.background), reply=reply, call_id=fact.call_id)

    def refuse_call(self) -> None:
        """Incomplete, invalid or not approved: it never runs, and the model is told."""
        fact, reply = self.fact, self.reply
        assert isinstance(fact, ToolCallReady)
        call = ToolCall(fact.call_id, reply.response_id, fact.background, ToolStatus.FAILED)
        self.change_reply(tools=(*reply.tools, call))
        self.record_call(call, ToolStatus.FAILED)

    def settle_call(self) -> None:
        status = self.fact.status if isinstance(self.fact, ToolFinished) else ToolStatus.UNKNOWN
        self.close_call(self.call_in_question, status)

    def close_call(self, call_id: str, status: ToolStatus) -> None:
        """The one outcome of a call; it stays."""
        context = self.context
        reply = context.response
        open_calls = (*(reply.open_calls if reply is not None else ()), *context.background)
        call = next(known for known in open_calls if known.call_id == call_id)
        if reply is not None and call in reply.tools:
            self.change_reply(
                tools=tuple(replace(known, status=status) if known is call else known for known in reply.tools)
            )
        context.background = tuple(known for known in context.background if known.call_id != call_id)
        self.cancel_timer(TimerKind.TOOL, call_id)
        self.record_call(call, status)

    def record_call(self, call: ToolCall, status: ToolStatus) -> None:
        self.emit(RecordToolOutcome(self.stamp, call.response_id, call.call_id, status))
        self.publish(ToolEnded(status), call_id=call.call_id)

    def close_calls(self, status: ToolStatus) -> None:
        """Give every open foreground call of the response this outcome."""
        for call in self.reply.open_calls:
            if not call.background:
                self.close_call(call.call_id, status)

    def cancel_calls(self) -> None:
        eligible = tuple(call.call_id for call in self.reply.open_calls if not call.background)
        if eligible:
            self.emit(CancelTools(self.stamp, eligible))
        self.close_calls(ToolStatus.CANCELLED)

    def abandon_calls(self) -> None:
        """The conversation is closed; nobody will hear of these outcomes."""
        reply = self.context.response
        for call in (*(reply.open_calls if reply is not None else ()), *self.context.background):
            self.close_call(call.call_id, ToolStatus.UNKNOWN)

    def note_progress(self) -> None:
        self.start_timer(TimerKind.PROGRESS, self.policies.generation.stall_ms)
