"""`voicechart demo`: a conversation with an interruption, offline and without a key."""

from __future__ import annotations

from pathlib import Path

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
from .output import interruptible


def demo(
    responder: ResponderOption = ResponderName.COMPANION,
    base_url: BaseUrlOption = None,
    model: ModelOption = None,
    api_key_env: ApiKeyOption = None,
    voice: VoiceOption = "auto",
    out: OutOption = Path("out"),
    history: HistoryOption = None,
    as_json: JsonOption = False,
) -> None:
    """Hold a conversation by itself, over a real Unix socket, and prove what happened in it.

    A user (another synthesised voice) asks for a long story, interrupts it, and asks for the time. Everything runs on
    this machine in about half a minute. It leaves heard.wav, exactly the samples that were rendered, and trace.jsonl,
    every decision of the chart. Ends with 1 when anything was not as it must be.
    """
    answerer = responder_settings(responder, base_url, model, api_key_env)
    speaker = voice_settings(voice)

    def run() -> None:
        from ..demo import dialogue
        from .rehearsing import Request, hold

        asker = dialogue.user_voice(speaker)
        by_companion = responder is ResponderName.COMPANION
        hold(
            Request(
                recordings=lambda: dialogue.spoken(asker, dialogue.QUESTIONS),
                user=f"Pico {asker.name}",
                configuration=configuration_of(dialogue.answerer(answerer), speaker),
                out=out,
                history=history,
                barge_in_after_ms=dialogue.BARGE_IN_AFTER_MS,
                deadline_s=dialogue.DEADLINE_S,
                as_json=as_json,
                expected=dialogue.EXPECTED + (dialogue.EXPECTED_OF_THE_COMPANION if by_companion else ()),
            )
        )

    interruptible(run)
