"""`voicechart providers`: who can hear, answer and speak, and what each can do."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .options import JsonOption

OptionalConfig = Annotated[
    Path | None,
    typer.Option(
        "--config",
        metavar="FILE",
        help="Show what the parts that this configuration chooses can do, and why not.",
        dir_okay=False,
    ),
]


def providers(config: OptionalConfig = None, as_json: JsonOption = False) -> None:
    """List every provider with its role, its kind and what it can do at best.

    With a configuration: what the chosen parts can do, dimension by dimension, with the reason of every degradation.
    Nothing is loaded and nobody is called. Ends with 2 when the daemon would refuse the configuration.
    """
    from .providers_run import show_all, show_chosen

    if config is None:
        show_all(as_json=as_json)
    else:
        show_chosen(config, as_json=as_json)
