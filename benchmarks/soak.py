"""A conversation that goes on and on, and whether anything grows.

    python benchmarks/soak.py                           an hour on the virtual clock: one or two minutes of a processor
    python benchmarks/soak.py --minutes 5               less of it
    python benchmarks/soak.py --real-time --minutes 10  over the board's socket, with local parts, in real time
    python benchmarks/soak.py --json                    one object
    python benchmarks/soak.py --allocations             and where memory grew most, line by line

Three of ten replies are interrupted, half of them by the stop button and half by the next question being spoken into
them; every seventh question calls a tool on the virtual clock. The virtual hour has a scripted recogniser, model and
voice, and the real session, charts, cascade engine, render queue, capture track and SQLite history. In real time the
audio service is a process of its own behind a Unix socket, Whisper hears questions that another voice speaks (or
`--scripted-recognizer`, where two cores are too busy), the companion answers and eSpeak speaks.

Between two turns, with nothing under way, the process looks at itself. The first figures that count are those after a
quarter of the time, when caches and windows are full. The run is sound when nothing that is counted has grown from the
second quarter to the last one, memory by less than `MEMORY_GROWTH_MIB` (`LISTENING_GROWTH_MIB` with Whisper), no queue
went beyond its budget, and every question that was understood was answered. Progress goes to the standard error; SIGINT
(ctrl-C) ends with the figures so far.
"""

from __future__ import annotations

import json
import os
import platform
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from soaking import Figures, Notes
from soaking_locally import serve, soak_in_real_time
from soaking_virtually import soak_virtually

MEMORY_GROWTH_MIB = 4.0
LISTENING_GROWTH_MIB = 32.0
"""With Whisper, whose runtime keeps working memory: it comes and goes by tens of MiB and is full after some 60
utterances, without a conversation too.
"""
QUEUE_TARGET_MS = 1_000.0
MISHEARD_SHARE = 0.05
"""Of the questions; a machine that is busy with something else recognises too late."""
WARM_UP = 0.25
COUNTED = ("tasks", "threads", "descriptors", "timers", "service_descriptors")
REMEMBERED = ("rss_mib", "service_rss_mib")


def first_that_counts(notes: Notes) -> Figures:
    """After the warm-up; the very first ones of a run that was too short for any."""
    end = notes.figures[-1].minute
    return next(figures for figures in notes.figures if figures.minute >= WARM_UP * end)


def growth_of(notes: Notes, name: str) -> float | None:
    """From the most in the second quarter of the run to the least in its last one: what comes and goes has not grown.

    None where it is not known.
    """
    end, first = notes.figures[-1].minute, first_that_counts(notes)
    early = [known for known in notes.figures if first.minute <= known.minute <= end / 2] or [first]
    late = [known for known in notes.figures if known.minute >= 0.75 * end]
    before, after = ([getattr(known, name) for known in part] for part in (early, late))
    return None if None in (*before, *after) else min(after) - max(before)


def problems_of(notes: Notes, *, memory_growth_mib: float = MEMORY_GROWTH_MIB) -> list[str]:
    """What is wrong; nothing, if the run is sound."""
    if len(notes.figures) < 2:
        return ["too short: there are no two figures to compare"]
    found: list[str] = []
    for name in COUNTED:
        if (growth := growth_of(notes, name)) is not None and growth > 0:
            found.append(f"{name} grew by {growth}")
    for name in REMEMBERED:
        if (growth := growth_of(notes, name)) is not None and growth > memory_growth_mib:
            found.append(f"{name} grew by {growth:.1f} MiB")
    if notes.queue_peak_ms > QUEUE_TARGET_MS:
        found.append(f"{notes.queue_peak_ms:.0f} ms of audio were queued at once")
    if notes.not_understood > MISHEARD_SHARE * notes.asked:
        found.append(f"{notes.not_understood} of {notes.asked} questions were not understood")
    if notes.unanswered:
        found.append(f"{notes.unanswered} of {notes.asked} questions were not answered")
    if sum(notes.deliveries.values()) != notes.turns:
        found.append(f"{notes.turns} turns have {sum(notes.deliveries.values())} delivery records")
    if notes.closed:
        found.append(f"it ended by itself: {notes.closed}")
    return found


def report(notes: Notes, *, real_time: bool, listens: bool, seed: int, took_s: float) -> dict[str, Any]:
    problems = problems_of(notes, memory_growth_mib=LISTENING_GROWTH_MIB if listens else MEMORY_GROWTH_MIB)
    figures = [asdict(known) for known in notes.figures]
    return {
        "section": "soak",
        "machine": {"python": platform.python_version(), "processor": platform.machine(), "cores": os.cpu_count()},
        "clock": "real" if real_time else "virtual",
        "seed": seed,
        "took_s": round(took_s, 1),
        "turns": notes.turns,
        "interrupted": notes.interrupted,
        "unanswered": notes.unanswered,
        "not_understood": notes.not_understood,
        "deliveries": notes.deliveries,
        "first": asdict(first_that_counts(notes)) if figures else None,
        "last": figures[-1] if figures else None,
        "queue_peak_ms": round(notes.queue_peak_ms, 1),
        "queue_peak_bytes": notes.queue_peak_bytes,
        "inbox_peak": notes.inbox_peak,
        "underruns": notes.underruns,
        "stale_frames": notes.stale_frames,
        "allocations": notes.allocations,
        "problems": problems,
        "sound": not problems,
    }


def show(found: dict[str, Any], console: Console) -> None:
    table = Table("", "first", "last", title=f"{found['turns']} turns on the {found['clock']} clock")
    if found["first"] is not None:
        for name, first in found["first"].items():
            if first is not None:
                table.add_row(name.replace("_", " "), str(first), str(found["last"][name]))
    console.print(table)
    facts = (
        f"{found['interrupted']} interruptions",
        f"{found['unanswered']} questions unanswered, {found['not_understood']} not understood",
        ", ".join(f"{count} {status}" for status, count in found["deliveries"].items()),
        f"longest queue {found['queue_peak_ms']} ms, {found['queue_peak_bytes']} bytes",
        f"{found['underruns']} underruns",
        f"{found['inbox_peak']} facts waited at most",
        f"{found['stale_frames']} stale frames stopped at the gate",
        f"took {found['took_s']} s",
    )
    console.print("; ".join(facts), highlight=False)
    for line in found["allocations"]:
        console.print(line, highlight=False)
    for problem in found["problems"]:
        console.print(f"✗ {problem}", style="bold red", highlight=False)
    if found["sound"]:
        console.print("✓ nothing grew", style="green")


def main(
    as_json: Annotated[bool, typer.Option("--json", help="Print one object instead of a table.")] = False,
    minutes: Annotated[float, typer.Option(min=0.1, help="Of conversation.")] = 60.0,
    real_time: Annotated[bool, typer.Option("--real-time", help="Over the socket, with local parts.")] = False,
    scripted_recognizer: Annotated[
        bool, typer.Option(help="In real time: understand without listening, for a slow machine.")
    ] = False,
    allocations: Annotated[bool, typer.Option(help="Say where memory grew. Slower, and memory counts more.")] = False,
    seed: Annotated[int, typer.Option(help="Of the moments at which people speak.")] = 0,
    service: Annotated[Path | None, typer.Option(hidden=True, help="Be the audio service at this path.")] = None,
) -> None:
    """Hold a long conversation and compare what the process holds at its beginning and at its end."""
    if service is not None:
        serve(service)
        return
    notes, began_s = Notes(), time.monotonic()
    if real_time:
        soak_in_real_time(
            notes, minutes=minutes, seed=seed, trace_allocations=allocations, listens=not scripted_recognizer
        )
    else:
        soak_virtually(notes, minutes=minutes, seed=seed, trace_allocations=allocations)
    found = report(
        notes,
        real_time=real_time,
        listens=real_time and not scripted_recognizer,
        seed=seed,
        took_s=time.monotonic() - began_s,
    )
    if as_json:
        print(json.dumps(found))
    else:
        show(found, Console())
    sys.exit(not found["sound"])


if __name__ == "__main__":
    typer.run(main)
