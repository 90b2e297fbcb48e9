"""What the `voicechart trace` commands do."""

from __future__ import annotations

import json
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import TypeVar

import typer

from ...statecharts.policies import Policies
from ...statecharts.traces import (
    Trace,
    TraceError,
    details_of,
    explain,
    first_divergence,
    replay,
    sentence_of,
)
from ...statecharts.traces.codec import encode_fields
from ..tracing import Sort, html_of, key, lanes, list_of, read_trace, svg_of, timeline_of
from .files import write_whole
from .output import FAILED, REFUSED, PatientConsole, fail, print_json
from .trace_words import (
    difference_object,
    divergence_object,
    header_line,
    record_line,
    tell_difference,
    tell_divergence,
)

Found = TypeVar("Found")


def run_show(file: Path, region: str | None, event: str | None, *, as_json: bool) -> None:
    """List what happened, one record a line."""
    trace = _read(file)
    if region is not None and region not in trace.header.regions:
        fail(f"{file} has no region {region!r}: choose one of {', '.join(trace.header.regions)}", REFUSED)
    records = [
        record
        for record in trace.records
        if event in (None, record.event) and (region is None or any(taken.region == region for taken in record.taken))
    ]
    if as_json:
        for record in records:
            typer.echo(json.dumps(encode_fields(record), ensure_ascii=False))
        return
    typer.echo(header_line(trace))
    gaps = {gap.start.number: gap.gap for gap in trace.gaps}
    for record in records:
        if record.number in gaps:
            typer.echo(f"       … {gaps[record.number]} records are missing …")
        typer.echo(record_line(trace, record))


def run_timeline(file: Path, from_s: float | None, to_s: float | None, output: Path | None) -> None:
    """Draw the regions over time, with the facts and the interruptions."""
    trace = _read(file)
    try:
        drawn = timeline_of(trace, from_s, to_s)
        if output is None:
            console = PatientConsole(highlight=False)
            for lane in lanes(drawn, console.width):
                console.print(lane, no_wrap=True, crop=True)
            console.print(key())
            console.print(list_of(mark for mark in drawn.marks if mark.sort is not Sort.NOTED))
        elif output.suffix.lower() in (".svg", ".html"):
            write_whole(output, (svg_of if output.suffix.lower() == ".svg" else html_of)(drawn).encode("utf-8"))
        else:
            fail(f"{output}: a timeline is written as .svg or .html", REFUSED)
    except (TraceError, OSError) as error:
        fail(str(error), REFUSED)


def run_replay(file: Path, policies: str | None, *, as_json: bool) -> None:
    """Prove that the same facts give the same actions, or name the first that does not."""
    trace = _read(file)
    found = _refusing(lambda: replay(trace, policies=_policies(policies)))
    divergence = found.divergence
    if as_json:
        told = divergence_object(divergence) if divergence is not None else None
        counts = {"facts": found.facts, "actions": found.actions, "gaps": found.gaps}
        print_json({"ok": divergence is None, **counts, "divergence": told})
    elif divergence is None:
        gaps = f" It went on behind {found.gaps} gap{'s' if found.gaps > 1 else ''}." if found.gaps else ""
        typer.echo(f"No divergence: {found.facts} facts gave the same {found.actions} actions again.{gaps}")
    else:
        for line in tell_divergence(trace, divergence):
            typer.echo(line)
    if divergence is not None:
        raise typer.Exit(FAILED)


def run_diff(left: Path, right: Path, *, exact: bool, as_json: bool) -> None:
    """Name the first difference of two traces."""
    one, other = _read(left), _read(right)
    found = first_divergence(one, other, exact=exact)
    if as_json:
        print_json({"ok": found is None, "difference": None if found is None else difference_object(found)})
    elif found is None:
        typer.echo(f"No difference in {len(one.records)} records.")
    else:
        for line in tell_difference(one, other, found):
            typer.echo(line)
    if found is not None:
        raise typer.Exit(FAILED)


def run_explain(file: Path, number: int, policies: str | None, *, brief: bool) -> None:
    """Say why a fact was accepted, refused or ignored: which guard, which values."""
    trace = _read(file)
    explanation = _refusing(lambda: explain(trace, number, policies=_policies(policies)))
    typer.echo(sentence_of(trace, explanation))
    if not brief:
        typer.echo("")
        for line in details_of(trace, explanation):
            typer.echo(line)


def _read(file: Path) -> Trace:
    trace = _refusing(lambda: read_trace(file))
    if trace.is_truncated:
        typer.echo(f"voicechart: the last line of {file} was cut off and is left out", err=True)
    return trace


def _refusing(find: Callable[[], Found]) -> Found:
    try:
        return find()
    except TraceError as error:
        fail(str(error), REFUSED)


def _policies(place: str | None) -> Policies | None:
    """The policies that a program of the embedder's holds."""
    if place is None:
        return None
    module, _, name = place.partition(":")
    try:
        found = getattr(import_module(module), name)
        found = found() if callable(found) else found
    except (ImportError, AttributeError, ValueError, TypeError) as error:
        raise TraceError(f"--policies {place}: {error}") from error
    if not isinstance(found, Policies):
        raise TraceError(f"--policies {place} is no Policies but {type(found).__name__}")
    return found
