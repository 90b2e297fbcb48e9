"""How every command speaks: results on stdout, one line for an error on stderr, and what the exit code means.

0: it went well. 1: it was tried and failed. 2: it cannot be tried as asked. 130: somebody stopped it.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from typing import Any, NoReturn

import typer
from rich.console import Console

FAILED = 1
REFUSED = 2
STOPPED = 130


class PatientConsole(Console):
    """Whoever reads may leave (`| head`); what is going on goes on."""

    def on_broken_pipe(self) -> None:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def fail(message: str, code: int, *, as_json: bool = False, **fields: Any) -> NoReturn:  # noqa: ANN401 - goes into JSON
    """Say in one line why, and end with `code`. With `as_json` an object of `fields` goes to stdout first."""
    if as_json:
        print_json({"ok": False, "problems": [message], **fields})
    typer.echo(f"voicechart: {' '.join(message.split())}", err=True)
    raise typer.Exit(code)


def print_json(value: dict[str, Any]) -> None:
    """One object, the only thing on stdout."""
    typer.echo(json.dumps(value, ensure_ascii=False, indent=2))


def interruptible(run: Callable[[], None]) -> None:
    """Run a command whose own handling of signals may not have begun, or be over already."""
    try:
        run()
    except KeyboardInterrupt:
        raise typer.Exit(STOPPED) from None
