"""What the `voicechart diagram` command does."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

import typer

from ...statecharts.chart import ChartDefinition
from ...statecharts.charts import known_chart
from ...statecharts.errors import ChartError
from ...statecharts.traces import TraceError, chart_of
from ..diagrams import (
    DifferenceError,
    LayoutError,
    Marks,
    barge_in_rows,
    declared_at,
    declared_now,
    differences,
    dot_text,
    lay_out,
    leaves_named,
    mermaid_text,
    outdated,
    picture_of,
)
from ..tracing import read_trace
from .diagram import Format
from .files import write_whole
from .output import FAILED, REFUSED, fail

_SUFFIXES = {".svg": Format.SVG, ".png": Format.PNG, ".dot": Format.DOT, ".gv": Format.DOT, ".mmd": Format.MERMAID}


@dataclass(frozen=True, slots=True)
class Wish:
    """What is to be drawn, as it was asked for."""

    chart: str
    form: Format | None
    region: str | None
    overview: bool
    barge_in: bool
    states: tuple[str, ...]
    trace: Path | None
    at: int | None
    output: Path | None

    @property
    def wanted(self) -> Format:
        """The format, or the one that the file's name says."""
        named = _SUFFIXES.get(self.output.suffix.lower()) if self.output is not None else None
        return self.form or named or Format.MERMAID


def run_diagram(wish: Wish) -> None:
    """Draw a chart."""
    try:
        _write(_drawn(wish), wish)
    except (ChartError, TraceError, LayoutError, OSError) as error:
        fail(str(error), REFUSED)


def run_check(folder: Path) -> None:
    """Tell whether the diagrams in a folder show the charts as they are."""
    complaints = outdated(folder)
    for complaint in complaints:
        typer.echo(complaint)
    if complaints:
        fail(f"{len(complaints)} diagrams are out of date: draw them anew with python diagrams/render.py", FAILED)
    typer.echo(f"The diagrams in {folder} show the charts as they are.")


def run_diff(revision: str) -> None:
    """Tell what changed in the charts since a revision of the checkout around the working directory."""
    try:
        lines = differences(declared_at(revision, Path.cwd()), declared_now())
    except DifferenceError as error:
        fail(str(error), REFUSED)
    for line in lines:
        typer.echo(line)
    if not lines:
        typer.echo(f"The charts are what they were at {revision}.")


def _drawn(wish: Wish) -> bytes:
    definition = known_chart(wish.chart).definition
    rows = barge_in_rows(definition) if wish.barge_in else ()
    picture = picture_of(wish.chart, definition, rows, _marks(definition, wish), wish.region)
    if wish.wanted is Format.MERMAID:
        return mermaid_text(picture, overview=wish.overview).encode()
    dot = dot_text(picture, overview=wish.overview)
    return dot.encode() if wish.wanted is Format.DOT else lay_out(dot, wish.wanted.value, picture.title)


def _marks(definition: type[ChartDefinition], wish: Wish) -> Marks:
    active = leaves_named(definition, wish.states)
    if wish.trace is None:
        if wish.at is not None:
            raise ChartError("--at needs --trace")
        return Marks(active=active)
    trace = read_trace(wish.trace)
    if chart_of(trace).definition is not definition:
        raise ChartError(f"{trace.name} is of the chart {trace.header.chart}: draw that one")
    if not trace.records:
        raise ChartError(f"{trace.name} holds no record")
    last = trace.record(trace.records[-1].number if wish.at is None else wish.at)
    path: dict[int, int] = {}
    for record in trace.records[: trace.records.index(last) + 1]:
        for taken in record.taken:
            path[taken.row] = path.get(taken.row, 0) + 1
    return Marks(active or frozenset(last.after), path, frozenset(taken.row for taken in last.taken))


def _write(drawn: bytes, wish: Wish) -> None:
    if wish.output is not None:
        write_whole(wish.output, drawn)
    elif wish.wanted is Format.PNG and sys.stdout.isatty():
        raise ChartError("a picture is nothing for a terminal: name a file with -o")
    else:
        sys.stdout.buffer.write(drawn)
