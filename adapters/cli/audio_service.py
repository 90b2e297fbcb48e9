"""`voicechart audio-service`: the board's microphone and loudspeaker, lent to one conversation at a time."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .output import interruptible


def audio_service(
    socket: Annotated[
        Path | None, typer.Option("--socket", metavar="PATH", help="The Unix socket to listen at.", dir_okay=False)
    ] = None,
    wav_microphone: Annotated[
        list[Path] | None,
        typer.Option(
            "--wav-microphone",
            metavar="WAV",
            help="A virtual microphone: this recording is spoken once a conversation has taken it. May be repeated.",
            dir_okay=False,
        ),
    ] = None,
    pause: Annotated[
        float,
        typer.Option(
            "--pause",
            metavar="SECONDS",
            min=0.0,
            max=3_600.0,
            help="Silence between two recordings.",
        ),
    ] = 5.0,
    speaker_wav: Annotated[
        Path | None,
        typer.Option(
            "--speaker-wav",
            metavar="WAV",
            help="A virtual speaker in real time: exactly what is rendered is written to this file.",
            dir_okay=False,
        ),
    ] = None,
    speaker_wav_bytes: Annotated[
        int | None,
        typer.Option(
            "--speaker-wav-bytes",
            metavar="N",
            min=4_096,
            max=4_294_967_251,
            help="The recording may grow so far; beyond it the service fails, as with a full disk.",
        ),
    ] = None,
    echo_db: Annotated[
        float | None,
        typer.Option(
            "--echo-db",
            metavar="DB",
            min=-90.0,
            max=0.0,
            help="The virtual microphone hears the virtual speaker, so much fainter; for trying audio-check.",
        ),
    ] = None,
    echo_delay_ms: Annotated[
        float, typer.Option("--echo-delay-ms", min=20.0, max=2_000.0, help="How much later it hears it.")
    ] = 100.0,
    button_fifo: Annotated[
        Path | None,
        typer.Option(
            "--button-fifo",
            metavar="PATH",
            help="A FIFO, made where there is none; one line for each use of a button: talk, release, clear, stop.",
            dir_okay=False,
        ),
    ] = None,
    device: Annotated[
        str | None,
        typer.Option(
            "--device",
            metavar="NAME",
            help="The sound device, by number or part of its name.",
        ),
    ] = None,
    list_devices: Annotated[bool, typer.Option("--list-devices", help="List the sound devices and exit.")] = False,
) -> None:
    """Own the microphone and the loudspeaker, and lend them to one conversation at a time.

    Without a virtual device the real one is used, through PortAudio. SIGTERM ends with 0, Ctrl-C with 130, a device
    that fails with 1: it is never replaced by another one.
    """
    if list_devices:
        from .audio_service_run import show_devices

        show_devices()
        return
    if socket is None:
        raise typer.BadParameter("--socket PATH is needed, unless --list-devices")
    if speaker_wav_bytes is not None and speaker_wav is None:
        raise typer.BadParameter("--speaker-wav-bytes goes with --speaker-wav")
    if device is not None and wav_microphone and speaker_wav is not None:
        raise typer.BadParameter("--device names nothing when both --wav-microphone and --speaker-wav are given")
    if echo_db is not None and (speaker_wav is None or device is not None):
        raise typer.BadParameter("--echo-db is between virtual devices: give --speaker-wav, and no --device")
    path = socket
    echo = None if echo_db is None else (echo_db, echo_delay_ms)

    def run() -> None:
        from .audio_service_run import Devices, serve

        recordings = tuple(wav_microphone or ())
        serve(path, Devices(recordings, pause, speaker_wav, speaker_wav_bytes, device, button_fifo, echo))

    interruptible(run)
