"""Playback and history: nothing is claimed beyond what a receipt confirmed."""

from __future__ import annotations

from collections.abc import Iterator

from ..actions import OpenOutput, RecordDelivery, ReleaseOutput, ResumePlayback, StartGeneration, StoreUserTurn
from ..facts import AudioStarted, PlaybackDrained, PlaybackStopped, PrebufferFilled, StreamFact
from ..published import DeliveryRecorded, PlaybackBegan
from ..values import DeliveryStatus
from .observation import SOUNDING, Observation, invariant


@invariant(4)
def a_reply_is_delivered_once(o: Observation) -> Iterator[str]:
    """Every response gets exactly one delivery record, and the public hears of it."""
    seen: set[str] = set()
    started = {action.response_id for action in o.of(StartGeneration)}
    for record in o.of(RecordDelivery):
        if record.response_id in seen or record.response_id not in o.was.undelivered | started:
            yield f"the delivery of {record.response_id} was recorded twice, now as {record.status}"
        seen.add(record.response_id)
    told = [(publish.response_id, payload.status) for payload, publish in o.published(DeliveryRecorded)]
    if told != [(record.response_id, record.status) for record in o.of(RecordDelivery)]:
        yield f"deliveries published {told} are not those recorded"
    reply = o.after.response
    if reply is not None and (reply.delivery is None) != (reply.response_id in o.now.undelivered):
        yield f"the context says {reply.delivery} of {reply.response_id}; recorded is something else"
    awaited = {output.response_id for output in o.after.stopping}
    awaited |= {reply.response_id} if reply is not None else set[str]()
    if o.now.undelivered - awaited:
        yield f"nothing will ever be recorded of {sorted(o.now.undelivered - awaited)}"


@invariant(8)
def history_claims_what_was_confirmed(o: Observation) -> Iterator[str]:
    """A delivery record claims no sample and no unit of speech beyond what the speaker's receipts confirmed."""
    for record in o.of(RecordDelivery):
        stream = o.was.stream_of(record.response_id)
        who = f"{record.response_id} ({record.status})"
        fact = o.fact
        if stream is not None and isinstance(fact, StreamFact) and fact.stream_id == stream.stream_id:
            stream = stream.after_receipt(fact)
        rendered = stream.rendered_samples or 0 if stream is not None else 0
        if (record.played_samples or 0) > rendered:
            yield f"{who} claims {record.played_samples} played samples; receipts confirm {rendered}"
        units = {(u.unit_index, u.end_sample) for u in o.now.units | o.was.units if u.response_id == record.response_id}
        heard = {index for index, end in units if end <= rendered}
        if record.units > len(heard):
            yield f"{who} claims {record.units} units of speech; {len(heard)} lie before {rendered} samples"
        yield from (f"{who} {problem}" for problem in _problems(o, record, stream is not None))


def _problems(o: Observation, record: RecordDelivery, had_stream: bool) -> Iterator[str]:
    fact = o.fact
    match record.status:
        case DeliveryStatus.DELIVERED:
            if not isinstance(fact, PlaybackDrained):
                yield f"was claimed because of {type(fact).__name__}: only a drained stream is delivered"
        case DeliveryStatus.INTERRUPTED:
            if record.played_samples is None:
                yield "tells no position: that is unknown, not interrupted"
            if had_stream and not isinstance(fact, PlaybackStopped | PlaybackDrained):
                yield f"was claimed because of {type(fact).__name__}: only the receipt of the stop knows"
        case DeliveryStatus.UNKNOWN:
            if record.played_samples is not None:
                yield f"claims {record.played_samples} samples"
        case DeliveryStatus.TEXT_ONLY:
            if had_stream:
                yield "had an output stream"
        case DeliveryStatus.FAILED:
            pass


@invariant()
def playing_means_rendered(o: Observation) -> Iterator[str]:
    """Playback is `playing` only after a sample was rendered; its public beginning is that sample, once a stream.

    A speaker that cannot tell positions says so with None; its word that samples are rendered is taken.
    """
    output = o.after.output
    if "playing" in o.active and output is not None and not output.started:
        yield f"stream {output.stream_id} is playing, and no sample of it was rendered"
    rendered = isinstance(o.fact, PrebufferFilled) and o.fact.played_samples != 0
    if "playing" in o.active and "buffering" in o.left and not rendered:
        yield f"playing was reached from buffering by {o.fact}"
    for _, publish in o.published(PlaybackBegan):
        former = o.before.output
        if former is None or former.stream_id != publish.stream_id or former.started:
            yield f"the playback of stream {publish.stream_id} began twice, or is not open"
        if not (isinstance(o.fact, StreamFact) and o.fact.played_samples != 0):
            yield f"the playback of stream {publish.stream_id} began because of {type(o.fact).__name__}"
    reply = o.after.response
    if output is None or reply is None or output.response_id != reply.response_id:
        return
    if output.started != reply.heard:
        yield f"stream {output.stream_id} is {'' if output.started else 'not '}begun; the reply says {reply.heard}"


@invariant()
def positions_only_grow(o: Observation) -> Iterator[str]:
    """Accepted, submitted and played samples of a stream only grow; what is played is at most what receipts said."""
    former, output = o.before.output, o.after.output
    if output is None:
        return
    stream = next((known for known in o.now.streams if known.stream_id == output.stream_id), None)
    if stream is None:
        yield f"stream {output.stream_id} is open, and was never opened"
    elif (output.played_samples or 0) > (stream.rendered_samples or 0):
        yield f"stream {output.stream_id} claims {output.played_samples}; receipts say {stream.rendered_samples}"
    if former is None or former.stream_id != output.stream_id:
        return
    for name in ("accepted_samples", "submitted_samples", "underruns"):
        if getattr(output, name) < getattr(former, name):
            yield f"{name} of stream {output.stream_id} went back to {getattr(output, name)}"
    was, now = former.played_samples, output.played_samples
    if was is not None and (now is None or now < was):
        yield f"played_samples of stream {output.stream_id} went from {was} to {now}"
    if former.end_sample is not None and output.end_sample != former.end_sample:
        yield f"the end of stream {output.stream_id} moved from {former.end_sample} to {output.end_sample}"


@invariant()
def one_stream_at_a_time(o: Observation) -> Iterator[str]:
    """An output stream is opened once, for audio of the reply, under a new number, when no other one is open."""
    opened = o.of(OpenOutput)
    for action in opened:
        if action.stream_id <= o.before.streams:
            yield f"stream {action.stream_id} was opened; {o.before.streams} streams were opened before"
        if o.before.output is not None or o.left & SOUNDING:
            yield f"stream {action.stream_id} was opened over {o.before.output and o.before.output.stream_id}"
        if not isinstance(o.fact, AudioStarted):
            yield f"stream {action.stream_id} was opened because of {type(o.fact).__name__}"
        if action.response_id not in o.was.undelivered:
            yield f"stream {action.stream_id} is of {action.response_id}, whose delivery is recorded"
    known = {output.stream_id for output in (*o.after.stopping, *((o.after.output,) if o.after.output else ()))}
    live = {stream.stream_id for stream in o.now.streams}
    if known != live:
        yield f"streams {sorted(live)} have no delivery record; the context knows {sorted(known)}"


@invariant()
def a_pause_ends_where_it_began(o: Observation) -> Iterator[str]:
    """Only a held stream is released and only a paused one resumed, each once."""
    output = o.before.output
    for action in o.of(ReleaseOutput):
        if output is None or action.stream_id != output.stream_id or not output.held:
            yield f"stream {action.stream_id} was released, and was not held"
    for action in o.of(ResumePlayback):
        if "paused" not in o.left or output is None or action.stream_id != output.stream_id:
            yield f"stream {action.stream_id} was resumed, and was not paused"
        if "paused" in o.active:
            yield f"stream {action.stream_id} was resumed, and is paused still"
    if "paused" in o.left and o.active & SOUNDING - {"paused"} and not o.of(ResumePlayback):
        yield f"a paused stream is {'/'.join(o.active & SOUNDING)} again, and the speaker was not told"


@invariant()
def history_is_in_order(o: Observation) -> Iterator[str]:
    """A place in the history is given once; a reply stands after the turns it answers, where it was first heard."""
    given = o.was.places
    former, turn = o.before.turn, o.after.turn
    for stored in o.of(StoreUserTurn):
        if stored.revision == 1 and stored.position <= given:
            yield f"turn {stored.turn_id} was given place {stored.position}; {given} places were given already"
        again = former is not None and former.turn_id == stored.turn_id and former.position
        if again and stored.position != again:
            yield f"turn {stored.turn_id} moved from place {again} to {stored.position}"
    reply, was = o.after.response, o.before.response
    if reply is None:
        return
    if was is None or was.response_id != reply.response_id:
        if reply.position <= given:
            yield f"{reply.response_id} was given place {reply.position}; {given} places were given already"
        if turn is not None and turn.turn_id in reply.turn_ids and turn.position >= reply.position:
            yield f"{reply.response_id} stands at {reply.position}, before turn {turn.turn_id} at {turn.position}"
    elif reply.position != was.position and not (reply.heard and not was.heard and reply.position > given):
        yield f"{reply.response_id} moved from place {was.position} to {reply.position}"
    for record in o.of(RecordDelivery):
        known = next((x.position for x in o.before.stopping if x.response_id == record.response_id), None)
        place = known if known is not None else reply.position if record.response_id == reply.response_id else None
        if place is not None and record.position != place:
            yield f"the delivery of {record.response_id} was recorded at place {record.position}, not at {place}"


PLAYBACK = (
    a_reply_is_delivered_once,
    history_claims_what_was_confirmed,
    playing_means_rendered,
    positions_only_grow,
    one_stream_at_a_time,
    a_pause_ends_where_it_began,
    history_is_in_order,
)
