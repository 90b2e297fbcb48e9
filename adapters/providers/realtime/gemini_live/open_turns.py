"""The turns of the model that are under way, as this side begins, interrupts and leaves them. No I/O.

The service names nothing. It speaks one turn after another, so that everything it says is of the first one that can
still speak. One that nobody wants any more stays until its end, and what comes of it is dropped.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator

from .....engines.realtime import ToolOutput
from .....engines.realtime.reports import AnswerStopped
from ...realtime_protocol import Told
from .turn import Turn

SETTLES_WITHIN_S = 1.0
"""How long after an interruption something may still come of a turn of which nothing has come."""
SILENT_AFTER_S = 3.0
"""For so long what is written waits for the beginning of a turn, to be told from it; then it interrupts it first."""


class OpenTurns:
    """In the order in which they were begun. `clock`: seconds, for what is due."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._open: deque[Turn] = deque()

    def begin(self, answer_id: str | None) -> None:
        """Something was sent that makes the model speak. None: what it says is not wanted."""
        self._open.append(Turn(answer_id, self._clock(), is_over=answer_id is None))

    def cancel(self, answer_id: str) -> Iterator[Told]:
        """Nothing can be said to the service: what still comes of it is dropped here."""
        for turn in self._open:
            if turn.answer_id == answer_id and turn.is_listened_to:
                turn.drop()
                yield AnswerStopped(answer_id)

    def interrupt(self) -> None:
        """Something was sent that interrupts whatever the model is saying, and discards the calls it waits for."""
        now = self._clock()
        for turn in self._open:
            if turn.interrupted_at is None:
                turn.interrupted_at = now

    def drop(self) -> None:
        """The user has gone on to something else: nothing that is under way is wanted."""
        for turn in self._open:
            turn.drop()

    @property
    def is_answering(self) -> bool:
        """Somebody listens to what the model is saying."""
        return any(turn.is_listened_to for turn in self._open)

    @property
    def is_wanted(self) -> bool:
        """What the model said may still be playing, or its calls be under way."""
        return any(turn.is_wanted for turn in self._open)

    def wanted_outputs(self, outputs: Iterable[ToolOutput]) -> list[ToolOutput]:
        """Those that the model still waits for."""
        turn = self._awaiting()
        return [] if turn is None else [output for output in outputs if output.call_id in turn.open_calls]

    def give(self, outputs: Iterable[ToolOutput], answer_id: str | None) -> Iterator[Told]:
        """They were sent, and make the model go on: that is the answer, if anybody wants it."""
        turn = self._awaiting()
        if turn is None:
            return
        for output in outputs:
            turn.open_calls.pop(output.call_id, None)
        if answer_id is None:
            turn.drop()
        turn.asked_at = self._clock()
        yield from turn.go_on(answer_id)

    def _awaiting(self) -> Turn | None:
        """The turn whose calls are waited for; an interruption has discarded them."""
        front = self._open[0] if self._open else None
        return front if front is not None and front.awaits_tools and front.interrupted_at is None else None

    def may_follow(self, *, spoken: bool) -> bool:
        """Another turn can be begun so that it can be told from those under way.

        `spoken`: they were interrupted before, by the beginning of an activity. A message in writing interrupts them
        itself, and then they must have begun.
        """
        self._lose()
        return all(self._is_told_apart(turn, spoken) for turn in self._open)

    def _is_told_apart(self, turn: Turn, spoken: bool) -> bool:
        if turn.is_listened_to:
            return False
        if spoken:
            return turn.is_mute and self._is_past(turn.interrupted_at, SETTLES_WITHIN_S)
        return turn.began or turn.is_mute

    @property
    def is_silent(self) -> bool:
        """Something is waited for of which nothing comes, and that was not interrupted."""
        return any(
            not turn.began and turn.interrupted_at is None and self._is_past(turn.asked_at, SILENT_AFTER_S)
            for turn in self._open
        )

    def _lose(self) -> None:
        """Nothing will come any more of what was interrupted before anything had come."""
        for turn in self._open:
            turn.is_lost = turn.is_lost or (not turn.began and self._is_past(turn.interrupted_at, SETTLES_WITHIN_S))

    def _is_past(self, since: float | None, seconds: float) -> bool:
        return since is not None and self._clock() >= since + seconds

    def settles_at(self, after: float) -> float | None:
        """When `may_follow` can change after that although nothing comes."""
        times = [turn.asked_at + SILENT_AFTER_S for turn in self._open]
        times += [turn.interrupted_at + SETTLES_WITHIN_S for turn in self._open if turn.interrupted_at is not None]
        return min((at for at in times if at > after), default=None)
