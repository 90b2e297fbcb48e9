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

from .actions import CancelRecognition, FinishRecognition, StartRecognition, StoreUserTurn, TranscribeRecording
from .connection import ConnectionRules
from .context import PendingTurn, Segment, TimerKind, Turn, join_texts
from .declaration import Compound, State
from .facts import (
    CloseRequested,
    InputDiscontinuity,
    RecognitionClosed,
    RecognitionFailed,
    SegmentFinalized,
    SpeechProgressed,
    SpeechStarted,
    TextSubmitted,
    TranscriptUpdated,
    TurnCancelled,
    TurnEnded,
)
from .policies import Verdict, words_of
from .published import (
    FallbackStarted,
    SegmentFrozen,
    SpeechBegan,
    StreamDiscontinuity,
    StreamError,
    TranscriptChanged,
    TurnCommitted,
    TurnDiscarded,
    TurnDropped,
    TurnExceeded,
)
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
    committed.from_(speech, hypothesis, event="recognition_failed", cond=["is_open_recognition", "was_committed"], on="restore_turn")
    discarded.from_(speech, hypothesis, event="recognition_failed", cond="is_open_recognition", on="discard_turn")
    committed.from_(speech, hypothesis, event=LOSSES, cond="was_committed", on="restore_turn")
    discarded.from_(speech, hypothesis, event=LOSSES, on="discard_turn")
    committed.to(None, event="segment_finalized", cond=["concerns_the_turn", "late_segment_may_join"], before="take_back_reply", on="join_late_segment")
    committed.to(None, event="segment_finalized", cond="concerns_the_turn", on="carry_segment")
    committed.to(None, event="recognition_closed recognition_failed", cond="is_open_recognition", on="close_recognition")
    committed.from_(input_idle, committed, discarded, event="text_submitted", cond="text_is_admitted", on="commit_text")
    speech.to(None, event="text_submitted", cond="text_is_admitted", on="queue_text")
    hypothesis.to(None, event="text_submitted", cond="text_is_admitted", on="queue_text")
    # fmt: on


class InputTurnRules(ConnectionRules):
    """Guards and actions of the InputTurn region."""

    @property
    def turn(self) -> Turn:
        turn = self.context.turn
        assert turn is not None
        return turn

    def change_turn(self, **changes: object) -> None:
        self.context.turn = replace(self.turn, **changes)  # pyright: ignore[reportArgumentType]

    # -- guards ----------------------------------------------------------------------------------------------------

    def microphone_is_admitted(self) -> bool:
        """Not after closing began; not while the speaker plays without validated echo cancellation; one authority."""
        fact = self.fact
        manual = self.policies.turn.authority is TurnAuthority.MANUAL
        if isinstance(fact, SpeechStarted) and (fact.authority is TurnAuthority.MANUAL) != manual:
            return False
        if self.is_in("closing", "closed"):
            return False
        return self.policies.interruption.full_duplex or manual or not self.reply_is_audible

    def continues_committed_turn(self) -> bool:
        """Inside the window, and nothing that hangs on the committed text can still be taken for done."""
        turn = self.turn
        if turn.committed_at is None or turn.authority is TurnAuthority.CLIENT:
            return False
        age_ms = (self.context.now - turn.committed_at) / 1_000_000
        return age_ms <= self.policies.turn.continuation_window_ms and self.turn_may_change()

    def turn_may_change(self) -> bool:
        """The committed turn waits, or its reply is unheard, without side effects, and may restart once more."""
        turn_id = self.turn.turn_id
        waiting = self.context.pending
        if waiting is not None and turn_id in waiting.turn_ids:
            return True
        reply = self.context.response
        return (
            reply is not None
            and turn_id in reply.turn_ids
            and not self.context.reply_is_over
            and not reply.heard
            and reply.interruptible
            and not reply.has_side_effects
            and not self.is_in("cancelling")
            and self.may_restart()
        )

    def turn_is_ending(self) -> bool:
        return self.turn.ended_by is not None and self.microphone_is_admitted()

    def concerns_the_turn(self) -> bool:
        """Of a recognition of this turn, newer than what is known, and no repetition of a frozen segment."""
        fact = self.fact
        turn = self.context.turn
        if turn is None or not isinstance(fact, TranscriptUpdated | SegmentFinalized):
            return False
        if fact.recognition_id not in turn.recognitions:
            return False
        said = (*turn.segments, *self.context.carried)
        known = [s for s in said if s.recognition_id == fact.recognition_id and s.segment_id == fact.segment_id]
        if isinstance(fact, SegmentFinalized):
            if fact.segment_id is None:
                return not self._repeats_last_final(said, fact)
            return not any(segment.is_final for segment in known)
        return all(not segment.is_final and segment.revision < fact.revision for segment in known)

    def _repeats_last_final(self, said: tuple[Segment, ...], fact: SegmentFinalized) -> bool:
        """A final without identity that says again what the last one said, about the same audio."""
        finals = [segment for segment in said if segment.is_final]
        if not finals or any(segment.text.strip() and not segment.is_final for segment in said):
            return False
        last = finals[-1]
        same_audio = (last.start_sample, last.end_sample) == (fact.start_sample, fact.end_sample)
        return last.recognition_id == fact.recognition_id and last.text == fact.text and same_audio

    def is_from_the_authority(self) -> bool:
        fact = self.fact
        return isinstance(fact, TurnEnded) and fact.authority is self.policies.turn.authority

    def turn_is_over(self) -> bool:
        """This fact ends the turn with everything said that will be said."""
        if not self.is_in("speech", "hypothesis"):
            return False
        fact, turn = self.fact, self.turn
        if self.fired is not None:
            if self.fired.kind is TimerKind.FINALIZATION:
                return True
            return self.fired.kind is TimerKind.TURN_LIMIT and self._transcript_is_settled(turn)
        if isinstance(fact, TurnEnded):
            return self.is_from_the_authority() and self._transcript_is_settled(turn)
        if isinstance(fact, RecognitionClosed):
            return turn.ended_by is not None and turn.open_recognitions == (fact.recognition_id,)
        return self._limit_is_settled(turn)

    def _limit_is_settled(self, turn: Turn) -> bool:
        """The word limit, decided in an earlier microstep, found nothing left to wait for."""
        return self.limit_reached and self._transcript_is_settled(turn)

    def _transcript_is_settled(self, turn: Turn) -> bool:
        """Nothing more will be recognised, or the recogniser itself ended the turn with its last segment frozen."""
        if not turn.open_recognitions:
            return True
        by_recognizer = self.policies.turn.authority is TurnAuthority.RECOGNIZER
        return by_recognizer and bool(turn.final_text) and not turn.has_open_hypothesis

    def has_whole_text(self) -> bool:
        """There are words, and none of them is still a hypothesis."""
        turn = self.turn
        new = join_texts(s.text for s in turn.segments[turn.kept_segments or 0 :] if s.is_final)
        return bool(new) and not turn.has_open_hypothesis

    def words_count(self) -> bool:
        """The interruption policy did not dismiss these words as a backchannel to the reply being heard."""
        judgement = self.judgement
        return judgement is None or judgement.verdict is not Verdict.DISMISSED

    def was_committed(self) -> bool:
        """The turn was reopened: what had been committed is owed an answer."""
        return self.turn.kept_segments is not None

    def is_open_recognition(self) -> bool:
        fact, turn = self.fact, self.context.turn
        return (
            isinstance(fact, RecognitionClosed | RecognitionFailed)
            and turn is not None
            and fact.recognition_id in turn.open_recognitions
        )

    def may_fall_back(self) -> bool:
        """The whole utterance is still held, within the bound, and this was not tried before."""
        fact = self.fact
        assert isinstance(fact, RecognitionFailed)
        return 0 < fact.recorded_ms <= self.policies.turn.max_fallback_ms and not self.turn.used_fallback

    def gap_invalidates_turn(self) -> bool:
        fact = self.fact
        assert isinstance(fact, InputDiscontinuity)
        return fact.lost_ms > self.policies.turn.max_gap_ms

    def late_segment_may_join(self) -> bool:
        fact = self.fact
        return isinstance(fact, SegmentFinalized) and bool(fact.text.strip()) and self.turn_may_change()

    def text_is_admitted(self) -> bool:
        fact = self.fact
        assert isinstance(fact, TextSubmitted)
        return bool(fact.text.strip()) and not self.is_in("closing", "closed")

    # -- opening and continuing ------------------------------------------------------------------------------------

    def open_turn(self) -> None:
        fact = self.fact
        assert isinstance(fact, SpeechStarted)
        former = self.context.turn
        still_open = former.open_recognitions if former is not None else ()
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
        self._begin_listening(fact.sample, continues=False)

    def take_back_reply(self) -> None:
        """The unheard reply to this turn is withdrawn; the turn waits for its second commit."""
        waiting = self.context.pending
        if waiting is not None and self.turn.turn_id in waiting.turn_ids:
            return
        self.invalidate_output("turn_continued")
        self.requeue_reply()
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
            alarmed=False,
        )
        self._begin_listening(fact.sample, continues=True)

    def resume_turn(self) -> None:
        """The user went on before the transcript was complete: the end is withdrawn, the rest recognised anew."""
        fact = self.fact
        assert isinstance(fact, SpeechStarted)
        self.change_turn(ended_by=None, speech_ms=0)
        self.cancel_timer(TimerKind.FINALIZATION)
        self._begin_listening(fact.sample, continues=True)

    def _begin_listening(self, sample: int | None, *, continues: bool) -> None:
        recognition_id = self.mint("recognition")
        turn = self.turn
        self.change_turn(
            recognitions=(*turn.recognitions, recognition_id),
            open_recognitions=(*turn.open_recognitions, recognition_id),
        )
        self.emit(StartRecognition(self.stamp, turn.turn_id, recognition_id, sample))
        self.start_timer(TimerKind.INPUT, self.policies.turn.input_timeout_ms)
        if self.context.timer(TimerKind.TURN_LIMIT) is None:
            self.start_timer(TimerKind.TURN_LIMIT, self.policies.turn.max_turn_ms)
        self.publish(SpeechBegan(continues), turn_id=turn.turn_id)

    # -- what is heard ---------------------------------------------------------------------------------------------

    def note_speech(self) -> None:
        fact = self.fact
        assert isinstance(fact, SpeechProgressed)
        self.change_turn(speech_ms=fact.speech_ms)
        if self.turn.ended_by is None:
            self.start_timer(TimerKind.INPUT, self.policies.turn.input_timeout_ms)

    def revise_hypothesis(self) -> None:
        fact = self.fact
        assert isinstance(fact, TranscriptUpdated)
        self._replace_segment(
            Segment(fact.recognition_id, fact.segment_id, fact.revision, fact.text, False, self.context.now)
        )
        self.publish(TranscriptChanged(fact.segment_id, fact.revision, fact.text), turn_id=self.turn.turn_id)
        self._heard_something()

    def freeze_segment(self) -> None:
        self._freeze()
        self._heard_something()

    def _freeze(self) -> None:
        fact = self.fact
        assert isinstance(fact, SegmentFinalized)
        self._replace_segment(self._final_segment(fact))
        self.publish(SegmentFrozen(fact.segment_id, fact.text), turn_id=self.turn.turn_id)

    def _final_segment(self, fact: SegmentFinalized) -> Segment:
        return Segment(
            fact.recognition_id,
            fact.segment_id,
            fact.revision,
            fact.text,
            True,
            self.context.now,
            fact.start_sample,
            fact.end_sample,
        )

    def _replace_segment(self, segment: Segment) -> None:
        """In place, so that the order of speaking stays."""
        turn = self.turn
        same = [
            place
            for place, known in enumerate(turn.segments)
            if not known.is_final
            and known.recognition_id == segment.recognition_id
            and segment.segment_id in (known.segment_id, None)
        ]
        if not same:
            self.change_turn(segments=(*turn.segments, segment))
            return
        segments = list(turn.segments)
        segments[same[0]] = segment
        self.change_turn(segments=tuple(segments))

    def _heard_something(self) -> None:
        turn = self.turn
        if turn.ended_by is not None:
            return
        self.start_timer(TimerKind.INPUT, self.policies.turn.input_timeout_ms)
        if len(words_of(turn.text)) > self.policies.turn.max_turn_words:
            self.limit_reached = True
            self.decide("turn_limit_reached")

    # -- ending ----------------------------------------------------------------------------------------------------

    def await_transcript(self) -> None:
        """Ended, but not everything has been recognised."""
        self._finish_recognitions(self.policies.turn.authority)

    def exceed_turn(self) -> None:
        """The user never pauses: the turn is ended for them."""
        self._tell_limit()
        self._finish_recognitions(self.policies.turn.authority)

    def _tell_limit(self) -> None:
        """Once a turn: what comes after its end cannot exceed it."""
        by_duration = self.fired is not None and self.fired.kind is TimerKind.TURN_LIMIT
        if self.turn.ended_by is None and (by_duration or self.limit_reached):
            limit = "duration" if by_duration else "words"
            self.publish(TurnExceeded(limit), turn_id=self.turn.turn_id)

    def _finish_recognitions(self, authority: TurnAuthority) -> None:
        if self.turn.ended_by is not None:
            return
        self.change_turn(ended_by=authority)
        self.cancel_timers(TimerKind.INPUT)
        self.start_timer(TimerKind.FINALIZATION, self.policies.turn.finalization_ms)
        for recognition_id in self.turn.open_recognitions:
            self.emit(FinishRecognition(self.stamp, recognition_id))

    def tell_gap(self) -> None:
        """Audio was lost, whether or not the turn survives it."""
        fact = self.fact
        assert isinstance(fact, InputDiscontinuity)
        self.publish(StreamDiscontinuity(fact.lost_ms), turn_id=self.turn.turn_id)

    def close_recognition(self) -> None:
        fact = self.fact
        assert isinstance(fact, RecognitionClosed | RecognitionFailed)
        self._note_closed(fact.recognition_id)

    def _note_closed(self, recognition_id: str) -> None:
        self.change_turn(
            open_recognitions=tuple(known for known in self.turn.open_recognitions if known != recognition_id)
        )

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
        self._store(turn, text, authority)
        self._admit_or_queue(turn.turn_id)

    def _store(self, turn: Turn, text: str, authority: TurnAuthority) -> None:
        self.emit(StoreUserTurn(self.stamp, turn.turn_id, turn.position, text, authority, turn.revision))
        self.publish(TurnCommitted(text, authority, turn.revision), turn_id=turn.turn_id)

    def restore_turn(self) -> None:
        """The continuation came to nothing: what had been committed stands, and is answered."""
        self._leave_listening()
        turn = self.turn
        kept = turn.segments[: turn.kept_segments]
        self.context.turn = replace(turn, segments=kept, kept_segments=None, ended_by=None)
        self.settle()

    def discard_turn(self) -> None:
        reason = self.reason_of_discard
        self._leave_listening()
        self.publish(TurnDiscarded(reason), turn_id=self.turn.turn_id)
        fact = self.fact
        if isinstance(fact, RecognitionFailed):
            self.publish(StreamError(fact.error), turn_id=self.turn.turn_id)
        self.settle()

    @property
    def reason_of_discard(self) -> str:
        fact = self.fact
        if isinstance(fact, TurnCancelled):
            return fact.reason
        if isinstance(fact, RecognitionFailed):
            return fact.error.code
        if isinstance(fact, InputDiscontinuity):
            return "discontinuity"
        if self.fired is not None and self.fired.kind is TimerKind.INPUT:
            return "timed_out"
        if not self.turn_is_over():
            closing = isinstance(fact, CloseRequested) or self.is_in("closing", "closed")
            return "closed" if closing else "connection_lost"
        if not self.words_count():
            return "interjection"
        return "incomplete_transcript" if self.turn.has_open_hypothesis else "no_words"

    def _leave_listening(self) -> None:
        """The turn is not open any more: close what served it and let a held reply speak."""
        fact = self.fact
        self._tell_limit()
        if isinstance(fact, InputDiscontinuity):
            self.tell_gap()
        if isinstance(fact, RecognitionClosed | RecognitionFailed):
            self._note_closed(fact.recognition_id)
        recognizer_ended_it = isinstance(fact, TurnEnded) and bool(self.turn.open_recognitions)
        self._close_recognitions(cancel=not recognizer_ended_it)
        self.cancel_timers(TimerKind.INPUT, TimerKind.FINALIZATION, TimerKind.TURN_LIMIT)
        if not self.interruption_is_accepted():
            self.decide("floor_released")

    def _close_recognitions(self, *, cancel: bool) -> None:
        """Cancelled ones are over for the chart; finished ones may still bring a late segment."""
        turn = self.context.turn
        if turn is None or not turn.open_recognitions:
            return
        for recognition_id in turn.open_recognitions:
            kind = CancelRecognition if cancel else FinishRecognition
            self.emit(kind(self.stamp, recognition_id))
        if cancel:
            self.change_turn(open_recognitions=())

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

    def fall_back_to_recording(self) -> None:
        """The live recognition failed; the bounded recording is transcribed as a whole instead, and that is said."""
        fact = self.fact
        assert isinstance(fact, RecognitionFailed)
        recognition_id = self.mint("recognition")
        turn = self.turn
        others = tuple(known for known in turn.open_recognitions if known != fact.recognition_id)
        kept = tuple(s for s in turn.segments if s.recognition_id != fact.recognition_id)
        self.change_turn(
            used_fallback=True,
            segments=kept,
            recognitions=(*turn.recognitions, recognition_id),
            open_recognitions=(*others, recognition_id),
        )
        self.emit(TranscribeRecording(self.stamp, turn.turn_id, fact.recognition_id, recognition_id))
        if turn.ended_by is not None:
            self.start_timer(TimerKind.FINALIZATION, self.policies.turn.finalization_ms)
            self.emit(FinishRecognition(self.stamp, recognition_id))
        self.publish(FallbackStarted(fact.recorded_ms, fact.error), turn_id=turn.turn_id)

    def join_late_segment(self) -> None:
        """A second final of the same utterance: the same turn, one answer."""
        self._freeze()
        turn = replace(self.turn, revision=self.turn.revision + 1)
        self.context.turn = turn
        self._store(turn, turn.final_text, turn.authority)
        self._admit_or_queue(turn.turn_id)

    def carry_segment(self) -> None:
        """Too late to join: it begins the next turn."""
        fact = self.fact
        assert isinstance(fact, SegmentFinalized)
        self.context.carried = (*self.context.carried, self._final_segment(fact))

    def commit_text(self) -> None:
        self._close_recognitions(cancel=True)
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
