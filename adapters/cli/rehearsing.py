"""What `demo` and `talk` share: the conversation is held, shown while it runs, and judged when it is over."""

from __future__ import annotations

import os
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import anyio
import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ...audio.errors import AudioError
from ...audio.formats import AudioFrame
from ...engines.reports import PortError
from ...statecharts.traces import TraceError
from ..composition import OfferedTools, make_cascade, make_native, make_tools
from ..configuration import Configuration, ConfigurationRefused
from ..demo import (
    Cast,
    Check,
    NativeCast,
    Outcome,
    Plan,
    Players,
    RehearsalFailed,
    Summary,
    TurnSummary,
    rehearse,
    room_policies,
    summarize,
)
from ..local import RuleBasedEndOfTurn
from ..view import LiveView, TimelineView, Watching
from ..view.turn_figures import figures_object, figures_table
from .output import FAILED, REFUSED, STOPPED, PatientConsole, fail, print_json

NO_ECHO = "Speech may interrupt here: between a virtual speaker and a virtual microphone there is no echo to cancel."


@dataclass(frozen=True)
class Request:
    """One conversation as the command line asks for it."""

    recordings: Callable[[], Awaitable[Sequence[AudioFrame]]]
    """Makes or reads what the user says. May raise `PortError`, `AudioError` and `ConfigurationRefused`."""
    user: str
    """For people: whose voice that is."""
    configuration: Configuration
    """Who takes part; its audio service is not used."""
    out: Path
    history: Path | None
    barge_in_after_ms: float | None
    deadline_s: float
    as_json: bool
    expected: Sequence[Check] = ()


@dataclass(frozen=True)
class _Held:
    outcome: Outcome
    parts: dict[str, str]
    seconds: float


def hold(request: Request) -> None:
    """Hold the conversation and report on it; ends the command with the exit code."""
    console = PatientConsole(highlight=False)
    try:
        held = anyio.run(_hold, request, console)
    except ConfigurationRefused as refused:
        fail(str(refused), REFUSED, as_json=request.as_json)
    except PortError as failure:
        fail(str(failure), FAILED, as_json=request.as_json, error=asdict(failure.error))
    except RehearsalFailed as failure:
        error = asdict(failure.error) if failure.error is not None else None
        fail(str(failure), FAILED, as_json=request.as_json, error=error)
    except (AudioError, TraceError) as failure:
        fail(str(failure), FAILED, as_json=request.as_json, error=None)
    if held.outcome.evidence is None:
        fail("stopped before the conversation had begun", STOPPED, as_json=request.as_json)
    summary = summarize(held.outcome.evidence, request.expected)
    _report(request, held, summary, console)
    if held.outcome.stop.signal is not None:
        typer.echo(f"voicechart: stopped by {held.outcome.stop.signal.name}", err=True)
        raise typer.Exit(STOPPED)
    for problem in summary.problems:
        typer.echo(f"voicechart: {' '.join(problem.split())}", err=True)
    if not summary.ok:
        raise typer.Exit(FAILED)


async def _hold(request: Request, console: Console) -> _Held:
    began_at = time.monotonic()
    configuration = request.configuration
    names, cast, tools = _cast(configuration)
    parts = {**names, "user": request.user}
    plan = Plan(
        tuple(await request.recordings()),
        request.out,
        request.barge_in_after_ms,
        deadline_s=request.deadline_s,
        history=request.history,
    )
    watch = None
    if not request.as_json:
        for part, name in parts.items():
            console.print(Text.assemble((f"{part:<11}", "dim"), name))
        for note in (NO_ECHO, *tools.notes):
            console.print(Text(note, "dim"))
        view = LiveView(console) if console.is_terminal else TimelineView(console)
        watch = Watching(view).watch
    async with tools.serving():
        outcome = await rehearse(plan, cast, watch=watch)
    return _Held(outcome, parts, time.monotonic() - began_at)


def _cast(configuration: Configuration) -> tuple[dict[str, str], Players, OfferedTools]:
    """Who takes part, by name and in person, and what the model may call. Raises `ConfigurationRefused`."""
    policies = room_policies(configuration.policies)
    if configuration.realtime is not None:
        native = make_native(configuration, os.environ)
        calls_tools = native.model.port.capabilities.tool_calls
        tools = make_tools(configuration, os.environ).for_a_model(calls_tools=calls_tools)
        model = NativeCast(
            native.model.port,
            native.voice_activity,
            native.system_prompt,
            policies,
            native.timers.attach,
            native.end_of_turn,
            tools.tools,
        )
        return {native.model.key: native.model.name}, model, tools
    cascade = make_cascade(configuration, os.environ)
    tools = make_tools(configuration, os.environ).for_a_model(
        calls_tools=cascade.responder.port.capabilities.tool_calls
    )
    fallback = cascade.fallback_recognizer
    cast = Cast(
        cascade.recognizer.port,
        cascade.responder.port,
        cascade.synthesizer.port,
        cascade.voice_activity,
        cascade.system_prompt,
        policies,
        cascade.timers.attach,
        RuleBasedEndOfTurn(configuration.end_of_turn),
        None if fallback is None else fallback.port,
        tools.tools,
    )
    return cascade.names, cast, tools


def _report(request: Request, held: _Held, summary: Summary, console: Console) -> None:
    files = {"heard": str(request.out / "heard.wav"), "trace": str(request.out / "trace.jsonl")}
    if request.as_json:
        metrics = figures_object(held.outcome.metrics)
        seconds = round(held.seconds, 1)
        print_json({**summary.as_json(), "metrics": metrics, "parts": held.parts, "files": files, "seconds": seconds})
    else:
        console.print()
        console.print(_exchange(summary))
        console.print(figures_table(held.outcome.metrics))
        console.print(_figures(summary), highlight=False)
        for check in summary.checks:
            console.print(Text.assemble(("✓ ", "green") if check.ok else ("✗ ", "bold red"), check.claim))
        console.print(Text(f"left in {files['heard']} and {files['trace']}, after {held.seconds:.0f} s", "dim"))


def _exchange(summary: Summary) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), title_justify="left")
    for column in ("who", "what", "became of it"):
        table.add_column(column, header_style="dim")
    for entry in sorted((*summary.turns, *summary.replies), key=lambda entry: entry.position):
        if isinstance(entry, TurnSummary):
            table.add_row("user", Text(f"“{entry.transcript}”", "cyan"), f"committed by {entry.authority}")
            continue
        said = Text(entry.delivered or "(no whole sentence)", "green")
        unheard = len(entry.generated) - len(entry.delivered)
        said.append(f"  + {unheard} characters written and not heard whole" if unheard > 0 else "", "dim")
        table.add_row("assistant", said, f"{entry.delivery}, {entry.heard_ms / 1_000:.1f} s heard")
    return table


def _figures(summary: Summary) -> Text:
    last_pcm_ms = summary.interruption_to_last_pcm_ms
    figures = [
        f"{summary.heard_ms / 1_000:.1f} s heard",
        f"queue at most {summary.peak_queue_ms:.0f} ms",
        f"{summary.stale_frames} stale frames",
        f"{summary.duplicate_units} duplicate units",
    ]
    if last_pcm_ms is not None:
        figures.insert(0, f"last sample {last_pcm_ms:.1f} ms after the interruption")
    return Text("; ".join(figures))
