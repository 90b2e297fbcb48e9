"""The `voicechart` command: `app` is what the installed script runs.

A command's module imports quickly; what it needs is imported when it runs.
"""

from __future__ import annotations

from typing import Annotated

import typer

from ... import __version__
from .attach import attach
from .audio_check import audio_check
from .audio_service import audio_service
from .check_config import check_config
from .daemon import daemon
from .demo import demo
from .diagram import diagram
from .explore import explore
from .history import history_app
from .mcp import mcp_app
from .providers import providers
from .serve import serve
from .talk import talk
from .tasks import tasks_app
from .trace import trace_app

__all__ = ["app"]

app = typer.Typer(
    help="A streaming-first voice-conversation runtime whose middle is an explicit statechart.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="markdown",
    # A defect's traceback belongs into a log, plain, and without the values of variables.
    pretty_exceptions_enable=False,
)


def _print_version(requested: bool) -> None:
    if requested:
        typer.echo(f"voicechart {__version__}")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Hold the options that stand before any command."""


app.command("demo")(demo)
app.command("talk")(talk)
app.command("daemon")(daemon)
app.command("serve")(serve)
app.command("attach")(attach)
app.command("check-config")(check_config)
app.command("providers")(providers)
app.command("audio-service")(audio_service)
app.command("audio-check")(audio_check)
app.command("explore")(explore)
app.command("diagram")(diagram)
app.add_typer(trace_app, name="trace")
app.add_typer(history_app, name="history")
app.add_typer(tasks_app, name="tasks")
app.add_typer(mcp_app, name="mcp")
