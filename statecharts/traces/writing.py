"""A running chart's macrosteps as the lines of a trace."""

from __future__ import annotations

import json
from dataclasses import fields
from typing import Any

from ..chart import Chart, ChartDefinition, Snapshot, Step, states_of
from ..charts import fingerprint_of, name_of
from ..context import Context, Turn
from ..conversation import Conversation
from ..identity import SeededIds
from ..policies import InterruptionPolicy, Policies
from .codec import JsonObject, TextFilter, encode, encode_fields
from .records import FORMAT, VERSION, Gap, Record, Start, Taken
from .redaction import Redactor, for_redacted

_COMPACT = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False)


class TraceEncoder:
    """Writes the lines of one chart's trace. `key` of the redaction, at least 16 random bytes; None shows texts."""

    def __init__(self, chart: Chart[Any], key: bytes | None, writer: str = "") -> None:
        definition = chart.definition
        self._rows = {id(declared): row for row, declared in enumerate(definition.anatomy.declared_transitions())}
        policies = chart.policies if isinstance(chart, Conversation) else None
        ids = chart.ids if isinstance(chart, Conversation) else None
        redactor = Redactor.for_policies(key, policies or Policies()) if key is not None else None
        self._redactor = redactor
        self._text: TextFilter | None = redactor.redact if redactor else None
        self._about: JsonObject = {
            "format": FORMAT,
            "version": VERSION,
            "writer": writer,
            "chart": name_of(definition),
            "fingerprint": fingerprint_of(definition),
            "redacted": redactor is not None,
            "regions": list(definition.anatomy.region_order),
            "names": _names_of(definition),
            "policies": encode_policies(policies, redacted=redactor is not None) if policies else None,
            "ids": {"kind": "SeededIds", "seed": ids.seed} if isinstance(ids, SeededIds) else None,
        }

    def header(self, number: int, before: Snapshot[Any]) -> str:
        """The line that begins a file, before record `number`."""
        return _line({**self._about, "start": encode(self._start(number, before))})

    def gap(self, missing: int, number: int, before: Snapshot[Any]) -> str:
        """The line that says that `missing` macrosteps before record `number` were not kept."""
        return _line(encode_fields(Gap(missing, self._start(number, before))))

    def record(self, number: int, step: Step[Any]) -> str:
        """The line of one macrostep."""
        return _line(encode_fields(self.recorded(number, step)))

    def recorded(self, number: int, step: Step[Any]) -> Record:
        """The record of one macrostep."""
        text, text_of_actions = self._text, self._text_of_actions(step)
        return Record(
            number=number,
            at=step.fact.at,
            event=step.event,
            fact=encode_fields(step.fact, text),
            before=step.before.leaves,
            after=step.after.leaves,
            taken=tuple(
                Taken(
                    taken.declared.region,
                    taken.declared.source,
                    taken.event,
                    taken.declared.target,
                    self._rows[id(taken.declared)],
                )
                for taken in step.taken
            ),
            delta=_delta(step, text),
            actions=tuple(encode_fields(action, text_of_actions) for action in step.actions),
        )

    def _text_of_actions(self, step: Step[Any]) -> TextFilter | None:
        if self._redactor is None:
            return None
        said: object = getattr(step.fact, "text", None)
        return self._redactor.of_step(said if isinstance(said, str) else None, _turns(step))

    def _start(self, number: int, snapshot: Snapshot[Any]) -> Start:
        return Start(number, snapshot.leaves, encode_fields(snapshot.context, self._text))


def encode_policies(policies: Policies, *, redacted: bool) -> JsonObject:
    """Policies as a header keeps them. Of an interruption policy of the embedder's own only the name is kept."""
    interruption = for_redacted(policies.interruption) if redacted else policies.interruption
    kind = type(interruption)
    own: JsonObject = {"kind": f"{kind.__module__}:{kind.__qualname__}"}
    if kind is InterruptionPolicy:
        own = {"kind": kind.__name__, **encode_fields(interruption)}
    encoded: JsonObject = {
        field.name: encode(getattr(policies, field.name)) for field in fields(policies) if field.name != "interruption"
    }
    return {**encoded, "interruption": own}


def _names_of(definition: type[ChartDefinition]) -> JsonObject:
    """Where they differ from the ids, which are unique in a chart."""
    return {state.state_id: state.name for state in states_of(definition) if state.name != state.state_id}


def _delta(step: Step[Any], text: TextFilter | None) -> JsonObject:
    before, after = step.before.context, step.after.context
    changed: JsonObject = {}
    for field in fields(after):
        was, now = getattr(before, field.name), getattr(after, field.name)
        if was is not now and was != now:
            changed[field.name] = encode(now, text)
    return changed


def _turns(step: Step[Any]) -> tuple[Turn, ...]:
    contexts = (step.before.context, step.after.context)
    return tuple(context.turn for context in contexts if isinstance(context, Context) and context.turn is not None)


def _line(value: JsonObject) -> str:
    return _COMPACT.encode(value) + "\n"
