"""People's own recordings as the microphone, and what is said when a part of the conversation fails."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import anyio
import pytest

from voicechart.adapters.testing import ChatExchange, ScriptedChatServer, chat_chunks
from voicechart.adapters.testing.command import RUN, VoicechartCommand

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]
LIMITED_FILES = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (120_000, 120_000))"
"""Every file of the process may grow so far: the nearest thing to a full disk that a test can have."""


def test_recordings_are_understood_interrupt_and_are_answered(
    voicechart: VoicechartCommand, recording: Callable[[str], Path]
) -> None:
    questions = recording("Tell me a long story."), recording("Count to three.")
    ran = voicechart.run("talk", *questions, "--barge-in-at", "2", "--voice", "espeak", "--json")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    shown = json.loads(ran.stdout)
    assert shown["ok"] is True
    assert shown["turns"][0]["transcript"] == "Tell me a long story."
    assert [reply["delivery"] for reply in shown["replies"]] == ["interrupted", "delivered"]
    assert shown["replies"][0]["heard_ms"] >= 2_000
    assert shown["interruptions"] == 1
    assert shown["parts"]["voice"] == "eSpeak NG en-us"


def test_a_full_disk_closes_the_conversation_with_its_error(
    voicechart: VoicechartCommand, recording: Callable[[str], Path]
) -> None:
    ran = voicechart.run(
        "talk", recording("Tell me a long story."), "--voice", "espeak", "--json", before=LIMITED_FILES
    )
    assert ran.returncode == 1
    shown = json.loads(ran.stdout)
    assert shown["ok"] is False
    assert "heard.wav" in ran.stderr
    assert shown["error"]["code"] == "recording_failed"
    assert voicechart.left_behind == []


@pytest.mark.anyio
async def test_a_model_that_dies_in_its_answer_fails_the_reply_with_its_error(
    voicechart: VoicechartCommand, recording: Callable[[str], Path], tmp_path: Path
) -> None:
    pieces = chat_chunks("Once there was a clock. It stopped in the middle of a word")
    server = ScriptedChatServer(*(ChatExchange(pieces[:8], whole=False) for _ in range(4)))
    question = recording("Tell me a long story.")
    async with server.running() as base_url:
        with anyio.fail_after(90):
            ran = await anyio.run_process(
                [
                    *(sys.executable, "-W", "error", "-c", RUN, "talk", str(question), "--voice", "espeak", "--json"),
                    *("--responder", "openai", "--base-url", base_url, "--model", "m"),
                ],
                cwd=tmp_path,
                check=False,
            )
    assert ran.returncode == 1, ran.stderr
    shown = json.loads(ran.stdout)
    assert shown["closed"] == "finished"
    assert [reply["outcome"] for reply in shown["replies"]] == ["failed"]
    assert any("generation/" in problem for problem in shown["problems"])
