"""Why a fact was accepted, refused or ignored: the lines that were tried, their guards, and what those looked at."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from ..barge_in import BargeInRules
from ..chart import ChartDefinition
from ..charts import KnownChart
from ..errors import ChartError
from ..identity import IdSource
from ..library import Row
from ..policies import Evidence, Judgement, JudgesInterruptions, Policies
from .records import Record, Taken, Trace, TraceError
from .replaying import chart_of, ids_of, policies_of
from .watching import Looks, watched

# What a guard may trip over when it is asked with watched values: an embedder's guard that needs the very type.
_TRIPPED = (AttributeError, TypeError, LookupError, ValueError, AssertionError)


class Fate(StrEnum):
    """What became of a fact."""

    ACCEPTED = "accepted"
    """At least one transition was taken."""
    REFUSED = "refused"
    """A state that was active reacts to it, and a guard did not hold."""
    IGNORED = "ignored"
    """No state that was active reacts to it."""


@dataclass(frozen=True, slots=True)
class AskedGuard:
    """One guard and its answer."""

    name: str
    wanted: bool
    """False where the line needs it not to hold."""
    answer: bool
    meaning: str
    """The first sentence of its documentation."""
    looked_at: Looks
    """What it read, by name, as far as that can be told."""

    @property
    def held(self) -> bool:
        return self.answer is self.wanted


@dataclass(frozen=True, slots=True)
class TriedLine:
    """One transition line that the fact could have taken, in the order of trying."""

    region: str
    leaf: str
    target: str | None
    guards: tuple[AskedGuard, ...]
    """Up to and with the first that did not hold."""
    actions: tuple[str, ...]
    row: int

    @property
    def enabled(self) -> bool:
        return all(guard.held for guard in self.guards)


@dataclass(frozen=True, slots=True)
class Explanation:
    """Everything there is to say about one record."""

    record: Record
    fate: Fate
    tried: tuple[TriedLine, ...]
    followed: tuple[Taken, ...]
    """What the macrostep went on to take because of what it decided."""
    judgement: Judgement | None
    """Of the interruption policy, where it was asked or speech did not have to be."""
    evidence: Evidence | None
    """What the policy was asked about."""
    policy: JudgesInterruptions
    """The policy that was in force."""
    reacting: tuple[str, ...]
    """Leaves, active or not, that react to this event."""
    is_dead_timer: bool
    """A timer that was not running any more."""
    decides_otherwise: bool
    """This program's chart would not do what the trace says; `replay` tells where that begins."""


def explain(
    trace: Trace,
    number: int,
    chart: KnownChart | None = None,
    policies: Policies | None = None,
    ids: IdSource | None = None,
) -> Explanation:
    """Explain one record. Raises `TraceError` as `replay` does, and for a record that is not there."""
    known = chart_of(trace, chart)
    record = trace.record(number)
    asked: list[Evidence] = []
    rules = policies_of(trace, policies)
    asking = replace(rules, interruption=_Asked(rules.interruption, asked))
    try:
        running = known.resume(trace.snapshot_before(number, known), asking, ids_of(trace, ids))
    except ChartError as error:
        raise TraceError(f"{trace.name}, before record {number}: {error}") from error
    with running.considering(record.typed_fact()) as (event, rules_of_chart):
        judgement = None
        if isinstance(rules_of_chart, BargeInRules):
            judgement = rules_of_chart.judgement  # once a macrostep, and kept for the guards
            rules_of_chart.policies = rules
        tried = tuple(_tried(rules_of_chart, event))
        reacting = tuple(leaf for leaf, named in rules_of_chart.anatomy.index if named == event)
    decided = [line.row for line in tried if line.enabled]
    recorded = [taken.row for taken in record.taken]
    return Explanation(
        record=record,
        fate=Fate.ACCEPTED if recorded else Fate.REFUSED if tried else Fate.IGNORED,
        tried=tried,
        followed=record.taken[len(decided) :],
        judgement=judgement,
        evidence=asked[0] if asked else None,
        policy=rules.interruption,
        reacting=reacting,
        is_dead_timer=event == "timer_fired",
        decides_otherwise=recorded[: len(decided)] != decided or (bool(recorded) and not decided),
    )


class _Asked:
    """A policy that remembers what it was asked."""

    def __init__(self, policy: JudgesInterruptions, asked: list[Evidence]) -> None:
        self._policy = policy
        self._asked = asked

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever the policy has
        return getattr(self._policy, name)

    @property
    def word_window_ms(self) -> int:
        return self._policy.word_window_ms

    @property
    def false_alarm_ms(self) -> int:
        return self._policy.false_alarm_ms

    @property
    def full_duplex(self) -> bool:
        return self._policy.full_duplex

    def judge(self, evidence: Evidence) -> Judgement:
        self._asked.append(evidence)
        return self._policy.judge(evidence)


def _tried(rules: ChartDefinition, event: str) -> Iterator[TriedLine]:
    """Each active leaf's lines, up to the first that is enabled."""
    anatomy = rules.anatomy
    numbers = {id(declared): row for row, declared in enumerate(anatomy.declared_transitions())}
    for leaf in rules.leaves:
        for row in anatomy.index.get((leaf, event), ()):
            declared = anatomy.described[id(row.transition)]
            line = TriedLine(
                region=declared.region,
                leaf=leaf,
                target=row.leaf,
                guards=tuple(_asked(rules, row, declared.guards)),
                actions=declared.actions,
                row=numbers[id(declared)],
            )
            yield line
            if line.enabled:
                break


def _asked(rules: ChartDefinition, row: Row, names: tuple[str, ...]) -> Iterator[AskedGuard]:
    for (guard, wanted), name in zip(row.guards, names, strict=True):
        answer = bool(guard(rules))
        looks: Looks = ()
        try:
            with _watching(rules) as seen:
                if bool(guard(rules)) is answer:
                    looks = tuple(seen.items())
        except _TRIPPED:
            looks = ()
        meaning = (guard.__doc__ or "").strip().split("\n")[0].rstrip(".")
        yield AskedGuard(name.removeprefix("not "), wanted, answer, meaning, looks)
        if answer is not wanted:
            return


@contextmanager
def _watching(rules: ChartDefinition) -> Generator[dict[str, object]]:
    """While this lasts, what the guards read of the fact, the context and the policies is noted."""
    seen: dict[str, object] = {}
    real = {name: getattr(rules, name) for name in ("fact", "context", "policies") if hasattr(rules, name)}
    for name, value in real.items():
        setattr(rules, name, watched(value, "" if name == "context" else name, seen))
    try:
        yield seen
    finally:
        for name, value in real.items():
            setattr(rules, name, value)
