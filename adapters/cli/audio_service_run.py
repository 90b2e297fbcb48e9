"""What `audio-service` does once its options are read."""

from __future__ import annotations

import logging
import signal
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, cast

import anyio
import typer

from ...audio.errors import AudioReadError
from ...audio.formats import SPEECH_FORMAT, AudioFrame
from ...audio.wav_reader import read_wav
from ...audio.wav_writer import MAX_DATA_BYTES
from ..board import (
    ButtonFifo,
    ButtonsRefused,
    CaptureDevice,
    DeviceLost,
    EchoPath,
    EndpointRefused,
    PortAudioMicrophone,
    PortAudioSpeaker,
    RenderDevice,
    SocketRefused,
    WavMicrophone,
    WavSpeaker,
    parse_endpoint,
    serve_audio,
)
from ..board.background import Readiness
from ..board.portaudio_library import load_portaudio
from ..stopping import Stop, stop_on_signals
from .logs import log_to_stderr
from .output import FAILED, REFUSED, STOPPED, fail

logger = logging.getLogger(__name__)

NOISE_RMS = 3.0
FIRST_SILENCE_MS = 500


@dataclass(frozen=True, slots=True)
class Devices:
    """Which microphone and which loudspeaker."""

    wav_microphone: tuple[Path, ...]
    pause_s: float
    speaker_wav: Path | None
    speaker_wav_bytes: int | None
    name: str | None
    button_fifo: Path | None
    echo: tuple[float, float] | None
    """Level in dB and delay in ms at which the virtual microphone hears the virtual speaker."""


def serve(path: Path, devices: Devices) -> None:
    """Serve until stopped; ends the command with the exit code."""
    log_to_stderr()
    try:
        endpoint = parse_endpoint(f"unix:{path.absolute()}")
        recordings = [read_wav(recording) for recording in devices.wav_microphone]
    except (EndpointRefused, AudioReadError) as refused:
        fail(str(refused), REFUSED)
    try:
        stop = anyio.run(_serve, endpoint.path, devices, recordings)
    except (DeviceLost, SocketRefused, ButtonsRefused) as failure:
        fail(str(failure), FAILED)
    if stop.signal is signal.SIGINT:
        raise typer.Exit(STOPPED)


async def _serve(path: Path, devices: Devices, recordings: Sequence[AudioFrame]) -> Stop:
    echo = None
    if devices.echo is not None:
        echo = EchoPath(SPEECH_FORMAT, gain_db=devices.echo[0], delay_ms=devices.echo[1])
    capture, speak = _microphone(devices, recordings, echo)
    render = _speaker(devices, echo)
    buttons = None if devices.button_fifo is None else ButtonFifo(devices.button_fifo)
    serving = anyio.CancelScope()
    async with stop_on_signals(serving.cancel) as stop:
        ready = Readiness()
        failure: Exception | None = None
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_announce, path, ready)
            with serving:
                try:
                    await serve_audio(path, capture, render, on_held=speak, buttons=buttons, task_status=ready)
                except (DeviceLost, SocketRefused, ButtonsRefused) as error:
                    failure = error
            tasks.cancel_scope.cancel()
        if failure is not None:
            raise failure
    return stop


async def _announce(path: Path, ready: Readiness) -> None:
    await ready.wait()
    logger.info("listening at unix:%s", path)


class _Recordings:
    """Speaks the recordings into a virtual microphone, once, when the first conversation takes it."""

    def __init__(self, microphone: WavMicrophone, recordings: Sequence[AudioFrame], pause_s: float) -> None:
        self._microphone = microphone
        self._waiting = list(recordings)
        self._pause_ms = round(pause_s * 1_000)

    def speak(self) -> None:
        silence_ms = FIRST_SILENCE_MS
        while self._waiting:
            self._microphone.say(self._waiting.pop(0), after_silence_ms=silence_ms)
            silence_ms = self._pause_ms


def _microphone(
    devices: Devices, recordings: Sequence[AudioFrame], echo: EchoPath | None
) -> tuple[CaptureDevice, Callable[[], None]]:
    if not recordings and echo is None:
        return PortAudioMicrophone(_device(devices.name)), _say_nothing
    microphone = WavMicrophone(noise_rms=NOISE_RMS, echo=echo)
    return microphone, _Recordings(microphone, recordings, devices.pause_s).speak


def _say_nothing() -> None:
    """A real microphone has its user."""


def _speaker(devices: Devices, echo: EchoPath | None) -> RenderDevice:
    if devices.speaker_wav is None:
        return PortAudioSpeaker(_device(devices.name))
    return WavSpeaker(devices.speaker_wav, max_data_bytes=devices.speaker_wav_bytes or MAX_DATA_BYTES, echo=echo)


def _device(name: str | None) -> int | str | None:
    return int(name) if name is not None and name.isdecimal() else name


class _ListsDevices(Protocol):
    """The part of sounddevice that lists."""

    def query_devices(self) -> Sequence[Mapping[str, object]]: ...


def show_devices() -> None:
    """Print PortAudio's devices; ends the command with 1 where there is no PortAudio."""
    try:
        portaudio = cast("_ListsDevices", load_portaudio())
    except DeviceLost as missing:
        fail(str(missing), FAILED)
    devices = portaudio.query_devices()
    if not devices:
        typer.echo("PortAudio finds no sound device")
    for number, device in enumerate(devices):
        channels = f"{device['max_input_channels']} in, {device['max_output_channels']} out"
        typer.echo(f"{number:3}  {channels:<16}  {device['name']}")
