"""Traces and what was found in them, in lines for people and in objects for programs."""

from __future__ import annotations

import json
from collections.abc import Iterator

from ...statecharts.traces import Divergence, JsonObject, Record, Trace, TraceDifference


def header_line(trace: Trace) -> str:
    """What a trace is of."""
    header = trace.header
    texts = "texts redacted" if header.redacted else "texts shown"
    told = f"{len(trace.records)} records, {len(trace.gaps)} gaps, {texts}"
    return f"{header.chart} {header.fingerprint}, by {header.writer or 'an unnamed program'}: {told}"


def record_line(trace: Trace, record: Record) -> str:
    """One macrostep: its number, when, which event, where it led, and what was decided."""
    moves = [
        f"{trace.header.name_of(was)} → {trace.header.name_of(now)}"
        for was, now in zip(record.before, record.after, strict=True)
        if was != now
    ]
    actions = ", ".join(_kind(action) for action in record.actions)
    told = "; ".join(moves) or ("-" if record.taken else "unused")
    return f"{record.number:>6}  {trace.seconds(record.at):+9.3f} s  {record.event:<24} {told:<44} {actions}".rstrip()


def tell_divergence(trace: Trace, found: Divergence) -> Iterator[str]:
    """The first record that a replay did not repeat, with both configurations."""
    recorded, replayed = found.recorded, found.replayed
    at = f"{trace.seconds(recorded.at):+.3f} s"
    yield f"Divergence at record {recorded.number}, {recorded.event} at {at}: {found.differs}{_dotted(found.where)}"
    yield f"  before:         {trace.configuration(recorded.before)}"
    yield f"  recorded after: {trace.configuration(recorded.after)}"
    if replayed is None:
        yield f"  replayed:       {found.replayed_value}"
        return
    yield f"  replayed after: {trace.configuration(replayed.after)}"
    yield f"  recorded: {_json(found.recorded_value)}"
    yield f"  replayed: {_json(found.replayed_value)}"


def tell_difference(one: Trace, other: Trace, found: TraceDifference) -> Iterator[str]:
    """The first difference of two traces, with both configurations."""
    yield f"{_first(found)}: {found.differs}{_dotted(found.where)}"
    for trace, record, value in ((one, found.left, found.left_value), (other, found.right, found.right_value)):
        yield f"  {trace.name}: {'it is over' if record is None else trace.configuration(record.after)}"
        if found.differs != "length":
            yield f"    {_json(value)}"


def divergence_object(found: Divergence) -> JsonObject:
    """The same for a program."""
    return {
        "record": found.recorded.number,
        "event": found.recorded.event,
        "before": list(found.recorded.before),
        "recorded_after": list(found.recorded.after),
        "replayed_after": list(found.replayed.after) if found.replayed is not None else None,
        "differs": found.differs,
        "where": found.where,
        "recorded": found.recorded_value,
        "replayed": found.replayed_value,
    }


def difference_object(found: TraceDifference) -> JsonObject:
    """The same for a program."""
    return {
        "left_record": found.left.number if found.left is not None else None,
        "right_record": found.right.number if found.right is not None else None,
        "differs": found.differs,
        "where": found.where,
        "left": found.left_value,
        "right": found.right_value,
    }


def _first(found: TraceDifference) -> str:
    record = found.left or found.right
    assert record is not None
    return f"The first difference is at record {record.number}, {record.event}"


def _kind(action: JsonObject) -> str:
    """An action by its kind; a published event by its own."""
    payload = action.get("payload")
    return f"({payload['type']})" if isinstance(payload, dict) else str(action["type"])


def _dotted(where: str) -> str:
    return where if not where or where.startswith("[") else f".{where}"


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
