"""What `serve` does once its options are read."""

from __future__ import annotations

import json
import os
import signal
from dataclasses import dataclass
from pathlib import Path

import anyio
import typer
from pydantic import ValidationError

from ...engines.reports import PortError
from ..composition import make_tools
from ..composition.web import make_writer, web_options
from ..configuration import Configuration, ConfigurationRefused, Problem, WebSettings, load_configuration
from ..history import HistoryError
from ..providers.declaration import ProviderSettings
from ..stopping import Stop
from .logs import log_to_stderr
from .options import configuration_of, voice_settings
from .output import FAILED, STOPPED, fail
from .refusing import refuse_configuration

NO_FILE = Path("voicechart serve")


@dataclass(frozen=True, slots=True)
class Wish:
    """What is to be served, as it was asked for."""

    config: Path | None
    responder: ProviderSettings | None
    host: str | None
    port: int | None
    token_env: str | None


def run_and_report(wish: Wish, *, as_json: bool) -> None:
    """Serve; ends the command with the exit code."""
    log_to_stderr()
    try:
        stop = anyio.run(_serve, _configuration(wish), as_json)
    except ConfigurationRefused as refused:
        refuse_configuration(wish.config or NO_FILE, refused)
    except (PortError, HistoryError) as failure:
        fail(str(failure), FAILED)
    if stop.signal is signal.SIGINT:
        raise typer.Exit(STOPPED)


def _configuration(wish: Wish) -> Configuration:
    """The file's, or one of the options alone; --host and the like come last. Raises `ConfigurationRefused`."""
    if wish.config is not None:
        found = load_configuration(wish.config)
    else:
        assert wish.responder is not None
        found = configuration_of(wish.responder, voice_settings("auto"))
    told = {"host": wish.host, "port": wish.port, "token_env": wish.token_env}
    changed = {name: value for name, value in told.items() if value is not None}
    try:
        web = WebSettings.model_validate({**found.web.model_dump(), **changed})
    except ValidationError as error:
        told = error.errors(include_input=False)
        raise ConfigurationRefused(*(Problem(f"web.{fault['loc'][0]}", fault["msg"]) for fault in told)) from error
    return found.model_copy(update={"web": web})


async def _serve(configuration: Configuration, as_json: bool) -> Stop:
    from ..web.text_service import serve_text

    options = web_options(configuration.web, os.environ)
    writer = make_writer(configuration, os.environ)
    tools = make_tools(configuration, os.environ).for_a_model(calls_tools=writer.port.capabilities.tool_calls)
    for note in tools.notes:
        typer.echo(f"voicechart: {note}", err=True)

    def announce(address: str) -> None:
        if as_json:
            about = {"address": address, "conversation_id": configuration.conversation_id, "responder": writer.name}
            typer.echo(json.dumps(about))
        else:
            typer.echo(f"{writer.name} answers at {address}  (Ctrl-C ends it)")

    return await serve_text(configuration, writer, tools, options, announce)
