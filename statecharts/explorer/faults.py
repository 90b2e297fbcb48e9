"""Seeded faults: charts that are broken on purpose, one guard or action each, to prove that the checks see it.

A check that finds nothing may be a check that looks at nothing. Every fault here is a mistake that a plausible change
could make; `find_faults` must find each of them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from ..actions import Action, CancelTimer, StopPlayback
from ..context import Announcement, PendingTurn, TimerKind
from ..conversation import ConversationChart
from ..facts import AttemptFact, OutputFact, TurnEnded
from ..values import DeliveryStatus, Outcome, PositionSource


class EpochNotMoved(ConversationChart):
    def invalidate_output(self, reason: str) -> None:
        self.context.output_epoch -= 1
        super().invalidate_output(reason)


class SessionEpochNotMoved(ConversationChart):
    def step_epochs(self) -> None:
        self.context.session_epoch -= 1
        super().step_epochs()


class CancelTakenForAcknowledgement(ConversationChart):
    def cancel_reply(self) -> None:
        super().cancel_reply()
        self._end(Outcome.CANCELLED, self.reply.reason)


class HalfBargeIn(ConversationChart):
    def decide(self, event: str) -> None:
        if event != "interrupted":
            super().decide(event)


class SilenceLast(ConversationChart):
    def emit(self, action: Action) -> None:
        if not isinstance(action, StopPlayback):
            super().emit(action)


class HypothesisCommitted(ConversationChart):
    def has_whole_text(self) -> bool:
        return bool(self.turn.text)

    def commit_turn(self) -> None:
        self._leave_listening()
        self._commit(replace(self.turn, kept_segments=None), self.turn.text, self.turn.authority)


class HypothesisFrozen(ConversationChart):
    def revise_hypothesis(self) -> None:
        super().revise_hypothesis()
        segments = self.turn.segments
        self.change_turn(segments=tuple(replace(segment, is_final=True) for segment in segments))


class ForeignAuthorityCommits(ConversationChart):
    def is_from_the_authority(self) -> bool:
        return isinstance(self.fact, TurnEnded)


class CommittedBeforeAllIsHeard(ConversationChart):
    def turn_is_over(self) -> bool:
        return super().turn_is_over() or (self.is_in("speech", "hypothesis") and self.is_from_the_authority())


class PendingTurnLost(ConversationChart):
    def requeue_reply(self) -> None:
        """Forget it."""


class PendingTurnReplacedInSilence(ConversationChart):
    def _admit_or_queue(self, turn_id: str) -> None:
        self.context.pending = PendingTurn((turn_id,))
        self.decide("turn_admitted")


class DroppedInSilence(ConversationChart):
    def drop_pending(self, reason: str) -> None:
        self.context.pending = None


class AdmittedWhileCancelling(ConversationChart):
    def cancel_reply(self) -> None:
        super().cancel_reply()
        if self.context.pending is not None:
            self.start_reply()


class AdmittedTooEarly(ConversationChart):
    def may_start_reply(self) -> bool:
        return self.context.pending is not None


class DispatchedTwice(ConversationChart):
    def is_new_call(self) -> bool:
        return True


class UncheckedCallRuns(ConversationChart):
    def call_may_run(self) -> bool:
        return True


class CallForgotten(ConversationChart):
    def cancel_calls(self) -> None:
        self.change_reply(tools=tuple(call for call in self.reply.tools if call.background))


class RetriedAfterOutput(ConversationChart):
    def may_retry(self) -> bool:
        return self.reply.attempts < self.policies.generation.max_attempts


class StaleAttemptAccepted(ConversationChart):
    def is_this_attempt(self) -> bool:
        return isinstance(self.fact, AttemptFact) and self.context.response is not None


class StaleAudioAccepted(ConversationChart):
    def is_of_the_reply(self) -> bool:
        reply = self.context.response
        return isinstance(self.fact, OutputFact) and reply is not None and reply.delivery is None


class ReceiptsOverclaimed(ConversationChart):
    def record_delivery(
        self,
        response_id: str,
        position: int,
        status: DeliveryStatus,
        units: int,
        played_samples: int | None,
        source: PositionSource,
        confidence: float,
        announcement: Announcement | None,
    ) -> None:
        reply = self.context.response
        said = len(reply.units) if reply is not None and reply.response_id == response_id else units
        super().record_delivery(response_id, position, status, said, played_samples, source, confidence, announcement)


class UnheardCountedAsDelivered(ConversationChart):
    def record_unheard(self, status: DeliveryStatus) -> None:
        super().record_unheard(DeliveryStatus.DELIVERED)


class DeliveredTwice(ConversationChart):
    def deliver(self) -> None:
        super().deliver()
        self.record_unheard(DeliveryStatus.DELIVERED)


class DeliveryForgotten(ConversationChart):
    def settle_without_receipt(self) -> None:
        stream_id = self.stream_in_question
        self.context.stopping = tuple(known for known in self.context.stopping if known.stream_id != stream_id)


class PlayingBeforeRendered(ConversationChart):
    def something_was_rendered(self) -> bool:
        return True

    def take_position(self) -> None:
        if self.is_in("draining"):
            super().take_position()


class TimerNeverCancelled(ConversationChart):
    def cancel_timers(self, *kinds: TimerKind) -> None:
        super().cancel_timers(*(kind for kind in kinds if kind is not TimerKind.CANCEL_ACK))


class CancelOfTimerForgotten(ConversationChart):
    def emit(self, action: Action) -> None:
        if not isinstance(action, CancelTimer):
            super().emit(action)


class NoDeadlineForTheTranscript(ConversationChart):
    def start_timer(self, kind: TimerKind, delay_ms: int, key: str = "") -> None:
        if kind is not TimerKind.FINALIZATION:
            super().start_timer(kind, delay_ms, key)


class HeldForEver(ConversationChart):
    def is_held(self) -> bool:
        return False


class WatchedForEver(ConversationChart):
    def output_is_broken(self) -> bool:
        return False


class MicrophoneHearsSpeaker(ConversationChart):
    def microphone_is_admitted(self) -> bool:
        return not self.is_in("closing", "closed")


class PlaceInHistoryReused(ConversationChart):
    def next_position(self) -> int:
        return max(self.context.positions, 1)


class ClosedTooEarly(ConversationChart):
    def everything_rests(self) -> bool:
        return True

    def abandon_calls(self) -> None:
        """Leave them."""


class Unacknowledged(ConversationChart):
    def abandon_cancel(self) -> None:
        self._end(Outcome.CANCELLED, self.reply.reason)


class AnnouncementTalksOverTheUser(ConversationChart):
    def may_announce(self) -> bool:
        return bool(self.context.announcements) and self.is_in("ready") and self.context.reply_is_over


class AnnouncementForgotten(ConversationChart):
    def drop_announcements(self, reason: str) -> None:
        self.context.announcements = ()


class LateTranscriptAsksAgain(ConversationChart):
    def amend_turn(self) -> None:
        super().amend_turn()
        self._admit_or_queue(self.turn.turn_id)


@dataclass(frozen=True, slots=True)
class SeededFault:
    """A broken chart, and what is wrong with it."""

    definition: type[ConversationChart]
    what: str

    @property
    def name(self) -> str:
        return self.definition.__name__


SEEDED_FAULTS: tuple[SeededFault, ...] = (
    SeededFault(EpochNotMoved, "an interruption leaves the output epoch where it was"),
    SeededFault(SessionEpochNotMoved, "a lost session leaves the session epoch where it was"),
    SeededFault(CancelTakenForAcknowledgement, "asking the model to end counts as its having ended"),
    SeededFault(HalfBargeIn, "the epoch moves, and neither Playback nor Generation go along"),
    SeededFault(SilenceLast, "nobody tells the speaker to stop"),
    SeededFault(HypothesisFrozen, "a hypothesis counts as final"),
    SeededFault(ForeignAuthorityCommits, "any authority ends the turn"),
    SeededFault(CommittedBeforeAllIsHeard, "a turn is committed while its recognition has more to say"),
    SeededFault(PendingTurnLost, "the turn of a reply that was taken back is forgotten"),
    SeededFault(PendingTurnReplacedInSilence, "a turn that waits is replaced, and nobody is told"),
    SeededFault(DroppedInSilence, "turns that wait at the end are dropped, and nobody is told"),
    SeededFault(AdmittedWhileCancelling, "the next reply begins before the former one is acknowledged"),
    SeededFault(AdmittedTooEarly, "a reply begins whenever a turn waits"),
    SeededFault(DispatchedTwice, "a call that is repeated runs again"),
    SeededFault(UncheckedCallRuns, "incomplete, invalid and unapproved calls run"),
    SeededFault(RetriedAfterOutput, "an attempt is retried after something was visible"),
    SeededFault(StaleAttemptAccepted, "facts of dead attempts count"),
    SeededFault(StaleAudioAccepted, "audio of a dead epoch is let in"),
    SeededFault(ReceiptsOverclaimed, "all that was said counts as heard"),
    SeededFault(UnheardCountedAsDelivered, "a reply that nobody heard counts as delivered"),
    SeededFault(DeliveredTwice, "a reply gets two delivery records"),
    SeededFault(DeliveryForgotten, "without a receipt there is no delivery record"),
    SeededFault(PlayingBeforeRendered, "playing is claimed before a sample was rendered"),
    SeededFault(TimerNeverCancelled, "the deadline of an acknowledgement survives the acknowledgement"),
    SeededFault(CancelOfTimerForgotten, "timers are forgotten, and go on"),
    SeededFault(NoDeadlineForTheTranscript, "an ended turn waits for its transcript without a deadline"),
    SeededFault(WatchedForEver, "a speaker that broke is waited for"),
    SeededFault(PlaceInHistoryReused, "two entries of the history stand in one place"),
    SeededFault(Unacknowledged, "a cancel that timed out is told as acknowledged"),
    SeededFault(CallForgotten, "a cancelled call never gets an outcome"),
    SeededFault(HeldForEver, "held audio is never released"),
    SeededFault(ClosedTooEarly, "closed is reached before anything has come to rest"),
    SeededFault(AnnouncementTalksOverTheUser, "an announcement begins while the user speaks or waits for an answer"),
    SeededFault(AnnouncementForgotten, "announcements that wait at the end are dropped, and nobody is told"),
    SeededFault(LateTranscriptAsksAgain, "a transcript of what the model heard already is answered a second time"),
    SeededFault(MicrophoneHearsSpeaker, "a board without echo cancellation listens to itself"),
    SeededFault(HypothesisCommitted, "a turn is committed with words that may still change"),
)
"""The hardest to see last."""
