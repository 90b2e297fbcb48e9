"""What `voicechart providers` does once its options are read."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from pydantic_core import to_jsonable_python
from rich.table import Table
from rich.text import Text

from ..composition import Ability, Part, abilities_of, make_parts, playback_abilities
from ..configuration import ConfigurationRefused, load_configuration
from ..providers.installed import missing_modules
from ..providers.registry import AnyProvider, Role, all_providers
from .output import PatientConsole, print_json
from .refusing import refuse_configuration

PLAYBACK = "playback"


def show_all(*, as_json: bool) -> None:
    """Every provider there is."""
    found = list(all_providers())
    if as_json:
        print_json({"providers": [_described(role, kind, provider) for role, kind, provider in found]})
        return
    table = Table(box=None, padding=(0, 2, 0, 0))
    for column in ("role", "kind", "what", "installed", "can at best"):
        table.add_column(column, header_style="dim", no_wrap=column in ("role", "kind"))
    for role, kind, provider in found:
        table.add_row(role, kind, provider.title, _installed(provider), Text(_best(role, provider), "dim"))
    PatientConsole(highlight=False).print(table)


def show_chosen(config: Path, *, as_json: bool) -> None:
    """What the parts of a configuration can do. Ends the command with 2 when it is refused."""
    try:
        configuration = load_configuration(config)
        parts = make_parts(configuration, os.environ)
    except ConfigurationRefused as refused:
        refuse_configuration(config, refused, as_json=as_json)
    playback = tuple(playback_abilities(None))
    policy = configuration.connection.streaming.value
    if as_json:
        shown: list[dict[str, Any]] = [
            {"role": part.role.value, "path": part.path, "kind": part.kind, "name": part.name, **_as_json(_able(part))}
            for part in parts
        ]
        print_json(
            {
                "ok": True,
                "streaming_policy": policy,
                "parts": shown,
                PLAYBACK: _as_json(playback),
                "degradations": [
                    f"{part.role}.{able.name}: {able.reason}" for part in parts for able in _able(part) if able.reason
                ],
            }
        )
        return
    console = PatientConsole(highlight=False)
    console.print(Text.assemble(("streaming policy  ", "dim"), policy))
    for part in parts:
        console.print()
        console.print(Text.assemble((f"{part.role}  ", "bold"), part.name, (f"  [{part.path}], {part.kind}", "dim")))
        console.print(_matrix(_able(part)))
    console.print()
    console.print(Text(PLAYBACK, "bold"))
    console.print(_matrix(playback))


def _able(part: Part[Any]) -> tuple[Ability, ...]:
    return abilities_of(part.role, part.port.capabilities, part.offered)


def _matrix(abilities: Sequence[Ability]) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 2), show_header=False)
    for able in abilities:
        if able.value is True:
            mark = Text("yes", "green")
        elif able.value is False:
            mark = Text("no", "yellow")
        else:
            mark = Text("?" if able.value is None else str(able.value))
        table.add_row(able.name.replace("_", " "), mark, Text(able.reason or "", "dim"))
    return table


def _as_json(abilities: Sequence[Ability]) -> dict[str, Any]:
    return {"abilities": [asdict(able) for able in abilities]}


def _described(role: Role, kind: str, provider: AnyProvider) -> dict[str, Any]:
    missing = missing_modules(*provider.modules)
    return {
        "role": role.value,
        "kind": kind,
        "title": provider.title,
        "extra": provider.extra,
        "installed": not missing,
        "missing": list(missing),
        "offers": asdict(provider.offers) if provider.offers is not None else None,
        "settings": _settings(provider),
    }


def _settings(provider: AnyProvider) -> dict[str, Any]:
    """Every key of its records: whether it is needed, and else its default."""
    fields = provider.settings.model_fields
    return {
        key: {"required": True}
        if field.is_required()
        else {"required": False, "default": _plain(field.get_default(call_default_factory=True))}
        for key, field in fields.items()
        if key != "kind"
    }


def _plain(value: object) -> Any:  # noqa: ANN401 - goes into JSON
    return to_jsonable_python(value, fallback=str)


def _installed(provider: AnyProvider) -> Text:
    if missing := missing_modules(*provider.modules):
        return Text(f"no: {', '.join(missing)} (extra {provider.extra})", "yellow")
    return Text("yes", "green")


def _best(role: Role, provider: AnyProvider) -> str:
    if provider.offers is None:
        return "what its record says"
    return ", ".join(able.name.replace("_", " ") for able in abilities_of(role, provider.offers) if able.value)
