"""Options that several commands share, and what they mean. Quick to import."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from ..configuration import Configuration
    from ..providers import ProviderSettings


class ResponderName(StrEnum):
    """Who answers."""

    COMPANION = "companion"
    LOCAL = "local"
    OPENAI = "openai"


ResponderOption = Annotated[
    ResponderName,
    typer.Option(
        "--responder",
        help="Who answers: the offline pattern companion, a small local language model (extra local-llm), or a service "
        "that speaks OpenAI's Chat Completions.",
    ),
]
BaseUrlOption = Annotated[
    str | None,
    typer.Option("--base-url", help="With --responder openai: the address that ends before /chat/completions."),
]
ModelOption = Annotated[
    str | None,
    typer.Option("--model", help="With --responder openai: the model's name. With local: a file of GGUF weights."),
]
ApiKeyOption = Annotated[
    str | None,
    typer.Option(
        "--api-key-env",
        metavar="NAME",
        help="With --responder openai: the environment variable that holds the key. Without it no key is sent.",
    ),
]
VoiceOption = Annotated[
    str,
    typer.Option(
        "--voice",
        metavar="KIND[:NAME]",
        help="The assistant's voice: auto (Piper where it is installed, else eSpeak), piper[:MODEL.onnx], "
        "espeak[:VOICE] or pico[:VOICE].",
    ),
]
OutOption = Annotated[
    Path, typer.Option("--out", metavar="DIR", help="Where heard.wav and trace.jsonl are left.", file_okay=False)
]
HistoryOption = Annotated[
    Path | None,
    typer.Option(
        "--history",
        metavar="FILE",
        help="Go on with the conversation in this history file, and leave this one there: see voicechart history.",
        dir_okay=False,
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object on stdout, and nothing else there.")]


def responder_settings(
    name: ResponderName, base_url: str | None, model: str | None, api_key_env: str | None
) -> ProviderSettings:
    """The settings these options describe. Raises `typer.BadParameter` for those that do not belong together."""
    from pydantic import ValidationError

    from ..configuration import CompanionSettings, LocalModelSettings

    if name is not ResponderName.OPENAI and (base_url is not None or api_key_env is not None):
        raise typer.BadParameter("--base-url and --api-key-env go with --responder openai")
    match name:
        case ResponderName.COMPANION:
            if model is not None:
                raise typer.BadParameter("--model goes with --responder local or openai: the companion has none")
            return CompanionSettings(kind="companion")
        case ResponderName.LOCAL:
            return LocalModelSettings(kind="local", model_path=Path(model) if model is not None else None)
        case ResponderName.OPENAI:
            if base_url is None or model is None:
                raise typer.BadParameter("--responder openai needs --base-url and --model")
            from ..providers.responders.openai_chat import OpenAIChatSettings

            try:
                return OpenAIChatSettings(kind="openai-chat", base_url=base_url, model=model, api_key_env=api_key_env)
            except ValidationError as refused:
                if any("api_key_env" in found["loc"] for found in refused.errors()):
                    raise typer.BadParameter("--api-key-env takes the name of a variable, not the key") from refused
                reason = refused.errors()[0]["msg"].removeprefix("Value error, ")
                raise typer.BadParameter(f"--base-url {reason}") from refused


def voice_settings(text: str) -> ProviderSettings:
    """The voice that `KIND[:NAME]` describes. Raises `typer.BadParameter`."""
    from ..configuration import AutomaticVoice, EspeakVoice, PicoVoice, PiperVoice

    kind, colon, name = text.partition(":")
    if colon and not name:
        raise typer.BadParameter(f"--voice {text!r} names no voice behind the colon")
    match kind:
        case "auto" if not name:
            return AutomaticVoice(kind="auto")
        case "piper":
            return PiperVoice(kind="piper", model_path=Path(name) if name else None)
        case "espeak":
            return EspeakVoice(kind="espeak", name=name) if name else EspeakVoice(kind="espeak")
        case "pico":
            return PicoVoice(kind="pico", name=name) if name else PicoVoice(kind="pico")
        case _:
            raise typer.BadParameter(
                f"--voice {text!r} is none of auto, piper[:MODEL.onnx], espeak[:VOICE], pico[:VOICE]"
            )


def configuration_of(responder: ProviderSettings, voice: ProviderSettings) -> Configuration:
    """The configuration that these parts make, with everything else at its default; no audio service is meant."""
    from ..configuration import AudioSettings, Configuration

    nowhere = AudioSettings.model_validate({"endpoint": "unix:/nonexistent/voicechart/audio.sock"})
    return Configuration(audio=nowhere, responder=responder, voice=voice)
