"""Tools: named functions that the model may call. Each call lives through the `ToolCall` chart."""

from __future__ import annotations

import json
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import anyio
from pydantic import BaseModel, ValidationError

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
from .engine import Desk
from .port_calls import origin_of
from .ports import ToolDefinition, ToolRequest

logger = logging.getLogger(__name__)

MAX_OUTPUT_CHARS = 16_384
"""What a tool says beyond this is cut; a model's context is not a file store."""


class ToolError(Exception):
    """A tool failed in a way the model should hear about. The text goes to the model."""


@dataclass(frozen=True)
class Tool:
    """`arguments` validates the call before it runs; `run` gets the validated model and returns what the model sees."""

    name: str
    description: str
    arguments: type[BaseModel]
    run: Callable[[Any], Awaitable[str]]
    background: bool = False
    """Outlives the interruption of the speech that asked for it."""
    has_side_effects: bool = True

    def definition(self) -> ToolDefinition:
        """What the model is told."""
        return ToolDefinition(self.name, self.description, json.dumps(self.arguments.model_json_schema()))


@dataclass
class _RunningCall:
    """A dispatched call without an outcome."""

    response_id: str
    request: ToolRequest
    life: ToolCallLife
    scope: anyio.CancelScope


class ToolCalls:
    """The calls of one session: validated, run once, each with one outcome."""

    def __init__(self, desk: Desk, tools: tuple[Tool, ...]) -> None:
        self._desk = desk
        self._tools = {tool.name: tool for tool in tools}
        self._running: dict[str, _RunningCall] = {}
        self._outputs: dict[tuple[str, str], str] = {}

    def definitions(self) -> tuple[ToolDefinition, ...]:
        return tuple(tool.definition() for tool in self._tools.values())

    def refusal(self, request: ToolRequest) -> str | None:
        """Why this call cannot run, in words for the model; None when it can."""
        tool = self._tools.get(request.name)
        if tool is None:
            return f"refused: there is no tool named {request.name!r}"
        try:
            _parse(tool, request)
        except ValidationError as error:
            places = (f"{'.'.join(map(str, fault['loc'])) or 'arguments'}: {fault['msg']}" for fault in error.errors())
            return f"refused: {'; '.join(places)}"
        return None

    def is_background(self, request: ToolRequest) -> bool:
        tool = self._tools.get(request.name)
        return tool is not None and tool.background

    def execute(self, response_id: str, request: ToolRequest, stamp: Stamp) -> None:
        """Run a valid call that the chart dispatched; no other one may be open under its identity."""
        tool = self._tools[request.name]
        life = ToolCallLife(request.call_id, stamp, has_side_effects=tool.has_side_effects)
        call = _RunningCall(response_id, request, life, anyio.CancelScope())
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

    async def _run(self, call: _RunningCall) -> None:
        tool = self._tools[call.request.name]
        with call.scope:
            try:
                output = await tool.run(_parse(tool, call.request))
            except ToolError as failure:
                self._end(call, str(failure), CallFailed(at=self._now))
            except Exception as failure:
                logger.error("the tool %s failed: %s", tool.name, origin_of(failure))
                said = f"the tool failed: {type(failure).__name__}"
                self._end(call, said, CallFailed(at=self._now, effect_unknown=True))
            else:
                self._end(call, output, CallCompleted(at=self._now))

    def _end(self, call: _RunningCall, output: str, fact: Fact) -> None:
        if self._running.get(call.request.call_id) is call:
            self._outputs[call.response_id, call.request.call_id] = output[:MAX_OUTPUT_CHARS]
            self._tell(call, fact)

    @property
    def _now(self) -> int:
        return self._desk.clock.now_ns()

    def _tell(self, call: _RunningCall, fact: Fact) -> None:
        for action in call.life.handle(fact):
            self._carry_out(call, action)

    def _carry_out(self, call: _RunningCall, action: Action) -> None:
        call_id = call.request.call_id
        match action:
            case RunTool():
                self._desk.start_task(self._run, call, name=f"tool {call_id}")
            case StopTool():
                call.scope.cancel()
            case ReportOutcome(status=status):
                del self._running[call_id]
                self._desk.report(ToolFinished(at=self._now, call_id=call_id, status=status))
            case _:
                raise AssertionError(f"{type(action).__name__} is not decided by the ToolCall chart")


def _parse(tool: Tool, request: ToolRequest) -> BaseModel:
    """Raises `ValidationError`."""
    return tool.arguments.model_validate_json(request.arguments_json or "{}")
