"""The figures: evidence put together, reply by reply. Nothing is judged here."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from ...engines.history import Reply
from ...engines.spoken import heard_end
from ...statecharts.values import DeliveryStatus, Outcome
from ..board import RenderedSpan
from .account import Account, ResponseTold, StreamTold, read_account
from .evidence import Evidence
from .witness import VoicedReply

NANOSECONDS_PER_MS = 1_000_000


@dataclass(frozen=True, slots=True)
class ReplyFound:
    """One reply: what the model wrote, and what of it was rendered."""

    told: ResponseTold
    record: Reply | None
    """What the history holds of it."""
    voiced: VoicedReply | None
    """What was synthesised; None when nothing was."""
    spans: tuple[RenderedSpan, ...]
    """What of it was rendered, in order."""

    @property
    def generated(self) -> str:
        return self.record.generated if self.record is not None else ""

    @property
    def outcome(self) -> Outcome | None:
        return self.told.outcome

    @property
    def delivery(self) -> DeliveryStatus | None:
        return self.told.deliveries[-1].status if self.told.deliveries else None

    @property
    def rendered_samples(self) -> int:
        """How far its stream was rendered."""
        return max((span.end_sample for span in self.spans), default=0)

    @property
    def rendered_ms(self) -> float:
        return self.voiced.format.duration_ms(self.rendered_samples) if self.voiced is not None else 0.0

    @property
    def synthesized_samples(self) -> int:
        return self.voiced.format.samples_in(len(self.voiced.pcm)) if self.voiced is not None else 0

    @property
    def units(self) -> int:
        """Units that were handed to the synthesiser."""
        return len(self.voiced.units) if self.voiced is not None else 0

    @property
    def rendered_units(self) -> int:
        """Units from the first on that were rendered whole."""
        count = 0
        ranges = self.voiced.ranges if self.voiced is not None else {}
        while count in ranges and ranges[count][1] <= self.rendered_samples:
            count += 1
        return count

    @property
    def is_whole(self) -> bool:
        """Everything that was to be said was synthesised and rendered."""
        return self.rendered_units == self.units and self.rendered_samples == self.synthesized_samples

    @property
    def delivered(self) -> str:
        """What reached the user of the text, by what the audio service rendered: to the last whole word where the
        synthesiser tells when words are said, else to the last whole unit.
        """
        unit = self.voiced.units.get(self.rendered_units) if self.voiced is not None else None
        if self.voiced is None or unit is None or unit.source_start == unit.source_end:
            return self.delivered_units
        words = self.voiced.words.of(unit.index)
        end = heard_end(self.generated, unit, words, self.rendered_samples)
        return self.delivered_units if end is None else self.generated[:end].strip()

    @property
    def delivered_units(self) -> str:
        """The same to the last whole unit: all that can be remembered where the position is estimated."""
        if self.delivery is DeliveryStatus.TEXT_ONLY:
            return self.generated.strip()
        if self.rendered_units == 0 or self.voiced is None:
            return ""
        if self.delivery is DeliveryStatus.DELIVERED and self.is_whole:
            return self.generated.strip()
        return self.generated[: self.voiced.units[self.rendered_units - 1].source_end].strip()

    @property
    def first_rendered_at(self) -> int | None:
        return min((span.rendered_at_ns for span in self.spans), default=None)

    @property
    def heard_before_generated(self) -> bool:
        """Its first audio was rendered before the model had ended."""
        first, ended = self.first_rendered_at, self.told.ended_at
        return first is not None and ended is not None and first < ended


class Findings:
    """Looks into the evidence. Raises `TraceError` for a trace that this version does not know."""

    def __init__(self, evidence: Evidence) -> None:
        self.evidence = evidence
        self.account: Account = read_account(evidence.trace)

    @cached_property
    def spans_by_stream(self) -> dict[int, list[RenderedSpan]]:
        """The render log, stream by stream."""
        spans: defaultdict[int, list[RenderedSpan]] = defaultdict(list)
        for span in self.evidence.spans:
            spans[span.stream_id].append(span)
        return dict(spans)

    @cached_property
    def replies(self) -> tuple[ReplyFound, ...]:
        """In the order in which they were begun."""
        return tuple(self._reply(told) for told in self.account.responses.values())

    def voiced_of(self, span: RenderedSpan) -> VoicedReply | None:
        """What was synthesised for the stream of that span; None when the trace knows no such stream."""
        stream = self.account.streams.get(span.stream_id)
        if stream is None or stream.output_epoch != span.output_epoch:
            return None
        return self._voiced(stream.response_id)

    @cached_property
    def stale_spans(self) -> tuple[RenderedSpan, ...]:
        """Rendered although it must not have been: beyond the receipt of its stop, or behind audio of a newer epoch."""
        stale: list[RenderedSpan] = []
        newest_epoch = -1
        for span in self.evidence.spans:
            newest_epoch = max(newest_epoch, span.output_epoch)
            if span.output_epoch < newest_epoch or self._is_beyond_its_stop(span):
                stale.append(span)
        return tuple(stale)

    @cached_property
    def last_pcm_ms(self) -> tuple[float, ...]:
        """For each interruption: how long after its acceptance the last sample of the reply was rendered; 0: none."""
        found: list[float] = []
        for interruption in self.account.interruptions:
            spans = self._spans_of(interruption.response_id)
            last = max((span.rendered_at_ns for span in spans), default=interruption.at)
            found.append(max(0, last - interruption.at) / NANOSECONDS_PER_MS)
        return tuple(found)

    @cached_property
    def duplicate_units(self) -> int:
        """Units synthesised or handed over again, and samples rendered again, each counted once."""
        told_again = sum(count - 1 for count in self.account.units.values())
        handed_again = sum(reply.repeated_units for reply in self.evidence.voiced)
        rendered_again = sum(
            span.start_sample < former.end_sample
            for spans in self.spans_by_stream.values()
            for former, span in pairwise(spans)
        )
        return told_again + handed_again + rendered_again

    @cached_property
    def peak_queue_ms(self) -> float:
        """The most audio of one stream that was accepted and not yet rendered, by the receipts."""
        return max((_queued_ms(stream) for stream in self.account.streams.values()), default=0.0)

    def _reply(self, told: ResponseTold) -> ReplyFound:
        records = (record for record in self.evidence.records if isinstance(record, Reply))
        record = next((record for record in records if record.response_id == told.response_id), None)
        return ReplyFound(told, record, self._voiced(told.response_id), self._spans_of(told.response_id))

    def _voiced(self, response_id: str) -> VoicedReply | None:
        return next((reply for reply in self.evidence.voiced if reply.response_id == response_id), None)

    def _spans_of(self, response_id: str) -> tuple[RenderedSpan, ...]:
        streams = (stream for stream in self.account.streams.values() if stream.response_id == response_id)
        return tuple(span for stream in streams for span in self.spans_by_stream.get(stream.stream_id, ()))

    def _is_beyond_its_stop(self, span: RenderedSpan) -> bool:
        stream = self.account.streams.get(span.stream_id)
        if stream is None or stream.stopped_at is None:
            return False
        beyond = stream.stopped_position is not None and span.end_sample > stream.stopped_position
        return beyond or span.rendered_at_ns > stream.stopped_at


def _queued_ms(stream: StreamTold) -> float:
    return stream.peak_queued_samples * 1_000 / stream.sample_rate_hz
