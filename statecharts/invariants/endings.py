"""Endings: every wait has a deadline, every timer an end, and closed is closed."""

from __future__ import annotations

from collections.abc import Iterator

from ..actions import CancelTimer, Connect, Publish, Release, StartTimer
from ..context import Context, Timer, TimerKind
from ..facts import CloseRequested, TimerFired
from ..published import SessionClosed, UsageChanged
from .observation import LISTENING, RUNNING, SOUNDING, Observation, invariant


@invariant(11)
def every_timer_ends(o: Observation) -> Iterator[str]:
    """Every started timer is cancelled, fired or superseded, once; the context knows exactly those that run."""
    running = {timer.timer_id for timer in o.was.timers}
    started = [action.timer_id for action in o.of(StartTimer)]
    for action in o.of(StartTimer):
        if action.timer_id in running or started.count(action.timer_id) > 1:
            yield f"timer {action.timer_id} was started twice"
        if action.delay_ms < 0:
            yield f"timer {action.timer_id} was started with {action.delay_ms} ms"
    fired = o.fact.timer_id if isinstance(o.fact, TimerFired) else None
    for action in o.of(CancelTimer):
        if action.timer_id not in running or action.timer_id == fired:
            yield f"timer {action.timer_id} was cancelled, and was not running"
    now = {timer.timer_id: timer.kind for timer in o.now.timers}
    known = {timer.timer_id: timer.kind for timer in o.after.timers}
    if now != known:
        yield f"timers {_named(now)} are running; the context knows {_named(known)}"
    kinds = [(timer.kind, timer.key) for timer in o.after.timers]
    if len(set(kinds)) != len(kinds):
        yield f"two timers of one kind and key are running: {_named(known)}"


def _named(timers: dict[str, TimerKind]) -> list[str]:
    return sorted(f"{timer_id} ({kind})" for timer_id, kind in timers.items())


@invariant(11)
def every_wait_is_bounded(o: Observation) -> Iterator[str]:
    """In whatever configuration, what is being waited for has a timer that is running."""
    yield from waits_without_deadline(o.active, o.after)


def waits_without_deadline(active: frozenset[str], context: Context) -> Iterator[str]:
    """What that configuration waits for without a timer."""
    running = {(timer.kind, timer.key) for timer in context.timers}
    kinds = {kind for kind, _ in running}
    reply = context.response
    if "opening" in active and context.connect_attempts and TimerKind.CONNECT not in kinds:
        yield "Connection is opening without a deadline"
    if "reconnecting" in active and TimerKind.CONNECT not in kinds:
        yield "Connection is reconnecting without a deadline"
    if "closing" in active and TimerKind.SHUTDOWN not in kinds:
        yield "Connection is closing without a deadline"
    if "cancelling" in active and TimerKind.CANCEL_ACK not in kinds:
        yield "Generation is cancelling without a deadline for the acknowledgement"
    untimed = active & RUNNING and not kinds & {TimerKind.PROGRESS, TimerKind.RETRY}
    if untimed and reply is not None and all(call.background for call in reply.open_calls):
        yield f"attempt {reply.attempt_id} is at work without a deadline"
    for call in (*(reply.open_calls if reply is not None else ()), *context.background):
        if (TimerKind.TOOL, call.call_id) not in running:
            yield f"call {call.call_id} is open without a deadline"
    if active & SOUNDING - {"paused"} and TimerKind.PLAYBACK not in kinds:
        yield "Playback is active without a deadline for progress"
    if context.output is not None and context.output.held and TimerKind.HOLD not in kinds:
        yield f"stream {context.output.stream_id} is held without a deadline"
    if "paused" in active and TimerKind.FALSE_ALARM not in kinds:
        yield "Playback is paused, and nothing bounds the alarm"
    for output in context.stopping:
        if (TimerKind.STOP_RECEIPT, str(output.stream_id)) not in running:
            yield f"stream {output.stream_id} awaits the receipt of its stop without a deadline"
    if reply is not None and reply.outcome is not None and not active & (SOUNDING | {"closed"}):
        unsaid = reply.delivery is None and reply.output_epoch == context.output_epoch
        if unsaid and TimerKind.SPEECH not in kinds:
            yield f"{reply.response_id} is still to be spoken, without a deadline"


@invariant(11)
def no_timer_outlives_its_wait(o: Observation) -> Iterator[str]:
    """A timer runs only while the wait that it bounds goes on; what it would end has not ended already."""
    for timer in o.after.timers:
        if not _still_bounds(o, timer):
            yield f"timer {timer.timer_id} ({timer.kind} {timer.key}) runs in {'/'.join(o.step.after.leaves)}"


_WAITS: dict[TimerKind, frozenset[str]] = {
    TimerKind.CONNECT: frozenset({"opening", "reconnecting"}),
    TimerKind.BACKOFF: frozenset({"opening", "reconnecting"}),
    TimerKind.RENEWAL: frozenset({"ready"}),
    TimerKind.SHUTDOWN: frozenset({"closing"}),
    TimerKind.INPUT: LISTENING,
    TimerKind.FINALIZATION: LISTENING,
    TimerKind.TURN_LIMIT: LISTENING,
    TimerKind.FALSE_ALARM: frozenset({"paused"}),
    TimerKind.RETRY: RUNNING,
    TimerKind.PROGRESS: RUNNING,
    TimerKind.CANCEL_ACK: frozenset({"cancelling"}),
    TimerKind.HOLD: SOUNDING,
    TimerKind.PLAYBACK: SOUNDING,
}


def _still_bounds(o: Observation, timer: Timer) -> bool:
    match timer.kind:
        case TimerKind.TOOL:
            return any(call_id == timer.key for _, call_id in o.now.open_calls)
        case TimerKind.STOP_RECEIPT:
            return any(str(output.stream_id) == timer.key for output in o.after.stopping)
        case TimerKind.SPEECH:
            reply = o.after.response
            return reply is not None and reply.delivery is None and o.after.output is None
        case _:
            return bool(_WAITS[timer.kind] & o.active)


@invariant(13)
def closed_is_final(o: Observation) -> Iterator[str]:
    """`closed` is never left, releases once, and owes nothing; only usage may still be told."""
    if "closed" in o.left:
        if "closed" not in o.active:
            yield f"closed was left by {type(o.fact).__name__}"
        told = [a for a in o.step.actions if not (isinstance(a, Publish) and isinstance(a.payload, UsageChanged))]
        if told:
            yield f"{type(o.fact).__name__} led to {[type(action).__name__ for action in told]} after closed"
    entered = "closed" in o.active and "closed" not in o.left
    if bool(o.of(Release)) != entered or len(o.published(SessionClosed)) != int(entered):
        yield f"released {len(o.of(Release))} times while {'' if entered else 'not '}entering closed"
    if "closed" not in o.active:
        return
    for what, owed in (
        ("timers run", o.now.timers),
        ("turns are unanswered", o.now.owed_turns),
        ("turns are open", o.now.uncommitted_turns),
        ("responses have no outcome", o.now.open_responses),
        ("responses have no delivery record", o.now.undelivered),
        ("announcements have no outcome", o.now.announcements),
        ("calls have no outcome", o.now.open_calls),
        ("recognitions go on", o.now.recognitions),
    ):
        if owed:
            yield f"closed, and {what}: {owed}"


@invariant(13)
def closing_closes(o: Observation) -> Iterator[str]:
    """A request to close is obeyed at once; closing leads nowhere but to closed, and nothing connects again."""
    if isinstance(o.fact, CloseRequested) and not o.active & {"closing", "closed"}:
        yield f"close was requested, and Connection is {o.step.after.leaves[0]}"
    if "closing" in o.left and not o.active & {"closing", "closed"}:
        yield f"closing led to {o.step.after.leaves[0]}"
    if o.active & {"closing", "closed"} and o.of(Connect):
        yield "Connect was decided after closing began"


def unrest(active: frozenset[str], context: Context) -> str:
    """Why a configuration in which no timer runs is not at rest; empty when it is."""
    if "closed" in active:
        return ""
    if "opening" in active and context.connect_attempts == 0:
        return ""
    waits = [
        state
        for state in ("opening", "reconnecting", "closing", "cancelling", *RUNNING, *LISTENING, *SOUNDING)
        if state in active
    ]
    if waits:
        return f"{'/'.join(waits)} waits for ever"
    if context.pending is not None:
        return f"turns {context.pending.turn_ids} wait for ever"
    if context.announcements:
        return f"announcements {[announcement.number for announcement in context.announcements]} wait for ever"
    if context.stopping:
        return f"streams {[output.stream_id for output in context.stopping]} wait for ever"
    if context.response is not None and context.response.delivery is None:
        return f"nothing is recorded of the delivery of {context.response.response_id}"
    return ""


ENDINGS = (every_timer_ends, every_wait_is_bounded, no_timer_outlives_its_wait, closed_is_final, closing_closes)
