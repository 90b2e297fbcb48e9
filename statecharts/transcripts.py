"""Transcripts of what a model has heard by itself.

A model that hears the audio needs no transcript to answer: a turn is committed when it ends, and its words may be known
later, when the reply is being spoken already or the next turn has begun. A transcript then amends the turn it belongs
to; it asks nothing again, and a failed one takes nothing back.
"""

from __future__ import annotations

from dataclasses import replace

from .actions import StoreUserTurn
from .context import Turn
from .facts import RecognitionClosed, RecognitionFailed, SegmentFinalized
from .published import StreamError, TurnCommitted
from .utterance import UtteranceRules
from .values import TurnAuthority

MAX_UNTRANSCRIBED = 4
"""So many former turns may still get their transcript; an older one stays as it is."""


class TranscriptRules(UtteranceRules):
    """Storing turns, now or with words that come late, for the lines of `input_turn.py`."""

    def store_turn(self, turn: Turn, text: str, authority: TurnAuthority) -> None:
        self.emit(StoreUserTurn(self.stamp, turn.turn_id, turn.position, text, authority, turn.revision))
        self.publish(TurnCommitted(text, authority, turn.revision), turn_id=turn.turn_id)

    def keep_untranscribed(self) -> None:
        """A new turn begins; the last one may still get its words."""
        former = self.context.turn
        if former is not None and former.revision and former.open_recognitions:
            self.context.untranscribed = (*self.context.untranscribed, former)[-MAX_UNTRANSCRIBED:]

    def go_without_transcript(self) -> None:
        """The model has heard what nobody could write down."""
        fact = self.fact
        assert isinstance(fact, RecognitionFailed)
        self.note_closed(fact.recognition_id)
        self.publish(StreamError(fact.error), turn_id=self.turn.turn_id)

    def amend_turn(self) -> None:
        """What the model answers already is written down now; nothing is asked again."""
        self.freeze()
        turn = replace(self.turn, revision=self.turn.revision + 1)
        self.context.turn = turn
        self.store_turn(turn, turn.final_text, turn.authority)

    def amend_former_turn(self) -> None:
        fact = self.fact
        assert isinstance(fact, SegmentFinalized)
        former = self._former_turn(fact.recognition_id)
        if any(s.segment_id == fact.segment_id and s.is_final for s in former.segments):
            return
        others = tuple(s for s in former.segments if s.segment_id != fact.segment_id)
        amended = replace(former, segments=(*others, self.final_segment(fact)), revision=former.revision + 1)
        self.context.untranscribed = tuple(
            amended if known is former else known for known in self.context.untranscribed
        )
        self.store_turn(amended, amended.final_text, amended.authority)

    def forget_former_turn(self) -> None:
        """Its transcript is complete, or will never be."""
        fact = self.fact
        assert isinstance(fact, RecognitionClosed | RecognitionFailed)
        former = self._former_turn(fact.recognition_id)
        self.context.untranscribed = tuple(known for known in self.context.untranscribed if known is not former)

    def _former_turn(self, recognition_id: str) -> Turn:
        return next(turn for turn in self.context.untranscribed if recognition_id in turn.open_recognitions)
