"""The daemon and its audio service as two processes: what each says and does when the other, or an operator, ends."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from pathlib import Path
from signal import SIGHUP, SIGINT, SIGKILL, SIGTERM, SIGUSR1, SIGUSR2

import pytest

from voicechart.adapters.history import HistoryStore, SqliteHistory
from voicechart.adapters.testing.command import RunningCommand, VoicechartCommand
from voicechart.adapters.tracing import read_trace

pytestmark = [pytest.mark.slow, pytest.mark.timeout(150)]
READY = "session.ready"


@pytest.fixture
def config(tmp_path: Path) -> Path:
    file = tmp_path / "voicechart.toml"
    file.write_text(
        'conversation_id = "kitchen"\n[audio]\nendpoint = "unix:%s"\n[voice]\nkind = "espeak"\n'
        "[connection]\nmax_attempts = 3\nbackoff_ms = 50\n"
        '[history]\npath = "history.db"\n[trace]\npath = "trace.jsonl"\n' % (tmp_path / "audio.sock")
    )
    return file


def start_service(
    voicechart: VoicechartCommand, tmp_path: Path, *recordings: Path, options: tuple[str, ...] = ()
) -> RunningCommand:
    microphone = [option for recording in recordings for option in ("--wav-microphone", recording)]
    service = voicechart.start(
        *("audio-service", "--socket", tmp_path / "audio.sock", "--speaker-wav", tmp_path / "heard.wav"),
        *microphone,
        *options,
    )
    service.wait_for_error("listening at")
    return service


def test_the_daemon_talks_through_the_service_and_both_end_when_asked(
    voicechart: VoicechartCommand, config: Path, tmp_path: Path, recording: Callable[[str], Path]
) -> None:
    service = start_service(voicechart, tmp_path, recording("What time is it?"))
    daemon = voicechart.start("daemon", "--config", config)
    daemon.wait_for_error("delivery.recorded status=delivered")
    assert daemon.stop(SIGTERM) == 0
    assert "turns=1 interruptions=0 underruns=0 stale_frames=0 delivered=1 first_rendered_ms_p50=" in (
        daemon.errors.read_text()
    )
    assert "time is it" not in daemon.errors.read_text().lower()
    service.wait_for_error("a connection ended")
    assert "went without a word" not in service.errors.read_text()
    assert service.stop(SIGTERM) == 0
    assert not (tmp_path / "audio.sock").exists()
    assert (tmp_path / "heard.wav").stat().st_size > 20_000
    with sqlite3.connect(tmp_path / "history.db") as history:
        assert history.execute("SELECT lower(text) FROM turns").fetchall() == [("what time is it?",)]
    shown = json.loads(voicechart.run("history", "show", "--config", config, "--json").stdout)
    assert shown["conversation_id"] == "kitchen"
    assert [record["kind"] for record in shown["records"]] == ["turn", "reply"]
    assert shown["records"][1]["delivery"]["status"] == "delivered"
    trace = read_trace(tmp_path / "trace.jsonl")
    assert trace.header.redacted
    assert trace.records[-1].after[0] == "closed"


def test_the_configuration_is_read_anew_for_the_next_session_and_this_one_goes_on(
    voicechart: VoicechartCommand, config: Path, tmp_path: Path, recording: Callable[[str], Path]
) -> None:
    start_service(voicechart, tmp_path, recording("What time is it?"))
    daemon = voicechart.start("daemon", "--config", config)
    daemon.wait_for_error(READY)
    config.write_text(config.read_text() + "[turn]\nmax_words = 3\n")
    daemon.process.send_signal(SIGHUP)
    daemon.wait_for_error("turn.max_words: there is no such key")
    config.write_text(config.read_text().replace("max_words = 3", "max_turn_words = 12"))
    daemon.process.send_signal(SIGHUP)
    daemon.wait_for_error("the next session begins with other settings: turn.max_turn_words")
    assert daemon.stop(SIGTERM) == 0


def test_the_stop_button_is_a_signal_and_a_restart_reuses_no_epoch(
    voicechart: VoicechartCommand, config: Path, tmp_path: Path, recording: Callable[[str], Path]
) -> None:
    start_service(voicechart, tmp_path, recording("Tell me a long story."))
    daemon = voicechart.start("daemon", "--config", config)
    daemon.wait_for_error("playback.started")
    daemon.process.send_signal(SIGUSR1)
    daemon.wait_for_error("delivery.recorded status=interrupted")
    assert "interruption.accepted source=button" in daemon.errors.read_text()
    assert daemon.stop(SIGINT) == 130
    first = read_trace(tmp_path / "trace.jsonl")
    again = voicechart.start("daemon", "--config", config)
    again.wait_for_error(READY)
    assert again.stop(SIGTERM) == 0
    second = read_trace(tmp_path / "trace.jsonl")
    used = [context["output_epoch"] for _, context in first.contexts()]
    begun, ended = second.header.start.context["output_epoch"], used[-1]
    assert isinstance(begun, int)
    assert isinstance(ended, int)
    assert begun > ended


def test_a_conversation_that_another_process_remembers_is_not_begun_twice(
    voicechart: VoicechartCommand, config: Path, tmp_path: Path
) -> None:
    with HistoryStore(tmp_path / "history.db") as store:
        SqliteHistory(store, "kitchen")
        ran = voicechart.run("daemon", "--config", config)
    assert ran.returncode == 1
    assert "history/history_in_use" in ran.stderr.splitlines()[-1]


def test_without_an_audio_service_voice_activation_fails_with_its_error(
    voicechart: VoicechartCommand, config: Path
) -> None:
    daemon = voicechart.start("daemon", "--config", config)
    assert daemon.ended() == 1
    last = daemon.errors.read_text().splitlines()[-1]
    assert "connection/audio_service_missing" in last
    assert "No other microphone or speaker is used instead" in last


def test_a_service_that_vanishes_closes_the_daemon_with_its_error(
    voicechart: VoicechartCommand, config: Path, tmp_path: Path, recording: Callable[[str], Path]
) -> None:
    service = start_service(voicechart, tmp_path, recording("Tell me a long story."))
    daemon = voicechart.start("daemon", "--config", config)
    daemon.wait_for_error("playback.started")
    service.process.send_signal(SIGKILL)
    assert daemon.ended() == 1
    log = daemon.errors.read_text()
    assert "session.reconnecting" in log
    assert "audio_service_missing" in log.splitlines()[-1]


def test_a_full_disk_of_the_speaker_ends_the_service_and_then_the_daemon(
    voicechart: VoicechartCommand, config: Path, tmp_path: Path, recording: Callable[[str], Path]
) -> None:
    limit = ("--speaker-wav-bytes", "48000")
    service = start_service(voicechart, tmp_path, recording("Tell me a long story."), options=limit)
    daemon = voicechart.start("daemon", "--config", config)
    assert service.ended() == 1
    assert "heard.wav" in service.errors.read_text().splitlines()[-1]
    assert daemon.ended() == 1
    assert "recording_failed" in daemon.errors.read_text()
    assert not (tmp_path / "audio.sock").exists()


def test_a_second_service_at_the_same_socket_is_refused(
    voicechart: VoicechartCommand, tmp_path: Path, recording: Callable[[str], Path]
) -> None:
    question = recording("What time is it?")
    start_service(voicechart, tmp_path, question)
    ran = voicechart.run(
        "audio-service", "--socket", "audio.sock", "--wav-microphone", question, "--speaker-wav", "other.wav"
    )
    assert ran.returncode == 1
    assert "another audio service answers" in ran.stderr.splitlines()[-1]


def test_a_configuration_that_names_another_microphone_is_refused_before_anything_starts(
    voicechart: VoicechartCommand, tmp_path: Path
) -> None:
    (tmp_path / "voicechart.toml").write_text('[audio]\nendpoint = "browser"\n[turn]\nx = 1\n')
    ran = voicechart.run("daemon")
    assert ran.returncode == 2
    endpoint, turn = ran.stderr.splitlines()
    assert "only voice input" in endpoint
    assert "turn.x" in turn


def test_a_running_daemon_switches_its_trace_and_says_what_its_checks_cost(
    voicechart: VoicechartCommand, config: Path, tmp_path: Path, recording: Callable[[str], Path]
) -> None:
    settings = config.read_text().replace("trace.jsonl", "later.jsonl")
    config.write_text(f'checks = "on"\n{settings}enabled = false\n')
    start_service(voicechart, tmp_path, recording("What time is it?"))
    daemon = voicechart.start("daemon", "--config", config)
    daemon.wait_for_error(READY)
    assert not (tmp_path / "later.jsonl").exists()
    daemon.process.send_signal(SIGUSR2)
    daemon.wait_for_error("the trace is on")
    assert daemon.stop(SIGTERM) == 0
    assert "close_requested" in {record.event for record in read_trace(tmp_path / "later.jsonl").records}
    assert "checks: 0 broken" in daemon.errors.read_text()
