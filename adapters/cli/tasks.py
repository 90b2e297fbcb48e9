"""`voicechart tasks`: what goes on in the background, and what came of it."""

from __future__ import annotations

from typing import Annotated

import typer

from .history import ConfigFile, HistoryFile, Json, parse_age

tasks_app = typer.Typer(no_args_is_help=True, help="See background tasks, end them, forget them.")


@tasks_app.command("list")
def list_tasks(
    history: HistoryFile = None,
    config: ConfigFile = None,
    conversation: Annotated[
        str | None, typer.Option("--conversation", metavar="NAME", help="Only those of this conversation.")
    ] = None,
    as_json: Json = False,
) -> None:
    """List the background tasks of a history file, the oldest first."""
    from .tasks_run import run_list

    run_list(history, config, conversation, as_json=as_json)


@tasks_app.command()
def cancel(
    task: Annotated[str, typer.Argument(metavar="TASK", help="Which one, such as t7.", show_default=False)],
    history: HistoryFile = None,
    config: ConfigFile = None,
    as_json: Json = False,
) -> None:
    """Ask for the end of a task: a daemon that runs does it within a second, another one when it starts."""
    from .tasks_run import run_cancel

    run_cancel(task, history, config, as_json=as_json)


@tasks_app.command()
def prune(
    older_than: Annotated[
        str,
        typer.Option(
            "--older-than", metavar="AGE", help="Such as 90m, 12h, 30d or 4w, since it ended.", show_default=False
        ),
    ],
    history: HistoryFile = None,
    config: ConfigFile = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say how many.")] = False,
    as_json: Json = False,
) -> None:
    """Forget tasks that ended long ago, for good."""
    age = parse_age(older_than)
    from .tasks_run import run_prune

    run_prune(age, history, config, dry_run=dry_run, as_json=as_json)
