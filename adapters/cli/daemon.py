"""`voicechart daemon`: the conversation of a device, from its configuration."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .output import interruptible

ConfigOption = Annotated[
    Path,
    typer.Option("--config", metavar="FILE", help="The configuration; see docs/guide/daemon.md.", dir_okay=False),
]


def daemon(
    config: ConfigOption = Path("voicechart.toml"),
    show: Annotated[
        bool, typer.Option("--show", help="Show the conversation on this terminal, with everything that is said.")
    ] = False,
) -> None:
    """Run the device's one conversation until it is stopped or its audio service is lost.

    The log goes to stderr and holds no words of anybody. SIGTERM ends with 0, Ctrl-C with 130, a lost audio service or
    another error with 1, a refused configuration with 2. SIGUSR1 is the stop button.
    """

    def run() -> None:
        from .daemon_run import run_and_report

        run_and_report(config, show=show)

    interruptible(run)
