"""Barge-in: from an interruption to the last old PCM, in this process and over the board's socket.

    python benchmarks/bargein.py            tables for people
    python benchmarks/bargein.py --json     one object
    python benchmarks/bargein.py --trials 400 --seed 7

A whole session with a scripted model and synthesiser, which makes audio as fast as it is taken, speaks through a paced
virtual speaker (5 ms quanta, nothing held in hardware). At a random moment of every reply, sometimes before its first
sample, the stop button is pressed. Every duration is between two readings of the one monotonic clock of the machine,
which both processes share:

- asked: the fact is handed in; accepted: the macrostep that moves the output epoch has ended; told: the call that stops
  the speaker has returned;
- an old sample's time is the time at which the device had rendered the quantum that holds it.

A frame is stale when it is of an invalidated epoch: `passed` the gate after the acceptance (none may), `dropped` at a
gate, or `heard` in or behind a later reply (none may). In the socket section the audio service is a process of its own.
The section names are those of the peers' benchmarks: `interrupt_api` is an interruption asked for by a call.
"""

from __future__ import annotations

import json
import os
import platform
import signal
import sys
import tempfile
from pathlib import Path
from typing import IO, Annotated, Any

import anyio
import typer
from interrupting import PATIENCE_S, Driver, InProcessDevice, Notes, SocketDevice
from rich.console import Console
from rich.table import Table

from voicechart.adapters.board import RenderedSpan, WavMicrophone, WavSpeaker, serve_audio
from voicechart.audio.formats import SPEECH_FORMAT
from voicechart.engines.clock import LoopClock

TOLD_TARGET_MS = 0.4
SOCKET_TARGET_MS = 20.0


# -- both ends -----------------------------------------------------------------------------------------------------


def measure_in_process(trials: int, seed: int) -> Notes:
    notes = Notes()
    anyio.run(Driver(notes, trials, seed).run, InProcessDevice(notes, LoopClock()))
    return notes


def measure_over_socket(trials: int, seed: int) -> Notes:
    notes = Notes()
    with tempfile.TemporaryDirectory() as folder:
        path, log = Path(folder, "audio.sock"), Path(folder, "rendered.txt")
        with log.open("wb") as written:
            anyio.run(
                _drive_beside_a_service, Driver(notes, trials, seed), SocketDevice(path, notes, LoopClock()), written
            )
        for line in log.read_text(encoding="ascii").splitlines():
            stream_id, epoch, start, end, at_ns = map(int, line.split())
            notes.spans.append(RenderedSpan(stream_id, epoch, start, end, at_ns))
    return notes


async def _drive_beside_a_service(driver: Driver, device: SocketDevice, log: IO[bytes]) -> None:
    command = [sys.executable, __file__, "--service", str(device.path)]
    async with await anyio.open_process(command, stdout=log, stderr=None) as service:
        try:
            with anyio.fail_after(PATIENCE_S):
                while not await anyio.Path(device.path).exists():  # noqa: ASYNC110 - another process makes it
                    await anyio.sleep(0.02)
            await driver.run(device)
        finally:
            service.terminate()


async def serve(path: Path) -> None:
    """The audio service; every rendered span goes to the standard output when the service is told to end."""
    spans: list[RenderedSpan] = []
    with anyio.open_signal_receiver(signal.SIGTERM) as signals:
        async with anyio.create_task_group() as tasks:

            async def run() -> None:
                await serve_audio(path, WavMicrophone(), WavSpeaker(None, SPEECH_FORMAT), log_rendered=spans.append)

            tasks.start_soon(run)
            async for _ in signals:
                break
            tasks.cancel_scope.cancel()
    for span in spans:
        print(span.stream_id, span.output_epoch, span.start_sample, span.end_sample, span.rendered_at_ns)


# -- what came of it -----------------------------------------------------------------------------------------------


def spread(values: list[float]) -> dict[str, float | int]:
    """As the peers' benchmarks tell it."""
    if not values:
        return {"n": 0}
    ordered = sorted(values)

    def at(share: float) -> float:
        return round(ordered[min(len(ordered) - 1, round(share * (len(ordered) - 1)))], 3)

    return {
        "n": len(ordered),
        "p50": at(0.5),
        "p95": at(0.95),
        "p99": at(0.99),
        "max": round(ordered[-1], 3),
        "min": round(ordered[0], 3),
    }


def summary(notes: Notes) -> dict[str, Any]:
    heard: dict[int, list[RenderedSpan]] = {}
    newest, stale_heard = 0, 0
    for span in notes.spans:
        heard.setdefault(span.output_epoch, []).append(span)
        stale_heard += span.output_epoch < newest
        newest = max(newest, span.output_epoch)
    trials = [trial for trial in notes.trials if trial.accepted_ns]
    sounding = [trial for trial in trials if trial.epoch in heard]

    def ms(from_ns: int, to_ns: int) -> float:
        return (to_ns - from_ns) / 1_000_000

    last_ns = {trial.epoch: heard[trial.epoch][-1].rendered_at_ns for trial in sounding}
    misreported = [
        abs(heard[trial.epoch][-1].end_sample - trial.played_samples)
        for trial in sounding
        if trial.played_samples is not None
    ]
    return {
        "interruptions": len(trials),
        "of_them_before_anything_was_heard": len(trials) - len(sounding),
        "interrupt_api": {
            "asked_to_accepted_ms": spread([ms(trial.asked_ns, trial.accepted_ns) for trial in trials]),
            "accepted_to_speaker_told_ms": spread([ms(trial.accepted_ns, trial.told_ns) for trial in trials]),
            "accepted_to_last_old_pcm_ms": spread(
                [max(0.0, ms(trial.accepted_ns, last_ns[trial.epoch])) for trial in sounding]
            ),
            "told_to_last_old_pcm_ms": spread(
                [max(0.0, ms(trial.told_ns, last_ns[trial.epoch])) for trial in sounding]
            ),
            "accepted_to_delivery_recorded_ms": spread(
                [ms(trial.accepted_ns, trial.recorded_ns) for trial in sounding]
            ),
            "reported_minus_true_position_samples": spread([float(samples) for samples in misreported]),
        },
        "stale_frames": {
            "passed_after_acceptance": sum(trial.passed_frames for trial in trials),
            "dropped_at_a_gate": notes.dropped_frames,
            "heard": stale_heard,
        },
        "peak_queue_ms": round(notes.peak_queued_ms, 1),
    }


def report(trials: int, seed: int) -> dict[str, Any]:
    in_process = summary(measure_in_process(trials, seed))
    socket = summary(measure_over_socket(trials, seed))
    told = in_process["interrupt_api"]["accepted_to_speaker_told_ms"]["p95"]
    last_here = in_process["interrupt_api"]["accepted_to_last_old_pcm_ms"]["max"]
    last_there = socket["interrupt_api"]["accepted_to_last_old_pcm_ms"]["p95"]
    passed = sum(found["stale_frames"]["passed_after_acceptance"] for found in (in_process, socket))
    heard = sum(found["stale_frames"]["heard"] for found in (in_process, socket))
    targets = {
        "in_process_speaker_told_p95_ms": {"measured": told, "target": TOLD_TARGET_MS},
        "in_process_last_old_pcm_max_ms": {"measured": last_here, "target": 0.0},
        "socket_last_old_pcm_p95_ms": {"measured": last_there, "target": SOCKET_TARGET_MS},
        "old_frames_passed_after_acceptance": {"measured": passed, "target": 0},
        "stale_frames_heard": {"measured": heard, "target": 0},
        "peak_queue_ms": {"measured": max(in_process["peak_queue_ms"], socket["peak_queue_ms"]), "target": 1_000},
    }
    return {
        "section": "bargein",
        "machine": {"python": platform.python_version(), "processor": platform.machine(), "cores": os.cpu_count()},
        "trials": trials,
        "seed": seed,
        "in_process": in_process,
        "socket": socket,
        "targets": targets,
        "meets_targets": all(target["measured"] <= target["target"] for target in targets.values()),
    }


def show(found: dict[str, Any], console: Console) -> None:
    for place in ("in_process", "socket"):
        one = found[place]
        quiet = one["of_them_before_anything_was_heard"]
        table = Table("from → to", "p50", "p95", "p99", "max", title=f"{place}: milliseconds")
        for name, values in one["interrupt_api"].items():
            if name.endswith("_ms"):
                table.add_row(name, *(str(values.get(share, "")) for share in ("p50", "p95", "p99", "max")))
        console.print(table)
        console.print(f"{one['interruptions']} interruptions, {quiet} of them before anything was heard")
        console.print(f"old frames: {one['stale_frames']}; longest queue {one['peak_queue_ms']} ms")
    for name, target in found["targets"].items():
        console.print(f"{name}: {target['measured']} (target ≤ {target['target']})")


def main(
    as_json: Annotated[bool, typer.Option("--json", help="Print one object instead of tables.")] = False,
    trials: Annotated[int, typer.Option(min=1, help="Interruptions in each section.")] = 200,
    seed: Annotated[int, typer.Option(help="Of the moments at which they come.")] = 0,
    service: Annotated[Path | None, typer.Option(hidden=True, help="Be the audio service at this path.")] = None,
) -> None:
    """Measure how soon an interrupted reply is silent."""
    if service is not None:
        anyio.run(serve, service)
        return
    found = report(trials, seed)
    if as_json:
        print(json.dumps(found))
    else:
        show(found, Console())


if __name__ == "__main__":
    typer.run(main)
