"""Traces: what happened to a chart, macrostep by macrostep, as values that can be written, read and replayed.

Theory of operation. A trace begins with a *header*: which chart, in which version (`fingerprint_of`), under which
policies and identities, and where it stood - leaves and whole context. Then comes one *record* a macrostep: the fact,
the transitions taken, the leaves before and after, what changed in the context, and the actions. From a header and its
facts everything else follows, which is what `replay` proves. A *gap* says how many macrosteps are missing and where
the chart stood after them; a further header of the same chart, as at the start of a rotated file, does the same.

A trace holds no audio and no secrets, because facts and actions do not. Texts are redacted (`redaction.py`) unless they
were asked for.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from ..actions import Action
from ..chart import Snapshot
from ..charts import KnownChart
from ..facts import Fact
from .codec import CodecError, Json, JsonObject, decode

FORMAT = "voicechart-trace"
VERSION = 1


class TraceError(Exception):
    """A trace that cannot be read, or not for this purpose. The text says which, where and what to do."""


@dataclass(frozen=True, slots=True)
class Start:
    """Where a chart stood before record `number`."""

    number: int
    leaves: tuple[str, ...]
    context: JsonObject


@dataclass(frozen=True, slots=True)
class Header:
    """What a trace is of."""

    chart: str
    fingerprint: str
    redacted: bool
    start: Start
    regions: tuple[str, ...]
    """In the order of the leaves."""
    names: JsonObject = field(default_factory=dict[str, Json])
    """What leaves and regions are called where that is not their id."""
    writer: str = ""
    """The program that wrote it, with its version."""
    policies: JsonObject | None = None
    """None for a chart without policies."""
    ids: JsonObject | None = None
    """None where identities come from a source that a trace cannot rebuild, or not at all."""

    def name_of(self, state: str) -> str:
        """What a leaf or a region is called."""
        name = self.names.get(state)
        return name if isinstance(name, str) else state


@dataclass(frozen=True, slots=True)
class Gap:
    """`gap` macrosteps are missing here."""

    gap: int
    start: Start


@dataclass(frozen=True, slots=True)
class Taken:
    """One transition taken. `row`: its place among the chart's declared transitions."""

    region: str
    source: str
    event: str
    target: str | None
    row: int


@dataclass(frozen=True, slots=True)
class Record:
    """One macrostep."""

    number: int
    at: int
    """The fact's time, monotonic nanoseconds."""
    event: str
    """The name under which the chart took the fact."""
    fact: JsonObject
    before: tuple[str, ...]
    after: tuple[str, ...]
    taken: tuple[Taken, ...]
    delta: JsonObject
    """The fields of the context that changed, whole."""
    actions: tuple[JsonObject, ...]

    def typed_fact(self) -> Fact:
        """The fact as a value. Raises `TraceError` for one that this version does not know."""
        return known(Fact, self.fact, f"record {self.number}, fact")

    def typed_actions(self) -> tuple[Action, ...]:
        """The actions as values. Raises `TraceError` for one that this version does not know."""
        return tuple(
            known(Action, action, f"record {self.number}, action {place}") for place, action in enumerate(self.actions)
        )


@dataclass(frozen=True)
class Trace:
    """A trace that was read."""

    name: str
    header: Header
    records: tuple[Record, ...]
    gaps: tuple[Gap, ...] = ()
    restarts: tuple[Start, ...] = ()
    """Where a further header begins a file."""
    is_truncated: bool = False
    """The last line was cut off and left out."""

    @cached_property
    def _places(self) -> dict[int, int]:
        return {record.number: place for place, record in enumerate(self.records)}

    def record(self, number: int) -> Record:
        """The record of that number. Raises `TraceError`, which names the range."""
        place = self._places.get(number)
        if place is None:
            held = f"it holds {self.records[0].number} to {self.records[-1].number}" if self.records else "it is empty"
            raise TraceError(f"{self.name} has no record {number}: {held}")
        return self.records[place]

    def configuration(self, leaves: tuple[str, ...]) -> str:
        """Leaves as people read them: "ready | idle | idle | idle"."""
        return " | ".join(map(self.header.name_of, leaves))

    def seconds(self, at: int) -> float:
        """A time of the trace, since its first record."""
        return (at - self.records[0].at) / 1_000_000_000 if self.records else 0.0

    def starts(self) -> dict[int, Start]:
        """By the number of the record that follows: where the chart stood, as far as the trace says so outright."""
        said = (self.header.start, *(gap.start for gap in self.gaps), *self.restarts)
        return {start.number: start for start in said}

    def contexts(self) -> Iterator[tuple[Record, JsonObject]]:
        """Each record with the context before it."""
        starts = self.starts()
        context: JsonObject = {}
        for record in self.records:
            if record.number in starts:
                context = starts[record.number].context
            yield record, context
            context = {**context, **record.delta}

    def snapshot_before(self, number: int, chart: KnownChart) -> Snapshot[Any]:
        """Where the chart stood before that record. Raises `TraceError`."""
        wanted = self.record(number)
        context = next(context for record, context in self.contexts() if record is wanted)
        return snapshot_of(Start(number, wanted.before, context), chart)


def snapshot_of(start: Start, chart: KnownChart) -> Snapshot[Any]:
    """A start as a snapshot to restore. Raises `TraceError` for a context that this version does not know."""
    return Snapshot(start.leaves, known(chart.context, start.context, f"context before record {start.number}"))


def known(kind: type[Any], raw: Json, where: str) -> Any:  # noqa: ANN401 - of the kind that was asked for
    """A value that was read. Raises `TraceError` when this version does not know it."""
    try:
        return decode(kind, raw, where)
    except CodecError as error:
        raise TraceError(f"{error}; was it written by another version?") from error
