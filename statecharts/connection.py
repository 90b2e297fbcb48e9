"""Connection: the live engine and device session.

Theory of operation. `ready` means *negotiated*: every port answered and the capabilities satisfy the streaming policy.
Losing the session is an epoch step: `session_epoch` and `output_epoch` move in the first microstep, what was in flight
fails or is cancelled in its own region, and only *committed* context survives into the next session. Nothing is
replayed and no tool runs again. Attempts to come back share one deadline and a bounded number of tries.

This region also carries the two decisions that concern the conversation as a whole: whether a fact interrupts the reply
(`barge_in.py`), and closing. `closed` is final; it is reached when every region has come to rest, or when the shutdown
deadline has passed.
"""

# ruff: noqa: E501 - transition lines are the rows of a table

from __future__ import annotations

from .actions import Connect, Disconnect, Release
from .barge_in import BargeInRules
from .context import PendingTurn, TimerKind
from .declaration import Compound, State
from .errors import ErrorScope, ScopedError
from .facts import CloseRequested, ConnectionFailed, ConnectionLost, ConnectionReady, SessionExpiring
from .published import SessionClosed, SessionClosing, SessionReady, SessionReconnecting, StreamError, TurnDropped

SPEAKING = "speech_started speech_progressed transcript_updated segment_finalized"
HAVING_SPOKEN = "turn_ended recognition_closed finalization_timed_out turn_limit_reached"
ASKING = "button_pressed provider_interrupted client_cancelled text_submitted say_requested say_withdrawn"


_GIVEN_UP = {
    True: "the model made no progress within its deadline; check the provider, or raise generation.stall_ms",
    False: "the speaker did not go on within its deadline; check the audio service",
}


class Connection(Compound, name="Connection"):
    opening = State("opening", initial=True)
    ready = State("ready")
    reconnecting = State("reconnecting")
    closing = State("closing")
    closed = State("closed")

    # fmt: off
    opening.to(None, event="open_requested", cond="nothing_was_tried", on="begin_connecting")
    ready.from_(opening, event="connection_ready", cond="capabilities_suffice", on="announce_ready")
    closed.from_(opening, reconnecting, event="connection_ready", unless="capabilities_suffice", on="refuse_capabilities")
    reconnecting.from_(opening, event="connection_failed", cond="may_try_again", on="back_off")
    reconnecting.to(None, event="connection_failed", cond="may_try_again", on="back_off")
    closed.from_(opening, reconnecting, event="connection_failed connect_timed_out", on="give_up")
    reconnecting.to(None, event="backoff_elapsed", on="try_again")
    reconnecting.from_(ready, event="connection_lost", before="step_epochs", on="reconnect")
    reconnecting.from_(ready, event="cancel_ack_timed_out", before="step_epochs", on="reconnect")
    ready.to(None, event="session_expiring", cond="renewal_may_wait", on="plan_renewal")
    reconnecting.from_(ready, event="session_expiring renewal_due", before="renew_session", on="reconnect")
    ready.from_(reconnecting, event="connection_ready", cond="capabilities_suffice", on="announce_ready")
    closing.from_(opening, ready, reconnecting, event="close_requested", before="begin_closing")
    closed.from_(closing, event="region_rested", cond="everything_rests", on="finish_closing")
    closed.from_(closing, event="shutdown_timed_out", on="finish_closing")

    # Barge-in: judged here once, carried through Generation and Playback by `interrupted`.
    ready.to(None, event=f"{SPEAKING} {HAVING_SPOKEN} {ASKING}", cond="interruption_is_accepted", before="carry_out_interruption")
    ready.to(None, event=SPEAKING, cond="interruption_is_suspected", on="suspect_interruption")
    ready.to(None, event=HAVING_SPOKEN, cond="interruption_is_rejected", on="reject_interruption")
    ready.to(None, event=ASKING, cond="interruption_is_rejected", on="refuse_interruption")
    ready.to(None, event="false_alarm_elapsed", on="reject_interruption")
    # A reply that cannot go on: the same transaction, asked for by another region.
    ready.to(None, event="generation_stalled", before="give_up_reply")
    ready.to(None, event="speaker_failed playback_stalled", cond="output_is_broken", before="give_up_reply")
    ready.to(None, event="playback_stopped", cond="stopped_by_itself", before="give_up_reply")
    # fmt: on


class ConnectionRules(BargeInRules):
    """Guards and actions of the Connection region."""

    # -- guards ----------------------------------------------------------------------------------------------------

    def nothing_was_tried(self) -> bool:
        return self.context.connect_attempts == 0

    def capabilities_suffice(self) -> bool:
        """What was negotiated satisfies the streaming policy."""
        fact = self.fact
        assert isinstance(fact, ConnectionReady)
        return not fact.capabilities.missing_for(self.policies.connection.streaming)

    def may_try_again(self) -> bool:
        """Retryable, with tries left. The shared deadline is a timer of its own."""
        fact = self.fact
        assert isinstance(fact, ConnectionFailed)
        return fact.error.retryable and self.context.connect_attempts < self.policies.connection.max_attempts

    def renewal_may_wait(self) -> bool:
        """Something is being said, and the session lives long enough to finish it."""
        fact = self.fact
        assert isinstance(fact, SessionExpiring)
        return fact.within_ms > self.policies.connection.renewal_margin_ms and not self.nothing_is_said()

    def nothing_is_said(self) -> bool:
        """Neither by the user nor to the user, and nobody waits for an answer."""
        context = self.context
        silent = context.pending is None and not context.stopping and not self.is_in("speech", "hypothesis")
        return silent and context.reply_is_over

    def everything_rests(self) -> bool:
        """No region has anything left to wait for."""
        context = self.context
        generation_rests = not self.is_in("waiting", "streaming", "tools", "cancelling")
        return (
            generation_rests
            and not self.reply_is_in_output
            and not context.stopping
            and not self.is_in("speech", "hypothesis")
        )

    def output_is_broken(self) -> bool:
        """Refined by the Playback region."""
        raise NotImplementedError

    def stopped_by_itself(self) -> bool:
        """Refined by the Playback region."""
        raise NotImplementedError

    # -- actions ---------------------------------------------------------------------------------------------------

    def begin_connecting(self) -> None:
        self.context.connect_attempts = 1
        self.start_timer(TimerKind.CONNECT, self.policies.connection.connect_ms)
        self.emit(Connect(self.stamp, 1))

    def announce_ready(self) -> None:
        fact = self.fact
        assert isinstance(fact, ConnectionReady)
        self.context.capabilities = fact.capabilities
        self.context.connect_attempts = 0
        self.context.ready_at = self.context.now
        self.cancel_timers(TimerKind.CONNECT, TimerKind.BACKOFF)
        self.publish(SessionReady(fact.capabilities.degradations))
        self.settle()

    def refuse_capabilities(self) -> None:
        fact = self.fact
        assert isinstance(fact, ConnectionReady)
        missing = ", ".join(fact.capabilities.missing_for(self.policies.connection.streaming))
        error = ScopedError(
            "streaming_required",
            "connection",
            ErrorScope.SESSION,
            f"streaming_policy is 'required', but this configuration lacks: {missing}. Choose other providers or 'prefer'.",
        )
        self._close("streaming_required", error)

    def back_off(self) -> None:
        fact = self.fact
        assert isinstance(fact, ConnectionFailed)
        policy = self.policies.connection
        if self.context.timer(TimerKind.CONNECT) is None:
            self.start_timer(TimerKind.CONNECT, policy.connect_ms)
        delay_ms = max(self._delay_ms(self.context.connect_attempts), fact.error.retry_after_ms or 0)
        delay_ms = min(delay_ms, policy.max_backoff_ms)
        self.start_timer(TimerKind.BACKOFF, delay_ms)
        self.publish(SessionReconnecting(self.context.connect_attempts, fact.error.code))

    def _jitter(self, span_ms: int) -> int:
        """0 to `span_ms`, spread by the identity source so that a replay sees the same."""
        digits = self.mint("jitter").rsplit("-", 1)[-1]
        return int(digits, 36) % (span_ms + 1) if digits.isalnum() else 0

    def try_again(self) -> None:
        self.context.connect_attempts += 1
        self.emit(Connect(self.stamp, self.context.connect_attempts))

    def give_up(self) -> None:
        fact = self.fact
        if isinstance(fact, ConnectionFailed):
            error = fact.error
        else:
            error = ScopedError(
                "connect_timed_out",
                "connection",
                ErrorScope.SESSION,
                f"no connection within {self.policies.connection.connect_ms} ms; is the audio service running?",
            )
        self._close(error.code, error)

    def step_epochs(self) -> None:
        """The session is gone: both epochs move before any region does anything."""
        context = self.context
        context.session_epoch += 1
        if self.reply_is_owed and self.may_restart():
            self.requeue_reply()
        self.invalidate_output(self.reason_of_loss)

    def settle(self) -> None:
        """What is to be renewed is renewed as soon as nothing is being said, in a macrostep of its own."""
        super().settle()
        if self.context.timer(TimerKind.RENEWAL) is not None and self.nothing_is_said():
            self.start_timer(TimerKind.RENEWAL, 0)

    def renew_session(self) -> None:
        """Given up while it still works: the other regions cannot tell by the fact."""
        self.step_epochs()
        self.decide("session_renewed")

    @property
    def reply_is_owed(self) -> bool:
        """The reply was under way, nobody has heard it, nobody has called it off, and it left nothing behind."""
        context, reply = self.context, self.context.response
        return (
            reply is not None
            and not context.reply_is_over
            and reply.output_epoch == context.output_epoch
            and not reply.heard
            and not reply.has_side_effects
        )

    @property
    def reason_of_loss(self) -> str:
        fact = self.fact
        return fact.error.code if isinstance(fact, ConnectionLost) else "session_renewed"

    def plan_renewal(self) -> None:
        """Before it expires, and sooner when there is nothing left to finish."""
        fact = self.fact
        assert isinstance(fact, SessionExpiring)
        self.start_timer(TimerKind.RENEWAL, fact.within_ms - self.policies.connection.renewal_margin_ms)

    def reconnect(self) -> None:
        """At once; but a session that does not last is not made anew as fast as it is lost."""
        self.cancel_timer(TimerKind.RENEWAL)
        self.start_timer(TimerKind.CONNECT, self.policies.connection.connect_ms)
        self.emit(Disconnect(self.stamp, self.reason_of_loss))
        self.context.early_losses = self.context.early_losses + 1 if self._was_lost_early() else 0
        if self.context.early_losses > 1:
            self.context.connect_attempts = 0
            self.start_timer(TimerKind.BACKOFF, self._delay_ms(self.context.early_losses - 1))
        else:
            self.context.connect_attempts = 1
            self.emit(Connect(self.stamp, 1))
        self.publish(SessionReconnecting(1, self.reason_of_loss))

    def _was_lost_early(self) -> bool:
        ready_at = self.context.ready_at
        stable_ns = self.policies.connection.stable_ms * 1_000_000
        return (
            isinstance(self.fact, ConnectionLost) and ready_at is not None and self.context.now - ready_at < stable_ns
        )

    def _delay_ms(self, tries: int) -> int:
        """Doubled at every try, the later half of it spread."""
        policy = self.policies.connection
        delay_ms = min(policy.backoff_ms * 2 ** min(max(tries - 1, 0), 30), policy.max_backoff_ms)
        return delay_ms // 2 + self._jitter(delay_ms // 2)

    def give_up_reply(self) -> None:
        """The reply cannot go on: the same transaction as an interruption, without an interruption."""
        reason = self.fired.kind.value if self.fired is not None else "speaker_failed"
        stalled = self.fired is not None and self.fired.kind is TimerKind.PROGRESS
        if stalled and self.reply_is_owed and self.may_restart():
            self.requeue_reply()
        self.invalidate_output(reason)
        error = ScopedError(reason, "generation" if stalled else "playback", ErrorScope.RESPONSE, _GIVEN_UP[stalled])
        self.publish(StreamError(error), reply=self.context.response)
        self.decide("generation_cancelled")
        self.settle()

    def begin_closing(self) -> None:
        fact = self.fact
        assert isinstance(fact, CloseRequested)
        self.context.closing_reason = fact.reason
        self.context.closing_error = fact.error
        self.invalidate_output("closing")
        self.cancel_timers(TimerKind.CONNECT, TimerKind.BACKOFF, TimerKind.RENEWAL)
        self.start_timer(TimerKind.SHUTDOWN, self.policies.connection.shutdown_ms)
        self.publish(SessionClosing(fact.reason))
        self.decide("region_rested")

    def finish_closing(self) -> None:
        self._close(self.context.closing_reason, self.context.closing_error)

    def _close(self, reason: str, error: ScopedError | None) -> None:
        """Final. Whatever a region still holds it gives up on `session_closed`."""
        context = self.context
        context.closing_reason, context.closing_error = reason, error
        self.drop_pending("closed")
        self.drop_announcements("closed")
        context.untranscribed = ()
        self.cancel_timers(*TimerKind)
        self.publish(SessionClosed(reason, error))
        self.emit(Release(self.stamp, reason, error))
        self.decide("session_closed")

    def drop_pending(self, reason: str) -> None:
        """Committed turns that will not be answered are reported, never lost silently."""
        waiting: PendingTurn | None = self.context.pending
        if waiting is None:
            return
        self.context.pending = None
        for turn_id in waiting.turn_ids:
            self.publish(TurnDropped(reason), turn_id=turn_id)
