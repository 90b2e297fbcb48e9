"""The `voicechart` command: `app` is what the installed script runs."""

from __future__ import annotations

from typing import Annotated

import typer

from ... import __version__

__all__ = ["app"]

app = typer.Typer(
    help="A streaming-first voice-conversation runtime whose middle is an explicit statechart.",
    no_args_is_help=True,
    add_completion=False,
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
