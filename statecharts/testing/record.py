"""What a scripted conversation decided, in the words in which one asks about it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeVar

from ..actions import (
    Action,
    CancelGeneration,
    ExecuteTool,
    Publish,
    RecordDelivery,
    RecordInterruption,
    RecordResponse,
    RecordToolOutcome,
    StartGeneration,
    StopPlayback,
    StoreUserTurn,
)
from ..facts import Fact
from ..published import Payload
from ..values import DeliveryStatus, InterruptionSource, Outcome, ToolStatus

ActionT = TypeVar("ActionT", bound=Action)
PayloadT = TypeVar("PayloadT", bound=Payload)


@dataclass(frozen=True, slots=True)
class Entry:
    """One macrostep: a fact, and the actions in the order in which they must be carried out."""

    fact: Fact
    actions: tuple[Action, ...]


@dataclass(slots=True)
class Record:
    """All macrosteps so far."""

    entries: list[Entry] = field(default_factory=list[Entry])

    # -- looking ---------------------------------------------------------------------------------------------------

    @property
    def last(self) -> tuple[Action, ...]:
        """The actions of the latest macrostep."""
        return self.entries[-1].actions

    @property
    def actions(self) -> tuple[Action, ...]:
        """Every action, in order."""
        return tuple(action for entry in self.entries for action in entry.actions)

    def of(self, kind: type[ActionT]) -> list[ActionT]:
        """Every action of that kind, in order."""
        return [action for action in self.actions if isinstance(action, kind)]

    def published(self, kind: type[PayloadT]) -> list[PayloadT]:
        """Every published payload of that kind, in order."""
        return [action.payload for action in self.of(Publish) if isinstance(action.payload, kind)]

    # -- the user's side -------------------------------------------------------------------------------------------

    def committed_turns(self) -> list[str]:
        """The text of each committed user turn as it stands now, in the order of the history."""
        stored = {action.turn_id: action for action in self.of(StoreUserTurn)}
        return [action.text for action in sorted(stored.values(), key=lambda action: action.position)]

    def answers(self) -> list[tuple[str, ...]]:
        """For each reply that was started, the texts of the turns it answers, as they stood then."""
        texts: dict[str, str] = {}
        answered: dict[str, tuple[str, ...]] = {}
        for action in self.actions:
            if isinstance(action, StoreUserTurn):
                texts[action.turn_id] = action.text
            elif isinstance(action, StartGeneration):
                answered.setdefault(action.response_id, tuple(texts[turn_id] for turn_id in action.turn_ids))
        return list(answered.values())

    # -- the assistant's side --------------------------------------------------------------------------------------

    def replies(self) -> list[str]:
        """The identities of the responses that were started, in order."""
        return list(dict.fromkeys(action.response_id for action in self.of(StartGeneration)))

    def delivery_of(self, response_id: str) -> RecordDelivery:
        """The one delivery record of that response. Raises `AssertionError` when there is none, or more than one."""
        return _the_only([a for a in self.of(RecordDelivery) if a.response_id == response_id], "delivery", response_id)

    def deliveries(self) -> list[DeliveryStatus]:
        """The status of each delivery record, in the order in which they were written."""
        return [action.status for action in self.of(RecordDelivery)]

    def outcome_of(self, response_id: str) -> Outcome:
        """The one terminal outcome of that response. Raises `AssertionError` as `delivery_of` does."""
        terminals = [a for a in self.of(RecordResponse) if a.response_id == response_id]
        return _the_only(terminals, "terminal outcome", response_id).outcome

    def tool_outcome_of(self, call_id: str) -> ToolStatus:
        """The one outcome of that tool call. Raises `AssertionError` as `delivery_of` does."""
        outcomes = [a for a in self.of(RecordToolOutcome) if a.call_id == call_id]
        return _the_only(outcomes, "outcome", call_id).status

    def tool_runs(self) -> list[str]:
        """The calls that were dispatched, in order."""
        return [action.call_id for action in self.of(ExecuteTool)]

    def interruptions(self) -> list[InterruptionSource]:
        """The source of each recorded interruption."""
        return [action.source for action in self.of(RecordInterruption)]

    def cancelled_attempts(self) -> list[str]:
        """The attempts that a model was asked to end."""
        return [action.attempt_id for action in self.of(CancelGeneration)]

    def history(self) -> list[str]:
        """What is remembered, in its order: "user: …" and "assistant: <units heard> <status>"."""
        lines = {action.turn_id: (action.position, f"user: {action.text}") for action in self.of(StoreUserTurn)}
        for action in self.of(RecordDelivery):
            lines[action.response_id] = (action.position, f"assistant: {action.units} {action.status}")
        return [line for _, line in sorted(lines.values())]

    # -- order -----------------------------------------------------------------------------------------------------

    def assert_silenced_before(self, kind: type[Action]) -> None:
        """In the latest macrostep the speaker is told to stop before anything of that kind happens."""
        kinds = [type(action) for action in self.last]
        assert StopPlayback in kinds, f"nothing stopped the speaker: {_names(kinds)}"
        assert kind in kinds, f"there is no {kind.__name__}: {_names(kinds)}"
        assert kinds.index(StopPlayback) < kinds.index(kind), f"too late: {_names(kinds)}"

    def assert_in_order(self, *kinds: type[Action]) -> None:
        """In the latest macrostep these kinds occur, and in this order."""
        found = [type(action) for action in self.last if type(action) in kinds]
        assert list(dict.fromkeys(found)) == list(kinds), f"expected {_names(kinds)}, found {_names(found)}"


def _the_only(found: list[ActionT], what: str, of: str) -> ActionT:
    assert len(found) == 1, f"{of} has {len(found)} records of its {what}, not one: {found}"
    return found[0]


def _names(kinds: list[type[Action]] | tuple[type[Action], ...]) -> str:
    return ", ".join(kind.__name__ for kind in kinds)
