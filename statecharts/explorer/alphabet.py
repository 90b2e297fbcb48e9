"""What can happen next: every kind of fact in a configuration, those that make sense there and those that do not.

Facts name the identities of the context they are made for; beside them there are the same facts of dead attempts,
epochs, streams, recognitions and timers. `Bounds` keep the world finite: nothing is added where there is enough of it.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..capabilities import Capabilities
from ..context import Context
from ..facts import (
    AudioEnded,
    AudioStarted,
    ButtonPressed,
    CancelAcknowledged,
    ClientCancelled,
    CloseRequested,
    ConnectionFailed,
    ConnectionLost,
    ConnectionReady,
    Fact,
    GenerationCompleted,
    GenerationFailed,
    GenerationProgressed,
    OpenRequested,
    OutputStarted,
    PlaybackDrained,
    PlaybackProgressed,
    PlaybackStopped,
    PrebufferFilled,
    ProviderInterrupted,
    RecognitionClosed,
    SayRequested,
    SayWithdrawn,
    SegmentFinalized,
    SessionExpiring,
    SpeakerFailed,
    SpeechUnitSynthesized,
    StepCompleted,
    SynthesisFailed,
    TextSubmitted,
    TimerFired,
    ToolCallReady,
    ToolFinished,
    TurnEnded,
    Underrun,
    UsageReported,
)
from ..policies import Policies
from ..values import ToolStatus, TurnAuthority, Usage
from .bounds import Bounds, Family
from .hearing import WORDS, error, recognition, speech, unheard

NOBODY = "nobody"
"""An identity that was never minted: of a former life, or of somebody else."""


def facts_for(context: Context, policies: Policies, capabilities: Capabilities, bounds: Bounds) -> Iterator[Fact]:
    """Everything that may happen next, except timers and the passing of time."""
    yield OpenRequested(at=context.now)
    yield ConnectionReady(at=context.now, capabilities=capabilities)
    yield CloseRequested(at=context.now)
    for family in Family:
        if family in bounds.families:
            yield from facts_of(family, context, policies, bounds)


def facts_of(family: Family, context: Context, policies: Policies, bounds: Bounds) -> Iterator[Fact]:
    """The facts of one family."""
    match family:
        case Family.TYPING:
            yield from _typing(context, bounds)
        case Family.SAYING:
            yield from _saying(context, bounds)
        case Family.BUTTONS:
            yield from _buttons(context)
        case Family.SPEECH:
            yield from speech(context, policies, bounds)
            yield from recognition(context, bounds)
        case Family.UNHEARD:
            yield from unheard(context, bounds)
        case Family.MODEL:
            yield from _model(context)
        case Family.FAILURES:
            yield from _failures(context)
        case Family.TOOLS:
            yield from _tools(context, bounds)
        case Family.AUDIO:
            yield from _audio(context, bounds)
        case Family.TROUBLE:
            yield from _trouble(context)
        case Family.OUTAGES:
            yield from _outages(context)
        case Family.STALE:
            yield from _stale(context)


def _outages(x: Context) -> Iterator[Fact]:
    yield ConnectionFailed(at=x.now, error=error())
    yield ConnectionFailed(at=x.now, error=error(retryable=False))
    yield ConnectionLost(at=x.now, error=error())
    yield SessionExpiring(at=x.now)
    yield SessionExpiring(at=x.now, within_ms=9_000)


def _typing(x: Context, bounds: Bounds) -> Iterator[Fact]:
    if x.pending is None or len(x.pending.turn_ids) < bounds.waiting_turns:
        yield TextSubmitted(at=x.now, text=WORDS)


def _saying(x: Context, bounds: Bounds) -> Iterator[Fact]:
    number = x.last_announcement + 1
    if len(x.announcements) < bounds.announcements:
        yield SayRequested(at=x.now, number=number, text=WORDS)
        yield SayRequested(at=x.now, number=number, text=WORDS, interrupts=True)
        yield SayRequested(at=x.now, number=number, text=WORDS, interruptible=False)
    yield SayRequested(at=x.now, number=number, text=" ")
    said = x.response.announcement if x.response is not None else None
    for known in (*x.announcements[:1], *([said] if said is not None else [])):
        yield SayWithdrawn(at=x.now, number=known.number)


def _buttons(x: Context) -> Iterator[Fact]:
    yield ButtonPressed(at=x.now)
    yield ProviderInterrupted(at=x.now)
    yield ClientCancelled(at=x.now, run_id=x.response.run_id if x.response is not None else None)


def _model(x: Context) -> Iterator[Fact]:
    reply = x.response
    if reply is None:
        return
    yield OutputStarted(at=x.now, attempt_id=reply.attempt_id)
    yield GenerationProgressed(at=x.now, attempt_id=reply.attempt_id)
    yield GenerationCompleted(at=x.now, attempt_id=reply.attempt_id)
    yield CancelAcknowledged(at=x.now, attempt_id=reply.attempt_id)
    yield UsageReported(at=x.now, attempt_id=reply.attempt_id, usage=Usage(1, 1))


def _failures(x: Context) -> Iterator[Fact]:
    if x.response is not None:
        yield GenerationFailed(at=x.now, attempt_id=x.response.attempt_id, error=error())
        yield GenerationFailed(at=x.now, attempt_id=x.response.attempt_id, error=error(retryable=False))


def _tools(x: Context, bounds: Bounds) -> Iterator[Fact]:
    reply = x.response
    if reply is None:
        return
    attempt, calls = reply.attempt_id, len(reply.tools)
    yield StepCompleted(at=x.now, attempt_id=attempt)
    if calls < bounds.calls:
        call_id = f"{attempt}/{calls}"
        yield ToolCallReady(at=x.now, attempt_id=attempt, call_id=call_id, name="look_up")
        for missing in ("complete", "valid", "approved"):
            yield ToolCallReady(at=x.now, attempt_id=attempt, call_id=call_id, name="look_up", **{missing: False})
        if len(x.background) + sum(call.background for call in reply.open_calls) < bounds.background_calls:
            yield ToolCallReady(at=x.now, attempt_id=attempt, call_id=call_id, name="work", background=True)
    for call in (*reply.tools, *x.background):
        yield ToolFinished(at=x.now, call_id=call.call_id, status=ToolStatus.COMPLETED)
    for call in (*reply.tools[:1], *x.background[:1]):
        yield ToolCallReady(at=x.now, attempt_id=attempt, call_id=call.call_id, name="look_up")


def _audio(x: Context, bounds: Bounds) -> Iterator[Fact]:
    epoch, reply, output = x.output_epoch, x.response, x.output
    if len(x.stopping) < bounds.stopping_streams:
        yield AudioStarted(at=x.now, output_epoch=epoch, sample_rate_hz=16_000)
    if reply is not None and bounds.units:
        index = min(len(reply.units), bounds.units - 1)
        start = 100 * index
        yield SpeechUnitSynthesized(
            at=x.now, output_epoch=epoch, unit_index=index, start_sample=start, end_sample=start + 100
        )
    yield AudioEnded(at=x.now, output_epoch=epoch, end_sample=200 if output is not None else 0)
    if output is not None:
        stream, played = output.stream_id, _further(x)
        yield PrebufferFilled(at=x.now, output_epoch=epoch, stream_id=stream, played_samples=played)
        yield PlaybackProgressed(at=x.now, output_epoch=epoch, stream_id=stream, played_samples=played)
        yield PlaybackDrained(at=x.now, output_epoch=epoch, stream_id=stream, played_samples=output.end_sample)
    for stopped in x.stopping:
        yield PlaybackStopped(
            at=x.now,
            output_epoch=stopped.output_epoch,
            stream_id=stopped.stream_id,
            played_samples=stopped.played_samples or 0,
        )


def _further(x: Context) -> int:
    """A position beyond the last one, within the stream."""
    output = x.output
    assert output is not None
    return min((output.played_samples or 0) + 60, 200 if output.end_sample is None else output.end_sample)


def _trouble(x: Context) -> Iterator[Fact]:
    epoch, output = x.output_epoch, x.output
    yield SynthesisFailed(at=x.now, output_epoch=epoch, end_sample=200 if output is not None else 0, error=error())
    yield SpeakerFailed(at=x.now, output_epoch=epoch, error=error())
    if output is not None:
        stream, told = output.stream_id, output.played_samples
        yield PrebufferFilled(at=x.now, output_epoch=epoch, stream_id=stream, played_samples=None)
        yield PlaybackProgressed(at=x.now, output_epoch=epoch, stream_id=stream, played_samples=0)
        yield Underrun(at=x.now, output_epoch=epoch, stream_id=stream, played_samples=told)
        yield PlaybackStopped(at=x.now, output_epoch=epoch, stream_id=stream, played_samples=_further(x))
    for stopped in x.stopping:
        stream = stopped.stream_id
        yield PlaybackStopped(at=x.now, output_epoch=stopped.output_epoch, stream_id=stream, played_samples=None)
        yield PlaybackDrained(
            at=x.now, output_epoch=stopped.output_epoch, stream_id=stream, played_samples=stopped.end_sample
        )


def _stale(x: Context) -> Iterator[Fact]:
    """Late facts: each must change nothing."""
    old, stream = x.output_epoch - 1, x.streams + 1
    yield TimerFired(at=x.now, timer_id=NOBODY)
    yield SayRequested(at=x.now, number=x.last_announcement, text=WORDS)
    yield SayWithdrawn(at=x.now, number=x.last_announcement + 1)
    yield TurnEnded(at=x.now, authority=TurnAuthority.SEMANTIC)
    yield SegmentFinalized(at=x.now, recognition_id=NOBODY, segment_id="s0", revision=9, text=WORDS)
    yield RecognitionClosed(at=x.now, recognition_id=NOBODY)
    yield UsageReported(at=x.now, attempt_id=NOBODY, usage=Usage(1, 1))
    yield OutputStarted(at=x.now, attempt_id=NOBODY)
    yield ToolCallReady(at=x.now, attempt_id=NOBODY, call_id=NOBODY, name="look_up")
    yield ToolFinished(at=x.now, call_id=NOBODY, status=ToolStatus.COMPLETED)
    yield GenerationCompleted(at=x.now, attempt_id=NOBODY)
    yield CancelAcknowledged(at=x.now, attempt_id=NOBODY)
    yield AudioStarted(at=x.now, output_epoch=old, sample_rate_hz=16_000)
    yield AudioEnded(at=x.now, output_epoch=old, end_sample=200)
    yield SpeakerFailed(at=x.now, output_epoch=old, error=error())
    yield PrebufferFilled(at=x.now, output_epoch=old, stream_id=stream, played_samples=60)
    yield PlaybackDrained(at=x.now, output_epoch=old, stream_id=stream, played_samples=200)
    yield PlaybackStopped(at=x.now, output_epoch=old, stream_id=stream, played_samples=60)
