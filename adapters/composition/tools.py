"""The tools of a configuration: of Python modules, and of MCP servers whose definitions are pinned."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ...engines import HoldLines, Tool
from ..configuration import Configuration, ConfigurationRefused, Problem
from ..configuration.tool_settings import McpServerSettings, McpToolSettings
from ..tools.mcp_pins import Pins, PinsRefused, read_pins
from ..tools.modules import ModuleRefused, load_modules
from .packages import require

if TYPE_CHECKING:
    from ..tools.mcp_server import McpServer
    from ..tools.mcp_tools import ServerRules, ToolRules


@dataclass(frozen=True, slots=True)
class OfferedTools:
    """What the model may call, and what it is that it may not."""

    tools: tuple[Tool, ...] = ()
    servers: tuple[McpServer, ...] = ()
    notes: tuple[str, ...] = ()
    """For the operator: what is configured and not offered, and why."""

    def serving(self) -> AbstractAsyncContextManager[None]:
        """Hold the connections to the servers during the block."""
        if not self.servers:
            return nullcontext()
        from ..tools.mcp_tools import serving

        return serving(self.servers)

    def for_a_model(self, *, calls_tools: bool) -> OfferedTools:
        """Nothing where the model could not call them."""
        if calls_tools or not self.tools:
            return self
        return OfferedTools(notes=(*self.notes, "the responder cannot call tools: none is offered"))

    @property
    def names(self) -> str:
        """For people."""
        return ", ".join(tool.name for tool in self.tools) or "none"


def make_tools(configuration: Configuration, environment: Mapping[str, str]) -> OfferedTools:
    """Everything that can be offered; modules are imported, no server is started. Raises `ConfigurationRefused`."""
    try:
        tools = list(load_modules(configuration.tools.modules))
    except ModuleRefused as refused:
        raise ConfigurationRefused(Problem("tools.modules", str(refused))) from refused
    enabled = {name: settings for name, settings in configuration.mcp.items() if settings.enabled}
    servers: list[McpServer] = []
    notes: list[str] = []
    if enabled:
        require("mcp", "mcp", "mcp", "jsonschema")
        pins = pinned(configuration)
        for name, settings in enabled.items():
            _check_times(configuration, name, settings)
            server = make_server(name, settings, environment)
            servers.append(server)
            found, refused = _offered(server, pins, settings)
            tools += found
            notes += refused
    _check_names(tools)
    hold = configuration.tools.hold.lines()
    special = {name: settings.lines() for name, settings in configuration.tools.hold_for.items()}
    notes += [f"tools.hold_for names {name}, which nobody offers" for name in special.keys() - {t.name for t in tools}]
    return OfferedTools(tuple(_holding(tool, hold, special) for tool in tools), tuple(servers), tuple(notes))


def pinned(configuration: Configuration) -> Pins:
    """The approved definitions. Raises `ConfigurationRefused`."""
    try:
        return {} if configuration.tools.lock is None else read_pins(configuration.tools.lock)
    except PinsRefused as refused:
        raise ConfigurationRefused(Problem("tools.lock", str(refused))) from refused


def make_server(
    name: str, settings: McpServerSettings, environment: Mapping[str, str], *, shows_errors: bool = False
) -> McpServer:
    """A server that is not started. Raises `ConfigurationRefused` for a secret that is not there."""
    from ..tools.mcp_http import HttpServer
    from ..tools.mcp_server import McpServer
    from ..tools.mcp_stdio import StdioServer

    if settings.url is not None:
        token = None
        if settings.token_env is not None:
            (token,) = _secrets((settings.token_env,), environment, f"mcp.{name}.token_env").values()
        return McpServer(name, HttpServer(settings.url, token), connect_ms=settings.connect_ms)
    assert settings.command is not None
    given = _secrets(settings.env, environment, f"mcp.{name}.env")
    endpoint = StdioServer(settings.command, settings.args, given, shows_errors=shows_errors)
    return McpServer(name, endpoint, connect_ms=settings.connect_ms)


def _secrets(names: Iterable[str], environment: Mapping[str, str], path: str) -> dict[str, str]:
    found = {name: environment.get(name, "") for name in names}
    if not all(found.values()):
        # Not by its name: somebody may have written the secret itself there.
        raise ConfigurationRefused(Problem(path, "an environment variable that it names is not set, or is empty"))
    return found


def _offered(server: McpServer, pins: Pins, settings: McpServerSettings) -> tuple[tuple[Tool, ...], list[str]]:
    from ..tools.mcp_tools import offered_tools

    known = pins.get(server.name)
    if known is None:
        note = f"mcp.{server.name}: nothing is pinned, so nothing is offered: run voicechart mcp pin {server.name}"
        return (), [note]
    rules = _rules(settings)
    tools, refused = offered_tools(server, known, rules)
    names = {definition.name for definition in known}
    missing = [name for name in (*settings.allow, *settings.tools) if name != "*" and name not in names]
    notes = [f"mcp.{server.name}: {name} is not among its pinned tools" for name in dict.fromkeys(missing)]
    if not settings.allow:
        notes.append(f"mcp.{server.name}: allow is empty, so nothing is offered")
    return tools, [*notes, *refused]


def _rules(settings: McpServerSettings) -> ServerRules:
    from ..tools.mcp_tools import ServerRules

    special = {name: _tool_rules(settings, tool) for name, tool in settings.tools.items()}
    return ServerRules(frozenset(settings.allow), _tool_rules(settings, McpToolSettings()), special)


def _tool_rules(settings: McpServerSettings, tool: McpToolSettings) -> ToolRules:
    from ..tools.mcp_tools import ToolRules

    return ToolRules(
        settings.side_effects if tool.side_effects is None else tool.side_effects,
        tool.background,
        settings.timeout_ms if tool.timeout_ms is None else tool.timeout_ms,
    )


def _check_times(configuration: Configuration, name: str, settings: McpServerSettings) -> None:
    """A call in the foreground ends at `generation.tool_ms`, whatever is written elsewhere."""
    bound_ms = configuration.generation.tool_ms
    times = {f"mcp.{name}.timeout_ms": settings.timeout_ms}
    for tool, rules in settings.tools.items():
        if rules.timeout_ms is not None and not rules.background:
            times[f"mcp.{name}.tools.{tool}.timeout_ms"] = rules.timeout_ms
    problems = [
        Problem(path, f"is longer than generation.tool_ms, {bound_ms} ms, which ends every call in the foreground")
        for path, time_ms in times.items()
        if time_ms > bound_ms
    ]
    if problems:
        raise ConfigurationRefused(*problems)


def _check_names(tools: list[Tool]) -> None:
    names = [tool.name for tool in tools]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ConfigurationRefused(Problem("tools.modules", f"more than one tool is called {', '.join(twice)}"))


def _holding(tool: Tool, general: HoldLines, special: Mapping[str, HoldLines]) -> Tool:
    lines = special.get(tool.name, general if tool.hold is None else tool.hold)
    return replace(tool, hold=lines)
