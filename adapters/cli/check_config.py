"""`voicechart check-config`: everything that is wrong with a configuration, before anybody speaks."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from .daemon import ConfigOption
from .options import JsonOption
from .output import REFUSED, print_json

if TYPE_CHECKING:
    from ..configuration import Configuration


def check_config(config: ConfigOption = Path("voicechart.toml"), as_json: JsonOption = False) -> None:
    """Validate a configuration: keys, bounds, contradictions, installed packages, secrets that must be there.

    Nothing is loaded and nobody is called. Ends with 2 when the daemon would refuse it. Secrets are never printed.
    """
    import os

    from ..composition import compose
    from ..configuration import ConfigurationRefused, load_configuration

    try:
        configuration = load_configuration(config)
        composition = compose(configuration, os.environ)
    except ConfigurationRefused as refused:
        for problem in refused.problems:
            typer.echo(f"voicechart: {config}: {problem}", err=True)
        if as_json:
            problems = [{"path": problem.path, "message": problem.message} for problem in refused.problems]
            print_json({"ok": False, "problems": problems})
        raise typer.Exit(REFUSED) from None
    sources = sorted(source.value for source in configuration.interruption.sources)
    found = {
        "audio": str(configuration.audio.endpoint),
        "recognizer": composition.recognizer,
        "responder": composition.responder,
        "voice": composition.voice,
        "interruption": ", ".join(sources),
        "microphone": "open while speaking" if configuration.interruption.full_duplex else "closed while speaking",
        "history": _history(configuration),
        "trace": str(configuration.trace.path) if configuration.trace is not None else "none",
        "telemetry": _telemetry(configuration),
    }
    if as_json:
        print_json({"ok": True, "problems": [], **found})
        return
    for name, value in found.items():
        typer.echo(f"{name:<13} {value}")


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
