"""Barge-in: asked once, decided once, carried out in one macrostep.

Theory of operation. A fact that may interrupt (`facts.INTERRUPTING`) is judged once per macrostep, before any region
moves; the judgement is kept for the rest of that macrostep, so no two regions can disagree about it. The judgement is
made only while there is a reply to interrupt: with a silent assistant nothing is interrupted, recorded or truncated.

An accepted one is carried out by `invalidate_output`, the only place where the output epoch moves. It runs in the first
microstep, before anything else: everything emitted from then on, and every frame that still arrives of the former
epoch, is told apart by the epoch alone. `interrupted` then takes Playback to `stopped` and Generation to
`cancelling` in the same macrostep.

Speech asks the configured `InterruptionPolicy`, but only about a reply that can be *heard*. A reply that nobody has
heard is not interrupted by sounds: its first audio waits (`Playback`), and a turn that ends with words supersedes it.
The superseded turn goes back to waiting and is answered together with the new one, a bounded number of times.
"""

from __future__ import annotations

from dataclasses import replace

from .actions import CancelSynthesis, RecordInterruption, StopPlayback, TruncateContext
from .context import PendingTurn, TimerKind, Turn, join_texts
from .facts import (
    INTERRUPTING,
    ClientCancelled,
    SayRequested,
    SayWithdrawn,
    SegmentFinalized,
    SpeechProgressed,
    SpeechStarted,
    TextSubmitted,
    TranscriptUpdated,
)
from .policies import Evidence, Judgement, Moment, Verdict, words_of
from .published import InterruptionAccepted, InterruptionRejected
from .rules import Rules
from .values import DeliveryStatus, InterruptionSource, PositionSource, TurnAuthority

UNHEARD = "reply_unheard"
"""Reason of an acceptance that supersedes a reply nobody has heard; no interruption is recorded for it."""


class BargeInRules(Rules):
    """The decision and its core; the regions carry the rest."""

    def forget_judgement(self) -> None:
        """At the start of a macrostep."""
        self.invalidation = ""
        self._judgement: Judgement | None = None
        self._judged = False

    @property
    def judgement(self) -> Judgement | None:
        """What is to become of the reply because of this fact; None when the question does not arise."""
        if not self._judged:
            self._judgement = self._judge()
            self._judged = True
        return self._judgement

    # -- guards ----------------------------------------------------------------------------------------------------

    def interruption_is_accepted(self) -> bool:
        judgement = self.judgement
        return judgement is not None and judgement.verdict is Verdict.ACCEPTED

    def interruption_is_suspected(self) -> bool:
        """For the first time in this turn, and something is playing that can be paused."""
        judgement = self.judgement
        return (
            judgement is not None
            and judgement.verdict is Verdict.SUSPECTED
            and self.context.capabilities.speaker.pause
            and self.is_in("playing", "buffering")
        )

    def interruption_is_rejected(self) -> bool:
        """A finished utterance that does not count, or that has to wait."""
        judgement = self.judgement
        return judgement is not None and judgement.verdict in (Verdict.DISMISSED, Verdict.DEFERRED)

    def turn_is_over(self) -> bool:
        """This fact ends the open turn, with everything said that will be said. Refined by the InputTurn region."""
        raise NotImplementedError

    def has_whole_text(self) -> bool:
        """Refined by the InputTurn region."""
        raise NotImplementedError

    def concerns_the_turn(self) -> bool:
        """This fact speaks of the open turn and is not stale. Refined by the InputTurn region."""
        raise NotImplementedError

    def microphone_is_admitted(self) -> bool:
        """Refined by the InputTurn region."""
        raise NotImplementedError

    def text_is_admitted(self) -> bool:
        """Refined by the InputTurn region."""
        raise NotImplementedError

    def announcement_is_admitted(self) -> bool:
        """Refined by the Generation region."""
        raise NotImplementedError

    # -- actions ---------------------------------------------------------------------------------------------------

    def carry_out_interruption(self) -> None:
        """Accepted: move the epoch, silence the speaker, and take both output regions along."""
        judgement = self.judgement
        source = self.source_of_fact
        assert judgement is not None
        assert source is not None
        reply = self.reply
        supersedes = judgement.reason == UNHEARD
        if supersedes:
            self.requeue_reply()
        self.invalidate_output(judgement.reason)
        if not supersedes:
            self.context.last_interruption_at = self.context.now
            self.emit(RecordInterruption(self.stamp, source, self.context.now, reply.response_id))
            self.publish(InterruptionAccepted(source, judgement.reason), reply=reply)
        self.cancel_timer(TimerKind.FALSE_ALARM)
        self.decide("interrupted")
        self.settle()

    def suspect_interruption(self) -> None:
        if self.context.turn is not None:
            self.context.turn = replace(self.context.turn, alarmed=True)
        self.start_timer(TimerKind.FALSE_ALARM, self.policies.interruption.false_alarm_ms)
        self.decide("interruption_suspected")

    def reject_interruption(self) -> None:
        """The utterance is over, or the alarm was false: a paused reply goes on."""
        judgement = self.judgement
        reason = judgement.reason if judgement is not None else "false_alarm"
        self.cancel_timer(TimerKind.FALSE_ALARM)
        self.publish(InterruptionRejected(InterruptionSource.SPEECH, reason), reply=self.context.response)
        self.decide("interruption_rejected")

    def refuse_interruption(self) -> None:
        """Asked for, and not now. Whatever speech has paused stays as it is."""
        judgement, source = self.judgement, self.source_of_fact
        assert judgement is not None
        assert source is not None
        self.publish(InterruptionRejected(source, judgement.reason), reply=self.context.response)

    def invalidate_output(self, reason: str) -> None:
        """The core of every transaction that silences a reply. The only place where the output epoch moves.

        Works the same whichever output region is idle: frames may be on their way that the chart has not heard of.
        """
        context = self.context
        reply = context.response
        was_over = context.reply_is_over
        self.invalidation = reason
        context.output_epoch += 1
        self.emit(StopPlayback(self.stamp, context.output_epoch, reason))
        if reply is None or was_over:
            return
        self.emit(CancelSynthesis(self.stamp, reply.response_id, context.output_epoch))
        if context.capabilities.truncate_context:
            output = context.output if self.reply_is_in_output else None
            played = output.played_samples if output else 0
            source = output.source if output else PositionSource.MEASURED
            self.emit(TruncateContext(self.stamp, reply.response_id, played, source))
        awaits_receipt = any(output.response_id == reply.response_id for output in context.stopping)
        if not self.reply_is_in_output and not awaits_receipt and reply.delivery is None:
            self.record_unheard(DeliveryStatus.INTERRUPTED)
        self.cancel_timers(TimerKind.SPEECH)

    def requeue_reply(self) -> None:
        """What this unheard reply was to answer, or to say, waits again, one restart further."""
        reply = self.reply
        if reply.announcement is not None:
            self.wait_to_say(replace(reply.announcement, restarts=reply.restarts + 1))
            # It waits again, so the delivery of what is left here is no outcome of it.
            self.change_reply(announcement=None)
            if self.context.output is not None:
                self.change_output(announcement=None)
            return
        waiting = self.context.pending
        later = waiting.turn_ids if waiting else ()
        turn_ids = tuple(dict.fromkeys((*reply.turn_ids, *later)))
        self.context.pending = PendingTurn(turn_ids, reply.restarts + 1)

    # -- the judgement ---------------------------------------------------------------------------------------------

    @property
    def source_of_fact(self) -> InterruptionSource | None:
        """In whose name this fact may interrupt."""
        if self.fired is not None:
            ends_a_turn = self.fired.kind in (TimerKind.FINALIZATION, TimerKind.TURN_LIMIT)
            return InterruptionSource.SPEECH if ends_a_turn else None
        fact = self.fact
        if isinstance(fact, SpeechStarted) and fact.authority is TurnAuthority.MANUAL:
            return InterruptionSource.BUTTON
        if isinstance(fact, SayRequested) and not (fact.interrupts and self.announcement_is_admitted()):
            return None
        if isinstance(fact, SayWithdrawn) and fact.number != self.number_being_said:
            return None
        return INTERRUPTING.get(type(fact))

    @property
    def reply_is_unheard(self) -> bool:
        reply = self.context.response
        return reply is not None and not reply.heard

    def may_restart(self) -> bool:
        """The unheard reply may be superseded once more."""
        return self.reply.restarts < self.policies.turn.max_restarts

    def _judge(self) -> Judgement | None:
        source = self.source_of_fact
        if source is None or self.context.reply_is_over or not self.is_in("ready"):
            return None
        if self.is_in("cancelling"):
            return None
        fact = self.fact
        if isinstance(fact, ClientCancelled) and fact.run_id not in (None, self.reply.run_id):
            return None
        if source is InterruptionSource.SPEECH:
            return self._judge_speech()
        if isinstance(fact, SpeechStarted) and not (self.reply_is_audible and self.microphone_is_admitted()):
            return None
        if isinstance(fact, TextSubmitted) and not self.text_is_admitted():
            return None
        if isinstance(fact, TextSubmitted | SayRequested) and self.reply_is_unheard:
            return self._judge_unheard()
        return self.policies.interruption.judge(self._evidence(source, Moment.ENDED, "", 0))

    def _judge_speech(self) -> Judgement | None:
        is_over = self.turn_is_over()
        if not is_over and not self._speech_counts():
            return None
        turn = self.context.turn
        if not self.reply_is_audible:
            return self._judge_unheard() if is_over and turn is not None and self.has_whole_text() else None
        moment = Moment.ENDED if is_over else Moment.GOING_ON
        if isinstance(self.fact, SpeechStarted) or turn is None:
            moment, text, speech_ms = Moment.STARTED, "", 0
        else:
            speech_ms = self._speech_ms(turn)
            text = self._unexpired_text(turn, is_over)
        judgement = self.policies.interruption.judge(self._evidence(InterruptionSource.SPEECH, moment, text, speech_ms))
        paused_before = turn is not None and turn.alarmed and moment is not Moment.STARTED
        if judgement.verdict is Verdict.SUSPECTED and paused_before:
            return Judgement(Verdict.UNDECIDED, judgement.reason)
        return judgement

    def _judge_unheard(self) -> Judgement:
        """Whether the unheard reply makes way."""
        reply = self.reply
        if not reply.interruptible:
            return Judgement(Verdict.DEFERRED, "uninterruptible")
        if reply.announcement is not None and reply.announcement.interrupts:
            return Judgement(Verdict.DEFERRED, "announcement_first")
        if not self.may_restart():
            return Judgement(Verdict.DEFERRED, "restarts_exhausted")
        return Judgement(Verdict.ACCEPTED, UNHEARD)

    def _speech_counts(self) -> bool:
        """Whether this fact about speech is of the present utterance at all."""
        if isinstance(self.fact, SpeechStarted):
            return self.microphone_is_admitted()
        if not self.is_in("speech", "hypothesis"):
            return False
        return isinstance(self.fact, SpeechProgressed) or self.concerns_the_turn()

    def _speech_ms(self, turn: Turn) -> int:
        return self.fact.speech_ms if isinstance(self.fact, SpeechProgressed) else turn.speech_ms

    def _unexpired_text(self, turn: Turn, is_over: bool) -> str:
        """What was recognised of this utterance recently; refused words expire."""
        fact = self.fact
        pieces = [(segment.segment_id, segment.text, segment.heard_at) for segment in turn.segments]
        if isinstance(fact, TranscriptUpdated | SegmentFinalized):
            pieces = [piece for piece in pieces if fact.segment_id is None or piece[0] != fact.segment_id]
            pieces.append((fact.segment_id, fact.text, self.context.now))
        if not pieces:
            return ""
        latest = max(heard_at for _, _, heard_at in pieces) if is_over else self.context.now
        oldest = latest - self.policies.interruption.word_window_ms * 1_000_000
        return join_texts(text for _, text, heard_at in pieces if heard_at >= oldest)

    def _evidence(self, source: InterruptionSource, moment: Moment, text: str, speech_ms: int) -> Evidence:
        context = self.context
        last = context.last_interruption_at
        return Evidence(
            source=source,
            moment=moment,
            text=text,
            words=len(words_of(text)),
            speech_ms=speech_ms,
            interruptible=self.reply.interruptible,
            can_pause=context.capabilities.speaker.pause,
            since_interruption_ms=None if last is None else (context.now - last) // 1_000_000,
        )
