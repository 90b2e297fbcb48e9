"""A conversation with a model that hears and speaks by itself, from recordings through the real socket."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

import anyio
import pytest
from pydantic import JsonValue

from voicechart.adapters.testing import ScriptedSocketServer
from voicechart.adapters.testing.command import RUN
from voicechart.adapters.testing.gemini_server import GeminiVoice
from voicechart.adapters.testing.realtime_servers import RealtimeVoice, Says

pytestmark = [pytest.mark.slow, pytest.mark.timeout(150), pytest.mark.anyio]
KEY = "sk-planted-0123456789"


@pytest.fixture
def questions(recording: Callable[[str], Path]) -> tuple[Path, Path]:
    return recording("Tell me a long story."), recording("Count to three.")


async def talk(tmp_path: Path, questions: tuple[Path, Path], config: str) -> dict[str, JsonValue]:
    """What `voicechart talk` shows of both questions, the second over the first answer."""
    path = tmp_path / "voicechart.toml"
    path.write_text(f'realtime = "native"\n[audio]\nendpoint = "unix:/nonexistent/audio.sock"\n{config}')
    with anyio.fail_after(120):
        ran = await anyio.run_process(
            [
                *(sys.executable, "-W", "error", "-c", RUN, "talk", *map(str, questions), "--barge-in-at", "2"),
                *("--config", str(path), "--provider", "native", "--json"),
            ],
            cwd=tmp_path,
            check=False,
            env={**os.environ, "NATIVE_KEY": KEY},
        )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    left = "".join(path.read_text(errors="replace") for path in (tmp_path / "out").iterdir())
    assert KEY not in left + ran.stdout.decode() + ran.stderr.decode()
    shown: dict[str, JsonValue] = json.loads(ran.stdout)
    assert shown["ok"] is True
    assert shown["stale_frames"] == 0
    assert shown["interruptions"] == 1
    return shown


async def test_openai_realtime_is_interrupted_cancelled_and_cut_to_what_was_heard(
    questions: tuple[Path, Path], tmp_path: Path
) -> None:
    voice = RealtimeVoice(
        Says("Once there was a clock, and it went on and on.", 20_000, goes_on=True),
        Says("One, two, three.", 1_500),
        hears=("Tell me a long story.", "Count to three."),
    )
    server = ScriptedSocketServer(voice)
    async with server.running() as base_url:
        config = f'[model_settings.native]\nkind = "openai-realtime"\nbase_url = "{base_url}"\n'
        shown = await talk(
            tmp_path, questions, f'{config}api_key_env = "NATIVE_KEY"\nsystem_prompt = "Be long."\nvoice = "cedar"\n'
        )
    first, second = replies_in(shown)
    assert [first["delivery"], second["delivery"]] == ["interrupted", "delivered"]
    assert [turn["transcript"] for turn in turns_in(shown)] == ["Tell me a long story.", "Count to three."]
    assert parts_in(shown)["realtime"] == "OpenAI gpt-realtime-2.1"

    (peer,) = server.peers
    sent = [message.json() for message in peer.received]
    kinds = [str(message["type"]) for message in sent if message["type"] != "input_audio_buffer.append"]
    assert kinds == [
        "session.update",
        "input_audio_buffer.commit",
        "response.create",
        "response.cancel",
        "conversation.item.truncate",
        "input_audio_buffer.commit",
        "response.create",
    ]
    session = sent[0]["session"]
    assert isinstance(session, dict)
    assert session["instructions"] == "Be long."
    (cut,) = [message for message in sent if message["type"] == "conversation.item.truncate"]
    story, count = voice.spoken_ms
    assert cut["item_id"] == story
    heard_ms = first["heard_ms"]
    assert isinstance(heard_ms, float | int)
    assert cut["audio_end_ms"] == pytest.approx(heard_ms, abs=1)
    assert voice.believed_ms == {story: cut["audio_end_ms"], count: 1_500}
    assert voice.refused == []


async def test_openai_realtime_may_end_turns_itself(questions: tuple[Path, Path], tmp_path: Path) -> None:
    voice = RealtimeVoice(
        Says("Once there was a clock, and it went on and on.", 20_000, goes_on=True),
        Says("One, two, three.", 1_500),
        hears=("Tell me a long story.", "Count to three."),
    )
    server = ScriptedSocketServer(voice)
    async with server.running() as base_url:
        config = f'[model_settings.native]\nkind = "openai-realtime"\nbase_url = "{base_url}"\n'
        authority = 'api_key_env = "NATIVE_KEY"\n[turn]\nauthority = "engine"\n'
        shown = await talk(tmp_path, questions, config + authority)
    assert [reply["delivery"] for reply in replies_in(shown)] == ["interrupted", "delivered"]
    assert [turn["transcript"] for turn in turns_in(shown)] == ["Tell me a long story.", "Count to three."]
    sent = [message.json()["type"] for message in server.peers[0].received]
    kinds = [kind for kind in sent if kind != "input_audio_buffer.append"]
    assert kinds == [
        "session.update",
        "response.create",
        "response.cancel",
        "conversation.item.truncate",
        "response.create",
    ]
    assert voice.refused == []


async def test_qwen_omni_is_interrupted_and_cancelled(questions: tuple[Path, Path], tmp_path: Path) -> None:
    voice = RealtimeVoice(
        Says("Once there was a clock, and it went on and on.", 20_000, goes_on=True),
        Says("One, two, three.", 1_500),
        hears=("Tell me a long story.", "Count to three."),
        beta=True,
    )
    server = ScriptedSocketServer(voice)
    async with server.running() as base_url:
        config = f'[model_settings.native]\nkind = "qwen-omni"\nbase_url = "{base_url}"\n'
        shown = await talk(tmp_path, questions, f'{config}api_key_env = "NATIVE_KEY"\n')
    assert [reply["delivery"] for reply in replies_in(shown)] == ["interrupted", "delivered"]
    sent = [message.json()["type"] for message in server.peers[0].received]
    kinds = [kind for kind in sent if kind != "input_audio_buffer.append"]
    assert kinds == [
        "session.update",
        "input_audio_buffer.commit",
        "response.create",
        "response.cancel",
        "input_audio_buffer.commit",
        "response.create",
        "session.finish",
    ]
    assert voice.refused == []


@pytest.mark.parametrize("is_generated", [False, True])
async def test_gemini_live_is_interrupted_by_an_activity_and_nothing_late_is_heard(
    questions: tuple[Path, Path], tmp_path: Path, is_generated: bool
) -> None:
    """While the answer comes in, and while it is only heard: its turn ends when it would have been played."""
    voice = GeminiVoice(
        Says("Once there was a clock, and it went on and on.", 20_000, goes_on=not is_generated),
        Says("One, two, three.", 1_500),
        hears=("Tell me a long story.", "Count to three."),
        is_pacing=is_generated,
    )
    server = ScriptedSocketServer(voice)
    async with server.running() as base_url:
        config = f'[model_settings.native]\nkind = "gemini-live"\nbase_url = "{base_url}"\n'
        shown = await talk(
            tmp_path, questions, f'{config}api_key_env = "NATIVE_KEY"\nsystem_prompt = "Be long."\nvoice = "Kore"\n'
        )
    first, second = replies_in(shown)
    assert [first["delivery"], second["delivery"]] == ["interrupted", "delivered"]
    assert [turn["transcript"] for turn in turns_in(shown)] == ["Tell me a long story.", "Count to three."]
    assert parts_in(shown)["realtime"] == "Gemini gemini-3.8-live"

    (peer,) = server.peers
    sent = [message.json() for message in peer.received]
    kinds = [kind for message in sent if (kind := kind_of(message)) != "audio"]
    assert kinds == ["setup", "activityStart", "activityEnd", "activityStart", "activityEnd"]
    setup = sent[0]["setup"]
    assert isinstance(setup, dict)
    assert setup["systemInstruction"] == {"parts": [{"text": "Be long."}]}
    assert peer.headers["x-goog-api-key"] == KEY
    assert voice.refused == []


def kind_of(message: dict[str, JsonValue]) -> str:
    ((kind, body),) = message.items()
    return next(iter(body)) if kind == "realtimeInput" and isinstance(body, dict) else kind


def replies_in(shown: dict[str, JsonValue]) -> list[dict[str, JsonValue]]:
    return objects_in(shown["replies"])


def turns_in(shown: dict[str, JsonValue]) -> list[dict[str, JsonValue]]:
    return objects_in(shown["turns"])


def parts_in(shown: dict[str, JsonValue]) -> dict[str, JsonValue]:
    parts = shown["parts"]
    assert isinstance(parts, dict)
    return parts


def objects_in(value: JsonValue) -> list[dict[str, JsonValue]]:
    assert isinstance(value, list)
    return [one for one in value if isinstance(one, dict)]
