"""ToolCall: one call, dispatched at most once, with exactly one outcome.

Theory of operation. A call runs only when it is complete, valid and approved; otherwise it fails without having run. Once
running, a cancel asks the tool to stop: if it cannot tell whether its side effect happened, the outcome is `unknown`,
and an unknown outcome is never retried. A call that was cancelled before it began is cancelled for ever, whatever
arrives later.
"""

# ruff: noqa: E501 - transition lines are the rows of a table

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from .actions import Action, Stamp
from .chart import Chart, ChartDefinition, Selection
from .declaration import Compound, State
from .facts import Fact
from .values import ToolStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class CallApproved(Fact):
    """Complete, valid against its schema, and approved."""

    event: ClassVar[str] = "call_approved"


@dataclass(frozen=True, slots=True, kw_only=True)
class CallRefused(Fact):
    event: ClassVar[str] = "call_refused"


@dataclass(frozen=True, slots=True, kw_only=True)
class CallCompleted(Fact):
    event: ClassVar[str] = "call_completed"


@dataclass(frozen=True, slots=True, kw_only=True)
class CallFailed(Fact):
    """`effect_unknown`: nobody can tell whether the side effect happened."""

    event: ClassVar[str] = "call_failed"
    effect_unknown: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CallCancelled(Fact):
    event: ClassVar[str] = "call_cancelled"


@dataclass(frozen=True, slots=True, kw_only=True)
class CallTimedOut(Fact):
    event: ClassVar[str] = "call_timed_out"


@dataclass(frozen=True, slots=True)
class RunTool(Action):
    call_id: str


@dataclass(frozen=True, slots=True)
class StopTool(Action):
    call_id: str


@dataclass(frozen=True, slots=True)
class ReportOutcome(Action):
    call_id: str
    status: ToolStatus


@dataclass(slots=True)
class ToolCallContext:
    """What one call remembers."""

    call_id: str
    stamp: Stamp
    has_side_effects: bool = True


class ToolCallChart(ChartDefinition):
    """The declaration."""

    context: ToolCallContext

    class tool_call(Compound, name="Tool call"):
        """From the model's wish to an outcome."""

        pending = State("pending", initial=True)
        running = State("running")
        completed = State("completed")
        failed = State("failed")
        cancelled = State("cancelled")
        unknown = State("unknown")

        # fmt: off
        running.from_(pending, event="call_approved", on="run_tool")
        failed.from_(pending, event="call_refused", on="report_failed")
        cancelled.from_(pending, event="call_cancelled", on="report_cancelled")
        completed.from_(running, event="call_completed", on="report_completed")
        unknown.from_(running, event="call_failed", cond="effect_is_unknown", on="report_unknown")
        failed.from_(running, event="call_failed", on="report_failed")
        unknown.from_(running, event="call_cancelled call_timed_out", cond="may_have_had_an_effect", on=["stop_tool", "report_unknown"])
        cancelled.from_(running, event="call_cancelled", on=["stop_tool", "report_cancelled"])
        failed.from_(running, event="call_timed_out", on=["stop_tool", "report_failed"])
        # fmt: on

    def effect_is_unknown(self) -> bool:
        fact = self.fact
        return isinstance(fact, CallFailed) and fact.effect_unknown

    def may_have_had_an_effect(self) -> bool:
        return self.context.has_side_effects

    def run_tool(self) -> None:
        self.emit(RunTool(self.context.stamp, self.context.call_id))

    def stop_tool(self) -> None:
        self.emit(StopTool(self.context.stamp, self.context.call_id))

    def report_completed(self) -> None:
        self._report(ToolStatus.COMPLETED)

    def report_failed(self) -> None:
        self._report(ToolStatus.FAILED)

    def report_cancelled(self) -> None:
        self._report(ToolStatus.CANCELLED)

    def report_unknown(self) -> None:
        self._report(ToolStatus.UNKNOWN)

    def _report(self, status: ToolStatus) -> None:
        self.emit(ReportOutcome(self.context.stamp, self.context.call_id, status))


class ToolCallLife(Chart[ToolCallContext]):
    """A running tool-call chart."""

    def __init__(
        self, call_id: str, stamp: Stamp, *, has_side_effects: bool = True, selection: Selection = "indexed"
    ) -> None:
        super().__init__(ToolCallChart(ToolCallContext(call_id, stamp, has_side_effects), selection))

    @property
    def state(self) -> str:
        """The active state."""
        return self.leaves[0]
