"""What the commands of `voicechart mcp` do."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import anyio
import typer

from ..composition.packages import require
from ..composition.tools import make_server, pinned
from ..configuration import Configuration, ConfigurationRefused, Problem, load_configuration
from ..tools.mcp_pins import Definition, Pins, changes, written_pins
from .files import write_whole
from .output import FAILED, fail, print_json
from .refusing import refuse_configuration

Found = dict[str, tuple[Definition, ...] | None]
"""By server; None: it cannot be reached."""


def run_list(names: tuple[str, ...], config: Path, *, as_json: bool) -> None:
    """Compare what is offered with what is pinned."""
    configuration, pins, found = _look(names, config, as_json=as_json)
    compared = {name: None if live is None else changes(pins.get(name, ()), live) for name, live in found.items()}
    ok = all(states is not None and set(states.values()) <= {"same"} for states in compared.values())
    if as_json:
        print_json({"ok": ok, "lock": str(configuration.tools.lock), "servers": compared})
    else:
        for name, states in compared.items():
            _print(name, states, found[name] or ())
    if not ok:
        raise typer.Exit(FAILED)


def run_pin(names: tuple[str, ...], config: Path, *, as_json: bool) -> None:
    """Write down what is offered."""
    configuration, pins, found = _look(names, config, as_json=as_json)
    unreachable = sorted(name for name, live in found.items() if live is None)
    if unreachable:
        fail(f"{', '.join(unreachable)} cannot be reached: nothing was pinned", FAILED, as_json=as_json)
    lock = configuration.tools.lock
    assert lock is not None, "a configuration with servers has one"
    live = {name: definitions for name, definitions in found.items() if definitions is not None}
    try:
        write_whole(lock, written_pins({**pins, **live}))
    except OSError as error:
        fail(f"{lock} cannot be written: {error.strerror}", FAILED, as_json=as_json)
    changed = {name: changes(pins.get(name, ()), definitions) for name, definitions in live.items()}
    if as_json:
        print_json({"ok": True, "lock": str(lock), "servers": changed})
        return
    for name, states in changed.items():
        _print(name, states, live[name])
    typer.echo(f"pinned in {lock}")


def _look(names: tuple[str, ...], config: Path, *, as_json: bool) -> tuple[Configuration, Pins, Found]:
    try:
        configuration = load_configuration(config)
        require("mcp", "mcp", "mcp", "jsonschema")
        chosen = names or tuple(name for name, settings in configuration.mcp.items() if settings.enabled)
        unknown = [name for name in chosen if name not in configuration.mcp]
        if unknown or not chosen:
            raise ConfigurationRefused(Problem("mcp", f"there is no server {', '.join(unknown) or 'configured'}"))
        pins = pinned(configuration)
        found = anyio.run(_ask, configuration, chosen, os.environ)
    except ConfigurationRefused as refused:
        refuse_configuration(config, refused, as_json=as_json)
    return configuration, pins, found


async def _ask(configuration: Configuration, names: tuple[str, ...], environment: Mapping[str, str]) -> Found:
    from ..tools.mcp_server import ServerUnavailable
    from ..tools.mcp_tools import serving

    servers = [make_server(name, configuration.mcp[name], environment, shows_errors=True) for name in names]
    found: Found = {}
    async with serving(servers):
        for server in servers:
            try:
                await server.connect()
                found[server.name] = server.definitions
            except ServerUnavailable:
                found[server.name] = None
    return found


def _print(name: str, states: dict[str, str] | None, live: tuple[Definition, ...]) -> None:
    if states is None:
        typer.echo(f"{name}: cannot be reached")
        return
    words = {definition.name: definition.description for definition in live}
    for tool, state in sorted(states.items()):
        first_line = next(iter(words.get(tool, "").splitlines()), "")
        typer.echo(f"{name:<16} {state:<8} {tool:<32} {_plain(first_line)}")


def _plain(text: str) -> str:
    """A server's words must not move the cursor."""
    return "".join(mark if mark.isprintable() else "?" for mark in text)[:120]
