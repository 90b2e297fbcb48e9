"""The utterance of an open turn: its recognitions, its segments and their revisions, and how it is waited for.

A recognition is asked for, finished and cancelled here. What is heard replaces what was heard before of the same
segment, until the segment is final.
"""

from __future__ import annotations

from .actions import CancelRecognition, FinishRecognition, StartRecognition, TranscribeRecording
from .context import Segment, TimerKind
from .facts import (
    InputDiscontinuity,
    RecognitionClosed,
    RecognitionFailed,
    SegmentFinalized,
    SpeechProgressed,
    TranscriptUpdated,
)
from .policies import words_of
from .published import (
    FallbackStarted,
    SegmentFrozen,
    SpeechBegan,
    StreamDiscontinuity,
    TranscriptChanged,
    TurnExceeded,
)
from .turn_guards import TurnGuards
from .values import TurnAuthority


class UtteranceRules(TurnGuards):
    """Actions on what the user is saying; what becomes of it `input_turn.py` decides."""

    def begin_listening(self, sample: int | None, *, continues: bool) -> None:
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

    def note_speech(self) -> None:
        fact = self.fact
        assert isinstance(fact, SpeechProgressed)
        self.change_turn(speech_ms=fact.speech_ms)
        if self.turn.ended_by is None:
            self.start_timer(TimerKind.INPUT, self.policies.turn.input_timeout_ms)

    def revise_hypothesis(self) -> None:
        fact = self.fact
        assert isinstance(fact, TranscriptUpdated)
        self.replace_segment(
            Segment(fact.recognition_id, fact.segment_id, fact.revision, fact.text, False, self.context.now)
        )
        self.publish(TranscriptChanged(fact.segment_id, fact.revision, fact.text), turn_id=self.turn.turn_id)
        self.heard_something()

    def freeze_segment(self) -> None:
        self.freeze()
        self.heard_something()

    def freeze(self) -> None:
        fact = self.fact
        assert isinstance(fact, SegmentFinalized)
        self.replace_segment(self.final_segment(fact))
        self.publish(SegmentFrozen(fact.segment_id, fact.text), turn_id=self.turn.turn_id)

    def final_segment(self, fact: SegmentFinalized) -> Segment:
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

    def replace_segment(self, segment: Segment) -> None:
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

    def heard_something(self) -> None:
        turn = self.turn
        if turn.ended_by is not None:
            return
        self.start_timer(TimerKind.INPUT, self.policies.turn.input_timeout_ms)
        if len(words_of(turn.text)) > self.policies.turn.max_turn_words:
            self.limit_reached = True
            self.decide("turn_limit_reached")

    def await_transcript(self) -> None:
        """Ended, but not everything has been recognised."""
        self.finish_recognitions(self.policies.turn.authority)

    def exceed_turn(self) -> None:
        """The user never pauses: the turn is ended for them."""
        self.tell_limit()
        self.finish_recognitions(self.policies.turn.authority)

    def tell_limit(self) -> None:
        """Once a turn: what comes after its end cannot exceed it."""
        by_duration = self.fired is not None and self.fired.kind is TimerKind.TURN_LIMIT
        if self.turn.ended_by is None and (by_duration or self.limit_reached):
            limit = "duration" if by_duration else "words"
            self.publish(TurnExceeded(limit), turn_id=self.turn.turn_id)

    def finish_recognitions(self, authority: TurnAuthority) -> None:
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
        self.note_closed(fact.recognition_id)

    def note_closed(self, recognition_id: str) -> None:
        self.change_turn(
            open_recognitions=tuple(known for known in self.turn.open_recognitions if known != recognition_id)
        )

    def close_recognitions(self, *, cancel: bool) -> None:
        """Cancelled ones are over for the chart; finished ones may still bring a late segment."""
        turn = self.context.turn
        if turn is None or not turn.open_recognitions:
            return
        for recognition_id in turn.open_recognitions:
            kind = CancelRecognition if cancel else FinishRecognition
            self.emit(kind(self.stamp, recognition_id))
        if cancel:
            self.change_turn(open_recognitions=())

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
