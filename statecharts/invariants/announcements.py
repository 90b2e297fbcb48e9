"""Announcements: one outcome each, and the user comes first."""

from __future__ import annotations

from collections.abc import Iterator

from ..actions import OpenOutput, SettleAnnouncement, StartAnnouncement
from ..facts import SayRequested
from ..values import AnnouncementOutcome
from .observation import LISTENING, Observation, invariant


@invariant()
def an_announcement_has_one_outcome(o: Observation) -> Iterator[str]:
    """Every announcement is played, interrupted or dropped, once, and until then waits or is being said."""
    asked = frozenset({o.fact.number} if isinstance(o.fact, SayRequested) else ())
    settled = [action.number for action in o.of(SettleAnnouncement)]
    for number in settled:
        if number not in o.was.announcements | asked:
            yield f"announcement {number} got an outcome, and had it already or was never asked for"
    if len(set(settled)) != len(settled):
        yield f"announcements {settled} got more than one outcome"
    reply = o.after.response
    being_said = {output.announcement.number for output in o.after.stopping if output.announcement is not None}
    if reply is not None and reply.announcement is not None and reply.delivery is None:
        being_said.add(reply.announcement.number)
    waiting = [announcement.number for announcement in o.after.announcements]
    if o.now.announcements != frozenset((*being_said, *waiting)) or len(set(waiting)) != len(waiting):
        yield (
            f"announcements {sorted(o.now.announcements)} have no outcome; "
            f"{waiting} wait and {sorted(being_said)} are being said"
        )


@invariant()
def an_announcement_is_not_overclaimed(o: Observation) -> Iterator[str]:
    """Played is what was delivered; dropped is what had no output or none of which was rendered."""
    for action in o.of(SettleAnnouncement):
        outputs = [output for output in (o.before.output, *o.before.stopping) if output is not None]
        said = [output for output in outputs if output.announcement and output.announcement.number == action.number]
        heard = any(output.played_samples for output in said)
        shown = o.after.capabilities.text_only
        if action.outcome is AnnouncementOutcome.PLAYED and not (said or shown):
            yield f"announcement {action.number} is told as played, and had no output"
        if action.outcome is AnnouncementOutcome.DROPPED and heard:
            yield f"announcement {action.number} is told as dropped, and some of it was heard"


@invariant()
def announcements_wait_for_the_user(o: Observation) -> Iterator[str]:
    """An announcement begins when nothing else can be heard; unless it interrupts, users and their answers go first."""
    starts = o.of(StartAnnouncement)
    if len(starts) > 1:
        yield f"{len(starts)} announcements were started at once"
    for start in starts:
        reply = o.after.response
        said = reply.announcement if reply is not None else None
        if said is None or said.number != start.number:
            yield f"announcement {start.number} was started, and {said} is the reply"
            continue
        if "ready" not in o.active:
            yield f"announcement {start.number} was started while Connection is {o.step.after.leaves[0]}"
        audible = _former_in_force(o, start.output_epoch)
        if audible is not None and audible != start.response_id and audible in o.now.undelivered:
            yield f"announcement {start.number} was started while {audible} may still be heard"
        if not said.interrupts and o.active & LISTENING:
            yield f"announcement {start.number} was started while the user is speaking"
        if not said.interrupts and o.after.pending is not None:
            yield f"announcement {start.number} was started while turns {o.after.pending.turn_ids} wait"
        if any(output.response_id == start.response_id for output in o.of(OpenOutput)):
            yield f"announcement {start.number} has an output before anybody made audio of it"


def _former_in_force(o: Observation, output_epoch: int) -> str | None:
    former = o.before.response
    return former.response_id if former is not None and former.output_epoch == output_epoch else None


ANNOUNCEMENTS = (
    an_announcement_has_one_outcome,
    an_announcement_is_not_overclaimed,
    announcements_wait_for_the_user,
)
