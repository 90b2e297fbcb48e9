"""The conversation: four orthogonal regions, one context, one macrostep a fact.

Theory of operation. The regions are declared in files of their own - `connection.py`, `input_turn.py`, `generation.py`,
`playback.py` - each a table of transition lines with its guards and actions below. They run in that order, which is
why the decision about an interruption, taken on Connection's lines before any region moves, holds for all of them.

    conversation = Conversation("kitchen", ids=SeededIds("…"))
    actions = conversation.handle(OpenRequested(at=0))

`handle` takes one fact, runs one macrostep to its end and returns what was decided, in the order in which it must be
carried out. It reads no clock, starts no task and does no I/O. The same facts always give the same actions.
"""

from __future__ import annotations

from dataclasses import dataclass

from .actions import Action
from .chart import Chart, Selection
from .connection import Connection
from .context import Context
from .declaration import Parallel
from .errors import ChartError
from .facts import Fact, TimerFired
from .generation import Generation
from .identity import IdSource, SeededIds
from .input_turn import InputTurn
from .playback import Playback, PlaybackRules
from .policies import Policies


class ConversationChart(PlaybackRules):
    """The declaration. Extend it to change a guard; hold a `Conversation` to run it."""

    class conversation(Parallel, name="Conversation"):
        """The four regions, in the order in which they run."""

        connection = Connection
        input_turn = InputTurn
        generation = Generation
        playback = Playback

    def begin(self, fact: Fact) -> None:
        """Before a macrostep: note the time, find out which timer this is, and forget the last judgement."""
        context = self.context
        context.now = max(context.now, fact.at)
        context.sequence += 1
        self.forget_judgement()
        self.limit_reached = False
        self.fired = None
        if isinstance(fact, TimerFired):
            self.fired = next((timer for timer in context.timers if timer.timer_id == fact.timer_id), None)
            context.timers = tuple(timer for timer in context.timers if timer is not self.fired)


@dataclass(frozen=True, slots=True)
class Configuration:
    """The active state of each region."""

    connection: str
    input_turn: str
    generation: str
    playback: str

    def __str__(self) -> str:
        return f"{self.connection} | {self.input_turn} | {self.generation} | {self.playback}"


class Conversation(Chart[Context]):
    """A running conversation chart.

    `session_epoch` and `output_epoch` are the first ones used, `position` the last history position that is taken; an
    embedder that restarts passes higher ones than ever before, so that no epoch is reused.
    """

    def __init__(
        self,
        conversation_id: str = "conversation",
        *,
        policies: Policies | None = None,
        ids: IdSource | None = None,
        session_epoch: int = 1,
        output_epoch: int = 1,
        position: int = 0,
        selection: Selection = "indexed",
        definition: type[ConversationChart] = ConversationChart,
    ) -> None:
        context = Context(conversation_id, session_epoch=session_epoch, output_epoch=output_epoch, positions=position)
        self._definition = definition(context, policies or Policies(), ids or SeededIds(conversation_id), selection)
        super().__init__(self._definition)

    @property
    def policies(self) -> Policies:
        return self._definition.policies

    @property
    def ids(self) -> IdSource:
        """What mints its identities."""
        return self._definition.ids

    @property
    def configuration(self) -> Configuration:
        """Where the conversation is, region by region."""
        return Configuration(*(_plain(leaf) for leaf in self.leaves))

    @property
    def is_closed(self) -> bool:
        return self.leaves[0] == "closed"

    def _begin(self, fact: Fact) -> str:
        definition = self._definition
        definition.begin(fact)
        return definition.fired.kind.value if definition.fired is not None else fact.event

    def _finish(self, actions: tuple[Action, ...]) -> tuple[Action, ...]:
        definition = self._definition
        if not definition.taken:
            definition.context.ignored += 1
        stamp = definition.stamp
        for action in actions:
            if action.stamp != stamp:
                raise ChartError(f"{type(action).__name__} was decided before the epoch moved to {stamp}")
        return actions


def _plain(leaf: str) -> str:
    """`generation_idle` is "idle": state ids are unique in a chart, names only in their region."""
    return "idle" if leaf.endswith("_idle") else leaf
