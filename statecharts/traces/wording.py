"""An explanation in words: one sentence, and what stands behind it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import TYPE_CHECKING, cast

from .explaining import AskedGuard, Explanation, Fate, TriedLine
from .records import Taken, Trace

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

_MAX_LETTERS = 60
_MAX_ITEMS = 8
_MAX_REACTING = 6


def sentence_of(trace: Trace, explanation: Explanation) -> str:
    """Why, in one sentence."""
    record = explanation.record
    what = f"Record {record.number}, {record.event} at {trace.seconds(record.at):+.3f} s,"
    if explanation.fate is Fate.IGNORED:
        return f"{what} was ignored: {_nothing_reacts(trace, explanation)}."
    if explanation.fate is Fate.REFUSED:
        reasons = dict.fromkeys(_refusal(trace, line) for line in explanation.tried)
        return f"{what} was refused: {'; '.join(reasons)}."
    moves = [_move(trace, line) for line in explanation.tried if line.enabled]
    did = "was accepted" if _changes_something(explanation) else "was accepted and changed nothing"
    return f"{what} {did}: {'; '.join([*moves, *_consequences(trace, explanation)])}."


def details_of(trace: Trace, explanation: Explanation) -> Iterator[str]:
    """Every line that was tried, with its guards and what they looked at; and what the policy judged."""
    if explanation.decides_otherwise:
        yield "This program's chart would decide otherwise: `trace replay` tells where that begins."
    for line in explanation.tried:
        yield f"{_way(trace, line)}{'' if line.enabled else '  (not taken)'}"
        for guard in line.guards:
            answer = "yes" if guard.answer else "no"
            yield f"    {'' if guard.wanted else 'not '}{guard.name}? {answer}{_meaning(guard)}"
            yield from (f"        {name} = {shown_value(trace, name, value)}" for name, value in guard.looked_at)
        if line.enabled and line.actions:
            yield f"    / {', '.join(line.actions)}"
    if explanation.judgement is not None:
        yield f"The interruption was judged: {explanation.judgement.verdict} ({explanation.judgement.reason})."
    if explanation.evidence is not None:
        yield f"    asked about: {_fields(explanation.evidence)}"
        if is_dataclass(explanation.policy):
            yield f"    by {type(explanation.policy).__name__}: {_fields(explanation.policy)}"


def _nothing_reacts(trace: Trace, explanation: Explanation) -> str:
    if explanation.is_dead_timer:
        return "its timer was not running any more: it was cancelled, superseded, or had fired already"
    record = explanation.record
    where = trace.configuration(record.before)
    would = [trace.header.name_of(leaf) for leaf in explanation.reacting[:_MAX_REACTING]]
    more = ", …" if len(explanation.reacting) > _MAX_REACTING else ""
    return f"nothing in {where} reacts to it" + (f" ({', '.join(would)}{more} would)" if would else "")


def _refusal(trace: Trace, line: TriedLine) -> str:
    guard = line.guards[-1]
    looks = ", ".join(f"{name} = {shown_value(trace, name, value)}" for name, value in guard.looked_at)
    verb = "did not hold" if guard.wanted else "held"
    return f"{_place(trace, line)} needs {_need(guard)}, but {guard.name} {verb}{f' ({looks})' if looks else ''}"


def _move(trace: Trace, line: TriedLine) -> str:
    leaf = trace.header.name_of(line.leaf)
    way = f"stayed in {leaf}" if line.target is None else f"went from {leaf} to {trace.header.name_of(line.target)}"
    because = " and ".join(_need(guard) for guard in line.guards)
    return f"{trace.header.name_of(line.region)} {way}{f' because {because}' if because else ''}"


def _consequences(trace: Trace, explanation: Explanation) -> Iterator[str]:
    if explanation.judgement is not None and any("interruption" in action for action in _actions(explanation)):
        yield f"the interruption policy answered {explanation.judgement.verdict} ({explanation.judgement.reason})"
    by_event: dict[str, list[Taken]] = {}
    for taken in explanation.followed:
        by_event.setdefault(taken.event, []).append(taken)
    for event, moves in by_event.items():
        yield f"that decided {event}, by which {' and '.join(_follow(trace, taken) for taken in moves)}"


def _follow(trace: Trace, taken: Taken) -> str:
    region = trace.header.name_of(taken.region)
    source = trace.header.name_of(taken.source)
    return f"{region} {'acted in' if taken.target is None else 'left'} {source}" + (
        f" for {trace.header.name_of(taken.target)}" if taken.target is not None else ""
    )


def _changes_something(explanation: Explanation) -> bool:
    record = explanation.record
    return record.before != record.after or bool(record.actions) or bool(_actions(explanation))


def _actions(explanation: Explanation) -> list[str]:
    return [action for line in explanation.tried if line.enabled for action in line.actions]


def _way(trace: Trace, line: TriedLine) -> str:
    target = f" -> {trace.header.name_of(line.target)}" if line.target is not None else ", staying"
    return f"{trace.header.name_of(line.region)}: {trace.header.name_of(line.leaf)}{target}"


def _place(trace: Trace, line: TriedLine) -> str:
    target = f" to {trace.header.name_of(line.target)}" if line.target is not None else ""
    return f"{trace.header.name_of(line.region)} in {trace.header.name_of(line.leaf)}{target}"


def _need(guard: AskedGuard) -> str:
    return guard.name if guard.wanted else f"not {guard.name}"


def _meaning(guard: AskedGuard) -> str:
    return f"  ({guard.meaning})" if guard.meaning else ""


def _fields(value: DataclassInstance) -> str:
    return ", ".join(f"{field.name} = {_letters(getattr(value, field.name))}" for field in fields(value))


def shown_value(trace: Trace, name: str, value: object) -> str:
    """A value as people read it; times since the trace began."""
    last = name.rpartition(".")[2]
    if isinstance(value, int) and not isinstance(value, bool) and (last in ("at", "now") or last.endswith("_at")):
        return f"{trace.seconds(value):+.3f} s"
    return _letters(value)


def _letters(value: object) -> str:
    if isinstance(value, Enum):
        return str(value.value)
    if isinstance(value, str):
        return repr(value) if len(value) <= _MAX_LETTERS else f"{value[:_MAX_LETTERS]!r}…"
    if isinstance(value, tuple | frozenset):
        items = list(cast("tuple[object, ...]", value))
        if any(is_dataclass(item) for item in items):
            return f"{len(items)} × {type(items[0]).__name__}"
        letters = sorted(map(_letters, items)) if isinstance(value, frozenset) else list(map(_letters, items))
        return f"({', '.join(letters)})" if len(letters) <= _MAX_ITEMS else f"{len(letters)} items"
    return str(value)
