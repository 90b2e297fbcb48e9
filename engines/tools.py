"""Tools: named functions that the model may call. Each call lives through the `ToolCall` chart."""

from __future__ import annotations

import json
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
    ReportOutcome,
    RunTool,
    StopTool,
    ToolCallLife,
)
from ..statecharts.values import ToolStatus
from .engine import Desk
from .ports import ToolDefinition, ToolRequest

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


class ToolCalls:
    """The calls of one session: validated, run once, each with one outcome."""

    def __init__(self, desk: Desk, tools: tuple[Tool, ...]) -> None:
        self._desk = desk
        self._tools = {tool.name: tool for tool in tools}
        self._requests: dict[str, ToolRequest] = {}
        self._running: dict[str, tuple[ToolCallLife, anyio.CancelScope]] = {}
        self.outputs: dict[str, str] = {}
        """What each finished call said, by call id."""

    def definitions(self) -> tuple[ToolDefinition, ...]:
        return tuple(tool.definition() for tool in self._tools.values())

    def remember(self, request: ToolRequest) -> None:
        """A call the model made, before anything is decided about it."""
        self._requests.setdefault(request.call_id, request)

    def request(self, call_id: str) -> ToolRequest | None:
        """What the model asked for under that identity."""
        return self._requests.get(call_id)

    def is_valid(self, request: ToolRequest) -> bool:
        """Known, and its arguments fit the schema."""
        return self._parse(request) is not None

    def is_background(self, request: ToolRequest) -> bool:
        tool = self._tools.get(request.name)
        return tool is not None and tool.background

    def execute(self, call_id: str, stamp: Stamp) -> None:
        """Run a call that the chart dispatched."""
        request = self._requests[call_id]
        tool = self._tools[request.name]
        life = ToolCallLife(call_id, stamp, has_side_effects=tool.has_side_effects)
        self._running[call_id] = (life, anyio.CancelScope())
        self._tell(call_id, CallApproved(at=self._now))

    def cancel(self, call_ids: tuple[str, ...]) -> None:
        """Stop these; whether their effect happened may be unknown."""
        for call_id in call_ids:
            if call_id in self._running:
                self._tell(call_id, CallCancelled(at=self._now))

    def _parse(self, request: ToolRequest) -> BaseModel | None:
        tool = self._tools.get(request.name)
        if tool is None:
            return None
        try:
            return tool.arguments.model_validate_json(request.arguments_json or "{}")
        except ValidationError:
            return None

    async def _run(self, call_id: str) -> None:
        if call_id not in self._running:
            return
        request = self._requests[call_id]
        arguments = self._parse(request)
        _, scope = self._running[call_id]
        with scope:
            try:
                output = await self._tools[request.name].run(arguments)
            except ToolError as failure:
                self.outputs[call_id] = str(failure)[:MAX_OUTPUT_CHARS]
                self._tell(call_id, CallFailed(at=self._now))
            except Exception as failure:
                self.outputs[call_id] = f"the tool failed: {type(failure).__name__}"
                self._tell(call_id, CallFailed(at=self._now, effect_unknown=True))
            else:
                self.outputs[call_id] = output[:MAX_OUTPUT_CHARS]
                self._tell(call_id, CallCompleted(at=self._now))

    @property
    def _now(self) -> int:
        return self._desk.clock.now_ns()

    def _tell(self, call_id: str, fact: Fact) -> None:
        life, _ = self._running[call_id]
        for action in life.handle(fact):
            self._carry_out(action)

    def _carry_out(self, action: Action) -> None:
        match action:
            case RunTool(call_id=call_id):
                self._desk.start_task(self._run, call_id, name=f"tool {call_id}")
            case StopTool(call_id=call_id):
                self._running[call_id][1].cancel()
            case ReportOutcome(call_id=call_id, status=status):
                self._running.pop(call_id)
                self._report(call_id, status)
            case _:
                raise AssertionError(f"{type(action).__name__} is not decided by the ToolCall chart")

    def _report(self, call_id: str, status: ToolStatus) -> None:
        self._desk.report(ToolFinished(at=self._now, call_id=call_id, status=status))
