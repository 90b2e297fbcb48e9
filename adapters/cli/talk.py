"""`voicechart talk`: your own recordings as the microphone."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .options import (
    ApiKeyOption,
    BaseUrlOption,
    HistoryOption,
    JsonOption,
    ModelOption,
    OutOption,
    ResponderName,
    ResponderOption,
    VoiceOption,
    configuration_of,
    responder_settings,
    voice_settings,
)
from .output import REFUSED, fail, interruptible

if TYPE_CHECKING:
    from ...audio.formats import AudioFrame
    from ..configuration import Configuration

DEADLINE_S = 600.0
PARTS = ("responder", "base_url", "model", "api_key_env", "voice")
"""Parameters that choose who takes part."""


def talk(
    context: typer.Context,
    recordings: Annotated[
        list[Path],
        typer.Argument(metavar="WAV...", help="What you say, one recording a turn, in this order.", dir_okay=False),
    ],
    barge_in_at: Annotated[
        float | None,
        typer.Option(
            "--barge-in-at",
            metavar="SECONDS",
            min=0.0,
            max=600.0,
            help="Speak the next recording so long after the first heard sample of a reply, instead of after its end.",
        ),
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option(
            "--config",
            metavar="FILE",
            help="Take the parts and the turn's policies from this configuration; its audio service is not used.",
            dir_okay=False,
        ),
    ] = None,
    provider: Annotated[
        list[str] | None,
        typer.Option(
            "--provider",
            metavar="NAME",
            help="With --config: let this record of it play its role in this conversation. May be given several times.",
        ),
    ] = None,
    responder: ResponderOption = ResponderName.COMPANION,
    base_url: BaseUrlOption = None,
    model: ModelOption = None,
    api_key_env: ApiKeyOption = None,
    voice: VoiceOption = "auto",
    out: OutOption = Path("out"),
    history: HistoryOption = None,
    as_json: JsonOption = False,
) -> None:
    """Hold a conversation with recordings of your own voice, over a real Unix socket.

    Each recording is spoken into a virtual microphone; the replies are played by a virtual speaker in real time. It
    leaves heard.wav and trace.jsonl, which holds what was understood: treat it as you treat the recordings.
    """
    if provider and config is None:
        raise typer.BadParameter("--provider names a record of a configuration: give --config too")
    configuration = None
    if config is None:
        answerer = responder_settings(responder, base_url, model, api_key_env)
        configuration = configuration_of(answerer, voice_settings(voice))
    elif given := [name for name in PARTS if _is_given(context, name)]:
        options = ", ".join(f"--{name.replace('_', '-')}" for name in given)
        raise typer.BadParameter(f"{options}: with --config, the configuration says who takes part")

    def run() -> None:
        nonlocal configuration
        if configuration is None:
            assert config is not None
            configuration = _selected(config, provider or [], as_json)
        from ...audio.errors import AudioReadError
        from ...audio.wav_reader import read_wav
        from .rehearsing import Request, hold

        try:
            spoken = [read_wav(path) for path in recordings]
        except AudioReadError as unreadable:
            fail(str(unreadable), REFUSED, as_json=as_json)

        async def read() -> Sequence[AudioFrame]:
            return spoken

        hold(
            Request(
                recordings=read,
                user=f"{len(recordings)} recording{'' if len(recordings) == 1 else 's'}",
                configuration=configuration,
                out=out,
                history=history,
                barge_in_after_ms=None if barge_in_at is None else barge_in_at * 1_000,
                deadline_s=DEADLINE_S,
                as_json=as_json,
            )
        )

    interruptible(run)


def _is_given(context: typer.Context, name: str) -> bool:
    source = context.get_parameter_source(name)
    return source is not None and source.name != "DEFAULT"


def _selected(config: Path, names: list[str], as_json: bool) -> Configuration:
    from ..configuration import ConfigurationRefused, load_configuration, selecting

    try:
        return selecting(load_configuration(config), names)
    except ConfigurationRefused as refused:
        fail(f"{config}: {refused}", REFUSED, as_json=as_json)
