"""What `daemon` does once its options are read."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import anyio
import typer

from ...engines.reports import PortError
from ..composition import compose
from ..configuration import Configuration, ConfigurationRefused, load_configuration
from ..daemon import DaemonOutcome, run_daemon
from ..history import HistoryError
from ..view import LiveView, TimelineView, Watching
from .logs import log_to_stderr
from .output import FAILED, STOPPED, PatientConsole, fail
from .refusing import refuse_configuration


def run_and_report(config: Path, *, show: bool) -> None:
    """Run the daemon; ends the command with the exit code."""
    log_to_stderr()
    try:
        outcome = anyio.run(_run, config, load_configuration(config), show)
    except ConfigurationRefused as refused:
        refuse_configuration(config, refused)
    except (PortError, HistoryError) as failure:
        fail(str(failure), FAILED)
    if outcome.closed.error is not None:
        fail(str(outcome.closed.error), FAILED)
    if outcome.stop.signal is signal.SIGINT:
        raise typer.Exit(STOPPED)


async def _run(config: Path, configuration: Configuration, show: bool) -> DaemonOutcome:
    def read_anew() -> Configuration:
        anew = load_configuration(config)
        compose(anew, os.environ)
        return anew

    if not show:
        return await run_daemon(configuration, os.environ, read_anew=read_anew)
    console = PatientConsole(highlight=False)
    view = LiveView(console) if console.is_terminal else TimelineView(console)
    return await run_daemon(configuration, os.environ, watch=Watching(view).watch, read_anew=read_anew)
