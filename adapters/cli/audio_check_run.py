"""What `audio-check` does once its options are read."""

from __future__ import annotations

import math
import signal
from pathlib import Path
from typing import Any, NoReturn

import anyio
import typer

from ...audio.errors import AudioSettingsError, AudioWriteError
from ...audio.formats import AudioFrame
from ...audio.wav_writer import WavWriter
from ...engines.clock import LoopClock
from ...engines.reports import PortError
from ..board import AudioEndpoint, BoardAudio, EndpointRefused, parse_endpoint
from ..board.audio_check import MAX_ECHO_RETURN_DB, AudioCheck, check_audio
from ..configuration import ConfigurationRefused, load_configuration
from ..stopping import stop_on_signals
from .output import FAILED, REFUSED, STOPPED, fail, print_json


def run_check(endpoint: str | None, config: Path | None, *, level_db: float, out: Path | None, as_json: bool) -> None:
    """Measure and tell; ends the command with the exit code."""
    place = _place(endpoint, config, as_json=as_json)
    try:
        check = anyio.run(_measure, place.path, level_db)
        if check is None:
            raise typer.Exit(STOPPED)
        if out is not None:
            _keep(out, check)
    except PortError as failure:
        hint = "; stop the daemon first, it holds the devices" if failure.error.code == "busy" else ""
        _refuse(f"{failure}{hint}", as_json=as_json)
    except (AudioSettingsError, AudioWriteError, OSError) as failure:
        _refuse(str(failure), as_json=as_json)
    if as_json:
        print_json({"ok": check.is_good, "problems": list(check.problems), **figures(check)})
    else:
        _tell(check)
    if not check.is_good:
        raise typer.Exit(FAILED)


def figures(check: AudioCheck) -> dict[str, Any]:
    """The measurements as JSON: levels in dB, None where there is nothing to tell."""
    echo = check.echo
    return {
        "echo_return_db": _finite(echo.echo_return_db),
        "echo_was_found": not echo.is_bound,
        "linear_return_db": _finite(echo.linear_return_db),
        "residual_return_db": _finite(echo.residual_return_db),
        "max_echo_return_db": MAX_ECHO_RETURN_DB,
        "latency_ms": None if check.latency_ms is None else round(check.latency_ms, 1),
        "latency_source": "device" if check.latency_is_measured else "arrival",
        "noise_floor_dbfs": _finite(echo.noise_floor_dbfs),
        "played_dbfs": _finite(echo.played_dbfs),
        "clipped_samples": echo.clipped_samples,
        "lost_samples": check.lost_samples,
        "underruns": check.underruns,
        "position_source": check.position_source.value,
    }


def _place(endpoint: str | None, config: Path | None, *, as_json: bool) -> AudioEndpoint:
    if (endpoint is None) == (config is None):
        raise typer.BadParameter("give either --endpoint unix:PATH or --config FILE")
    try:
        if endpoint is not None:
            return parse_endpoint(endpoint)
        assert config is not None
        return load_configuration(config).audio.endpoint
    except (EndpointRefused, ConfigurationRefused) as refused:
        _refuse(str(refused), as_json=as_json)


async def _measure(path: Path, level_db: float) -> AudioCheck | None:
    """None when somebody stopped it."""
    clock, check = LoopClock(), None
    measuring = anyio.CancelScope()
    async with stop_on_signals(measuring.cancel) as stop:
        with measuring:
            async with BoardAudio.connect(path) as board:
                check = await check_audio(board, peak_dbfs=level_db, now_ns=clock.now_ns, tell=_progress)
    return None if stop.signal in (signal.SIGINT, signal.SIGTERM) else check


def _progress(step: str) -> None:
    typer.echo(f"voicechart: {step}", err=True)


def _keep(folder: Path, check: AudioCheck) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, frame in (("played.wav", check.played), ("captured.wav", check.captured)):
        _write(folder / name, frame)


def _write(path: Path, frame: AudioFrame) -> None:
    with WavWriter(path, frame.format) as writer:
        writer.write(frame)


def _tell(check: AudioCheck) -> None:
    found = figures(check)
    echo = f"{_level(found['echo_return_db'])} dB of what is played" + ("" if found["echo_was_found"] else ", at most")
    latency = "none found" if found["latency_ms"] is None else f"{found['latency_ms']} ms ({found['latency_source']})"
    rows = {
        "echo": f"{echo}; {MAX_ECHO_RETURN_DB:.0f} dB would do",
        "latency": latency,
        "noise floor": f"{_level(found['noise_floor_dbfs'])} dBFS",
        "clipped": f"{found['clipped_samples']} samples",
        "lost": f"{found['lost_samples']} samples, {found['underruns']} underruns",
        "position": found["position_source"],
    }
    for name, value in rows.items():
        typer.echo(f"{name:<12} {value}")
    for problem in check.problems:
        typer.echo(f"no: {problem}")
    if check.is_good:
        typer.echo('yes: write audio.echo_cancellation = "validated" and interruption.full_duplex = true')


def _level(value: float | None) -> str:
    return "-inf" if value is None else f"{value:.1f}"


def _finite(value: float | None) -> float | None:
    return round(value, 1) if value is not None and math.isfinite(value) else None


def _refuse(message: str, *, as_json: bool) -> NoReturn:
    fail(message, REFUSED, as_json=as_json)
