"""How a command says that a configuration is refused."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import typer

from .output import REFUSED, print_json

if TYPE_CHECKING:
    from ..configuration import ConfigurationRefused


def refuse_configuration(config: Path, refused: ConfigurationRefused, *, as_json: bool = False) -> NoReturn:
    """One line for each problem; the command ends with 2. With `as_json` they go to stdout as one object, too."""
    for problem in refused.problems:
        typer.echo(f"voicechart: {config}: {problem}", err=True)
    if as_json:
        problems = [{"path": problem.path, "message": problem.message} for problem in refused.problems]
        print_json({"ok": False, "problems": problems})
    raise typer.Exit(REFUSED)
