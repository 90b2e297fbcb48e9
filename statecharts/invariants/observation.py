"""What an invariant is given to look at, and what an invariant is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TypeVar

from ..actions import Action, Publish, Stamp
from ..chart import Step
from ..context import Context
from ..facts import Fact
from ..policies import Policies
from ..published import Payload
from .ledger import Ledger

LISTENING = frozenset({"speech", "hypothesis"})
RUNNING = frozenset({"waiting", "streaming", "tools"})
TERMINAL = frozenset({"completed", "cancelled", "failed"})
SOUNDING = frozenset({"buffering", "playing", "paused", "draining"})
"""The speaker holds a stream that it was not told to stop."""

ActionT = TypeVar("ActionT", bound=Action)
PayloadT = TypeVar("PayloadT", bound=Payload)


@dataclass(slots=True)
class Observation:
    """One macrostep, with the ledgers before and after it."""

    step: Step[Context]
    was: Ledger
    now: Ledger
    policies: Policies
    by_kind: dict[type[Action], list[Action]] = field(default_factory=dict[type[Action], list[Action]])
    left: frozenset[str] = frozenset()
    """Active leaf states before."""
    active: frozenset[str] = frozenset()
    """Active leaf states after."""

    fact: Fact = field(init=False)
    before: Context = field(init=False)
    after: Context = field(init=False)

    def __post_init__(self) -> None:
        self.fact = self.step.fact
        self.before = self.step.before.context
        self.after = self.step.after.context
        for action in self.step.actions:
            self.by_kind.setdefault(type(action), []).append(action)
        self.left = frozenset(self.step.before.leaves)
        self.active = frozenset(self.step.after.leaves)

    @property
    def stamp(self) -> Stamp:
        """The epochs in force after the macrostep."""
        return Stamp(self.after.session_epoch, self.after.output_epoch)

    @property
    def epoch_moved(self) -> bool:
        return self.after.output_epoch != self.before.output_epoch

    def of(self, kind: type[ActionT]) -> list[ActionT]:
        """The actions of that kind, in their order."""
        return self.by_kind.get(kind, [])  # pyright: ignore[reportReturnType] - filed under their own type

    def published(self, kind: type[PayloadT]) -> list[tuple[PayloadT, Publish]]:
        """The public events with that payload, in their order."""
        return [(action.payload, action) for action in self.of(Publish) if isinstance(action.payload, kind)]


Check = Callable[[Observation], Iterator[str]]
"""Yields one message for each way in which the macrostep breaks the invariant."""


@dataclass(frozen=True, slots=True)
class Invariant:
    """Something that holds after every macrostep, whatever the facts."""

    name: str
    statement: str
    check: Check
    rule: int | None = None
    """Its number in the list of the design; None for what only the regions imply."""


def invariant(rule: int | None = None) -> Callable[[Check], Invariant]:
    """Make a check an invariant: its name is the function's, its statement the docstring's first paragraph."""

    def declare(check: Check) -> Invariant:
        paragraph = (check.__doc__ or "").strip().split("\n\n")[0]
        return Invariant(check.__name__, " ".join(paragraph.split()), check, rule)

    return declare
