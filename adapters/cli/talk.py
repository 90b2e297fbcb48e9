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
    responder_settings,
    voice_settings,
)
from .output import interruptible

if TYPE_CHECKING:
    from ...audio.formats import AudioFrame

DEADLINE_S = 600.0


def talk(
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
    answerer = responder_settings(responder, base_url, model, api_key_env)
    speaker = voice_settings(voice)

    def run() -> None:
        from ...audio.errors import AudioReadError
        from ...audio.wav_reader import read_wav
        from .output import REFUSED, fail
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
                responder=answerer,
                voice=speaker,
                out=out,
                history=history,
                barge_in_after_ms=None if barge_in_at is None else barge_in_at * 1_000,
                deadline_s=DEADLINE_S,
                as_json=as_json,
            )
        )

    interruptible(run)
