"""`voicechart diagram`: the lifecycle, drawn from the charts that run."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


class Format(StrEnum):
    """What to draw."""

    SVG = "svg"
    PNG = "png"
    DOT = "dot"
    MERMAID = "mermaid"


def diagram(
    chart: Annotated[str, typer.Argument(help="Which chart; an unknown name lists them.")] = "conversation",
    form: Annotated[
        Format | None, typer.Option("--format", help="By default what the name after -o says, else mermaid.")
    ] = None,
    region: Annotated[str | None, typer.Option(help="Only this region.")] = None,
    overview: Annotated[bool, typer.Option("--overview", help="States and events only.")] = False,
    barge_in: Annotated[bool, typer.Option("--barge-in", help="Highlight the barge-in transaction.")] = False,
    state: Annotated[
        list[str] | None, typer.Option(help="Colour this state as active: a name, or region=name. One a region.")
    ] = None,
    trace: Annotated[Path | None, typer.Option(help="Draw the path that a trace took.")] = None,
    at: Annotated[int | None, typer.Option(help="With --trace: up to this record.")] = None,
    check: Annotated[bool, typer.Option("--check", help="Tell whether the diagrams in the folder are true.")] = False,
    diff: Annotated[str | None, typer.Option(metavar="REV", help="Tell what changed since a git revision.")] = None,
    folder: Annotated[Path, typer.Option(help="With --check: where they are.")] = Path("diagrams"),
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Write to this file.")] = None,
) -> None:
    """Draw a chart, check the checked-in diagrams, or tell what changed in the charts."""
    from .diagram_run import Wish, run_check, run_diagram, run_diff

    if check:
        run_check(folder)
    elif diff is not None:
        run_diff(diff)
    else:
        run_diagram(Wish(chart, form, region, overview, barge_in, tuple(state or ()), trace, at, output))
