"""Epochs, identities and order: what is of an older epoch is silent, and changes nothing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from itertools import pairwise

from ..actions import (
    PRIORITY,
    CancelGeneration,
    CancelSynthesis,
    ContinueGeneration,
    FinishOutput,
    OpenOutput,
    PausePlayback,
    Publish,
    RecordInterruption,
    ReleaseOutput,
    ResumePlayback,
    StartGeneration,
    StartTimer,
    StopPlayback,
    TruncateContext,
)
from ..context import Context, TimerKind
from ..facts import (
    AttemptFact,
    OutputFact,
    PlaybackDrained,
    PlaybackStopped,
    RecognitionClosed,
    RecognitionFailed,
    SegmentFinalized,
    StreamFact,
    TimerFired,
    ToolFinished,
    TranscriptUpdated,
    UsageReported,
)
from ..published import InterruptionAccepted, UsageChanged
from .observation import RUNNING, SOUNDING, Observation, invariant

_COUNTERS = ("session_epoch", "output_epoch", "now", "minted", "streams", "positions")
_UNSUBSTANTIAL = frozenset({"now", "sequence", "ignored"})
_SUBSTANCE = tuple(spec.name for spec in fields(Context) if spec.name not in _UNSUBSTANTIAL)


@invariant(1)
def epochs_only_grow(o: Observation) -> Iterator[str]:
    """`output_epoch`, `session_epoch` and `sequence` never decrease, and no epoch is ever used again."""
    for name in _COUNTERS:
        was, now = getattr(o.before, name), getattr(o.after, name)
        if now < was:
            yield f"{name} went back from {was} to {now}"
    if o.after.sequence != o.before.sequence + 1:
        yield f"sequence went from {o.before.sequence} to {o.after.sequence}: a macrostep counts exactly one"
    for name in ("session_epoch", "output_epoch", "sequence"):
        seen, now = getattr(o.was, name), getattr(o.after, name)
        if now < seen:
            yield f"{name} {now} was used before: {seen} was reached already"
    if o.after.output_epoch > o.before.output_epoch + 1:
        yield f"output_epoch jumped from {o.before.output_epoch} to {o.after.output_epoch} in one macrostep"


@invariant(1)
def a_new_session_is_a_new_epoch(o: Observation) -> Iterator[str]:
    """Leaving a live session moves both epochs; nothing else moves the session's."""
    lost = "ready" in o.left and "reconnecting" in o.active
    moved = o.after.session_epoch - o.before.session_epoch
    if lost and moved != 1:
        yield f"the session was lost and session_epoch went from {o.before.session_epoch} to {o.after.session_epoch}"
    if lost and not o.epoch_moved:
        yield f"the session was lost and output_epoch stayed {o.before.output_epoch}"
    if not lost and moved:
        yield f"session_epoch moved to {o.after.session_epoch} although no session was lost"


@invariant(2)
def invalidated_output_stays_silent(o: Observation) -> Iterator[str]:
    """No action lets audio of an epoch before the current one play; the step that moves the epoch says stop first."""
    epoch = o.after.output_epoch
    for kind in (OpenOutput, StartGeneration, ContinueGeneration):
        for action in o.of(kind):
            if action.output_epoch != epoch:
                yield f"{kind.__name__} is for epoch {action.output_epoch}; the current one is {epoch}"
    live = {stream.stream_id: stream.output_epoch for stream in o.now.streams}
    for kind in (ReleaseOutput, ResumePlayback, FinishOutput, PausePlayback):
        for action in o.of(kind):
            named = live.get(action.stream_id)
            if named != epoch:
                yield f"{kind.__name__} names stream {action.stream_id} of epoch {named}; the current one is {epoch}"
    stops = o.of(StopPlayback)
    if o.epoch_moved and [stop.before_epoch for stop in stops] != [epoch]:
        yield f"the epoch moved to {epoch} with {[stop.before_epoch for stop in stops]} as the epochs told to stop"
    if stops and not o.epoch_moved:
        yield f"StopPlayback({stops[0].before_epoch}) without an epoch step; the epoch is {epoch}"


@invariant(2)
def an_interruption_is_one_transaction(o: Observation) -> Iterator[str]:
    """An accepted interruption moves the epoch, silences Playback, cancels Generation and says so, in one macrostep."""
    records = o.of(RecordInterruption)
    accepted = o.published(InterruptionAccepted)
    if len(records) != len(accepted) or len(records) > 1:
        yield f"{len(records)} interruptions recorded, {len(accepted)} published"
    if not records:
        return
    reply = o.before.response
    if reply is None or o.before.reply_is_over:
        yield f"an interruption was recorded of {records[0].response_id}, and there was no reply to interrupt"
        return
    if records[0].response_id != reply.response_id:
        yield f"an interruption was recorded of {records[0].response_id}; the reply is {reply.response_id}"
    if not o.epoch_moved:
        yield f"an interruption was accepted and the output epoch stayed {o.before.output_epoch}"


@invariant(2)
def an_epoch_step_takes_everything_along(o: Observation) -> Iterator[str]:
    """Moving the output epoch ends the stream, the model and the synthesis of the reply in the same macrostep."""
    reply = o.before.response
    if not o.epoch_moved:
        return
    former_stream = o.before.output
    now = o.after.output
    if former_stream is not None and now is not None and now.stream_id == former_stream.stream_id:
        yield f"the epoch moved to {o.after.output_epoch} and stream {now.stream_id} is still being played"
    if reply is None or o.before.reply_is_over:
        return
    synthesis = [action.response_id for action in o.of(CancelSynthesis)]
    if synthesis != [reply.response_id]:
        yield f"the epoch moved and synthesis was cancelled for {synthesis} instead of {reply.response_id}"
    if o.before.capabilities.truncate_context and not o.of(TruncateContext):
        yield f"the epoch moved and the provider was not told where {reply.response_id} was cut"
    if o.left & RUNNING and "reconnecting" not in o.active:
        if [action.attempt_id for action in o.of(CancelGeneration)] != [reply.attempt_id]:
            yield f"the epoch moved and attempt {reply.attempt_id} was not cancelled"
        if not any(action.kind is TimerKind.CANCEL_ACK for action in o.of(StartTimer)):
            yield f"attempt {reply.attempt_id} was cancelled without a deadline for its acknowledgement"
    if o.active & RUNNING and o.after.response is not None and o.after.response.attempt_id == reply.attempt_id:
        yield f"the epoch moved and attempt {reply.attempt_id} goes on"


@invariant(3)
def silence_is_not_half_done(o: Observation) -> Iterator[str]:
    """Playback is never active while Generation is cancelling, and what is active is of the current epoch."""
    sounding = o.active & SOUNDING
    output = o.after.output
    if sounding and "cancelling" in o.active:
        yield f"Playback is {'/'.join(sounding)} while Generation is cancelling, epoch {o.after.output_epoch}"
    if bool(sounding) != (output is not None):
        yield f"Playback is {'/'.join(sounding) or 'at rest'} and the open stream is {output and output.stream_id}"
    if output is not None and output.output_epoch != o.after.output_epoch:
        yield f"stream {output.stream_id} of epoch {output.output_epoch} is open in epoch {o.after.output_epoch}"


@invariant(10)
def stale_facts_change_nothing(o: Observation) -> Iterator[str]:
    """A fact of an older epoch, attempt, stream, call, recognition or timer changes nothing; it may only add usage."""
    stale = _staleness(o)
    if not stale:
        return
    if o.step.before.leaves != o.step.after.leaves:
        yield f"{stale}, and moved {'/'.join(o.step.before.leaves)} to {'/'.join(o.step.after.leaves)}"
    told = [type(a).__name__ for a in o.step.actions if not _is_usage(a)]
    if told:
        yield f"{stale}, and led to {', '.join(told)}"
    changed = [name for name in _SUBSTANCE if getattr(o.before, name) != getattr(o.after, name)]
    if changed:
        yield f"{stale}, and changed {', '.join(changed)}"


def _is_usage(action: object) -> bool:
    return isinstance(action, Publish) and isinstance(action.payload, UsageChanged)


def _staleness(o: Observation) -> str:
    """Why the fact is stale; empty when it is not."""
    fact, before = o.fact, o.before
    match fact:
        case UsageReported():
            return ""
        case TimerFired(timer_id=timer_id):
            return "" if any(t.timer_id == timer_id for t in before.timers) else f"timer {timer_id} is not running"
        case AttemptFact(attempt_id=attempt_id):
            current = before.response.attempt_id if before.response is not None else None
            over = before.response is not None and before.response.outcome is not None
            return "" if attempt_id == current and not over else f"attempt {attempt_id} is not at work ({current} is)"
        case PlaybackStopped(stream_id=stream_id) | PlaybackDrained(stream_id=stream_id):
            awaited = {s.stream_id for s in before.stopping} | {before.output.stream_id if before.output else None}
            return "" if stream_id in awaited else f"no receipt of stream {stream_id} is awaited"
        case StreamFact(stream_id=stream_id):
            known = before.output.stream_id if before.output is not None else None
            return "" if stream_id == known else f"stream {stream_id} is not being played ({known} is)"
        case OutputFact(output_epoch=epoch):
            return "" if epoch == before.output_epoch else f"epoch {epoch} is over ({before.output_epoch} is current)"
        case ToolFinished(call_id=call_id):
            open_calls = (*(before.response.open_calls if before.response is not None else ()), *before.background)
            return "" if any(c.call_id == call_id for c in open_calls) else f"call {call_id} is not open"
        case RecognitionClosed() | RecognitionFailed():
            turns = (before.turn, *before.untranscribed)
            serves = any(turn is not None and fact.recognition_id in turn.open_recognitions for turn in turns)
            return "" if serves else f"recognition {fact.recognition_id} is not open"
        case TranscriptUpdated() | SegmentFinalized():
            turns = (before.turn, *before.untranscribed)
            serves = any(turn is not None and fact.recognition_id in turn.recognitions for turn in turns)
            return "" if serves else f"recognition {fact.recognition_id} does not serve the turn"
        case _:
            return ""


@invariant(12)
def actions_are_of_their_macrostep(o: Observation) -> Iterator[str]:
    """Every action carries the epochs in force when its macrostep ended, and their order is the fixed one."""
    stamp = o.stamp
    for action in o.step.actions:
        if action.stamp != stamp:
            yield f"{type(action).__name__} is stamped {action.stamp}; in force is {stamp}"
    for first, second in pairwise(o.step.actions):
        if PRIORITY[type(first)] > PRIORITY[type(second)]:
            yield f"{type(first).__name__} leaves before {type(second).__name__}"


_NEEDED = {
    "turn": ("turn_id",),
    "response": ("run_id", "response_id", "attempt_id"),
    "run": ("run_id",),
    "tool": ("call_id",),
    "playback": ("stream_id",),
    "audio": ("response_id", "stream_id"),
    "delivery": ("response_id",),
    "cancel": ("response_id", "attempt_id"),
    "transcript": ("turn_id",),
    "announcement.started": ("run_id", "response_id"),
}


@invariant(12)
def public_events_carry_their_identities(o: Observation) -> Iterator[str]:
    """A public event names what it speaks of."""
    for publish in o.of(Publish):
        kind = type(publish.payload).type
        for name in _NEEDED.get(kind) or _NEEDED.get(kind.split(".")[0], ()):
            if getattr(publish, name) is None:
                yield f"{kind} was published without {name}"


EPOCHS = (
    epochs_only_grow,
    a_new_session_is_a_new_epoch,
    invalidated_output_stays_silent,
    an_interruption_is_one_transaction,
    an_epoch_step_takes_everything_along,
    silence_is_not_half_done,
    stale_facts_change_nothing,
    actions_are_of_their_macrostep,
    public_events_carry_their_identities,
)
