"""The search: breadth first over configurations, sharing prefixes by restoring snapshots."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass

from ..chart import Snapshot, Step, transitions_of
from ..context import Context
from ..conversation import Conversation
from ..errors import ChartError
from ..facts import CloseRequested, Fact, TimerFired
from ..invariants import Ledger, Violation, check_step, unrest
from .abstraction import Abstraction
from .alphabet import NOBODY, facts_for
from .counterexample import test_of
from .report import Counterexample, Progress, ScenarioReport
from .scenario import Scenario

OnProgress = Callable[[Progress], None]

_RESTS, _OPEN, _BROKEN = -1, -2, -3
MAX_QUIET_STEPS = 200
"""More timers than this in a row, with nothing else happening, is no way to rest."""


@dataclass(slots=True)
class _Node:
    """A configuration that is still to be expanded."""

    place: int
    snapshot: Snapshot[Context]
    ledger: Ledger


class Search:
    """The exploration of one scenario."""

    def __init__(self, scenario: Scenario, *, stop_at_first: bool = False) -> None:
        self._scenario = scenario
        self._stop_at_first = stop_at_first
        self._conversation = Conversation(
            scenario.name, policies=scenario.policies, definition=scenario.definition, selection="direct"
        )
        self._steps: list[Step[Context]] = []
        self._conversation.observe(self._steps.append)
        self._ledger = Ledger()
        self._before: list[Fact] = []
        for happening in scenario.before:
            self._before.append(happening(self._conversation.context))
            self._conversation.handle(self._before[-1])
            _, self._ledger = check_step(self._steps[-1], self._ledger, scenario.policies)
        self._start = self._conversation.snapshot()
        self._abstraction = Abstraction(scenario.policies)
        lines = transitions_of(scenario.definition)
        self._lines = {id(line): place for place, line in enumerate(lines)}
        self._covered: set[tuple[int, str]] = set()
        self._places: dict[int, int] = {}
        """Place of each configuration, by the hash of its abstraction."""
        self._parents: list[int] = []
        self._by: list[Fact | None] = []
        self._quiet: list[int] = []
        """Where the earliest timer leads from each configuration, or why that is not known."""
        self._leaves: set[tuple[str, ...]] = set()
        self._found: dict[str, Counterexample] = {}
        self._count = 0

    def run(self, on_progress: OnProgress | None = None) -> ScenarioReport:
        """Walk the world to its end, or to its bounds."""
        start, scenario = self._start, self._scenario
        self._add(self._key(start), -1, None, start.leaves)
        level = [_Node(0, start, self._ledger)]
        depth = 0
        while level and not self._is_over(depth):
            deeper: list[_Node] = []
            for done, node in enumerate(level):
                if len(self._parents) >= scenario.configurations or (self._found and self._stop_at_first):
                    deeper.extend(level[done:])
                    break
                self._expand(node, deeper)
                if on_progress is not None and node.place % 200 == 0:
                    left = len(level) - done - 1 + len(deeper)
                    on_progress(
                        Progress(scenario.name, depth, len(self._parents), scenario.configurations, left, self._count)
                    )
            level = deeper
            depth += 1
        for node in level:
            self._follow_to_rest(node)
        longest = self._longest_way_to_rest()
        return ScenarioReport(
            name=self._scenario.name,
            configurations=len(self._parents),
            leaves=frozenset(self._leaves),
            steps=self._count,
            depth=depth,
            frontier=len(level),
            covered=frozenset(self._covered),
            longest_quiet_way=longest,
            violations=tuple(self._found.values()),
        )

    def _is_over(self, depth: int) -> bool:
        bound = self._scenario.depth
        enough = len(self._parents) >= self._scenario.configurations or (bound is not None and depth >= bound)
        return enough or bool(self._found and self._stop_at_first)

    # -- expanding -------------------------------------------------------------------------------------------------

    def _expand(self, node: _Node, deeper: list[_Node]) -> None:
        context = node.snapshot.context
        if not node.ledger.timers:
            self._note_rest(node)
        scenario = self._scenario
        for fact in facts_for(context, scenario.policies, scenario.capabilities, scenario.bounds):
            self._try(node, fact, deeper)
        for fact in self._passing_of_time(node):
            place = self._try(node, fact, deeper)
            if place is not None and self._quiet[node.place] == _OPEN and fact.timer_id != NOBODY:
                self._quiet[node.place] = place

    def _passing_of_time(self, node: _Node) -> Iterator[TimerFired]:
        """Every timer, the earliest at its time; and nothing at all until every window has closed."""
        now = node.snapshot.context.now
        for order, timer in enumerate(sorted(node.ledger.timers, key=lambda timer: timer.due_ns)):
            yield TimerFired(at=max(now, timer.due_ns) if order == 0 else now, timer_id=timer.timer_id)
        ahead = self._abstraction.until_windows_close(node.snapshot.context, node.snapshot.leaves)
        if ahead > 0:
            yield TimerFired(at=now + ahead, timer_id=NOBODY)

    def _try(self, node: _Node, fact: Fact, deeper: list[_Node]) -> int | None:
        """Take one step; the place of where it leads, None when it broke an invariant."""
        step = self._step(node, fact)
        if step is None:
            return None
        if _changes_nothing(step) and not isinstance(fact, TimerFired):
            return node.place
        violations, ledger = check_step(step, node.ledger, self._scenario.policies)
        if violations:
            self._report(node.place, fact, violations)
            return None
        key = self._key(step.after)
        place = self._places.get(key)
        if place is None:
            place = self._add(key, node.place, fact, step.after.leaves)
            deeper.append(_Node(place, step.after, ledger))
        return place

    def _step(self, node: _Node, fact: Fact) -> Step[Context] | None:
        conversation = self._conversation
        conversation.restore(node.snapshot)
        self._steps.clear()
        self._count += 1
        try:
            conversation.handle(fact)
        except ChartError as error:
            self._report(node.place, fact, (Violation("the_chart_does_not_break", str(error), 0),))
            return None
        step = self._steps[-1]
        for taken in step.taken:
            self._covered.add((self._lines[id(taken.declared)], taken.event))
        return step

    def _key(self, snapshot: Snapshot[Context]) -> int:
        key: Hashable = self._abstraction.key(snapshot)
        return hash(key)

    def _add(self, key: int, parent: int, fact: Fact | None, leaves: tuple[str, ...]) -> int:
        place = len(self._parents)
        self._places[key] = place
        self._parents.append(parent)
        self._by.append(fact)
        self._quiet.append(_OPEN)
        self._leaves.add(leaves)
        return place

    # -- quiet -----------------------------------------------------------------------------------------------------

    def _note_rest(self, node: _Node) -> None:
        """No timer runs: nothing will ever happen here by itself."""
        reason = unrest(frozenset(node.snapshot.leaves), node.snapshot.context)
        self._quiet[node.place] = _BROKEN if reason else _RESTS
        if reason:
            self._report(node.place, None, (Violation("a_quiet_world_leads_to_rest", reason, 0),))

    def _follow_to_rest(self, node: _Node) -> None:
        """From a configuration that was not expanded: quiet leads to rest, and closing and then quiet to closed."""
        close = CloseRequested(at=node.snapshot.context.now)
        step = self._step(node, close)
        if step is not None:
            violations, ledger = check_step(step, node.ledger, self._scenario.policies)
            self._report(node.place, close, violations)
            if not violations:
                self._follow(_Node(node.place, step.after, ledger), (close,))
        self._follow(node, ())

    def _follow(self, node: _Node, facts: tuple[Fact, ...]) -> None:
        present = node
        for _ in range(MAX_QUIET_STEPS):
            if not present.ledger.timers:
                reason = unrest(frozenset(present.snapshot.leaves), present.snapshot.context)
                if reason:
                    self._report(node.place, facts, (Violation("a_quiet_world_leads_to_rest", reason, 0),))
                return
            earliest = next(self._passing_of_time(present))
            step = self._step(present, earliest)
            if step is None:
                return
            facts = (*facts, earliest)
            violations, ledger = check_step(step, present.ledger, self._scenario.policies)
            if violations:
                self._report(node.place, facts, violations)
                return
            present = _Node(node.place, step.after, ledger)
        reason = f"after {MAX_QUIET_STEPS} timers in a row it still waits in {'/'.join(present.snapshot.leaves)}"
        self._report(node.place, facts[:20], (Violation("a_quiet_world_leads_to_rest", reason, 0),))

    def _longest_way_to_rest(self) -> int:
        """How many timers at most lead from a configuration to rest.

        A way that seems to go in circles may only be a timer that is started again while a later one comes nearer,
        which the abstraction does not see: it is walked in earnest, from where the circle is entered.
        """
        ways: dict[int, int] = {_RESTS: 0, _OPEN: 0, _BROKEN: 0}
        for place in range(len(self._quiet)):
            walked: list[int] = []
            seen: set[int] = set()
            present = place
            while present not in ways and present not in seen:
                walked.append(present)
                seen.add(present)
                present = self._quiet[present]
            if present not in ways:
                self._follow(self._again(present), ())
                ways[present] = 0
            for done in reversed(walked):
                ways.setdefault(done, ways[self._quiet[done]] + 1)
        return max(ways.values())

    def _again(self, place: int) -> _Node:
        """A configuration that was expanded, reached again."""
        node = _Node(place, self._start, self._ledger)
        for fact in self._path(place):
            step = self._step(node, fact)
            assert step is not None
            _, ledger = check_step(step, node.ledger, self._scenario.policies)
            node = _Node(place, step.after, ledger)
        return node

    # -- reporting -------------------------------------------------------------------------------------------------

    def _report(self, place: int, then: Fact | tuple[Fact, ...] | None, violations: tuple[Violation, ...]) -> None:
        """Keep the first way to break each invariant: the search is breadth first, so it is the shortest."""
        scenario = self._scenario
        for violation in violations:
            if violation.invariant in self._found:
                continue
            last = () if then is None else then if isinstance(then, tuple) else (then,)
            facts = (*self._before, *self._path(place), *last)
            self._found[violation.invariant] = Counterexample(
                scenario.name,
                violation.invariant,
                violation.message,
                facts,
                test_of(scenario, violation.invariant, violation.message, facts),
            )

    def _path(self, place: int) -> tuple[Fact, ...]:
        facts: list[Fact] = []
        while place > 0:
            fact = self._by[place]
            assert fact is not None
            facts.append(fact)
            place = self._parents[place]
        return tuple(reversed(facts))


def _changes_nothing(step: Step[Context]) -> bool:
    """No line was taken: only a broken guard could have changed anything."""
    if step.taken or step.actions or step.before.leaves != step.after.leaves:
        return False
    before, after = step.before.context, step.after.context
    return (
        before.output_epoch == after.output_epoch
        and before.session_epoch == after.session_epoch
        and before.turn is after.turn
        and before.response is after.response
        and before.output is after.output
        and before.pending is after.pending
        and before.timers == after.timers
    )
