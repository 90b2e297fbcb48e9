"""The utterance of an open turn: its recognitions, its segments and their revisions, and how it is waited for.

A recognition is asked for, finished and cancelled here. What is heard replaces what was heard before of the same
segment, until the segment is final.
"""

from __future__ import annotations

from .actions import CancelRecognition, FinishRecognition, StartRecognition, TranscribeRecording
from .context import Segment, TimerKind
from .errors import ErrorScope, ScopedError
from .facts import (
    CloseRequested,
    InputDiscontinuity,
    RecognitionClosed,
    RecognitionFailed,
    SegmentFinalized,
    SpeechProgressed,
    TranscriptUpdated,
    TurnCancelled,
)
from .policies import words_of
from .published import (
    FallbackStarted,
    SegmentFrozen,
    SpeechBegan,
    StreamDiscontinuity,
    StreamError,
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
        """In place, so that the order of speaking stays; a new one behind those of earlier recognitions."""
        turn = self.turn
        same = [
            place
            for place, known in enumerate(turn.segments)
            if not known.is_final
            and known.recognition_id == segment.recognition_id
            and segment.segment_id in (known.segment_id, None)
        ]
        segments, kept = list(turn.segments), turn.kept_segments
        if same:
            segments[same[0]] = segment
        else:
            segments.insert(self._place_of(segment), segment)
            if kept is not None and self.served_before(segment.recognition_id):
                kept += 1
        _sort_by_time(segments, segment.recognition_id)
        self.change_turn(segments=tuple(segments), kept_segments=kept)

    def _place_of(self, segment: Segment) -> int:
        """Before what a later recognition heard."""
        order = {recognition_id: place for place, recognition_id in enumerate(self.turn.recognitions)}
        mine = order.get(segment.recognition_id, -1)
        later = (place for place, known in enumerate(self.turn.segments) if order.get(known.recognition_id, -1) > mine)
        return next(later, len(self.turn.segments))

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
            self.change_turn(exceeded=True)
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
        if isinstance(fact, RecognitionFailed) and not self.is_in("closed"):
            # Of a committed turn: what was still to come of it will not.
            self.publish(StreamError(fact.error), turn_id=self.turn.turn_id)

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
        if self.served_before(fact.recognition_id):
            # Its words stand as they were committed; transcribed anew they would be there twice.
            self.close_recognition()
            return
        recognition_id = self.mint("recognition")
        turn = self.turn
        others = tuple(known for known in turn.open_recognitions if known != fact.recognition_id)
        kept = tuple(s for s in turn.segments if s.recognition_id != fact.recognition_id)
        # It hears what the failed one was to hear, so it stands where that one stood.
        place = turn.recognitions.index(fact.recognition_id) + 1
        self.change_turn(
            used_fallback=True,
            segments=kept,
            recognitions=(*turn.recognitions[:place], recognition_id, *turn.recognitions[place:]),
            open_recognitions=(*others, recognition_id),
        )
        self.emit(TranscribeRecording(self.stamp, turn.turn_id, fact.recognition_id, recognition_id))
        if turn.ended_by is not None:
            self.start_timer(TimerKind.FINALIZATION, self.policies.turn.finalization_ms)
            self.emit(FinishRecognition(self.stamp, recognition_id))
        self.publish(FallbackStarted(fact.recorded_ms, fact.error), turn_id=turn.turn_id)

    # -- what is lost -------------------------------------------------------------------------------------------------

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

    def tell_lost(self, reason: str, has_words: bool) -> None:
        """Words of a continuation are not dropped in silence."""
        fact = self.fact
        if isinstance(fact, RecognitionFailed):
            self.publish(StreamError(fact.error), turn_id=self.turn.turn_id)
        elif reason == "discontinuity" or (has_words and reason in ("incomplete_transcript", "timed_out")):
            message = "what was said last was not understood; the turn stands as it was committed before"
            error = ScopedError("continuation_lost", "recognition", ErrorScope.TURN, message, retryable=True)
            self.publish(StreamError(error), turn_id=self.turn.turn_id)


def _sort_by_time(segments: list[Segment], recognition_id: str) -> None:
    """Finals of one recognition in the order of speaking, where it told their times; the others keep their places."""
    timed = [
        place
        for place, known in enumerate(segments)
        if known.recognition_id == recognition_id and known.start_sample is not None
    ]
    in_order = sorted((segments[place] for place in timed), key=lambda segment: segment.start_sample or 0)
    for place, segment in zip(timed, in_order, strict=True):
        segments[place] = segment
