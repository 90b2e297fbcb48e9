"""What the command line says: help, versions, checked configurations; and that it says it at once."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from voicechart.adapters.cli import app
from voicechart.adapters.cli.options import ResponderName, responder_settings, voice_settings
from voicechart.adapters.configuration import (
    AutomaticVoice,
    CompanionSettings,
    EspeakVoice,
    LocalModelSettings,
    PicoVoice,
    PiperVoice,
)
from voicechart.adapters.demo.dialogue import user_voice
from voicechart.adapters.providers import ProviderSettings
from voicechart.adapters.providers.responders.openai_chat import OpenAIChatSettings

ROOT = Path(__file__).parents[3]
AUDIO = '[audio]\nendpoint = "unix:/run/voicechart/audio.sock"\n'
COMMANDS = {
    "demo": "heard.wav",
    "talk": "--barge-in-at",
    "daemon": "SIGUSR1",
    "check-config": "Secrets are never printed",
    "providers": "the reason of every degradation",
    "audio-service": "--speaker-wav",
}
HEAVY = ("anyio", "ctranslate2", "httpx", "numpy", "pydantic", "rich.live", "soxr", "statemachine")


@pytest.fixture(autouse=True)
def in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")


def voicechart(*arguments: str | Path) -> Result:
    """The command, in this process."""
    return CliRunner().invoke(app, [str(argument) for argument in arguments], prog_name="voicechart")


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_itself(command: str) -> None:
    ran = voicechart(command, "--help")
    assert ran.exit_code == 0
    assert COMMANDS[command] in " ".join(ran.stdout.split())


def test_the_commands_are_listed() -> None:
    ran = voicechart("--help")
    assert ran.exit_code == 0
    for command in COMMANDS:
        assert command in ran.stdout


def test_an_unknown_command_is_refused() -> None:
    ran = voicechart("sing")
    assert ran.exit_code == 2
    assert "sing" in ran.stderr


def test_nothing_heavy_is_imported_before_a_command_runs() -> None:
    code = f"import sys, voicechart.adapters.cli; print(sorted(set({HEAVY!r}) & set(sys.modules)))"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=50)
    assert ran.stdout.strip() == "[]"


def test_a_valid_configuration_is_told_part_by_part(tmp_path: Path) -> None:
    (tmp_path / "voicechart.toml").write_text(AUDIO)
    ran = voicechart("check-config")
    assert ran.exit_code == 0, ran.stderr
    for part in ("unix:/run/voicechart/audio.sock", "Whisper tiny.en", "pattern companion", "closed while speaking"):
        assert part in ran.stdout


def test_a_valid_configuration_is_one_json_object(tmp_path: Path) -> None:
    (tmp_path / "other.toml").write_text(AUDIO)
    ran = voicechart("check-config", "--config", "other.toml", "--json")
    assert ran.exit_code == 0
    assert ran.stderr == ""
    shown = json.loads(ran.stdout)
    assert shown["ok"] is True
    assert shown["audio"] == "unix:/run/voicechart/audio.sock"


def test_every_problem_of_a_configuration_is_a_line_and_an_entry(tmp_path: Path) -> None:
    (tmp_path / "voicechart.toml").write_text(f"{AUDIO}[interruption]\nfull_duplex = true\nmin_word = 1\n[x]\ny = 1\n")
    ran = voicechart("check-config", "--json")
    assert ran.exit_code == 2
    shown = json.loads(ran.stdout)
    assert shown["ok"] is False
    assert [problem["path"] for problem in shown["problems"]] == ["interruption.min_word", "x"]
    assert len(ran.stderr.splitlines()) == 2


def test_an_open_microphone_without_validated_echo_cancellation_is_refused_with_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "voicechart.toml").write_text(f"{AUDIO}[interruption]\nfull_duplex = true\n")
    ran = voicechart("check-config")
    assert ran.exit_code == 2
    assert 'audio.echo_cancellation = "validated"' in ran.stderr


def test_a_configuration_that_is_not_there_is_refused() -> None:
    for command in ("check-config", "daemon"):
        ran = voicechart(command)
        assert ran.exit_code == 2
        assert "voicechart.toml cannot be read" in ran.stderr
        assert len(ran.stderr.splitlines()) == 1


def test_the_example_configuration_is_valid() -> None:
    ran = voicechart("check-config", "--config", ROOT / "examples" / "voicechart.toml", "--json")
    assert ran.exit_code == 0, ran.stderr


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        ((), "--socket PATH is needed"),
        (("--socket", "a.sock", "--speaker-wav-bytes", "5000"), "--speaker-wav"),
        (("--socket", "a.sock", "--device", "0", "--wav-microphone", "q.wav", "--speaker-wav", "h.wav"), "--device"),
        (("--socket", "a" * 120, "--wav-microphone", "q.wav"), "107 bytes"),
        (("--socket", "a.sock", "--wav-microphone", "none.wav"), "none.wav"),
    ],
)
def test_an_audio_service_that_cannot_be_meant_is_refused(arguments: tuple[str, ...], part: str) -> None:
    ran = voicechart("audio-service", *arguments)
    assert ran.exit_code == 2
    assert part in ran.stderr


def test_a_recording_that_cannot_be_read_is_refused_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "noise.wav").write_text("this is no sound")
    for name in ("none.wav", "noise.wav"):
        ran = voicechart("talk", name)
        assert ran.exit_code == 2
        assert name in ran.stderr
        assert len(ran.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (("--responder", "openai"), "--base-url and --model"),
        (("--base-url", "https://x.example/v1"), "--responder openai"),
        (("--model", "m"), "--responder local or openai"),
        (("--voice", "robot"), "robot"),
        (("--voice", "piper:"), "piper:"),
        (("--barge-in-at", "-1"), "barge-in-at"),
        (
            ("--responder", "openai", "--base-url", "https://x", "--model", "m", "--api-key-env", "sk-do-not-show"),
            "name of a variable",
        ),
    ],
)
def test_options_that_do_not_belong_together_are_refused(arguments: tuple[str, ...], part: str) -> None:
    ran = voicechart("talk", "x.wav", *arguments)
    assert ran.exit_code == 2
    assert part in ran.stderr
    assert "do-not-show" not in ran.stderr
    assert ran.stdout == ""


def test_options_become_the_settings_they_describe() -> None:
    assert responder_settings(ResponderName.COMPANION, None, None, None) == CompanionSettings(kind="companion")
    local = responder_settings(ResponderName.LOCAL, None, "model.gguf", None)
    assert local == LocalModelSettings(kind="local", model_path=Path("model.gguf"))
    service = responder_settings(ResponderName.OPENAI, "https://x.example/v1", "m", "SOME_KEY")
    assert service == OpenAIChatSettings(
        kind="openai-chat", base_url="https://x.example/v1", model="m", api_key_env="SOME_KEY"
    )


@pytest.mark.parametrize(
    ("text", "settings"),
    [
        ("auto", AutomaticVoice(kind="auto")),
        ("piper", PiperVoice(kind="piper")),
        ("piper:joe.onnx", PiperVoice(kind="piper", model_path=Path("joe.onnx"))),
        ("espeak", EspeakVoice(kind="espeak")),
        ("espeak:en-us+f3", EspeakVoice(kind="espeak", name="en-us+f3")),
        ("pico:de-DE", PicoVoice(kind="pico", name="de-DE")),
    ],
)
def test_a_voice_is_a_kind_and_perhaps_a_name(text: str, settings: ProviderSettings) -> None:
    assert voice_settings(text) == settings


def test_the_user_of_the_demo_never_has_the_voice_of_the_assistant() -> None:
    for assistant in (
        PicoVoice(kind="pico", name="en-GB"),
        PicoVoice(kind="pico", name="en-US"),
        PiperVoice(kind="piper"),
    ):
        assert user_voice(assistant) != assistant
