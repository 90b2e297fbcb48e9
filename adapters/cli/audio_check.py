"""`voicechart audio-check`: may this board listen while it speaks?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .options import JsonOption
from .output import interruptible


def audio_check(
    endpoint: Annotated[
        str | None, typer.Option("--endpoint", metavar="unix:PATH", help="Where the audio service listens.")
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option("--config", metavar="FILE", help="Take the endpoint of this configuration.", dir_okay=False),
    ] = None,
    level_db: Annotated[
        float, typer.Option("--level-db", min=-60.0, max=-6.0, help="Peak of the probe, in dB of full scale.")
    ] = -12.0,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="DIR", help="Keep played.wav and captured.wav there.", file_okay=False),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Play a probe through the board's audio service, capture it, and say whether full duplex may be configured.

    Tells the echo's level and latency, the noise floor, clipping, lost audio, and where the played position comes from.
    Ends with 0 when `audio.echo_cancellation = "validated"` may be written, with 1 when not, with 2 when it could not
    be measured. Stop the daemon first: it holds the devices.
    """

    def run() -> None:
        from .audio_check_run import run_check

        run_check(endpoint, config, level_db=level_db, out=out, as_json=as_json)

    interruptible(run)
