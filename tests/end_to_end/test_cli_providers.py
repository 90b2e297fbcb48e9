"""A conversation whose parts are named records, from a recording through the real socket."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

import anyio
import pytest

from voicechart.adapters.testing import ChatExchange, ScriptedChatServer, chat_chunks
from voicechart.adapters.testing.command import RUN

pytestmark = [pytest.mark.slow, pytest.mark.timeout(150), pytest.mark.anyio]
KEY = "sk-planted-0123456789"
STORY = " ".join(f"Once there was a clock with number {number}, and it told a story." for number in range(12))


@pytest.fixture
def questions(recording: Callable[[str], Path]) -> tuple[Path, Path]:
    return recording("Tell me a long story."), recording("Count to three.")


async def test_a_chat_model_and_a_local_voice_talk_are_interrupted_and_answer(
    questions: tuple[Path, Path], tmp_path: Path
) -> None:
    server = ScriptedChatServer(ChatExchange(chat_chunks(STORY)), ChatExchange(chat_chunks("One, two, three.")))
    async with server.running() as base_url:
        config = tmp_path / "voicechart.toml"
        config.write_text(
            '[audio]\nendpoint = "unix:/nonexistent/audio.sock"\n'
            f'[model_settings.far]\nkind = "openai-chat"\nmodel = "m"\nbase_url = "{base_url}"\n'
            'api_key_env = "FAR_KEY"\nsystem_prompt = "Be long."\n[voice_settings.loud]\nkind = "espeak"\n'
        )
        with anyio.fail_after(120):
            ran = await anyio.run_process(
                [
                    *(sys.executable, "-W", "error", "-c", RUN, "talk", *map(str, questions), "--barge-in-at", "2"),
                    *("--config", str(config), "--provider", "far", "--provider", "loud", "--json"),
                ],
                cwd=tmp_path,
                check=False,
                env={**os.environ, "FAR_KEY": KEY},
            )
    assert ran.returncode == 0, ran.stderr
    shown = json.loads(ran.stdout)
    assert shown["ok"] is True
    assert shown["stale_frames"] == 0
    assert [reply["delivery"] for reply in shown["replies"]] == ["interrupted", "delivered"]
    assert shown["parts"]["responder"] == f"m at {base_url}"
    assert shown["parts"]["voice"] == "eSpeak NG en-us"
    first, second = [request.body.decode() for request in server.requests if request.path.endswith("/chat/completions")]
    assert '{"role":"system","content":"Be long."}' in first
    assert "Once there was a clock" not in first
    assert "Once there was a clock" in second
    left = "".join(path.read_text(errors="replace") for path in (tmp_path / "out").iterdir())
    assert KEY not in left + ran.stdout.decode() + ran.stderr.decode()
