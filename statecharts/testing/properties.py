"""Property tests of the conversation: any facts, in any order, and every invariant after each of them.

    from voicechart.statecharts.testing.properties import check_conversation

    def test_my_policy_keeps_every_invariant() -> None:
        check_conversation(Policies(interruption=MyPolicy()))

Subclass `ConversationMachine` to add rules of your own, other abilities, or a chart that you extended. Needs
hypothesis.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

from ..capabilities import Capabilities, SpeakerCapabilities
from ..conversation import Conversation, ConversationChart
from ..explorer.bounds import Bounds, Family
from ..facts import CloseRequested, ConnectionReady, Fact, OpenRequested, TimerFired
from ..invariants import INVARIANTS, Checker, Invariant, unrest
from ..invariants.ledger import RunningTimer
from ..policies import Policies

try:
    from hypothesis import HealthCheck, Phase, settings
    from hypothesis import strategies as st
    from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule, run_state_machine_as_test
except ModuleNotFoundError as missing:  # pragma: no cover - only where the extra is not installed
    raise ModuleNotFoundError(
        "voicechart.statecharts.testing.properties needs hypothesis: pip install 'hypothesis>=6.140'"
    ) from missing

from .natural import next_fact
from .strategies import ROOMY, delays, late_facts, sensible_facts

MAX_QUIET_STEPS = 200


class ConversationMachine(RuleBasedStateMachine):
    """A conversation to which anything may happen. A broken invariant fails the test with the facts that led to it.

    Each rule tells one fact that makes sense in the present configuration, or one that comes too late, twice, or out of
    order; time passes or stands still. At the end a quiet world must lead to rest, and closing to closed.
    """

    policies: ClassVar[Policies] = Policies()
    capabilities: ClassVar[Capabilities] = Capabilities(
        speaker=SpeakerCapabilities(pause=True, measured_position=True), truncate_context=True
    )
    definition: ClassVar[type[ConversationChart]] = ConversationChart
    checked: ClassVar[Sequence[Invariant]] = INVARIANTS
    bounds: ClassVar[Bounds] = ROOMY

    def __init__(self) -> None:
        super().__init__()
        self.conversation = Conversation("property", policies=self.policies, definition=self.definition)
        self.checker = Checker(self.conversation, invariants=self.checked)
        self.told: list[Fact] = []
        """Every fact so far."""

    # -- for rules -------------------------------------------------------------------------------------------------

    @property
    def now(self) -> int:
        """The latest time, in nanoseconds."""
        return self.conversation.context.now

    def tell(self, fact: Fact) -> None:
        """Tell the conversation one fact. Raises `InvariantViolation` when that breaks an invariant."""
        self.conversation.handle(fact)
        self.told.append(fact)

    def tell_one_of(self, data: st.DataObject, *families: Family) -> None:
        """Tell one fact of these families that makes sense now, at once or after a while."""
        fact = data.draw(sensible_facts(self.conversation, families, self.bounds), label="fact")
        if fact is not None:
            self.tell(fact)

    def is_open(self) -> bool:
        return not self.conversation.is_closed

    def is_generating(self) -> bool:
        response = self.conversation.context.response
        return response is not None and response.outcome is None

    def may_sound(self) -> bool:
        return not self.conversation.context.reply_is_over or bool(self.conversation.context.stopping)

    def has_timers(self) -> bool:
        return bool(self.checker.ledger.timers)

    # -- rules -----------------------------------------------------------------------------------------------------

    @initialize(times=st.integers(0, 12))
    def opens(self, times: int) -> None:
        """Somewhere in an uneventful conversation."""
        self.tell(OpenRequested(at=0))
        self._go_well(times)

    @precondition(lambda self: self.is_open())
    @rule(times=st.integers(1, 8))
    def things_go_well(self, times: int) -> None:
        """The next facts of an uneventful conversation: without them few would get anywhere."""
        self._go_well(times)

    @precondition(lambda self: self.is_open())
    @rule(data=st.data())
    def somebody_speaks(self, data: st.DataObject) -> None:
        self.tell_one_of(data, Family.SPEECH)

    @precondition(lambda self: self.is_open())
    @rule(data=st.data())
    def somebody_asks(self, data: st.DataObject) -> None:
        self.tell_one_of(data, Family.TYPING, Family.BUTTONS)

    @precondition(lambda self: self.is_open())
    @rule(data=st.data())
    def speech_comes_to_nothing(self, data: st.DataObject) -> None:
        self.tell_one_of(data, Family.UNHEARD)

    @precondition(lambda self: self.is_generating())
    @rule(data=st.data())
    def the_model_works(self, data: st.DataObject) -> None:
        self.tell_one_of(data, Family.MODEL)

    @precondition(lambda self: self.is_generating())
    @rule(data=st.data())
    def the_model_uses_tools(self, data: st.DataObject) -> None:
        self.tell_one_of(data, Family.TOOLS)

    @precondition(lambda self: self.is_generating())
    @rule(data=st.data())
    def the_model_fails(self, data: st.DataObject) -> None:
        self.tell_one_of(data, Family.FAILURES)

    @precondition(lambda self: self.may_sound())
    @rule(data=st.data())
    def the_reply_is_voiced(self, data: st.DataObject) -> None:
        self.tell_one_of(data, Family.AUDIO)

    @precondition(lambda self: self.may_sound())
    @rule(data=st.data())
    def the_speaker_has_trouble(self, data: st.DataObject) -> None:
        self.tell_one_of(data, Family.TROUBLE)

    @precondition(lambda self: self.is_open())
    @rule(data=st.data(), really=st.integers(0, 3))
    def the_connection_changes(self, data: st.DataObject, really: int) -> None:
        if self.conversation.leaves[0] != "ready" or really == 0:
            families = (Family.OUTAGES,)
            ready = ConnectionReady(at=self.now, capabilities=self.capabilities)
            fact = data.draw(st.one_of(st.just(ready), sensible_facts(self.conversation, families, self.bounds)))
            if fact is not None:
                self.tell(fact)

    @precondition(lambda self: self.has_timers())
    @rule(data=st.data(), after_ns=delays(), really=st.integers(0, 2))
    def a_timer_fires(self, data: st.DataObject, after_ns: int, really: int) -> None:
        """The one that is due, or any other: a busy world is late."""
        if really == 0:
            self.tell(self._due())
        elif really == 1:
            timer = data.draw(st.sampled_from(self.checker.ledger.timers), label="timer")
            self.tell(TimerFired(at=self.now + after_ns, timer_id=timer.timer_id))

    @rule(data=st.data())
    def something_is_late(self, data: st.DataObject) -> None:
        """A fact of a dead attempt, epoch, stream, recognition or timer, or of a foreign authority."""
        fact = data.draw(late_facts(self.conversation, self.bounds), label="late")
        self.tell(fact)

    @precondition(lambda self: self.told)
    @rule(data=st.data())
    def something_is_told_again(self, data: st.DataObject) -> None:
        """The last facts, in any order, at this instant."""
        fact = data.draw(st.sampled_from(self.told[-8:]), label="again")
        if not isinstance(fact, CloseRequested):
            self.tell(replace(fact, at=self.now))

    @precondition(lambda self: self.is_open())
    @rule(really=st.integers(0, 15))
    def somebody_closes(self, really: int) -> None:
        if really == 0:
            self.tell(CloseRequested(at=self.now))

    # -- at the end ------------------------------------------------------------------------------------------------

    def teardown(self) -> None:
        """A quiet world leads to rest, and closing to closed."""
        if not self.told:
            return
        self._rest()
        self.tell(CloseRequested(at=self.now))
        self._rest()
        assert self.conversation.is_closed, f"closing led to {self.conversation.configuration}"

    def _go_well(self, times: int) -> None:
        for _ in range(times):
            fact = next_fact(self.conversation, self.capabilities)
            if fact is not None:
                self.tell(fact)

    def _rest(self) -> None:
        for _ in range(MAX_QUIET_STEPS):
            if not self.has_timers():
                reason = unrest(frozenset(self.conversation.leaves), self.conversation.context)
                assert not reason, f"a quiet world leads to rest, but {reason}"
                return
            self.tell(self._due())
        raise AssertionError(f"{MAX_QUIET_STEPS} timers in a row led to {self.conversation.configuration}, not to rest")

    def _due(self) -> TimerFired:
        first: RunningTimer = min(self.checker.ledger.timers, key=lambda timer: timer.due_ns)
        return TimerFired(at=max(self.now, first.due_ns), timer_id=first.timer_id)


def check_conversation(
    policies: Policies | None = None,
    *,
    definition: type[ConversationChart] = ConversationChart,
    machine: type[ConversationMachine] = ConversationMachine,
    examples: int = 100,
    steps: int = 40,
    derandomize: bool = False,
    shrink: bool = True,
) -> None:
    """Run a machine under these policies, with this chart: `examples` conversations of up to `steps` facts each.

    Raises `InvariantViolation`, `ChartError` or `AssertionError`, with the shortest conversation that hypothesis found.
    `derandomize`: the same conversations every time. Without `shrink` the first that fails is told as it was found.
    """
    chosen = policies if policies is not None else machine.policies

    class Checked(machine):
        pass

    Checked.policies = chosen
    Checked.definition = definition if definition is not ConversationChart else machine.definition
    run_state_machine_as_test(
        Checked,
        settings=settings(
            max_examples=examples,
            stateful_step_count=steps,
            deadline=None,
            derandomize=derandomize,
            database=None,
            phases=(Phase.explicit, Phase.generate, Phase.shrink) if shrink else (Phase.explicit, Phase.generate),
            suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large],
        ),
    )
