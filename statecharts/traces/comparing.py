"""Where two traces first part."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from itertools import zip_longest

from .codec import Json, JsonObject
from .records import Record, Trace
from .redaction import MARK
from .replaying import Divergence, first_difference

_IDENTITY_FIELD = re.compile(r"(^|_)ids?$")
_TIME_FIELD = re.compile(r"^(at|now)$|_at$")


@dataclass(frozen=True, slots=True)
class TraceDifference:
    """The first pair of records that are not the same. One of them is None where a trace is over."""

    left: Record | None
    right: Record | None
    differs: str
    """"fact", or the field of the record that differs, or "length"."""
    where: str
    left_value: Json
    right_value: Json


def first_divergence(left: Trace, right: Trace, *, exact: bool = False) -> TraceDifference | None:
    """The first difference of two traces; None when there is none.

    Two runs of the same scenario never have the same times, nor, with other seeds and keys, the same identities and
    marks of redacted texts. So unless `exact`, times and marks are not compared, and identities only by the order in
    which they come up.
    """
    ours, theirs = _Names(), _Names()
    for one, other in zip_longest(left.records, right.records):
        if one is None or other is None:
            longer = left if other is None else right
            return TraceDifference(one, other, "length", "", None, f"only {longer.name} goes on")
        found = _difference(one, other) if exact else _difference(ours.plain(one), theirs.plain(other))
        if found is not None:
            return TraceDifference(one, other, found.differs, found.where, found.recorded_value, found.replayed_value)
    return None


def _difference(one: Record, other: Record) -> Divergence | None:
    if one.fact != other.fact:
        # The same comparison, with the facts where actions are compared.
        facts = first_difference(_with_fact_as_action(one), _with_fact_as_action(other))
        if facts is not None:
            return replace(facts, differs="fact", where=facts.where.removeprefix("[0].").removeprefix("[0]"))
    return first_difference(one, other)


def _with_fact_as_action(record: Record) -> Record:
    return replace(record, event="", taken=(), after=(), delta={}, actions=(record.fact,))


class _Names:
    """Gives every identity a name by the order in which it comes up, and takes times away."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}

    def plain(self, record: Record) -> Record:
        return replace(
            record,
            at=0,
            fact=self._object(record.fact),
            delta=self._object(record.delta),
            actions=tuple(self._object(action) for action in record.actions),
        )

    def _object(self, value: JsonObject) -> JsonObject:
        return {name: self._value(name, item) for name, item in value.items() if not _TIME_FIELD.search(name)}

    def _value(self, name: str, value: Json) -> Json:
        if isinstance(value, dict):
            return self._object(value)
        if isinstance(value, list):
            return [self._value(name, item) for item in value]
        if isinstance(value, str) and (_IDENTITY_FIELD.search(name) or name in ("recognitions", "open_recognitions")):
            return self._names.setdefault(value, f"#{len(self._names) + 1}")
        if isinstance(value, str) and name == "text":
            return MARK.sub("", value)
        return value
