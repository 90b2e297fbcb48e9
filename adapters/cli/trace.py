"""`voicechart trace`: to look at a trace, to replay it, to compare it, and to ask why."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

trace_app = typer.Typer(no_args_is_help=True, help="Look at a trace, replay it, compare it, and ask why.")

File = Annotated[Path, typer.Argument(help="The trace.", show_default=False)]
Json = Annotated[bool, typer.Option("--json", help="As JSON.")]
PoliciesPlace = Annotated[
    str | None,
    typer.Option(metavar="MODULE:NAME", help="Policies that a trace cannot hold: an object, or what makes one."),
]


@trace_app.command()
def show(
    file: File,
    region: Annotated[str | None, typer.Option(help="Only records in which this region took a transition.")] = None,
    event: Annotated[str | None, typer.Option(help="Only this event.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a line, as recorded.")] = False,
) -> None:
    """List what happened, one record a line."""
    from .trace_run import run_show

    run_show(file, region, event, as_json=as_json)


@trace_app.command()
def timeline(
    file: File,
    from_s: Annotated[
        float | None, typer.Option("--from", metavar="SECONDS", help="Since the first record; 0 when left out.")
    ] = None,
    to_s: Annotated[
        float | None, typer.Option("--to", metavar="SECONDS", help="Since the first record; the end when left out.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write one self-contained .svg or .html file.")
    ] = None,
) -> None:
    """Draw the regions over time, with the facts and the interruptions."""
    from .trace_run import run_timeline

    run_timeline(file, from_s, to_s, output)


@trace_app.command()
def replay(file: File, policies: PoliciesPlace = None, as_json: Json = False) -> None:
    """Prove that the same facts give the same actions, or name the first that does not."""
    from .trace_run import run_replay

    run_replay(file, policies, as_json=as_json)


@trace_app.command()
def diff(
    left: File,
    right: File,
    exact: Annotated[bool, typer.Option("--exact", help="Compare times and identities too.")] = False,
    as_json: Json = False,
) -> None:
    """Name the first difference of two traces."""
    from .trace_run import run_diff

    run_diff(left, right, exact=exact, as_json=as_json)


@trace_app.command()
def explain(
    file: File,
    number: Annotated[int, typer.Argument(help="Which record.", show_default=False)],
    policies: PoliciesPlace = None,
    brief: Annotated[bool, typer.Option("--brief", help="The sentence alone.")] = False,
) -> None:
    """Say why a fact was accepted, refused or ignored: which guard, which values."""
    from .trace_run import run_explain

    run_explain(file, number, policies, brief=brief)
