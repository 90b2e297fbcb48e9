"""Generation: what the model is doing.

Theory of operation. One response at most is running or being cancelled. Admission stays *owned* while `cancelling`: a turn
that is committed meanwhile waits, and begins when the cancelled attempt is acknowledged, ends by itself, or its
acknowledgement times out - then after a reconnect, because nobody knows what the other side still does. A cancel
is not an acknowledgement.

Every fact names its attempt; one of an older attempt changes nothing here but usage. A failure is retried only while
nothing was visible and no tool was dispatched. A tool call is dispatched once, and only when it is complete, valid and
approved; every call the model made gets exactly one outcome, a cancelled one too. Ending here says nothing about
playback.

An announcement is a reply that no model works for (`announcements.py`): its text is complete when it begins.
"""

# ruff: noqa: E501 - transition lines are the rows of a table

from __future__ import annotations

from .actions import (
    CancelGeneration,
    ContinueGeneration,
    RecordResponse,
    StartGeneration,
)
from .announcements import AnnouncementRules
from .context import Response, TimerKind
from .declaration import Compound, State
from .errors import ErrorScope, ScopedError
from .facts import (
    AttemptFact,
    CancelAcknowledged,
    GenerationFailed,
    StepCompleted,
    UsageReported,
)
from .published import (
    CancelConfirmed,
    CancelRequested,
    ResponseStarted,
    ResponseTerminal,
    RunTerminal,
    StreamError,
    UsageChanged,
)
from .values import DeliveryStatus, Outcome, ToolStatus

TOOL_ENDINGS = "tool_finished tool_timed_out"


class Generation(Compound, name="Generation"):
    generation_idle = State("idle", initial=True)

    class running(Compound, name="running"):
        """An attempt is under way."""

        waiting = State("waiting", initial=True)
        streaming = State("streaming")
        tools = State("tools")

    cancelling = State("cancelling")

    class terminal(Compound, name="terminal"):
        """The response has its outcome."""

        completed = State("completed", initial=True)
        cancelled = State("cancelled")
        failed = State("failed")

    # fmt: off
    running.from_(generation_idle, terminal, event="turn_admitted", cond="may_start_reply", on="start_reply")
    terminal.from_(generation_idle, terminal, event="say_admitted", cond="may_announce", on="start_announcement")
    running.streaming.from_(running.waiting, event="output_started", cond="is_this_attempt", on="note_output")
    running.to(None, event="generation_progressed", cond="is_this_attempt", on="note_progress")
    running.tools.from_(running, event="tool_call_ready", cond=["is_this_attempt", "is_new_call", "call_may_run"], on="dispatch_call")
    running.to(None, event="tool_call_ready", cond=["is_this_attempt", "is_new_call"], on="refuse_call")
    running.waiting.from_(running.tools, event=TOOL_ENDINGS, cond=["is_open_call", "ends_the_step", "steps_are_left"], on="go_on_after_tools")
    terminal.failed.from_(running.tools, event=TOOL_ENDINGS, cond=["is_open_call", "ends_the_step"], on="run_out_of_steps")
    running.to(None, event=TOOL_ENDINGS, cond="is_open_call", on="settle_call")
    running.waiting.from_(running, event="step_completed", cond=["is_this_attempt", "every_call_is_settled", "steps_are_left"], on="go_on")
    terminal.failed.from_(running, event="step_completed", cond=["is_this_attempt", "every_call_is_settled"], on="run_out_of_steps")
    running.to(None, event="step_completed", cond="is_this_attempt", on="close_step")
    terminal.completed.from_(running, event="generation_completed", cond="is_this_attempt", on="complete_reply")
    running.waiting.from_(running, event="generation_failed", cond=["is_this_attempt", "may_retry"], on="plan_retry")
    terminal.failed.from_(running, event="generation_failed", cond="is_this_attempt", on="fail_reply")
    running.to(None, event="retry_elapsed", on="retry")
    terminal.failed.from_(running, event="connection_lost session_renewed", on="lose_reply")
    cancelling.from_(running, event="interrupted generation_cancelled close_requested", on="cancel_reply")
    terminal.cancelled.from_(cancelling, event="cancel_acknowledged generation_completed generation_failed step_completed", cond="is_this_attempt", on="confirm_cancel")
    terminal.cancelled.from_(cancelling, event="cancel_ack_timed_out connection_lost session_renewed session_closed", on="abandon_cancel")
    cancelling.to(None, event=TOOL_ENDINGS, cond="is_open_call", on="settle_call")
    terminal.to(None, event=TOOL_ENDINGS, cond="is_open_call", on="settle_call")
    terminal.to(None, event="interrupted generation_cancelled close_requested", cond="has_eligible_calls", on="cancel_calls")
    terminal.to(None, event="session_closed", on="abandon_calls")
    generation_idle.to(None, event="usage_reported", on="note_usage")
    running.to(None, event="usage_reported", on="note_usage")
    cancelling.to(None, event="usage_reported", on="note_usage")
    terminal.to(None, event="usage_reported", on="note_usage")
    # fmt: on


ANYWHERE = (
    ("say_requested", "announcement_is_admitted", "queue_announcement"),
    ("say_requested", "announcement_is_refused", "refuse_announcement"),
    ("say_withdrawn", "announcement_waits", "withdraw_announcement"),
)
"""What Generation does in whatever state it is: event, guard, action."""

for _event, _guard, _action in ANYWHERE:
    Generation.to(None, event=_event, cond=_guard, on=_action)


class GenerationRules(AnnouncementRules):
    """Guards and actions of the Generation region."""

    # -- guards ----------------------------------------------------------------------------------------------------

    def may_start_reply(self) -> bool:
        """A turn waits, the session is ready, the former reply is over, and the user does not have the floor."""
        waiting = self.context.pending
        if waiting is None or not self.is_in("ready") or not self.context.reply_is_over:
            return False
        if self.announcement_comes_first:
            return False
        out_of_patience = waiting.restarts >= self.policies.turn.max_restarts
        return out_of_patience or not self.is_in("speech", "hypothesis")

    def is_this_attempt(self) -> bool:
        """Of the attempt that is at work; the one that a retry will start has said nothing yet."""
        fact, reply = self.fact, self.context.response
        is_present = isinstance(fact, AttemptFact) and reply is not None and reply.attempt_id == fact.attempt_id
        return is_present and self.context.timer(TimerKind.RETRY) is None

    def may_retry(self) -> bool:
        """Nothing was visible, no tool was dispatched, the failure is passing, and tries are left."""
        fact, reply = self.fact, self.reply
        assert isinstance(fact, GenerationFailed)
        untouched = not reply.output_started and not reply.has_side_effects and not fact.error.partial_output
        return untouched and fact.error.retryable and reply.attempts < self.policies.generation.max_attempts

    # -- starting --------------------------------------------------------------------------------------------------

    def start_reply(self) -> None:
        waiting = self.context.pending
        assert waiting is not None
        self.context.pending = None
        self.leave_former_calls()
        self.context.response = Response(
            run_id=self.mint("run"),
            response_id=self.mint("response"),
            attempt_id=self.mint("attempt"),
            turn_ids=waiting.turn_ids,
            output_epoch=self.context.output_epoch,
            position=self.next_position(),
            restarts=waiting.restarts,
            interruptible=self.policies.interruption.interruptible,
        )
        self._start_attempt()

    def _start_attempt(self) -> None:
        reply = self.reply
        self.start_timer(TimerKind.PROGRESS, self.policies.generation.stall_ms)
        self.emit(
            StartGeneration(
                self.stamp,
                reply.run_id,
                reply.response_id,
                reply.attempt_id,
                reply.turn_ids,
                reply.output_epoch,
                reply.position,
            )
        )
        self.publish(ResponseStarted(reply.attempts), reply=reply, turn_id=reply.turn_ids[-1])

    def plan_retry(self) -> None:
        fact = self.fact
        assert isinstance(fact, GenerationFailed)
        policy = self.policies.generation
        delay_ms = min(policy.retry_ms * 2 ** (self.reply.attempts - 1), policy.max_retry_ms)
        delay_ms = min(max(delay_ms, fact.error.retry_after_ms or 0), policy.max_retry_ms)
        self.change_reply(step_open=False, attempt_id=self.mint("attempt"), attempts=self.reply.attempts + 1)
        self.cancel_timer(TimerKind.PROGRESS)
        self.start_timer(TimerKind.RETRY, delay_ms)

    def retry(self) -> None:
        self.change_reply(step_open=True)
        self._start_attempt()

    # -- going on --------------------------------------------------------------------------------------------------

    def note_output(self) -> None:
        shown = self.context.capabilities.text_only
        self.change_reply(output_started=True, heard=self.reply.heard or shown)
        self.note_progress()

    def note_usage(self) -> None:
        """The one thing that a late fact of an older attempt may still do."""
        fact = self.fact
        assert isinstance(fact, UsageReported)
        reply = self.context.response
        if reply is not None and reply.attempt_id == fact.attempt_id:
            self.change_reply(usage=fact.usage)
            self.publish(UsageChanged(fact.usage), reply=reply)
        else:
            self.publish(UsageChanged(fact.usage))

    # -- tools -----------------------------------------------------------------------------------------------------

    def close_step(self) -> None:
        """The model waits for its tools; their own deadlines bound that."""
        self.change_reply(step_open=False)
        self.cancel_timer(TimerKind.PROGRESS)

    def go_on_after_tools(self) -> None:
        self.settle_call()
        self.go_on()

    def go_on(self) -> None:
        self.change_reply(steps=self.reply.steps + 1, step_open=True)
        self.note_progress()
        self.emit(
            ContinueGeneration(self.stamp, self.reply.response_id, self.reply.attempt_id, self.reply.output_epoch)
        )

    def run_out_of_steps(self) -> None:
        if not isinstance(self.fact, StepCompleted):
            self.settle_call()
        steps = self.policies.generation.max_tool_steps
        message = (
            f"the model went on calling tools after {steps} steps; raise generation.max_tool_steps, or change its tools"
        )
        error = ScopedError("too_many_tool_steps", "generation", ErrorScope.RESPONSE, message)
        self.publish(StreamError(error), reply=self.reply)
        self._end(Outcome.FAILED, error.code)
        self._bound_speech()

    # -- ending ----------------------------------------------------------------------------------------------------

    def complete_reply(self) -> None:
        self._end(Outcome.COMPLETED, "")
        self._bound_speech()

    def fail_reply(self) -> None:
        fact = self.fact
        assert isinstance(fact, GenerationFailed)
        self.cancel_calls()
        self.publish(StreamError(fact.error), reply=self.reply)
        self._end(Outcome.FAILED, fact.error.code)
        self._bound_speech()

    def lose_reply(self) -> None:
        """The session is gone, and the reply with it; the epoch step has silenced it already."""
        self.close_calls(ToolStatus.UNKNOWN)
        self._end(Outcome.FAILED, "session_lost")

    def cancel_reply(self) -> None:
        """Asked for, not yet confirmed. Admission stays owned."""
        reply = self.reply
        reason = self.invalidation
        self.emit(CancelGeneration(self.stamp, reply.response_id, reply.attempt_id, reason))
        self.cancel_calls()
        self.change_reply(reason=reason, step_open=False)
        self.cancel_timers(TimerKind.PROGRESS, TimerKind.RETRY)
        self.start_timer(TimerKind.CANCEL_ACK, self.policies.generation.cancel_ack_ms)
        self.publish(CancelRequested(reason), reply=reply)

    def confirm_cancel(self) -> None:
        if isinstance(self.fact, CancelAcknowledged):
            self.publish(CancelConfirmed(), reply=self.reply)
        self._end(Outcome.CANCELLED, self.reply.reason)

    def abandon_cancel(self) -> None:
        """Nobody confirmed it."""
        self.change_reply(acknowledged=False)
        self._end(Outcome.CANCELLED, self.reply.reason)
        if self.is_in("closed"):
            self.abandon_calls()

    def _end(self, outcome: Outcome, reason: str) -> None:
        """The one terminal outcome of run, response and attempt."""
        self.cancel_timers(TimerKind.PROGRESS, TimerKind.RETRY, TimerKind.CANCEL_ACK)
        self.change_reply(outcome=outcome, reason=reason, step_open=False)
        reply = self.reply
        self.emit(RecordResponse(self.stamp, reply.response_id, reply.run_id, outcome, reason))
        self.publish(ResponseTerminal(outcome, reason, reply.acknowledged), reply=reply)
        self.publish(RunTerminal(outcome, reason), reply=reply)
        self.settle()

    def _bound_speech(self) -> None:
        """What was generated is still to be spoken; if nothing of it was visible there is nothing to wait for."""
        reply = self.reply
        if reply.delivery is not None or reply.output_epoch < self.context.output_epoch or self.reply_is_in_output:
            return
        if reply.outcome is Outcome.FAILED and not reply.output_started:
            self.record_unheard(DeliveryStatus.FAILED)
            self.settle()
        else:
            self.start_timer(TimerKind.SPEECH, self.policies.generation.first_audio_ms)
