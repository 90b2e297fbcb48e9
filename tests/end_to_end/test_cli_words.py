"""What the command line says: help, versions, checked configurations; and that it says it at once."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from voicechart.adapters.testing.command import VoicechartCommand

ROOT = Path(__file__).parents[2]
AUDIO = '[audio]\nendpoint = "unix:/run/voicechart/audio.sock"\n'
COMMANDS = {
    "demo": "heard.wav",
    "talk": "--barge-in-at",
    "daemon": "SIGUSR1",
    "check-config": "Secrets are never printed",
    "audio-service": "--speaker-wav",
}
HEAVY = ("anyio", "ctranslate2", "httpx", "numpy", "pydantic", "rich.live", "soxr", "statemachine")


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_itself(voicechart: VoicechartCommand, command: str) -> None:
    ran = voicechart.run(command, "--help")
    assert ran.returncode == 0
    assert COMMANDS[command] in " ".join(ran.stdout.split())


def test_the_commands_are_listed(voicechart: VoicechartCommand) -> None:
    ran = voicechart.run("--help")
    assert ran.returncode == 0
    for command in COMMANDS:
        assert command in ran.stdout


def test_an_unknown_command_is_refused(voicechart: VoicechartCommand) -> None:
    ran = voicechart.run("sing")
    assert ran.returncode == 2
    assert "sing" in ran.stderr


def test_nothing_heavy_is_imported_before_a_command_runs() -> None:
    code = f"import sys, voicechart.adapters.cli; print(sorted(set({HEAVY!r}) & set(sys.modules)))"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=50)
    assert ran.stdout.strip() == "[]"


def test_a_valid_configuration_is_told_part_by_part(voicechart: VoicechartCommand, tmp_path: Path) -> None:
    (tmp_path / "voicechart.toml").write_text(AUDIO)
    ran = voicechart.run("check-config")
    assert ran.returncode == 0, ran.stderr
    for part in ("unix:/run/voicechart/audio.sock", "Whisper tiny.en", "pattern companion", "closed while speaking"):
        assert part in ran.stdout


def test_a_valid_configuration_is_one_json_object(voicechart: VoicechartCommand, tmp_path: Path) -> None:
    (tmp_path / "other.toml").write_text(AUDIO)
    ran = voicechart.run("check-config", "--config", "other.toml", "--json")
    assert ran.returncode == 0
    assert ran.stderr == ""
    shown = json.loads(ran.stdout)
    assert shown["ok"] is True
    assert shown["audio"] == "unix:/run/voicechart/audio.sock"


def test_every_problem_of_a_configuration_is_a_line_and_an_entry(voicechart: VoicechartCommand, tmp_path: Path) -> None:
    (tmp_path / "voicechart.toml").write_text(f"{AUDIO}[interruption]\nfull_duplex = true\nmin_word = 1\n[x]\ny = 1\n")
    ran = voicechart.run("check-config", "--json")
    assert ran.returncode == 2
    shown = json.loads(ran.stdout)
    assert shown["ok"] is False
    assert [problem["path"] for problem in shown["problems"]] == ["interruption.min_word", "x"]
    assert len(ran.stderr.splitlines()) == 2


def test_an_open_microphone_without_validated_echo_cancellation_is_refused_with_what_to_do(
    voicechart: VoicechartCommand, tmp_path: Path
) -> None:
    (tmp_path / "voicechart.toml").write_text(f"{AUDIO}[interruption]\nfull_duplex = true\n")
    ran = voicechart.run("check-config")
    assert ran.returncode == 2
    assert 'audio.echo_cancellation = "validated"' in ran.stderr


def test_a_configuration_that_is_not_there_is_refused(voicechart: VoicechartCommand) -> None:
    for command in ("check-config", "daemon"):
        ran = voicechart.run(command)
        assert ran.returncode == 2
        assert "voicechart.toml cannot be read" in ran.stderr
        assert len(ran.stderr.splitlines()) == 1


def test_the_example_configuration_is_valid(voicechart: VoicechartCommand) -> None:
    ran = voicechart.run("check-config", "--config", ROOT / "examples" / "voicechart.toml", "--json")
    assert ran.returncode == 0, ran.stderr


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
def test_an_audio_service_that_cannot_be_meant_is_refused(
    voicechart: VoicechartCommand, arguments: tuple[str, ...], part: str
) -> None:
    ran = voicechart.run("audio-service", *arguments)
    assert ran.returncode == 2
    assert part in ran.stderr
