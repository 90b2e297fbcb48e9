"""`voicechart mcp`: what tool servers offer, and which of it was read and approved."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .daemon import ConfigOption
from .options import JsonOption

mcp_app = typer.Typer(no_args_is_help=True, help="Look at the tools of MCP servers, and approve them.")

Servers = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[SERVER]...", help="Which servers; all of the configuration without one.", show_default=False
    ),
]


@mcp_app.command("list")
def list_tools(
    servers: Servers = None, config: ConfigOption = Path("voicechart.toml"), as_json: JsonOption = False
) -> None:
    """Connect to the servers and list their tools: same, changed, new or gone since they were pinned.

    Ends with 1 when a server cannot be reached, or offers something else than what was pinned.
    """
    from .mcp_run import run_list

    run_list(tuple(servers or ()), config, as_json=as_json)


@mcp_app.command()
def pin(servers: Servers = None, config: ConfigOption = Path("voicechart.toml"), as_json: JsonOption = False) -> None:
    """Approve what the servers offer now: write every definition into the lock file.

    Read it before you let a model believe it: docs/guide/tools.md says why.
    """
    from .mcp_run import run_pin

    run_pin(tuple(servers or ()), config, as_json=as_json)
