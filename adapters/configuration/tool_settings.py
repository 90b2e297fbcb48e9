"""The tables `tools` and `mcp`: which tools the model is offered, and what is known of them."""

from __future__ import annotations

from ipaddress import ip_address
from pathlib import Path
from typing import Annotated, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints, ValidationInfo, model_validator

from ...engines import HoldLine, HoldLines, SideEffects

VariableName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,127}$")]
ServerName = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9_-]{0,23}$")]
ToolName = Annotated[str, StringConstraints(min_length=1, max_length=64)]
Place = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][\w.]*:[A-Za-z_]\w*$")]


def _beside_the_file(path: Path, info: ValidationInfo) -> Path:
    folder: Path | None = info.context
    return path if folder is None else folder / path.expanduser()


FilePath = Annotated[Path, AfterValidator(_beside_the_file)]


class _Settings(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class HoldLineSettings(_Settings):
    after_ms: int = Field(ge=0, le=600_000)
    text: str


class HoldSettings(_Settings):
    """What is said while a slow tool runs."""

    ladder: tuple[HoldLineSettings, ...] = ()
    """Each line once, in the order of their times; below the first time a tool is quick."""
    failed: str | None = None
    """When a tool failed, or nobody knows what came of it."""

    @model_validator(mode="after")
    def _rises(self) -> Self:
        self.lines()
        return self

    def lines(self) -> HoldLines:
        """As the engine has them."""
        return HoldLines(tuple(HoldLine(line.after_ms, line.text) for line in self.ladder), self.failed)


class TaskSettings(_Settings):
    """How much goes on in the background."""

    open_tasks: int = Field(default=32, ge=1, le=1_000)
    running_tasks: int = Field(default=2, ge=1, le=32)
    run_ms: int = Field(default=3_600_000, ge=1_000, le=86_400_000)
    """Of a task whose tool has no deadline of its own."""


class ToolSettings(_Settings):
    """Tools of this machine, and what holds for all tools."""

    modules: tuple[Place, ...] = ()
    """Tools that Python modules define, e.g. "kitchen.tools:TOOLS"; the modules are imported."""
    lock: FilePath | None = None
    """The approved definitions of the tools of MCP servers; `voicechart mcp pin` writes it."""
    hold: HoldSettings = HoldSettings()
    hold_for: dict[ToolName, HoldSettings] = {}
    """In the place of `hold` for these tools; an empty table is silence."""
    tasks: TaskSettings = TaskSettings()


class McpToolSettings(_Settings):
    """What is known of one tool of a server, besides what the server says."""

    side_effects: SideEffects | None = None
    background: bool = False
    timeout_ms: int | None = Field(default=None, ge=100, le=86_400_000)


class McpServerSettings(_Settings):
    """One server of the Model Context Protocol (the extra `mcp`): a command, or a URL."""

    command: str | None = Field(default=None, min_length=1)
    args: tuple[str, ...] = ()
    env: tuple[VariableName, ...] = ()
    """Environment variables that the command gets, besides a few harmless ones; the values are the daemon's."""
    url: str | None = None
    token_env: VariableName | None = None
    """The environment variable that holds the bearer token."""
    allow_plain_http: bool = False
    allow: tuple[ToolName, ...] = ()
    """Which of its pinned tools are offered; "*" for all."""
    connect_ms: int = Field(default=10_000, ge=100, le=120_000)
    timeout_ms: int = Field(default=30_000, ge=100, le=86_400_000)
    """Of each call."""
    side_effects: SideEffects = SideEffects.YES
    """Of each tool that says nothing else below. What the server says of itself is not believed."""
    tools: dict[ToolName, McpToolSettings] = {}
    enabled: bool = True

    @model_validator(mode="after")
    def _is_one_of_two(self) -> Self:
        if (self.command is None) == (self.url is None):
            raise ValueError("needs either command or url")
        if self.url is None and self.token_env is not None:
            raise ValueError("token_env goes with url; a command gets its secrets by env")
        if self.url is not None:
            if self.args or self.env:
                raise ValueError("args and env go with command")
            self._check(self.url)
        return self

    def _check(self, text: str) -> None:
        url = urlsplit(text)
        if url.scheme not in ("http", "https") or not url.hostname:
            raise ValueError("url must begin with https:// (or http:// on your own machine)")
        if url.username or url.password or url.fragment:
            raise ValueError("url holds no user and no fragment; name the variable of a token in token_env")
        if url.scheme == "http" and not self.allow_plain_http and not _is_loopback(url.hostname):
            raise ValueError("calls would travel unencrypted: use https, or set allow_plain_http on a safe network")


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
