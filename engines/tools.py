"""The calls of one session: judged, run once, each with one outcome. Each call lives through the `ToolCall` chart."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import anyio

from ..statecharts.actions import Action, Stamp
from ..statecharts.facts import Fact, ToolFinished
from ..statecharts.tool_call import (
    CallApproved,
    CallCancelled,
    CallCompleted,
    CallFailed,
    CallTimedOut,
    ReportOutcome,
    RunTool,
    StopTool,
    ToolCallLife,
)
from ..statecharts.values import ToolStatus
from .engine import Desk
from .hold_lines import HoldLines
from .port_calls import origin_of
from .ports import ToolDefinition, ToolRequest
from .tool import MAX_OUTPUT_CHARS, SideEffects, Tool, ToolError, ToolRefused, as_text, cleaned, tool
from .tool_arguments import ArgumentsRefused, canonical, read_object

__all__ = [
    "MAX_OUTPUT_CHARS",
    "Judged",
    "SideEffects",
    "Tool",
    "ToolCalls",
    "ToolError",
    "ToolRefused",
    "tool",
]

logger = logging.getLogger(__name__)

APPROVAL_TIMEOUT_S = 10.0
"""Shorter than the time after which a silent model counts as stalled."""
PERHAPS = "unknown: {}; it may have taken effect, so do not call it again unless the user asks for it"

Queue = Callable[[str, ToolRequest, Tool], str]
"""Takes over a background call of a response; returns what the model is told. Raises `ToolError`."""


class Judged(NamedTuple):
    """Whether a complete call may run."""

    valid: bool
    approved: bool
    background: bool
    refusal: str | None
    """Why it may not, in words for the model."""


@dataclass
class _RunningCall:
    """A dispatched call without an outcome."""

    response_id: str
    request: ToolRequest
    tool: Tool
    life: ToolCallLife
    scope: anyio.CancelScope


class ToolCalls:
    """The calls of one session. `queue` takes those in the background; without one they run as the others do.

    Raises `ToolRefused` for two tools of one name.
    """

    def __init__(
        self, desk: Desk, tools: tuple[Tool, ...], *, queue: Queue | None = None, hold: HoldLines | None = None
    ) -> None:
        self._desk = desk
        self._tools = {tool.name: tool for tool in tools}
        if len(self._tools) < len(tools):
            names = sorted({tool.name for tool in tools if [other.name for other in tools].count(tool.name) > 1})
            raise ToolRefused(f"two tools are called {', '.join(names)}: rename one of them")
        self._queue = queue
        self._hold = hold or HoldLines()
        self._running: dict[str, _RunningCall] = {}
        self._outputs: dict[tuple[str, str], str] = {}
        self._doubtful: tuple[str, set[str]] = ("", set())
        """Of the latest response: calls that may have had an effect, by what they asked for."""

    def definitions(self) -> tuple[ToolDefinition, ...]:
        return tuple(tool.definition() for tool in self._tools.values())

    async def judge(self, response_id: str, request: ToolRequest) -> Judged:
        """Whether a complete call may run. Asks for approval where the tool wants it, and waits for that, bounded."""
        tool = self._tools.get(request.name)
        if tool is None:
            return Judged(False, False, False, f"refused: there is no tool named {cleaned(request.name, 80)!r}")
        try:
            asked = canonical(read_object(request.arguments_json))
            arguments = tool.form.parse(request.arguments_json or "{}")
        except ArgumentsRefused as refused:
            return Judged(False, False, tool.background, f"refused: {cleaned(str(refused))}")
        if self._is_doubtful(response_id, tool, asked):
            return Judged(
                True, False, tool.background, "refused: the same call may have taken effect; ask the user first"
            )
        approved = await self._approved(tool, arguments)
        return Judged(True, approved, tool.background, None if approved else "refused: it was not approved")

    def hold_lines(self, request: ToolRequest) -> HoldLines:
        """What is said while this call runs; nothing for one in the background."""
        tool = self._tools.get(request.name)
        if tool is None or tool.background:
            return HoldLines()
        return self._hold if tool.hold is None else tool.hold

    def execute(self, response_id: str, request: ToolRequest, stamp: Stamp) -> None:
        """Run a call that was judged and that the chart dispatched; no other one may be open under its identity."""
        tool = self._tools[request.name]
        life = ToolCallLife(request.call_id, stamp, has_side_effects=tool.has_side_effects)
        call = _RunningCall(response_id, request, tool, life, anyio.CancelScope())
        self._running[request.call_id] = call
        self._tell(call, CallApproved(at=self._now))

    def cancel(self, call_ids: tuple[str, ...]) -> None:
        """Stop these; whether their effect happened may be unknown."""
        for call_id in call_ids:
            call = self._running.get(call_id)
            if call is not None:
                self._tell(call, CallCancelled(at=self._now))

    def conclude(self, response_id: str, call_id: str) -> str:
        """The call has its outcome: whatever still runs of it is stopped. Returns what it said, "" for nothing."""
        call = self._running.get(call_id)
        if call is not None and call.response_id == response_id:
            self._tell(call, CallTimedOut(at=self._now))
        return self._outputs.pop((response_id, call_id), "")

    async def _approved(self, tool: Tool, arguments: object) -> bool:
        if tool.approve is None:
            return True
        approved = False
        try:
            with anyio.move_on_after(APPROVAL_TIMEOUT_S):
                approved = await tool.approve(arguments)
        except Exception as failure:
            logger.error("asking for the approval of %s failed, which is a no: %s", tool.name, origin_of(failure))
        return approved

    async def _run(self, call: _RunningCall) -> None:
        with call.scope:
            async with anyio.create_task_group() as tasks:
                if call.tool.timeout_ms is not None:
                    tasks.start_soon(self._end_in_time, call, call.tool.timeout_ms)
                await self._call(call)
                tasks.cancel_scope.cancel()

    async def _call(self, call: _RunningCall) -> None:
        tool, request = call.tool, call.request
        try:
            said = as_text(await tool.run(tool.form.parse(request.arguments_json or "{}")))
        except ToolError as failure:
            said = cleaned(str(failure))
            said = PERHAPS.format(said) if failure.effect_unknown else said
            self._end(call, said, CallFailed(at=self._now, effect_unknown=failure.effect_unknown))
        except Exception as failure:
            logger.error("the tool %s failed: %s", tool.name, origin_of(failure))
            said = f"the tool failed ({type(failure).__name__})"
            said = PERHAPS.format(said) if tool.has_side_effects else said
            self._end(call, said, CallFailed(at=self._now, effect_unknown=tool.has_side_effects))
        else:
            self._end(call, said, CallCompleted(at=self._now))

    async def _end_in_time(self, call: _RunningCall, timeout_ms: int) -> None:
        await self._desk.clock.sleep_until(self._now + timeout_ms * 1_000_000)
        said = f"the tool did not answer within {timeout_ms / 1_000:g} s"
        self._end(call, PERHAPS.format(said) if call.tool.has_side_effects else said, CallTimedOut(at=self._now))

    def _hand_over(self, call: _RunningCall, queue: Queue) -> None:
        try:
            told = queue(call.response_id, call.request, call.tool)
        except ToolError as refused:
            self._end(call, cleaned(str(refused)), CallFailed(at=self._now))
        else:
            self._end(call, told, CallCompleted(at=self._now))

    def _end(self, call: _RunningCall, output: str, fact: Fact) -> None:
        if self._running.get(call.request.call_id) is call:
            self._outputs[call.response_id, call.request.call_id] = output
            self._tell(call, fact)

    def _is_doubtful(self, response_id: str, tool: Tool, asked: str) -> bool:
        of_response, calls = self._doubtful
        return of_response == response_id and f"{tool.name} {asked}" in calls

    def _note_doubt(self, call: _RunningCall) -> None:
        of_response, calls = self._doubtful
        if of_response != call.response_id:
            self._doubtful = (call.response_id, calls := set())
        calls.add(f"{call.tool.name} {canonical(read_object(call.request.arguments_json))}")

    @property
    def _now(self) -> int:
        return self._desk.clock.now_ns()

    def _tell(self, call: _RunningCall, fact: Fact) -> None:
        for action in call.life.handle(fact):
            self._carry_out(call, action)

    def _carry_out(self, call: _RunningCall, action: Action) -> None:
        call_id = call.request.call_id
        match action:
            case RunTool() if call.tool.background and self._queue is not None:
                self._hand_over(call, self._queue)
            case RunTool():
                self._desk.start_task(self._run, call, name=f"tool {call_id}")
            case StopTool():
                call.scope.cancel()
            case ReportOutcome(status=status):
                del self._running[call_id]
                if status is ToolStatus.UNKNOWN:
                    self._note_doubt(call)
                self._desk.report(ToolFinished(at=self._now, call_id=call_id, status=status))
            case _:
                raise AssertionError(f"{type(action).__name__} is not decided by the ToolCall chart")
