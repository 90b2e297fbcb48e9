"""What all regions of the conversation share: the context, minting, timers, publishing, and the delivery record."""

from __future__ import annotations

from dataclasses import replace

from .actions import CancelTimer, Publish, RecordDelivery, SettleAnnouncement, Stamp, StartTimer
from .chart import ChartDefinition, Selection
from .context import Announcement, Context, Output, Response, Timer, TimerKind, UnitRange
from .identity import IdSource
from .policies import Policies
from .published import AnnouncementEnded, DeliveryRecorded, Payload
from .values import AnnouncementOutcome, DeliveryStatus, PositionSource


class Rules(ChartDefinition):
    """Base of the rules of each region. Guards take nothing and answer bool; actions take and return nothing."""

    context: Context

    def __init__(self, context: Context, policies: Policies, ids: IdSource, selection: Selection = "indexed") -> None:
        self.policies = policies
        self.ids = ids
        self.fired: Timer | None = None
        super().__init__(context, selection)

    # -- vocabulary ------------------------------------------------------------------------------------------------

    @property
    def stamp(self) -> Stamp:
        """The epochs in force."""
        return Stamp(self.context.session_epoch, self.context.output_epoch)

    @property
    def reply(self) -> Response:
        """The response, where a guard has made sure that there is one."""
        response = self.context.response
        assert response is not None
        return response

    @property
    def output(self) -> Output:
        """The output stream, where a guard has made sure that there is one."""
        output = self.context.output
        assert output is not None
        return output

    def is_in(self, *leaves: str) -> bool:
        """Whether one of these leaf states is active, as of the start of the microstep."""
        active = self.leaves
        return any(leaf in active for leaf in leaves)

    def mint(self, kind: str) -> str:
        """A new identity."""
        self.context.minted += 1
        return self.ids.mint(kind, self.context.minted)

    def next_position(self) -> int:
        """The next place in the history."""
        self.context.positions += 1
        return self.context.positions

    def change_reply(self, **changes: object) -> None:
        self.context.response = replace(self.reply, **changes)  # pyright: ignore[reportArgumentType]

    def change_output(self, **changes: object) -> None:
        self.context.output = replace(self.output, **changes)  # pyright: ignore[reportArgumentType]

    # -- timers ----------------------------------------------------------------------------------------------------

    def start_timer(self, kind: TimerKind, delay_ms: int, key: str = "") -> None:
        """Start a timer; a running one of the same kind and key is superseded."""
        self.cancel_timer(kind, key)
        timer = Timer(self.mint("timer"), kind, key)
        self.context.timers = (*self.context.timers, timer)
        self.emit(StartTimer(self.stamp, timer.timer_id, kind, delay_ms))

    def cancel_timer(self, kind: TimerKind, key: str = "") -> None:
        timer = self.context.timer(kind, key)
        if timer is not None:
            self._forget_timer(timer)

    def cancel_timers(self, *kinds: TimerKind) -> None:
        """Cancel every timer of these kinds, whatever its key."""
        for timer in self.context.timers:
            if timer.kind in kinds:
                self._forget_timer(timer)

    def _forget_timer(self, timer: Timer) -> None:
        self.context.timers = tuple(known for known in self.context.timers if known is not timer)
        started_now = next(
            (a for a in self.emitted if isinstance(a, StartTimer) and a.timer_id == timer.timer_id), None
        )
        if started_now is not None:
            self.emitted.remove(started_now)
        else:
            self.emit(CancelTimer(self.stamp, timer.timer_id))

    # -- telling ---------------------------------------------------------------------------------------------------

    def publish(
        self,
        payload: Payload,
        *,
        turn_id: str | None = None,
        reply: Response | None = None,
        stream_id: int | None = None,
        call_id: str | None = None,
    ) -> None:
        """Publish with the identities that the payload speaks of."""
        self.emit(
            Publish(
                self.stamp,
                payload,
                turn_id=turn_id,
                run_id=reply.run_id if reply else None,
                response_id=reply.response_id if reply else None,
                attempt_id=reply.attempt_id if reply else None,
                stream_id=stream_id,
                call_id=call_id,
            )
        )

    def settle(self) -> None:
        """Something came to rest: whoever waited for that may go on. Guards decide whether anyone may."""
        if self.context.pending is not None:
            self.decide("turn_admitted")
        if self.context.announcements:
            self.decide("say_admitted")
        if self.is_in("closing"):
            self.decide("region_rested")

    # -- delivery --------------------------------------------------------------------------------------------------

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
        """The one delivery record of a response."""
        context = self.context
        reply = context.response
        if reply is not None and reply.response_id == response_id:
            context.response = replace(reply, delivery=status)
        self.emit(
            RecordDelivery(
                self.stamp, response_id, position, status, units, played_samples, source, confidence, context.now
            )
        )
        self.emit(Publish(self.stamp, DeliveryRecorded(status, units, played_samples, source), response_id=response_id))
        if announcement is not None:
            self._settle_said(announcement, status, played_samples)

    def _settle_said(self, announcement: Announcement, status: DeliveryStatus, played_samples: int | None) -> None:
        """Of an unknown position something may have been heard."""
        if status is DeliveryStatus.DELIVERED:
            self.settle_announcement(announcement, AnnouncementOutcome.PLAYED, "")
        elif status is DeliveryStatus.TEXT_ONLY and self.context.capabilities.text_only:
            self.settle_announcement(announcement, AnnouncementOutcome.PLAYED, "shown")
        elif status is DeliveryStatus.TEXT_ONLY:
            self.settle_announcement(announcement, AnnouncementOutcome.DROPPED, "nothing_to_say")
        else:
            unheard = played_samples == 0
            outcome = AnnouncementOutcome.DROPPED if unheard else AnnouncementOutcome.INTERRUPTED
            self.settle_announcement(announcement, outcome, status.value)

    def settle_announcement(self, announcement: Announcement, outcome: AnnouncementOutcome, reason: str) -> None:
        """Its one outcome."""
        self.emit(SettleAnnouncement(self.stamp, announcement.number, outcome, reason))
        self.publish(AnnouncementEnded(announcement.number, not announcement.recorded, outcome, reason))

    def record_unheard(self, status: DeliveryStatus) -> None:
        """The present reply reached nobody's ear: certain, because no output of it was ever opened."""
        reply = self.reply
        self.record_delivery(
            reply.response_id, reply.position, status, 0, 0, PositionSource.MEASURED, 1.0, reply.announcement
        )

    def wait_to_say(self, announcement: Announcement) -> None:
        """Those that interrupt go first; otherwise the order is that of asking."""
        waiting = (*self.context.announcements, announcement)
        self.context.announcements = tuple(sorted(waiting, key=lambda known: (not known.interrupts, known.number)))

    @property
    def number_being_said(self) -> int | None:
        reply = self.context.response
        return reply.announcement.number if reply is not None and reply.announcement is not None else None

    def drop_announcements(self, reason: str) -> None:
        waiting, self.context.announcements = self.context.announcements, ()
        for announcement in waiting:
            self.settle_announcement(announcement, AnnouncementOutcome.DROPPED, reason)

    @property
    def reply_is_in_output(self) -> bool:
        """The speaker holds a stream of the present reply that it was not told to stop."""
        return self.is_in("buffering", "playing", "paused", "draining")

    @property
    def reply_is_audible(self) -> bool:
        """The present reply is in the output and some of it has been rendered."""
        output = self.context.output
        return output is not None and output.started and self.reply_is_in_output


def confirmed_units(units: tuple[UnitRange, ...], played_samples: int | None) -> int:
    """How many whole units lie before the played position; an unknown position confirms none."""
    if played_samples is None:
        return 0
    return sum(1 for unit in units if unit.end_sample <= played_samples)
