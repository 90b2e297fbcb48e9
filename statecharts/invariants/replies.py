"""Replies: one at a time, one outcome each; a cancel is not an acknowledgement; a tool runs once."""

from __future__ import annotations

from collections.abc import Iterator

from ..actions import ExecuteTool, RecordResponse, RecordToolOutcome, StartGeneration
from ..context import TimerKind
from ..facts import (
    CancelAcknowledged,
    CloseRequested,
    ConnectionLost,
    GenerationCompleted,
    GenerationFailed,
    SessionExpiring,
    StepCompleted,
    TimerFired,
    ToolCallReady,
)
from ..published import CancelConfirmed, ResponseTerminal, RunTerminal
from ..values import Outcome
from .observation import LISTENING, RUNNING, TERMINAL, Observation, invariant


@invariant(5)
def one_reply_is_at_work(o: Observation) -> Iterator[str]:
    """At most one response is running or being cancelled, and the context says which."""
    reply = o.after.response
    at_work = o.active & (RUNNING | {"cancelling"})
    if len(o.now.open_responses) > 1:
        yield f"responses {sorted(o.now.open_responses)} are at work together"
    if at_work and (reply is None or reply.outcome is not None):
        yield f"Generation is {'/'.join(at_work)}, and its response is {reply and reply.outcome}"
    if o.active & TERMINAL and (reply is None or reply.outcome is None or reply.outcome not in o.active):
        yield f"Generation is {'/'.join(o.active & TERMINAL)}, and its response is {reply and reply.outcome}"
    expected = frozenset({reply.response_id}) if at_work and reply is not None else frozenset[str]()
    if o.now.open_responses != expected:
        yield f"responses {sorted(o.now.open_responses)} have no outcome; at work is {sorted(expected) or 'none'}"


@invariant(4)
def a_reply_ends_once(o: Observation) -> Iterator[str]:
    """Run, response and attempt get exactly one terminal outcome, told three times the same."""
    records = o.of(RecordResponse)
    started = {action.response_id for action in o.of(StartGeneration)}
    for record in records:
        if record.response_id not in o.was.open_responses | started:
            yield f"response {record.response_id} got {record.outcome}, and had its outcome already or never began"
    told = [payload.outcome for payload, _ in o.published(ResponseTerminal)]
    runs = [payload.outcome for payload, _ in o.published(RunTerminal)]
    if not [record.outcome for record in records] == told == runs:
        yield f"outcomes recorded {[record.outcome for record in records]}, of responses {told}, of runs {runs}"
    former, reply = o.before.response, o.after.response
    if former is None or reply is None or former.response_id != reply.response_id or former.outcome is None:
        return
    if (former.outcome, former.reason) != (reply.outcome, reply.reason):
        yield f"response {reply.response_id} was {former.outcome} and became {reply.outcome}"


@invariant(4)
def an_attempt_is_never_reused(o: Observation) -> Iterator[str]:
    """A retry is a new attempt, made while nothing was visible, no tool was dispatched and tries were left."""
    for action in o.of(StartGeneration):
        if action.attempt_id in o.was.attempts:
            yield f"attempt {action.attempt_id} was started twice"
        former = o.before.response
        if former is None or action.response_id != former.response_id:
            continue
        if former.output_started:
            yield f"response {action.response_id} was retried after visible output"
        if former.has_side_effects:
            yield f"response {action.response_id} was retried after {len(former.tools)} tool calls"
        if former.attempts > o.policies.generation.max_attempts:
            yield f"response {action.response_id} is at attempt {former.attempts}"
    former, reply = o.before.response, o.after.response
    if former is None or reply is None or former.response_id != reply.response_id:
        return
    if former.attempt_id != reply.attempt_id and (former.output_started or former.has_side_effects):
        yield f"a retry of {reply.response_id} is planned after visible output or a tool call"


@invariant(9)
def a_cancel_is_not_an_acknowledgement(o: Observation) -> Iterator[str]:
    """`cancelled` is reached from `cancelling` only: by a word of that attempt, its deadline, or the session's end."""
    reply = o.before.response
    if not any(record.outcome is Outcome.CANCELLED for record in o.of(RecordResponse)):
        return
    if "cancelling" not in o.left:
        yield f"a reply was cancelled in {'/'.join(o.step.before.leaves)}, and nobody waited for the acknowledgement"
    fact = o.fact
    confirming = isinstance(fact, CancelAcknowledged | GenerationCompleted | GenerationFailed | StepCompleted)
    confirmed = confirming and reply is not None and fact.attempt_id == reply.attempt_id
    ended = isinstance(fact, ConnectionLost | SessionExpiring | CloseRequested) or o.active & {"closed"}
    timed_out = _fired(o, TimerKind.CANCEL_ACK) or _fired(o, TimerKind.RENEWAL)
    if not confirmed and not ended and not timed_out:
        yield f"a cancelled reply was taken for ended because of {type(fact).__name__}"
    if o.published(CancelConfirmed) and not isinstance(fact, CancelAcknowledged):
        yield f"an acknowledgement was published because of {type(fact).__name__}"
    after = o.after.response
    if after is None or reply is None or after.response_id != reply.response_id:
        return
    if confirmed != after.acknowledged:
        yield f"{after.response_id} is told as {'' if after.acknowledged else 'un'}acknowledged: {type(fact).__name__}"


def _fired(o: Observation, kind: TimerKind) -> bool:
    fact = o.fact
    return isinstance(fact, TimerFired) and any(t.timer_id == fact.timer_id and t.kind is kind for t in o.before.timers)


@invariant(9)
def admission_is_owned(o: Observation) -> Iterator[str]:
    """No reply begins while one is at work, outside a ready session, or while the former one may still be heard."""
    starts = o.of(StartGeneration)
    if len(starts) > 1:
        yield f"{len(starts)} generations were started at once"
    former = o.before.response
    ended = {record.response_id for record in o.of(RecordResponse)}
    for start in starts:
        if "ready" not in o.active:
            yield f"{start.response_id} was started while Connection is {o.step.after.leaves[0]}"
        if former is None or former.response_id == start.response_id:
            continue
        if former.outcome is None and former.response_id not in ended:
            yield f"{start.response_id} was started while {former.response_id} is at work"
        if former.outcome is None and _fired(o, TimerKind.CANCEL_ACK):
            yield f"{start.response_id} was started although nobody knows what {former.response_id} still does"
        if former.output_epoch == start.output_epoch and former.response_id in o.now.undelivered:
            yield f"{start.response_id} was started while {former.response_id} may still be heard"


@invariant(9)
def the_user_has_the_floor(o: Observation) -> Iterator[str]:
    """A reply begins while the user is speaking only when restarts are used up."""
    for start in o.of(StartGeneration):
        reply = o.after.response
        fresh = o.before.response is None or o.before.response.response_id != start.response_id
        if fresh and o.active & LISTENING and reply is not None and reply.restarts < o.policies.turn.max_restarts:
            yield f"{start.response_id} was started while the user is speaking"


@invariant(7)
def a_call_runs_once(o: Observation) -> Iterator[str]:
    """A tool call is dispatched at most once, and only when complete, valid, approved and of the present attempt."""
    fact, reply = o.fact, o.before.response
    for call in o.of(ExecuteTool):
        if (call.response_id, call.call_id) in o.was.calls:
            yield f"call {call.call_id} of {call.response_id} was dispatched twice"
        if not isinstance(fact, ToolCallReady) or fact.call_id != call.call_id:
            yield f"call {call.call_id} was dispatched because of {type(fact).__name__}"
            continue
        if not (fact.complete and fact.valid and fact.approved):
            missing = [name for name in ("complete", "valid", "approved") if not getattr(fact, name)]
            yield f"call {call.call_id} was dispatched, and is not {', '.join(missing)}"
        if reply is None or fact.attempt_id != reply.attempt_id or not o.left & RUNNING:
            at_work = reply.attempt_id if reply is not None else None
            yield f"call {call.call_id} of attempt {fact.attempt_id} was dispatched; at work is {at_work}"


@invariant(4)
def a_call_has_one_outcome(o: Observation) -> Iterator[str]:
    """Every dispatched or refused call gets exactly one outcome, and the context knows which are open."""
    seen: set[tuple[str, str]] = set()
    for record in o.of(RecordToolOutcome):
        identity = (record.response_id, record.call_id)
        refused = isinstance(o.fact, ToolCallReady) and o.fact.call_id == record.call_id and identity not in o.was.calls
        if identity in seen or (identity not in o.was.open_calls and not refused):
            yield f"call {record.call_id} of {record.response_id} got {record.status}, and had its outcome already"
        seen.add(identity)
    reply = o.after.response
    known = (*(reply.open_calls if reply is not None else ()), *o.after.background)
    if frozenset((call.response_id, call.call_id) for call in known) != o.now.open_calls or len(known) != len(
        o.now.open_calls
    ):
        yield f"calls {sorted(o.now.open_calls)} are open; the context has {[call.call_id for call in known]}"


REPLIES = (
    one_reply_is_at_work,
    a_reply_ends_once,
    an_attempt_is_never_reused,
    a_cancel_is_not_an_acknowledgement,
    admission_is_owned,
    the_user_has_the_floor,
    a_call_runs_once,
    a_call_has_one_outcome,
)
