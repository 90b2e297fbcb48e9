"""`voicechart history`: what was said and what was heard, to read, to take along, and to forget."""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path
from typing import Annotated

import typer

history_app = typer.Typer(no_args_is_help=True, help="Read what was said and what was heard, take it along, forget it.")

HistoryFile = Annotated[
    Path | None,
    typer.Option(
        "--history", metavar="FILE", help="The history file. Without it the one of the configuration.", dir_okay=False
    ),
]
ConfigFile = Annotated[
    Path | None,
    typer.Option(
        "--config",
        metavar="FILE",
        help="The configuration that names the history file; voicechart.toml when neither is given.",
        dir_okay=False,
    ),
]
Name = Annotated[str | None, typer.Argument(metavar="[CONVERSATION]", help="Which conversation.", show_default=False)]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object on stdout, and nothing else there.")]

_DURATION = re.compile(r"([0-9]{1,5})([mhdw])")
_UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


def parse_age(text: str) -> timedelta:
    """`90m`, `12h`, `30d` or `4w`. Raises `typer.BadParameter`."""
    found = _DURATION.fullmatch(text)
    if found is None:
        raise typer.BadParameter(f"{text!r} is no age: write a number and m, h, d or w, such as 30d")
    return timedelta(**{_UNITS[found.group(2)]: int(found.group(1))})


@history_app.command()
def show(
    conversation: Name = None,
    history: HistoryFile = None,
    config: ConfigFile = None,
    last: Annotated[
        int | None, typer.Option("--last", metavar="N", min=1, help="Only the last so many turns and replies.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Show a conversation: what was said, what of it was heard, and where it was interrupted.

    Without a name it is the configuration's conversation, or the one in which something was said last.
    """
    from .history_run import run_show

    run_show(conversation, history, config, last, as_json=as_json)


@history_app.command("list")
def list_conversations(history: HistoryFile = None, config: ConfigFile = None, as_json: Json = False) -> None:
    """List the conversations of a history file, the latest first."""
    from .history_run import run_list

    run_list(history, config, as_json=as_json)


@history_app.command()
def export(
    conversation: Name = None,
    history: HistoryFile = None,
    config: ConfigFile = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="Write to this file instead of stdout.", dir_okay=False),
    ] = None,
) -> None:
    """Export everything, or one conversation, as JSON Lines: one record a line, in a form that stays as it is.

    docs/guide/history.md has every field.
    """
    from .history_run import run_export

    run_export(conversation, history, config, output)


@history_app.command()
def prune(
    older_than: Annotated[
        str,
        typer.Option(
            "--older-than",
            metavar="AGE",
            help="Such as 90m, 12h, 30d or 4w, since it was last written.",
            show_default=False,
        ),
    ],
    history: HistoryFile = None,
    config: ConfigFile = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be forgotten.")] = False,
    as_json: Json = False,
) -> None:
    """Forget the old beginning of every conversation, for good. It may be done while a daemon runs."""
    age = parse_age(older_than)
    from .history_run import run_prune

    run_prune(age, history, config, dry_run=dry_run, as_json=as_json)
