"""Hold lines: what is said while the user waits for a slow tool.

They are units of the reply's own speech, in its epoch and before whatever the model says next, and never part of what
the model wrote. A ladder belongs to one step of a reply, however many calls it has, and says one line at a time: a
rung that comes due while something of the reply can still be heard waits, and of several that wait only the last is
said. When the calls have ended, or the reply is cancelled, nothing more is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import anyio

from .engine import Desk

LOOK_AGAIN_NS = 100_000_000
"""Receipts of what was played come about ten times a second."""
MAX_LINE_CHARS = 300


@dataclass(frozen=True, slots=True)
class HoldLine:
    """Words, and how long the user has waited when they are said."""

    after_ms: int
    text: str


@dataclass(frozen=True, slots=True)
class HoldLines:
    """What is said about slow tools. Raises ValueError for a ladder that does not rise."""

    ladder: tuple[HoldLine, ...] = ()
    """In the order of their times; the first time is what counts as slow."""
    failed: str | None = None
    """When a tool failed, or nobody knows what came of it."""

    def __post_init__(self) -> None:
        """Check what can be checked without a voice."""
        times = [line.after_ms for line in self.ladder]
        if times != sorted(set(times)) or any(time < 0 for time in times):
            raise ValueError("hold lines have rising times, from 0 ms on")
        texts = [line.text for line in self.ladder] + ([] if self.failed is None else [self.failed])
        if any(not text.strip() or len(text) > MAX_LINE_CHARS for text in texts):
            raise ValueError(f"a hold line has words, and at most {MAX_LINE_CHARS} characters")

    @property
    def are_silent(self) -> bool:
        """Nothing is ever said."""
        return not self.ladder and self.failed is None


class HoldingVoice(Protocol):
    """What a ladder needs of the reply."""

    @property
    def can_be_heard(self) -> bool:
        """Something of the reply is being said, or will be, without anything more from the model."""
        ...

    def say_aside(self, text: str) -> None:
        """Say this next; the model never wrote it."""
        ...


class HoldLadder:
    """The hold lines of one step of a reply."""

    def __init__(self, desk: Desk, voice: HoldingVoice) -> None:
        self._desk = desk
        self._voice = voice
        self._is_over = False
        """Nothing more may be said in this reply."""
        self._lines = HoldLines()
        self._open: set[str] = set()
        self._scope: anyio.CancelScope | None = None
        self._has_failed = False

    def begin(self, call_id: str, lines: HoldLines) -> None:
        """A call runs. The first one with a ladder in a step is the one whose lines are said."""
        self._open.add(call_id)
        if self._scope is None and lines.ladder and not self._is_over:
            self._lines = lines
            self._scope = anyio.CancelScope()
            self._desk.start_task(self._climb, self._scope, name=f"hold lines of {call_id}")

    def end(self, call_id: str, failed: str | None = None) -> None:
        """A call has its outcome. `failed`: the words for its failure, said once a step."""
        if call_id not in self._open:
            return
        self._open.discard(call_id)
        if failed is not None and not self._has_failed and not self._is_over:
            self._has_failed = True
            self._voice.say_aside(failed)
        if not self._open:
            self.stop()

    def stop(self, *, for_good: bool = False) -> None:
        """Nothing more is said in this step, or in this reply."""
        self._is_over = self._is_over or for_good
        self._open.clear()
        self._has_failed = False
        if self._scope is not None:
            self._scope.cancel()
            self._scope = None

    async def _climb(self, scope: anyio.CancelScope) -> None:
        clock = self._desk.clock
        rungs = list(self._lines.ladder)
        began_ns = clock.now_ns()
        with scope:
            while rungs:
                await clock.sleep_until(began_ns + rungs[0].after_ms * 1_000_000)
                while self._voice.can_be_heard:
                    await clock.sleep_until(clock.now_ns() + LOOK_AGAIN_NS)
                waited_ms = (clock.now_ns() - began_ns) // 1_000_000
                said = rungs.pop(0)
                while rungs and rungs[0].after_ms <= waited_ms:
                    said = rungs.pop(0)
                self._voice.say_aside(said.text)
