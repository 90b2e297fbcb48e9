"""`audio-check` and the talk button, in processes of their own, over a real socket and a real FIFO."""

from __future__ import annotations

import json
from pathlib import Path
from signal import SIGINT, SIGTERM

import pytest

from voicechart.adapters.testing.command import RunningCommand, VoicechartCommand
from voicechart.audio.wav_reader import read_wav

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]


def start_service(voicechart: VoicechartCommand, tmp_path: Path, *options: str | Path) -> RunningCommand:
    socket, heard = tmp_path / "audio.sock", tmp_path / "heard.wav"
    service = voicechart.start("audio-service", "--socket", socket, "--speaker-wav", heard, *options)
    service.wait_for_error("listening at")
    return service


@pytest.mark.parametrize(("gain_db", "code"), [(-55, 0), (-20, 1)])
def test_a_known_echo_is_measured_through_the_service(
    voicechart: VoicechartCommand, tmp_path: Path, gain_db: int, code: int
) -> None:
    service = start_service(voicechart, tmp_path, "--echo-db", str(gain_db), "--echo-delay-ms", "200")
    endpoint, out = f"unix:{tmp_path / 'audio.sock'}", tmp_path / "check"
    ran = voicechart.run("audio-check", "--endpoint", endpoint, "--json", "--out", out)
    found = json.loads(ran.stdout)
    assert ran.returncode == code
    assert found["ok"] is (code == 0)
    # The level does not depend on how busy this machine is; when a device is late by more than the echo, it does.
    assert found["linear_return_db"] == pytest.approx(gain_db, abs=3.0)
    assert found["latency_source"] == "device"
    assert "playing the probe" in ran.stderr
    assert read_wav(out / "played.wav").format.sample_rate_hz == 24_000
    assert read_wav(out / "captured.wav").samples > 3 * 16_000
    assert service.stop(SIGTERM) == 0


def test_what_cannot_be_measured_ends_with_two_and_the_reason(voicechart: VoicechartCommand, tmp_path: Path) -> None:
    ran = voicechart.run("audio-check", "--endpoint", f"unix:{tmp_path / 'none.sock'}")
    assert ran.returncode == 2
    assert "no audio service answers" in ran.stderr
    assert voicechart.run("audio-check").returncode == 2
    assert voicechart.run("audio-check", "--endpoint", "browser:default").returncode == 2


def test_a_check_can_be_stopped(voicechart: VoicechartCommand, tmp_path: Path) -> None:
    start_service(voicechart, tmp_path, "--echo-db", "-50")
    check = voicechart.start("audio-check", "--endpoint", f"unix:{tmp_path / 'audio.sock'}")
    check.wait_for_error("playing the probe")
    assert check.stop(SIGINT) == 130


@pytest.fixture
def config(tmp_path: Path) -> Path:
    file = tmp_path / "voicechart.toml"
    socket = tmp_path / "audio.sock"
    file.write_text(f'[audio]\nendpoint = "unix:{socket}"\n[voice]\nkind = "espeak"\n[turn]\nauthority = "manual"\n')
    return file


def test_push_to_talk_through_the_fifo_of_the_board(
    voicechart: VoicechartCommand, tmp_path: Path, config: Path
) -> None:
    """Nobody says anything: what the button did is told by what became of the turns."""
    fifo = tmp_path / "buttons"
    start_service(voicechart, tmp_path, "--echo-db", "-60", "--button-fifo", fifo)
    daemon = voicechart.start("daemon", "--config", config)
    daemon.wait_for_error("session.ready")
    fifo.write_text("talk\n")
    daemon.wait_for_error("input.speech_started")
    fifo.write_text("clear\n")
    daemon.wait_for_error("turn.discarded reason=cleared")
    fifo.write_text("talk\nrelease\n")
    daemon.wait_for_error("turn.discarded reason=no_words")
    assert daemon.stop(SIGTERM) == 0


def test_push_to_talk_without_a_button_is_an_error_that_says_what_to_do(
    voicechart: VoicechartCommand, tmp_path: Path, config: Path
) -> None:
    start_service(voicechart, tmp_path, "--echo-db", "-60")
    ran = voicechart.run("daemon", "--config", config)
    assert ran.returncode == 1
    assert "--button-fifo" in ran.stderr
