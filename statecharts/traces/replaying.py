"""Replay: the same facts, given to a fresh chart, give the same macrosteps. Or where they first do not."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from ..chart import Chart, Step
from ..charts import CHARTS, KnownChart, fingerprint_of
from ..errors import ChartError
from ..identity import IdSource, SeededIds
from ..policies import Policies
from .codec import Json, encode
from .reading import decode_policies
from .records import Record, Trace, TraceError, snapshot_of
from .redaction import for_redacted
from .writing import TraceEncoder

_COMPARED = ("event", "taken", "after", "actions", "delta")


@dataclass(frozen=True, slots=True)
class Divergence:
    """The first record whose replay was another."""

    recorded: Record
    replayed: Record | None
    """None when the chart refused the fact."""
    differs: str
    """The first field of the record that differs, or "refused"."""
    recorded_value: Json
    replayed_value: Json
    """What exactly is not the same, as deep as it can be told."""
    where: str
    """Where in that field."""


@dataclass(frozen=True, slots=True)
class Replay:
    """What a replay found."""

    facts: int
    actions: int
    gaps: int
    """Macrosteps that the trace says are missing; the replay went on behind them."""
    divergence: Divergence | None


def chart_of(trace: Trace, chart: KnownChart | None = None) -> KnownChart:
    """The chart that made the trace. Raises `TraceError` for an unknown one or another version of it."""
    header = trace.header
    known = chart or CHARTS.get(header.chart)
    if known is None:
        raise TraceError(f"{trace.name} is of the chart {header.chart!r}, not one of {', '.join(CHARTS)}")
    fingerprint = fingerprint_of(known.definition)
    if fingerprint != header.fingerprint:
        raise TraceError(
            f"{trace.name} was made by version {header.fingerprint} of the chart {header.chart} "
            f"({header.writer or 'unknown program'}), and this is {fingerprint}: that needs the program that wrote "
            "it; show, timeline and diff work here"
        )
    return known


def policies_of(trace: Trace, policies: Policies | None = None) -> Policies:
    """The policies to replay under; given ones stand for what the header cannot hold. Raises `TraceError`."""
    if policies is not None:
        return (
            replace(policies, interruption=for_redacted(policies.interruption)) if trace.header.redacted else policies
        )
    return decode_policies(trace.header.policies) if trace.header.policies is not None else Policies()


def ids_of(trace: Trace, ids: IdSource | None = None) -> IdSource:
    """The identities to replay with. Raises `TraceError` when the trace needs them and cannot tell."""
    if ids is not None:
        return ids
    said = trace.header.ids
    if said is not None and isinstance(seed := said.get("seed"), str):
        return SeededIds(seed)
    if trace.header.policies is None:
        return SeededIds()
    raise TraceError(f"{trace.name} does not say where its identities came from: hand the source over to replay it")


def replay(
    trace: Trace, chart: KnownChart | None = None, policies: Policies | None = None, ids: IdSource | None = None
) -> Replay:
    """Feed the facts of a trace to a fresh chart, up to the first divergence.

    Raises `TraceError` when the trace cannot be replayed here: of an unknown chart, of another version, under policies
    or identities of an embedder that were not handed over, or with facts that this version does not know.
    """
    known = chart_of(trace, chart)
    rules, source = policies_of(trace, policies), ids_of(trace, ids)
    starts = trace.starts()
    replayer: _Replayer | None = None
    actions = 0
    for place, record in enumerate(trace.records):
        if replayer is None or record.number in starts:
            replayer = _Replayer(_resumed(trace, record, known, rules, source))
        divergence = replayer.step(record)
        actions += len(record.actions)
        if divergence is not None:
            return Replay(place + 1, actions, len(trace.gaps), divergence)
    return Replay(len(trace.records), actions, len(trace.gaps), None)


def _resumed(trace: Trace, record: Record, known: KnownChart, rules: Policies, source: IdSource) -> Chart[Any]:
    start = trace.starts().get(record.number)
    if start is None:
        raise TraceError(f"{trace.name} does not say where the chart stood before record {record.number}")
    try:
        return known.resume(snapshot_of(start, known), rules, source)
    except ChartError as error:
        raise TraceError(f"{trace.name}, before record {record.number}: {error}") from error


class _Replayer:
    """A running chart whose macrosteps are recorded as the trace's were."""

    def __init__(self, chart: Chart[Any]) -> None:
        self._chart = chart
        self._encoder = TraceEncoder(chart, None)
        self._seen: list[Step[Any]] = []
        chart.observe(self._seen.append)

    def step(self, record: Record) -> Divergence | None:
        fact = record.typed_fact()
        self._seen.clear()
        try:
            self._chart.handle(fact)
        except ChartError as error:
            return Divergence(record, None, "refused", None, str(error), "")
        return first_difference(record, self._encoder.recorded(record.number, self._seen[0]))


def first_difference(recorded: Record, replayed: Record) -> Divergence | None:
    """The first field in which two records of one macrostep differ."""
    for name in _COMPARED:
        was, now = getattr(recorded, name), getattr(replayed, name)
        if was != now:
            where, left, right = _deepest(encode(was), encode(now), "")
            return Divergence(recorded, replayed, name, left, right, where)
    return None


def _deepest(was: Json, now: Json, where: str) -> tuple[str, Json, Json]:
    """Follow a difference down to the one value that is not the same."""
    if isinstance(was, dict) and isinstance(now, dict) and was.get("type") == now.get("type"):
        for name in (*was, *(name for name in now if name not in was)):
            if name not in was or name not in now or was[name] != now[name]:
                return _deepest(was.get(name), now.get(name), f"{where}.{name}" if where else name)
    if isinstance(was, list) and isinstance(now, list):
        for place, (left, right) in enumerate(zip(was, now, strict=False)):
            if left != right:
                return _deepest(left, right, f"{where}[{place}]")
        place = min(len(was), len(now))
        return f"{where}[{place}]", was[place] if place < len(was) else None, now[place] if place < len(now) else None
    return where, was, now
