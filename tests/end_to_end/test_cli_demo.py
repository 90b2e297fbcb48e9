"""The demo proves by itself that a spoken conversation with an interruption works, and ends in order when stopped."""

from __future__ import annotations

import json
import re
from pathlib import Path
from signal import SIGINT, SIGTERM, Signals

import pytest

from voicechart.adapters.testing.command import VoicechartCommand
from voicechart.adapters.tracing import read_trace
from voicechart.audio.wav_reader import WavReader

pytestmark = [pytest.mark.slow, pytest.mark.timeout(150)]


def test_the_demo_holds_an_interrupted_conversation_and_proves_it(
    voicechart: VoicechartCommand, tmp_path: Path
) -> None:
    ran = voicechart.run("demo", "--json", timeout_s=120)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert ran.stderr == ""
    shown = json.loads(ran.stdout)
    assert shown["ok"] is True
    assert shown["problems"] == []
    assert [turn["transcript"] for turn in shown["turns"]] == ["Tell me a long story.", "What time is it?"]
    assert [turn["authority"] for turn in shown["turns"]] == ["vad", "vad"]
    story, answer = shown["replies"]
    assert story["delivery"] == "interrupted"
    assert story["outcome"] == "cancelled"
    assert story["first_audio_before_generation_end"] is True
    assert story["generated"].startswith(story["delivered"])
    assert 0 < len(story["delivered"]) < len(story["generated"])
    assert answer["delivery"] == "delivered"
    assert answer["delivered"] == answer["generated"]
    assert re.search(r"It is \d+:\d\d", answer["generated"])
    assert shown["first_audio_before_generation_end"] is True
    assert 0 <= shown["interruption_to_last_pcm_ms"] <= 150
    assert shown["stale_frames"] == 0
    assert shown["committed_turns"] == 2
    assert shown["duplicate_units"] == 0
    assert shown["peak_queue_ms"] <= 1_000
    assert shown["seconds"] < 90
    assert shown["files"] == {"heard": "out/heard.wav", "trace": "out/trace.jsonl"}
    with WavReader(tmp_path / "out" / "heard.wav") as heard:
        assert heard.duration_ms == pytest.approx(story["heard_ms"] + answer["heard_ms"], abs=0.2)
    assert read_trace(tmp_path / "out" / "trace.jsonl").records
    assert voicechart.left_behind == []


@pytest.mark.parametrize("number", [SIGINT, SIGTERM])
def test_a_demo_that_is_stopped_ends_through_the_chart_and_leaves_no_socket(
    voicechart: VoicechartCommand, number: Signals, tmp_path: Path
) -> None:
    demo = voicechart.start("demo")
    demo.wait_for_output("the first sample is heard")
    assert demo.stop(number) == 130
    assert "closed (stopped)" in demo.output.read_text()
    assert demo.errors.read_text().splitlines() == [f"voicechart: stopped by {number.name}"]
    (tmp_path / "out" / "heard.wav").stat()
    last = read_trace(tmp_path / "out" / "trace.jsonl").records[-1]
    assert last.after[0] == "closed"
    assert voicechart.left_behind == []


@pytest.mark.parametrize(
    ("module", "part"), [("py_nanotts", "voicechart[local]"), ("faster_whisper", "faster_whisper")]
)
def test_a_part_that_is_missing_is_an_error_and_nothing_is_skipped(
    voicechart: VoicechartCommand, module: str, part: str
) -> None:
    ran = voicechart.run("demo", before=f"import sys; sys.modules[{module!r}] = None")
    assert ran.returncode == 2
    assert part in ran.stderr
    assert len(ran.stderr.splitlines()) == 1


def test_a_voice_that_cannot_be_loaded_fails_with_its_error_as_json_too(voicechart: VoicechartCommand) -> None:
    ran = voicechart.run("demo", "--voice", "piper:none.onnx", "--json")
    assert ran.returncode == 1
    shown = json.loads(ran.stdout)
    assert shown["ok"] is False
    assert shown["error"]["code"] == "voice_unusable"
    assert len(ran.stderr.splitlines()) == 1
