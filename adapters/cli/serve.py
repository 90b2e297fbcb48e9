"""`voicechart serve`: conversations in writing over HTTP."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .options import (
    ApiKeyOption,
    BaseUrlOption,
    ModelOption,
    ResponderName,
    ResponderOption,
    responder_settings,
)
from .output import interruptible

OwnConfigOption = Annotated[
    Path | None,
    typer.Option(
        "--config",
        metavar="FILE",
        help="A configuration as the daemon has it: its responder answers, its table web says to whom. Nothing of its "
        "sound is used.",
        dir_okay=False,
    ),
]
HostOption = Annotated[
    str | None,
    typer.Option("--host", help="Where to listen; beyond this machine only with a token. [default: 127.0.0.1]"),
]
PortOption = Annotated[
    int | None, typer.Option("--port", min=0, max=65_535, help="0 takes any free one. [default: 8420]")
]
TokenOption = Annotated[
    str | None,
    typer.Option("--token-env", metavar="NAME", help="The environment variable that holds the token to ask for."),
]


def serve(
    config: OwnConfigOption = None,
    host: HostOption = None,
    port: PortOption = None,
    token_env: TokenOption = None,
    responder: ResponderOption = ResponderName.COMPANION,
    base_url: BaseUrlOption = None,
    model: ModelOption = None,
    api_key_env: ApiKeyOption = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the address as one JSON object on one line, and nothing else.")
    ] = False,
) -> None:
    """Serve conversations in writing to browsers and programs until it is stopped.

    The page is at the address that is printed; docs/guide/web.md tells of the interface. SIGTERM ends with 0, Ctrl-C
    with 130, an address in use or another failure with 1, a refused configuration with 2.
    """
    if config is not None and (responder is not ResponderName.COMPANION or base_url or model or api_key_env):
        raise typer.BadParameter("the configuration says who answers: leave out --responder and what goes with it")
    answerer = None if config is not None else responder_settings(responder, base_url, model, api_key_env)

    def run() -> None:
        from .serve_run import Wish, run_and_report

        run_and_report(Wish(config, answerer, host, port, token_env), as_json=as_json)

    interruptible(run)
