"""What must be true of a conversation, checked on its evidence. Each check has a sentence that says what it proves."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from ...statecharts.traces import TraceError, replay
from ...statecharts.values import DeliveryStatus
from .findings import Findings, ReplyFound

MAX_QUEUE_MS = 1_000
"""The hard cap of the output queue."""
MAX_LAST_PCM_MS = 150
"""The board's own budget from an accepted interruption to silence."""

Finder = Callable[[Findings], Iterator[str]]
"""Yields a sentence for each way in which the evidence falls short."""


@dataclass(frozen=True, slots=True)
class Check:
    """`claim` is what holds when `find` finds nothing."""

    claim: str
    find: Finder


def _recording_is_what_was_rendered(findings: Findings) -> Iterator[str]:
    heard = findings.evidence.heard
    expected = bytearray()
    for span in findings.evidence.spans:
        voiced = findings.voiced_of(span)
        if voiced is None:
            yield f"stream {span.stream_id} of epoch {span.output_epoch} was rendered, and the trace never opened it"
            return
        if voiced.format != heard.format:
            yield f"the recording is in {heard.format}, the speech in {voiced.format}: they cannot be compared"
            return
        start, end = (voiced.format.bytes_for(sample) for sample in (span.start_sample, span.end_sample))
        expected += voiced.pcm[start:end]
    if bytes(expected) == heard.data:
        return
    if len(expected) != len(heard.data):
        samples = heard.format.samples_in(len(expected))
        yield f"the recording holds {heard.samples} samples, and {samples} samples of the speech were rendered"
    else:
        place = next(place for place, (one, other) in enumerate(zip(expected, heard.data, strict=True)) if one != other)
        yield f"the recording differs from the speech at sample {place // heard.format.bytes_per_sample}"


def _streams_are_rendered_from_their_start(findings: Findings) -> Iterator[str]:
    for stream_id, spans in findings.spans_by_stream.items():
        position = 0
        for span in spans:
            if span.start_sample > position:
                yield f"stream {stream_id} jumps from sample {position} to {span.start_sample}"
            position = span.end_sample


def _nothing_is_heard_after_its_stop(findings: Findings) -> Iterator[str]:
    for span in findings.stale_spans:
        yield f"stream {span.stream_id} was rendered up to sample {span.end_sample}, after it had been stopped"


def _no_unit_is_spoken_twice(findings: Findings) -> Iterator[str]:
    if findings.duplicate_units:
        yield f"{findings.duplicate_units} units or pieces of speech came twice"


def _queue_stays_bounded(findings: Findings) -> Iterator[str]:
    if findings.peak_queue_ms > MAX_QUEUE_MS:
        yield f"{findings.peak_queue_ms:.0f} ms of audio were queued, at most {MAX_QUEUE_MS} may be"


def _silence_follows_at_once(findings: Findings) -> Iterator[str]:
    for last_pcm_ms in findings.last_pcm_ms:
        if last_pcm_ms > MAX_LAST_PCM_MS:
            yield f"a reply was rendered until {last_pcm_ms:.0f} ms after its interruption, not {MAX_LAST_PCM_MS}"


def _turns_are_answered(findings: Findings) -> Iterator[str]:
    account = findings.account
    if not account.turns:
        yield "no turn of the user was understood"
    answered = {turn_id for reply in findings.replies for turn_id in reply.told.turn_ids}
    for turn in account.turns.values():
        if turn.turn_id in account.dropped_turns or turn.turn_id not in answered:
            yield f"the turn {turn.text!r} was not answered"


def _replies_are_settled_once(findings: Findings) -> Iterator[str]:
    for reply in findings.replies:
        count = len(reply.told.deliveries)
        if count != 1:
            yield f"the reply {_opening(reply)} has {count} delivery records"
        if reply.outcome is None:
            yield f"the reply {_opening(reply)} was never ended"


def _replies_come_through(findings: Findings) -> Iterator[str]:
    for reply in findings.replies:
        if reply.delivery in (DeliveryStatus.FAILED, DeliveryStatus.UNKNOWN):
            yield f"the delivery of the reply {_opening(reply)} is {reply.delivery}"
    for error in findings.account.errors:
        yield str(error)


def _delivery_records_are_true(findings: Findings) -> Iterator[str]:
    for reply in findings.replies:
        if reply.delivery is DeliveryStatus.DELIVERED and not reply.is_whole:
            heard = f"{reply.rendered_units} of {reply.units} units were heard"
            yield f"the reply {_opening(reply)} is called delivered, and {heard}"
        recorded = reply.record.delivery if reply.record is not None else None
        if recorded is None:
            yield f"the history does not know what was heard of the reply {_opening(reply)}"
        elif recorded.text not in (reply.delivered, reply.delivered_units):
            yield f"the history says that {recorded.text!r} was heard, and rendered was {reply.delivered!r}"


def _session_closed_as_wished(findings: Findings) -> Iterator[str]:
    closed = findings.account.closed
    if closed is None:
        yield "the session did not close"
    elif closed.error is not None:
        yield f"the session closed with an error: {closed.error}"


def _trace_replays(findings: Findings) -> Iterator[str]:
    try:
        divergence = replay(findings.evidence.trace).divergence
    except TraceError as error:
        yield str(error)
        return
    if divergence is not None:
        yield f"the replay of the trace goes another way at record {divergence.recorded.number} ({divergence.differs})"


def _opening(reply: ReplyFound) -> str:
    words = reply.generated.split()
    return repr(" ".join(words[:6]) + (" …" if len(words) > 6 else ""))


CHECKS = (
    Check("the recording holds exactly the samples that were rendered of the speech", _recording_is_what_was_rendered),
    Check("each reply was rendered from its first sample on, without a hole", _streams_are_rendered_from_their_start),
    Check("nothing of a reply was heard after its stop", _nothing_is_heard_after_its_stop),
    Check("no unit of speech came twice", _no_unit_is_spoken_twice),
    Check("the output queue stayed within its bound", _queue_stays_bounded),
    Check("silence followed each interruption at once", _silence_follows_at_once),
    Check("every committed turn was answered", _turns_are_answered),
    Check("every reply ended once and has one delivery record", _replies_are_settled_once),
    Check("every reply came through", _replies_come_through),
    Check("the history holds as heard what was rendered, and nothing more", _delivery_records_are_true),
    Check("the session closed as wished", _session_closed_as_wished),
    Check("the trace replays to the same decisions", _trace_replays),
)
"""What holds of every conversation with recordings."""
