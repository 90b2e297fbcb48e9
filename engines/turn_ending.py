"""Ends a turn by its meaning: asks the judge in every pause, and waits as long as it says.

Theory of operation. Voice activity alone opens turns; under the authority `semantic` it ends none. While the user is
silent, `follow` looks at the open turn with every captured frame. A transcript that was not judged in this pause is
handed to the judge; once the pause has lasted as long as the latest judgement says - or the bound, whatever it says -
the end of the turn is reported, once. A new sound starts over. What the judge answers about an older transcript, or
about a pause that is over, counts for nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

import anyio

from ..statecharts.facts import TurnEnded
from ..statecharts.values import TurnAuthority
from .end_of_turn import EndOfTurn, TurnJudgement, TurnSoFar
from .engine import Desk
from .port_calls import origin_of

logger = logging.getLogger(__name__)

PAUSE_MS = 64
"""Two hops: a shorter silence is inside a word."""

JUDGE_TIMEOUT_S = 0.5

UNJUDGED_WAIT_MS = 1_000
"""How long a pause may last when the judge does not answer."""

MAX_SILENCE_MS = 5_000
"""Whatever the judge says, longer silence ends the turn."""


class TurnEnding:
    """For one session under the authority `semantic`."""

    def __init__(self, desk: Desk, judge: EndOfTurn) -> None:
        self._desk = desk
        self._judge = judge
        self._pause = 0
        """Grows with every pause, so that a late answer is known as one."""
        self._judged: str | None = None
        self._asking = False
        self._wait_ms: float | None = None
        self._told: str | None = None
        """The turn whose end was reported in this pause."""

    def follow(self, silence_ms: float, spoken: Callable[[str, float], TurnSoFar]) -> None:
        """A frame was captured, and the user is silent since `silence_ms`; `spoken` describes a text to the judge."""
        turn = self._desk.conversation.context.turn
        is_open = turn is not None and self._desk.conversation.leaves[1] in ("speech", "hypothesis")
        if turn is None or not is_open or turn.ended_by is not None or silence_ms < PAUSE_MS:
            self._start_over()
            return
        if turn.text != self._judged and not self._asking:
            self._asking, self._judged, self._wait_ms = True, turn.text, None
            self._desk.start_task(self._ask, spoken(turn.text, silence_ms), self._pause, name="end of turn")
        wait_ms = MAX_SILENCE_MS if self._wait_ms is None else min(self._wait_ms, MAX_SILENCE_MS)
        if silence_ms >= wait_ms and self._told != turn.turn_id:
            self._told = turn.turn_id
            now = self._desk.clock.now_ns()
            ended_at = now - int(silence_ms * 1_000_000)
            self._desk.report(TurnEnded(at=now, authority=TurnAuthority.SEMANTIC, speech_ended_at=ended_at))

    def _start_over(self) -> None:
        if self._judged is not None or self._told is not None:
            self._pause += 1
            self._judged = self._wait_ms = self._told = None

    async def _ask(self, turn: TurnSoFar, pause: int) -> None:
        wait_ms: float = UNJUDGED_WAIT_MS
        try:
            with anyio.fail_after(JUDGE_TIMEOUT_S):
                judgement: TurnJudgement = await self._judge.judge(turn)
                wait_ms = judgement.wait_ms
        except TimeoutError:
            logger.warning("the end-of-turn judge did not answer within %g s", JUDGE_TIMEOUT_S)
        except Exception as failure:
            logger.error("the end-of-turn judge failed: %s", origin_of(failure))
        finally:
            self._asking = False
        if pause == self._pause and self._judged == turn.text:
            self._wait_ms = wait_ms
