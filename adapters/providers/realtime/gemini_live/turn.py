"""One turn of the model's, as the service has it: what of it was told here, and whether it can still speak."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import TypeVar

from .....engines.realtime.reports import (
    AnswerAudio,
    AnswerCallsTool,
    AnswerEnded,
    AnswerFailed,
    AnswerProgressed,
    AnswerText,
)
from ...generation import GENERATION

MAX_HELD = 512
"""Reports that wait for a name: ten seconds of audio."""
UNNAMED = ""

Output = AnswerText | AnswerAudio | AnswerProgressed | AnswerCallsTool
R = TypeVar("R", bound=Output)


@dataclass(slots=True)
class Turn:
    """From what made the model speak to the end of its turn. Without ids on the wire, order tells turns apart."""

    answer_id: str | None
    """Who is told of it; None: nobody, what comes of it is dropped."""
    asked_at: float
    """When the model was last given a reason to speak."""
    is_over: bool = False
    """The terminal of that answer was told."""
    began: bool = False
    """Something of it came, since its beginning or since the outcomes of its calls were given."""
    spoke: bool = False
    """Something of it was visible."""
    item_id: str | None = None
    """Of its audio."""
    was_interrupted: bool = False
    """The service said so: it says nothing more of this turn but its end."""
    is_generated: bool = False
    """The service said so. Its end may take as long as it would take to play what came."""
    is_written: bool = False
    """All of its text came."""
    is_lost: bool = False
    """Interrupted from here before anything came of it: nothing will, perhaps not even its end."""
    interrupted_at: float | None = None
    """When it was interrupted from here."""
    awaits_tools: bool = False
    open_calls: dict[str, str] = field(default_factory=dict[str, str])
    """Calls that the model waits for, with the names of their tools."""
    calls_ended: bool = False
    """The part with the calls was told to be complete, which not every model does."""
    owes_end: bool = False
    """The outcomes of its calls were given before that: it may still come."""
    is_doubted: bool = False
    """It was told to be complete, and nothing had come of it: that may be the end of another one, told twice."""
    ends_at: float | None = None
    """When its answer is over at the latest."""
    held: list[Output] = field(default_factory=list[Output])
    """What came behind its calls, before the next answer was asked for."""

    @property
    def is_listened_to(self) -> bool:
        """What comes of it is told."""
        return self.answer_id is not None and not self.is_over

    @property
    def is_wanted(self) -> bool:
        """It was not cancelled: what it said is being heard, or its calls are being made."""
        return self.answer_id is not None

    @property
    def is_mute(self) -> bool:
        """No more speech can come of it."""
        return self.was_interrupted or self.is_generated or self.is_lost or self.is_doubted or self.awaits_tools

    def comes(self) -> None:
        """Something of it came."""
        self.began = True
        if self.is_doubted:
            self.is_doubted, self.ends_at = False, None

    def drop(self) -> None:
        """Nobody wants it any more."""
        self.answer_id, self.is_over, self.ends_at = None, True, None
        self.held.clear()

    def tell(self, report: Output) -> Iterator[Output]:
        """`report` for whoever listens: now, or when the answer after its calls is asked for; else never."""
        if self.is_listened_to:
            self.spoke = self.spoke or isinstance(report, AnswerText | AnswerAudio)
            yield named(report, self.answer_id or UNNAMED)
        elif self.is_wanted and self.awaits_tools and len(self.held) <= MAX_HELD:
            self.held.append(report)

    def go_on(self, answer_id: str | None) -> Iterator[Output | AnswerEnded | AnswerFailed]:
        """The outcomes of its calls were given, and this is the answer to them; None: nobody wants it."""
        held, self.held = self.held, []
        more_calls = any(isinstance(report, AnswerCallsTool) for report in held)
        self.owes_end, self.calls_ended = not self.calls_ended, False
        self.answer_id, self.is_over, self.item_id = answer_id, answer_id is None, None
        self.began = self.spoke = self.is_generated = self.is_written = self.awaits_tools = False
        if len(held) > MAX_HELD:
            yield from self.fail("answer_too_long", "the model went on without waiting for its tools")
            return
        for report in held:
            yield from self.tell(report)
        if more_calls:
            self.awaits_tools = True
            yield from self.end(awaits_tools=True)

    def take_back(self, call_id: str) -> bool:
        """The model does not want the outcome of that call any more. Returns whether the call was told."""
        if self.open_calls.pop(call_id, None) is None:
            return False
        held = [one for one in self.held if isinstance(one, AnswerCallsTool) and one.call_id == call_id]
        if held:
            self.held.remove(held[0])
        return not held

    def end(self, *, awaits_tools: bool = False) -> Iterator[AnswerEnded]:
        """The model has ended the answer by itself."""
        if self.is_listened_to:
            self.is_over, self.ends_at = True, None
            yield AnswerEnded(self.answer_id or UNNAMED, awaits_tools=awaits_tools)

    def fail(self, code: str, message: str, *, retryable: bool = False) -> Iterator[AnswerFailed]:
        """It can be tried again only while nothing of it was told."""
        if self.is_listened_to:
            self.is_over, self.ends_at = True, None
            retryable = retryable and not self.spoke
            error = GENERATION.error(code, message, retryable=retryable, partial_output=self.spoke)
            yield AnswerFailed(self.answer_id or UNNAMED, error)


def named(report: R, answer_id: str) -> R:
    """The same about another answer."""
    return replace(report, answer_id=answer_id)
