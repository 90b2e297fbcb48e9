"""The guards of the InputTurn region: what may become of a turn, and when.

Each is a question about the fact at hand and the context, and changes nothing.
"""

from __future__ import annotations

from dataclasses import replace

from .connection import ConnectionRules
from .context import Segment, TimerKind, Turn, join_texts
from .facts import (
    InputDiscontinuity,
    RecognitionClosed,
    RecognitionFailed,
    SegmentFinalized,
    SpeechStarted,
    TextSubmitted,
    TranscriptUpdated,
    TurnEnded,
)
from .policies import Verdict
from .values import TurnAuthority


class TurnGuards(ConnectionRules):
    """The questions that the lines of `input_turn.py` ask."""

    limit_reached: bool
    """In this macrostep the turn grew beyond the words that it may have."""

    @property
    def turn(self) -> Turn:
        turn = self.context.turn
        assert turn is not None
        return turn

    def change_turn(self, **changes: object) -> None:
        self.context.turn = replace(self.turn, **changes)  # pyright: ignore[reportArgumentType]

    def microphone_is_admitted(self) -> bool:
        """Not after closing began; not while the speaker plays without validated echo cancellation; one authority."""
        fact = self.fact
        manual = self.policies.turn.authority is TurnAuthority.MANUAL
        if isinstance(fact, SpeechStarted) and (fact.authority is TurnAuthority.MANUAL) != manual:
            return False
        if self.is_in("closing", "closed"):
            return False
        return self.policies.interruption.full_duplex or manual or not self.reply_is_audible

    def speaker_has_the_floor(self) -> bool:
        """Somebody began to speak while the microphone is shut because the reply is heard."""
        fact = self.fact
        manual = self.policies.turn.authority is TurnAuthority.MANUAL
        by_voice = isinstance(fact, SpeechStarted) and fact.authority is not TurnAuthority.MANUAL
        return by_voice and not manual and self.reply_is_audible and not self.is_in("closing", "closed")

    def onset_was_refused(self) -> bool:
        """Who began to speak then may be speaking still."""
        return self.context.onset_refused

    def continues_committed_turn(self) -> bool:
        """Inside the window, and nothing that hangs on the committed text can still be taken for done."""
        turn = self.turn
        if turn.committed_at is None or turn.authority is TurnAuthority.CLIENT or turn.exceeded:
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
        """It waits for its transcript, and may still go on: no limit ended it."""
        return self.turn.ended_by is not None and not self.turn.exceeded and self.microphone_is_admitted()

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
        """A final without identity that says again what one said about the same audio, or what the last one said."""
        finals = [segment for segment in said if segment.is_final and segment.recognition_id == fact.recognition_id]
        audio = (fact.start_sample, fact.end_sample)
        same = [
            known for known in finals if known.text == fact.text and (known.start_sample, known.end_sample) == audio
        ]
        if fact.start_sample is not None or not same:
            return bool(same)
        # Without a position "no" may be said a second time: an open hypothesis says that it was.
        said_again = any(segment.text.strip() and not segment.is_final for segment in said)
        return same[-1] is finals[-1] and not said_again

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
        """Nothing more will be recognised, or the one recogniser left says so itself with its last segment frozen."""
        if not turn.open_recognitions or self.hears_itself():
            return True
        by_recognizer = isinstance(self.fact, TurnEnded) and self.fact.authority is TurnAuthority.RECOGNIZER
        return by_recognizer and len(turn.open_recognitions) == 1 and self.has_whole_text()

    def has_whole_text(self) -> bool:
        """There are new words, and none is still a hypothesis; or the model heard the turn as it was spoken."""
        turn = self.turn
        if self.hears_itself():
            return True
        new = join_texts(s.text for s in turn.segments[turn.kept_segments or 0 :] if s.is_final)
        return bool(new) and not turn.has_open_hypothesis

    def words_count(self) -> bool:
        """The interruption policy did not dismiss these words as a backchannel to the reply being heard."""
        judgement = self.judgement
        return judgement is None or judgement.verdict is not Verdict.DISMISSED

    def was_committed(self) -> bool:
        """The turn was reopened: what had been committed is owed an answer."""
        return self.turn.kept_segments is not None

    def hears_itself(self) -> bool:
        """The model hears the audio: a transcript only tells what it has heard."""
        return self.context.capabilities.native_audio

    def may_be_amended(self) -> bool:
        """Words come late for what the model heard by itself."""
        return self.hears_itself() and not self.is_in("closed")

    def concerns_former_turn(self) -> bool:
        """Of a turn before the present one whose transcript was still to come."""
        fact = self.fact
        assert isinstance(fact, SegmentFinalized | RecognitionClosed | RecognitionFailed)
        return any(fact.recognition_id in turn.open_recognitions for turn in self.context.untranscribed)

    def is_open_recognition(self) -> bool:
        fact, turn = self.fact, self.context.turn
        return (
            isinstance(fact, RecognitionClosed | RecognitionFailed)
            and turn is not None
            and fact.recognition_id in turn.open_recognitions
        )

    def may_fall_back(self) -> bool:
        """The whole utterance is still held, within the bound, and this was not tried before; or it need not be."""
        fact = self.fact
        assert isinstance(fact, RecognitionFailed)
        if self.served_before(fact.recognition_id):
            return True
        return 0 < fact.recorded_ms <= self.policies.turn.max_fallback_ms and not self.turn.used_fallback

    def served_before(self, recognition_id: str) -> bool:
        """What it heard was committed before the turn was reopened."""
        turn = self.turn
        return turn.kept_segments is not None and recognition_id in turn.recognitions[: turn.kept_recognitions]

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
