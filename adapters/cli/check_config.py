"""`voicechart check-config`: everything that is wrong with a configuration, before anybody speaks."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .daemon import ConfigOption
from .options import JsonOption
from .output import FAILED, interruptible, print_json
from .refusing import refuse_configuration

if TYPE_CHECKING:
    from ..configuration import Configuration


def check_config(
    config: ConfigOption = Path("voicechart.toml"),
    connect: Annotated[
        bool,
        typer.Option(
            "--connect",
            help="Load and call every part as well, one after the other, and end with 1 when one of them fails.",
        ),
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Validate a configuration: keys, bounds, contradictions, installed packages, secrets that must be there.

    Without --connect nothing is loaded and nobody is called. Ends with 2 when the daemon would refuse it. Secrets are
    never printed.
    """
    import os

    from ...statecharts.capabilities import ResponderCapabilities
    from ..composition import make_parts, make_tools, require_telemetry
    from ..configuration import ConfigurationRefused, load_configuration
    from .trying import Tried, try_parts

    try:
        configuration = load_configuration(config)
        require_telemetry(configuration)
        parts = make_parts(configuration, os.environ)
        offered = [part.offered for part in parts]
        calls_tools = all(one.tool_calls for one in offered if isinstance(one, ResponderCapabilities))
        tools = make_tools(configuration, os.environ).for_a_model(calls_tools=calls_tools)
    except ConfigurationRefused as refused:
        refuse_configuration(config, refused, as_json=as_json)
    found = {
        "audio": str(configuration.audio.endpoint),
        **{part.key: part.name for part in parts},
        "interruption": ", ".join(sorted(source.value for source in configuration.interruption.sources)),
        "microphone": "open while speaking" if configuration.interruption.full_duplex else "closed while speaking",
        "tools": tools.names,
        "history": _history(configuration),
        "trace": str(configuration.trace.path) if configuration.trace is not None else "none",
        "telemetry": _telemetry(configuration),
    }
    tried: list[Tried] = []
    if connect:
        interruptible(lambda: tried.extend(try_parts(parts)))
    ok = all(one.error is None for one in tried)
    if as_json:
        called = {"connected": [one.as_json() for one in tried]} if connect else {}
        print_json({"ok": ok, "problems": [], "notes": list(tools.notes), **found, **called})
    else:
        for name, value in found.items():
            typer.echo(f"{name:<13} {value}")
        for note in tools.notes:
            typer.echo(f"note          {note}")
    if not ok:
        raise typer.Exit(FAILED)


def _telemetry(configuration: Configuration) -> str:
    settings = configuration.telemetry
    if not settings.enabled:
        return "none"
    return f"{settings.endpoint or 'as the environment says'}, {'with' if settings.content else 'without'} content"


def _history(configuration: Configuration) -> str:
    settings = configuration.history
    if settings is None or not settings.enabled:
        return "none"
    return f"{settings.path}, conversation {settings.conversation or configuration.conversation_id}"
