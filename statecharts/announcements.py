"""Announcements: texts that are said as they are, by the same rules as replies.

An announcement waits until the speaker is free, the user does not have the floor and no turn waits for its answer: a
reply to the user comes first. One that *interrupts* goes before all that; whether it may silence a reply that is being
heard the interruption policy decides, as it does of any client. Once it is being said it is a reply like any other - it
can be interrupted, it gets one delivery record - and like a reply it waits again when it was taken back unheard, a
bounded number of times. Each has exactly one outcome.
"""

from __future__ import annotations

from .actions import StartAnnouncement
from .context import Announcement, Response, TimerKind
from .facts import SayRequested, SayWithdrawn
from .published import AnnouncementBegan
from .tool_rules import ToolRules
from .values import AnnouncementOutcome, Outcome


class AnnouncementRules(ToolRules):
    """Guards and actions about announcements, for the lines of `generation.py`."""

    # -- guards ----------------------------------------------------------------------------------------------------

    def announcement_is_admitted(self) -> bool:
        """New, with something to say, while the conversation lives, and there is room."""
        return self.announcement_is_new and not self.reason_of_refusal

    def announcement_is_refused(self) -> bool:
        """New, and nothing will come of it; a repetition is no news at all, and when all is closed nothing is."""
        return not self.is_in("closed") and self.announcement_is_new and bool(self.reason_of_refusal)

    @property
    def announcement_is_new(self) -> bool:
        fact = self.fact
        assert isinstance(fact, SayRequested)
        return fact.number > self.context.last_announcement

    @property
    def reason_of_refusal(self) -> str:
        fact = self.fact
        assert isinstance(fact, SayRequested)
        if self.is_in("closing", "closed"):
            return "closed"
        if not fact.text.strip():
            return "nothing_to_say"
        return "too_many" if len(self.context.announcements) >= self.policies.playback.max_announcements else ""

    def announcement_waits(self) -> bool:
        fact = self.fact
        assert isinstance(fact, SayWithdrawn)
        return any(waiting.number == fact.number for waiting in self.context.announcements)

    @property
    def announcement_comes_first(self) -> bool:
        """One that interrupts goes before turns that wait."""
        waiting = self.context.announcements
        return bool(waiting) and waiting[0].interrupts

    def may_announce(self) -> bool:
        """The session is ready and the former reply is over; ordinary ones let the user and their answer go first."""
        if not self.context.announcements or not self.is_in("ready") or not self.context.reply_is_over:
            return False
        user_is_served = self.context.pending is None and not self.is_in("speech", "hypothesis")
        return self.announcement_comes_first or user_is_served

    # -- actions ---------------------------------------------------------------------------------------------------

    def queue_announcement(self) -> None:
        self.wait_to_say(self._requested_announcement())
        self.decide("say_admitted")

    def refuse_announcement(self) -> None:
        self.settle_announcement(self._requested_announcement(), AnnouncementOutcome.DROPPED, self.reason_of_refusal)

    def _requested_announcement(self) -> Announcement:
        fact = self.fact
        assert isinstance(fact, SayRequested)
        self.context.last_announcement = fact.number
        return Announcement(fact.number, fact.text, fact.interrupts, fact.interruptible, fact.recorded)

    def withdraw_announcement(self) -> None:
        fact = self.fact
        assert isinstance(fact, SayWithdrawn)
        withdrawn = next(known for known in self.context.announcements if known.number == fact.number)
        self.context.announcements = tuple(known for known in self.context.announcements if known is not withdrawn)
        self.settle_announcement(withdrawn, AnnouncementOutcome.DROPPED, "withdrawn")
        self.settle()

    def start_announcement(self) -> None:
        """Its text is complete from the beginning; what is bounded is the wait for its first audio."""
        announcement, *waiting = self.context.announcements
        self.context.announcements = tuple(waiting)
        self.leave_former_calls()
        self.context.response = reply = Response(
            run_id=self.mint("run"),
            response_id=self.mint("response"),
            attempt_id=self.mint("attempt"),
            turn_ids=(),
            output_epoch=self.context.output_epoch,
            position=self.next_position(),
            restarts=announcement.restarts,
            interruptible=announcement.interruptible and self.policies.interruption.interruptible,
            step_open=False,
            output_started=True,
            outcome=Outcome.COMPLETED,
            announcement=announcement,
        )
        self.start_timer(TimerKind.SPEECH, self.policies.generation.first_audio_ms)
        self.emit(
            StartAnnouncement(
                self.stamp,
                announcement.number,
                reply.run_id,
                reply.response_id,
                announcement.text,
                reply.output_epoch,
                reply.position,
                announcement.recorded,
            )
        )
        self.publish(AnnouncementBegan(announcement.number, not announcement.recorded), reply=reply)
