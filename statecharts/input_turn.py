"""InputTurn: what the user is saying.

Theory of operation. A hypothesis is not a turn: it may be revised or retracted until its segment is final, and only final
segments are ever committed. A turn ends when the *configured* authority says so, and only that one; what any other
says about the end of a turn changes nothing. An ended turn waits, bounded by a timer, until its recognitions have said
everything, so that no transcript is committed clipped.

A committed turn owes the user an answer. Speech inside the continuation window, before anything of the reply was heard,
reopens the *same* turn and takes that reply back; whatever becomes of the continuation - a cough, a failure - what
had been committed is committed again and answered. The number of restarts is bounded, so that a recogniser that
keeps announcing speech cannot make the device mute. A late final segment joins the turn while nothing depends on it,
and otherwise begins the next one.
"""

# ruff: noqa: E501 - transition lines are the rows of a table

from __future__ import annotations

from dataclasses import replace

from .context import PendingTurn, TimerKind, Turn
from .declaration import Compound, State
from .facts import (
    InputDiscontinuity,
    RecognitionClosed,
    RecognitionFailed,
    SegmentFinalized,
    SpeechProgressed,
    SpeechStarted,
    TextSubmitted,
    TurnEnded,
)
from .published import (
    StreamError,
    TurnDiscarded,
    TurnDropped,
)
from .transcripts import TranscriptRules
from .values import TurnAuthority

ENDINGS = "turn_ended recognition_closed finalization_timed_out turn_limit_reached"
LOSSES = "input_timed_out turn_cancelled connection_lost close_requested session_closed"


class InputTurn(Compound, name="Input turn"):
    input_idle = State("idle", initial=True)
    speech = State("speech")
    hypothesis = State("hypothesis")
    committed = State("committed")
    discarded = State("discarded")

    # fmt: off
    speech.from_(committed, event="speech_started", cond=["microphone_is_admitted", "continues_committed_turn"], before="take_back_reply", on="reopen_turn")
    speech.from_(input_idle, committed, discarded, event="speech_started", cond="microphone_is_admitted", on="open_turn")
    committed.to(None, event="speech_started", cond="speaker_has_the_floor", on="note_refused_onset")
    discarded.to(None, event="speech_started", cond="speaker_has_the_floor", on="note_refused_onset")
    speech.from_(committed, discarded, event="speech_progressed", cond=["onset_was_refused", "microphone_is_admitted"], on="open_turn")
    committed.to(None, event="turn_ended", cond="onset_was_refused", on="forget_refused_onset")
    discarded.to(None, event="turn_ended", cond="onset_was_refused", on="forget_refused_onset")
    speech.to(None, event="speech_started", cond="turn_is_ending", on="resume_turn")
    hypothesis.to(None, event="speech_started", cond="turn_is_ending", on="resume_turn")
    speech.to(None, event="speech_progressed", on="note_speech")
    hypothesis.to(None, event="speech_progressed", on="note_speech")
    hypothesis.from_(speech, hypothesis, event="transcript_updated", cond="concerns_the_turn", on="revise_hypothesis")
    hypothesis.from_(speech, hypothesis, event="segment_finalized", cond="concerns_the_turn", on="freeze_segment")
    committed.from_(speech, hypothesis, event=ENDINGS, cond=["turn_is_over", "has_whole_text", "words_count"], on="commit_turn")
    committed.from_(speech, hypothesis, event=ENDINGS, cond=["turn_is_over", "was_committed"], on="restore_turn")
    discarded.from_(speech, hypothesis, event=ENDINGS, cond="turn_is_over", on="discard_turn")
    speech.to(None, event="turn_ended", cond="is_from_the_authority", on="await_transcript")
    hypothesis.to(None, event="turn_ended", cond="is_from_the_authority", on="await_transcript")
    speech.to(None, event="turn_ended", unless="is_from_the_authority")
    hypothesis.to(None, event="turn_ended", unless="is_from_the_authority")
    speech.to(None, event="turn_limit_reached", on="exceed_turn")
    hypothesis.to(None, event="turn_limit_reached", on="exceed_turn")
    speech.to(None, event="recognition_closed", cond="is_open_recognition", on="close_recognition")
    hypothesis.to(None, event="recognition_closed", cond="is_open_recognition", on="close_recognition")
    committed.from_(speech, hypothesis, event="input_discontinuity", cond=["gap_invalidates_turn", "was_committed"], on="restore_turn")
    discarded.from_(speech, hypothesis, event="input_discontinuity", cond="gap_invalidates_turn", on="discard_turn")
    speech.to(None, event="input_discontinuity", on="tell_gap")
    hypothesis.to(None, event="input_discontinuity", on="tell_gap")
    speech.to(None, event="recognition_failed", cond=["is_open_recognition", "may_fall_back"], on="fall_back_to_recording")
    hypothesis.to(None, event="recognition_failed", cond=["is_open_recognition", "may_fall_back"], on="fall_back_to_recording")
    speech.to(None, event="recognition_failed", cond=["is_open_recognition", "hears_itself"], on="go_without_transcript")
    hypothesis.to(None, event="recognition_failed", cond=["is_open_recognition", "hears_itself"], on="go_without_transcript")
    committed.from_(speech, hypothesis, event="recognition_failed", cond=["is_open_recognition", "was_committed"], on="restore_turn")
    discarded.from_(speech, hypothesis, event="recognition_failed", cond="is_open_recognition", on="discard_turn")
    committed.from_(speech, hypothesis, event=LOSSES, cond="was_committed", on="restore_turn")
    discarded.from_(speech, hypothesis, event=LOSSES, on="discard_turn")
    committed.to(None, event="segment_finalized", cond=["concerns_the_turn", "may_be_amended"], on="amend_turn")
    committed.to(None, event="segment_finalized", cond=["concerns_the_turn", "late_segment_may_join"], before="take_back_reply", on="join_late_segment")
    committed.to(None, event="segment_finalized", cond="concerns_the_turn", on="carry_segment")
    committed.to(None, event="recognition_closed recognition_failed", cond="is_open_recognition", on="close_recognition")
    committed.from_(input_idle, committed, discarded, event="text_submitted", cond="text_is_admitted", on="commit_text")
    speech.to(None, event="text_submitted", cond="text_is_admitted", on="queue_text")
    hypothesis.to(None, event="text_submitted", cond="text_is_admitted", on="queue_text")
    # fmt: on


ANYWHERE = (
    ("segment_finalized", "concerns_former_turn", "amend_former_turn"),
    ("recognition_closed", "concerns_former_turn", "forget_former_turn"),
    ("recognition_failed", "concerns_former_turn", "forget_former_turn"),
)
"""What InputTurn does in whatever state it is, where nothing above fits: event, guard, action."""

for _event, _guard, _action in ANYWHERE:
    InputTurn.to(None, event=_event, cond=_guard, on=_action)


class InputTurnRules(TranscriptRules):
    """Guards and actions of the InputTurn region."""

    # -- opening and continuing ------------------------------------------------------------------------------------

    def note_refused_onset(self) -> None:
        self.context.onset_refused = True

    def forget_refused_onset(self) -> None:
        self.context.onset_refused = False

    def open_turn(self) -> None:
        """At the onset of speech, or when the microphone opens to somebody who is speaking already."""
        fact = self.fact
        assert isinstance(fact, SpeechStarted | SpeechProgressed)
        self.forget_refused_onset()
        former = self.context.turn
        still_open = former.open_recognitions if former is not None else ()
        if self.hears_itself():
            still_open = ()
            self.keep_untranscribed()
        carried, self.context.carried = self.context.carried, ()
        self.context.turn = Turn(
            turn_id=self.mint("turn"),
            authority=self.policies.turn.authority,
            started_at=self.context.now,
            start_sample=fact.sample,
            segments=tuple(replace(segment, heard_at=self.context.now) for segment in carried),
            recognitions=still_open,
            open_recognitions=still_open,
            alarmed=self.interruption_is_suspected(),
        )
        self.begin_listening(fact.sample, continues=False)

    def take_back_reply(self) -> None:
        """The unheard reply to this turn is withdrawn; the turn waits for its second commit."""
        waiting = self.context.pending
        if waiting is not None and self.turn.turn_id in waiting.turn_ids:
            return
        self.requeue_reply()
        self.invalidate_output("turn_continued")
        self.decide("generation_cancelled")

    def reopen_turn(self) -> None:
        fact = self.fact
        assert isinstance(fact, SpeechStarted)
        turn = self.turn
        self.context.turn = replace(
            turn,
            started_at=self.context.now,
            ended_by=None,
            speech_ms=0,
            restarts=turn.restarts + 1,
            used_fallback=False,
            kept_segments=len(turn.segments),
            kept_recognitions=len(turn.recognitions),
            kept_text=turn.final_text,
            alarmed=False,
        )
        self.begin_listening(fact.sample, continues=True)

    def resume_turn(self) -> None:
        """The user went on before the transcript was complete: the end is withdrawn, the rest recognised anew."""
        fact = self.fact
        assert isinstance(fact, SpeechStarted)
        self.change_turn(ended_by=None, speech_ms=0)
        self.cancel_timer(TimerKind.FINALIZATION)
        self.begin_listening(fact.sample, continues=True)

    # -- ending ----------------------------------------------------------------------------------------------------

    def commit_turn(self) -> None:
        self._leave_listening()
        turn = self.turn
        text = turn.final_text
        self._commit(replace(turn, kept_segments=None), text, turn.authority)

    def _commit(self, turn: Turn, text: str, authority: TurnAuthority) -> None:
        turn = replace(
            turn,
            committed_at=self.context.now,
            position=turn.position or self.next_position(),
            revision=turn.revision + 1,
        )
        self.context.turn = turn
        self.store_turn(turn, text, authority)
        self._admit_or_queue(turn.turn_id)

    def restore_turn(self) -> None:
        """The continuation came to nothing: what had been committed stands, and is answered."""
        reason = self.reason_of_discard
        self._leave_listening()
        turn = self.turn
        kept, continuation = turn.segments[: turn.kept_segments], turn.segments[turn.kept_segments or 0 :]
        self.tell_lost(reason, any(segment.text.strip() for segment in continuation))
        turn = replace(turn, segments=kept, kept_segments=None, ended_by=None)
        self.context.turn = turn
        if turn.final_text != turn.kept_text and not self.hears_itself():
            # A late final of what had been committed came meanwhile.
            self._commit(turn, turn.final_text, turn.authority)
        else:
            self.settle()

    def discard_turn(self) -> None:
        reason = self.reason_of_discard
        self._leave_listening()
        self.publish(TurnDiscarded(reason), turn_id=self.turn.turn_id)
        fact = self.fact
        if isinstance(fact, RecognitionFailed):
            self.publish(StreamError(fact.error), turn_id=self.turn.turn_id)
        self.settle()

    def _leave_listening(self) -> None:
        """The turn is not open any more: close what served it and let a held reply speak."""
        fact = self.fact
        self.tell_limit()
        if isinstance(fact, InputDiscontinuity):
            self.tell_gap()
        if isinstance(fact, RecognitionClosed | RecognitionFailed):
            self.note_closed(fact.recognition_id)
        recognizer_ended_it = isinstance(fact, TurnEnded) and bool(self.turn.open_recognitions)
        self.close_recognitions(cancel=not recognizer_ended_it)
        self.cancel_timers(TimerKind.INPUT, TimerKind.FINALIZATION, TimerKind.TURN_LIMIT)
        if not self.interruption_is_accepted():
            self.decide("floor_released")

    def _admit_or_queue(self, turn_id: str) -> None:
        """The turn waits for admission, with those that wait already or instead of them, as the policy says."""
        waiting = self.context.pending
        if waiting is None:
            self.context.pending = PendingTurn((turn_id,))
        elif turn_id not in waiting.turn_ids:
            if self.policies.turn.merge_pending:
                self.context.pending = replace(waiting, turn_ids=(*waiting.turn_ids, turn_id))
            else:
                self.context.pending = PendingTurn((turn_id,), waiting.restarts)
                for dropped in waiting.turn_ids:
                    self.publish(TurnDropped("replaced"), turn_id=dropped)
        self.decide("turn_admitted")

    # -- other ways ------------------------------------------------------------------------------------------------

    def join_late_segment(self) -> None:
        """A second final of the same utterance: the same turn, one answer."""
        self.freeze()
        turn = replace(self.turn, revision=self.turn.revision + 1)
        self.context.turn = turn
        self.store_turn(turn, turn.final_text, turn.authority)
        self._admit_or_queue(turn.turn_id)

    def carry_segment(self) -> None:
        """Too late to join: it begins the next turn."""
        fact = self.fact
        assert isinstance(fact, SegmentFinalized)
        self.context.carried = (*self.context.carried, self.final_segment(fact))

    def commit_text(self) -> None:
        self.close_recognitions(cancel=True)
        self.context.turn = self._typed_turn()
        self._commit_typed(self.turn)

    def queue_text(self) -> None:
        """Typed while the microphone has the floor: a turn of its own, which leaves the spoken one open."""
        spoken = self.turn
        self._commit_typed(self._typed_turn())
        self.context.turn = spoken

    def _typed_turn(self) -> Turn:
        return Turn(self.mint("turn"), TurnAuthority.CLIENT, self.context.now)

    def _commit_typed(self, turn: Turn) -> None:
        fact = self.fact
        assert isinstance(fact, TextSubmitted)
        self._commit(turn, fact.text.strip(), TurnAuthority.CLIENT)
