"""A trace along time: which state each region was in, what came when, and where somebody was interrupted."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from ...statecharts.traces import Record, Trace, TraceError


class Sort(StrEnum):
    """What a fact did, as far as a timeline shows it."""

    INTERRUPTION = "interruption"
    """It interrupted a reply."""
    REFUSED_INTERRUPTION = "refused interruption"
    """It was judged, and the reply went on."""
    MOVE = "move"
    """At least one region went to another state."""
    NOTED = "noted"
    """It was taken where it came."""
    UNUSED = "unused"
    """No transition was taken: refused by a guard, or of no meaning then."""


@dataclass(frozen=True, slots=True)
class Span:
    """A region was in a state from `start_s` to `end_s`, in seconds since the trace began."""

    region: str
    state: str
    start_s: float
    end_s: float


@dataclass(frozen=True, slots=True)
class Mark:
    """One fact."""

    number: int
    at_s: float
    event: str
    sort: Sort
    told: str
    """In a few words what it did."""


@dataclass(frozen=True, slots=True)
class Timeline:
    """Everything to draw."""

    name: str
    chart: str
    start_s: float
    end_s: float
    regions: tuple[str, ...]
    spans: tuple[Span, ...]
    marks: tuple[Mark, ...]


def timeline_of(trace: Trace, from_s: float | None = None, to_s: float | None = None) -> Timeline:
    """The timeline of a trace, or of a part of it. Raises `TraceError` when there is nothing in that part."""
    first = -float("inf") if from_s is None else from_s
    last = float("inf") if to_s is None else to_s
    shown = [record for record in trace.records if first <= trace.seconds(record.at) <= last]
    if not shown:
        raise TraceError(f"{trace.name} holds no record from {first:g} s to {last:g} s")
    start_s = trace.seconds(shown[0].at) if from_s is None else from_s
    end_s = trace.seconds(shown[-1].at) if to_s is None else to_s
    names = tuple(trace.header.name_of(region) for region in trace.header.regions)
    return Timeline(
        name=trace.name,
        chart=trace.header.chart,
        start_s=start_s,
        end_s=max(end_s, start_s + 0.001),
        regions=names,
        spans=tuple(_spans(trace, shown, names, start_s, end_s)),
        marks=tuple(_mark(trace, record) for record in shown),
    )


def _spans(trace: Trace, records: list[Record], names: tuple[str, ...], start_s: float, end_s: float) -> Iterable[Span]:
    for place, region in enumerate(names):
        state, since_s = records[0].before[place], start_s
        for record in records:
            if record.before[place] != state or record.after[place] != state:
                at_s = trace.seconds(record.at)
                yield Span(region, trace.header.name_of(state), since_s, at_s)
                state, since_s = record.after[place], at_s
        yield Span(region, trace.header.name_of(state), since_s, end_s)


def _mark(trace: Trace, record: Record) -> Mark:
    moves = [
        f"{trace.header.name_of(region)} {trace.header.name_of(was)} → {trace.header.name_of(now)}"
        for region, was, now in zip(trace.header.regions, record.before, record.after, strict=True)
        if was != now
    ]
    sort = _sort(record, bool(moves))
    told = ", ".join(moves)
    if sort is Sort.INTERRUPTION:
        source = next(action["source"] for action in record.actions if action["type"] == "RecordInterruption")
        told = f"interrupted by {source}: {told}"
    return Mark(record.number, trace.seconds(record.at), record.event, sort, told)


def _sort(record: Record, moved: bool) -> Sort:
    if any(action["type"] == "RecordInterruption" for action in record.actions):
        return Sort.INTERRUPTION
    payloads = (action["payload"] for action in record.actions if action["type"] == "Publish")
    if any(isinstance(payload, dict) and payload["type"] == "InterruptionRejected" for payload in payloads):
        return Sort.REFUSED_INTERRUPTION
    if moved:
        return Sort.MOVE
    return Sort.NOTED if record.taken else Sort.UNUSED
