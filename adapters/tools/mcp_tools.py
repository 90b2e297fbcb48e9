"""The tools of MCP servers, as the engine has tools."""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import anyio
from mcp_types import CallToolResult, TextContent

from ...engines import SideEffects, Tool, ToolError, ToolRefused
from .mcp_pins import Definition
from .mcp_server import McpServer, ServerFailed, ServerRefusedCall, ServerUnavailable
from .schema_form import SchemaForm, SchemaRefused

SEPARATOR = "__"


@dataclass(frozen=True, slots=True)
class ToolRules:
    """What an operator says of a tool; what its server says of itself is not believed."""

    side_effects: SideEffects = SideEffects.YES
    background: bool = False
    timeout_ms: int = 30_000


@dataclass(frozen=True, slots=True)
class ServerRules:
    """What of a server is offered. `allow`: names of its tools, "*" for all."""

    allow: frozenset[str] = frozenset()
    rules: ToolRules = ToolRules()
    special: dict[str, ToolRules] = field(default_factory=dict[str, ToolRules])

    def allows(self, tool: str) -> bool:
        return "*" in self.allow or tool in self.allow


def offered_tools(
    server: McpServer, pinned: Iterable[Definition], rules: ServerRules
) -> tuple[tuple[Tool, ...], tuple[str, ...]]:
    """The tools of a server that are pinned and allowed, and why some of them cannot be offered."""
    tools: list[Tool] = []
    refused: list[str] = []
    for definition in pinned:
        if not rules.allows(definition.name):
            continue
        try:
            tools.append(_tool(server, definition, rules.special.get(definition.name, rules.rules)))
        except (ToolRefused, SchemaRefused) as reason:
            refused.append(f"{server.name}: {definition.name[:64]}: {reason}")
    return tuple(tools), tuple(refused)


@asynccontextmanager
async def serving(servers: Iterable[McpServer]) -> AsyncGenerator[None]:
    """Hold the connections of these servers during the block, and begin to connect. Leaves no process behind.

    What the block raises comes out as it is.
    """
    # Its records may quote what a server wrote.
    logging.getLogger("mcp").setLevel(logging.CRITICAL)
    failure: Exception | None = None
    async with anyio.create_task_group() as tasks:
        for server in servers:
            tasks.start_soon(server.run, name=f"tool server {server.name}")
            tasks.start_soon(_begin, server, name=f"connecting to {server.name}")
        try:
            yield
        except Exception as error:
            failure = error
        tasks.cancel_scope.cancel()
    if failure is not None:
        raise failure


async def _begin(server: McpServer) -> None:
    try:
        await server.connect()
    except ServerUnavailable:
        # `run` has told why; the next call tries again.
        return


def _tool(server: McpServer, definition: Definition, rules: ToolRules) -> Tool:
    async def call(arguments: dict[str, Any]) -> str:
        try:
            result = await server.call(definition.name, arguments, definition.digest)
        except ServerUnavailable as reason:
            raise ToolError(f"it did not run: {reason}") from reason
        except ServerRefusedCall as reason:
            raise ToolError(f"the server refused the call: {reason}") from reason
        except ServerFailed as reason:
            raise ToolError(str(reason), effect_unknown=rules.side_effects is SideEffects.YES) from reason
        text = text_of(result)
        if result.is_error:
            raise ToolError(text or "the tool failed without a reason")
        return text

    return Tool(
        name=f"{server.name}{SEPARATOR}{definition.name}",
        description=definition.description or definition.title or "",
        arguments=SchemaForm(definition.input_schema),
        run=call,
        background=rules.background,
        side_effects=rules.side_effects,
        timeout_ms=rules.timeout_ms,
    )


def text_of(result: CallToolResult) -> str:
    """What a model can read of a result; what is no text is only named."""
    parts = [part.text if isinstance(part, TextContent) else f"[{part.type}]" for part in result.content]
    if parts:
        return "\n".join(parts)
    return "" if result.structured_content is None else json.dumps(result.structured_content, ensure_ascii=False)
