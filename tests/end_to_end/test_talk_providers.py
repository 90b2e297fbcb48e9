"""`voicechart talk` with providers: recordings, the real command, the real board socket, and services on the loopback.

Each conversation is interrupted in its first reply by the second recording. The three are held at the same time, for
most of a conversation is listening.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import pytest
from pydantic import JsonValue

from voicechart.adapters.testing import (
    HttpExchange,
    Pause,
    ScriptedHttpServer,
    ScriptedSocketServer,
    SocketPeer,
    chat_chunks,
    message_events,
)
from voicechart.adapters.testing.command import RUN
from voicechart.adapters.testing.recognition_servers import deepgram_hears
from voicechart.adapters.testing.speech_peers import elevenlabs_audio
from voicechart.engines.history import INTERRUPTED_MARKER

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]
DEADLINE_S = 200
MS_PER_CHAR = 25
KEY = "sk-planted-0123456789"
FIRST, SECOND = "Tell me a long story.", "Count to three."
ANSWER = "One, two, three."
STORY = " ".join(f"Once there was a clock with number {number}, and it told a story." for number in range(12))
RECORDS = """
[audio]
endpoint = "unix:/nonexistent/audio.sock"
[model_settings.chat]
kind = "openai-chat"
model = "m"
base_url = "{model}"
api_key_env = "FAR_KEY"
system_prompt = "Be long."
[model_settings.claude]
kind = "anthropic"
model = "m"
base_url = "{model}"
api_key_env = "FAR_KEY"
[voice_settings.near]
kind = "espeak"
[voice_settings.loud]
kind = "elevenlabs"
voice_id = "v"
base_url = "{voice}"
api_key_env = "FAR_KEY"
[voice_settings.ear]
kind = "deepgram"
base_url = "{ear}"
api_key_env = "FAR_KEY"
"""


@dataclass
class Talk:
    """One conversation, and what the services saw of it."""

    providers: tuple[str, ...]
    model: ScriptedHttpServer
    ear: ScriptedSocketServer
    voice: ScriptedSocketServer
    shown: dict[str, Any] = field(default_factory=dict[str, Any])
    left: str = ""
    """Everything that it wrote: to its outputs and to its files."""

    async def hold(self, folder: Path, recordings: tuple[Path, Path]) -> None:
        async with self.model.running() as model, self.ear.running() as ear, self.voice.running() as voice:
            config = folder / "voicechart.toml"
            config.write_text(RECORDS.format(model=model, ear=ear, voice=voice))
            chosen = [option for name in self.providers for option in ("--provider", name)]
            with anyio.fail_after(DEADLINE_S):
                ran = await anyio.run_process(
                    [
                        *(
                            sys.executable,
                            "-W",
                            "error",
                            "-c",
                            RUN,
                            "talk",
                            *map(str, recordings),
                            "--barge-in-at",
                            "2",
                        ),
                        *("--config", str(config), *chosen, "--json"),
                    ],
                    cwd=folder,
                    check=False,
                    env={**os.environ, "FAR_KEY": KEY},
                )
                # It has let go of everything before it ended.
                await self.model.has_connections(0)
                await self.ear.has_connections(0)
                await self.voice.has_connections(0)
        said = ran.stdout.decode() + ran.stderr.decode()
        assert ran.returncode == 0, said
        self.shown = json.loads(ran.stdout)
        self.left = said + "".join(path.read_text(errors="replace") for path in (folder / "out").iterdir())

    @property
    def requests(self) -> list[dict[str, JsonValue]]:
        """What the model was asked."""
        return [request.json() for request in self.model.requests if request.method == "POST"]


def endless(pieces: tuple[bytes, ...]) -> HttpExchange:
    """An answer that is never over: nobody but the client ends it."""
    return HttpExchange((*pieces[:-3], Pause(anyio.Event())))


async def only_ready(peer: SocketPeer) -> None:
    """What `prepare` meets."""
    await peer.hung_up()


async def speaks_slowly(peer: SocketPeer) -> None:
    """ElevenLabs, hardly faster than it can be listened to: whoever interrupts it does so in the middle of a unit."""
    texts: dict[str, str] = {}
    spoken = 0
    async for message in peer.messages():
        told = message.json()
        context_id = str(told["context_id"])
        texts[context_id] = texts.get(context_id, "") + str(told.get("text", ""))
        if told.get("close_context"):
            spoken += 1
            text = texts.pop(context_id).strip()
            for audio in elevenlabs_audio(context_id, text, spoken, MS_PER_CHAR):
                await peer.send_json(audio)
                await anyio.sleep(0.8 * MS_PER_CHAR * len(text) / len(text.split()) / 1_000)
            await peer.send_json({"isFinal": True, "contextId": context_id, "audio": None})


def talk(
    route: str,
    answer: Callable[[str], tuple[bytes, ...]],
    *providers: str,
) -> Talk:
    return Talk(
        providers,
        ScriptedHttpServer({route: [endless(answer(STORY)), HttpExchange(answer(ANSWER))]}),
        ScriptedSocketServer(only_ready, deepgram_hears(FIRST), deepgram_hears(SECOND)),
        ScriptedSocketServer(speaks_slowly, speaks_slowly, speaks_slowly),
    )


@pytest.fixture(scope="module")
def talks(recording: Callable[[str], Path], tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Talk]:
    """Every conversation, by the name of who is far away in it."""
    folders = {name: tmp_path_factory.mktemp(name) for name in ("chat", "anthropic", "everything")}
    recordings = recording(FIRST), recording(SECOND)

    async def hold_all() -> dict[str, Talk]:
        held = {
            "chat": talk("/chat/completions", chat_chunks, "chat", "near"),
            "anthropic": talk("/messages", message_events, "claude", "near"),
            "everything": talk("/chat/completions", chat_chunks, "ear", "chat", "loud"),
        }
        async with anyio.create_task_group() as group:
            for name, one in held.items():
                group.start_soon(one.hold, folders[name], recordings)
        return held

    return anyio.run(hold_all)


@pytest.fixture(params=["chat", "anthropic", "everything"])
def held(request: pytest.FixtureRequest, talks: Mapping[str, Talk]) -> Talk:
    return talks[request.param]


def test_it_is_understood_interrupted_and_answered_with_nothing_stale(held: Talk) -> None:
    assert held.shown["ok"] is True
    assert held.shown["interruptions"] == 1
    assert held.shown["stale_frames"] == 0
    assert held.shown["duplicate_units"] == 0
    assert [reply["delivery"] for reply in held.shown["replies"]] == ["interrupted", "delivered"]
    assert [reply["delivered"] for reply in held.shown["replies"]][1] == ANSWER
    assert held.shown["replies"][0]["heard_ms"] >= 2_000


def test_the_cancelled_answer_is_hung_up_on_and_not_asked_for_again(held: Talk) -> None:
    """The model would have gone on for ever."""
    assert held.model.hung_up == 1
    assert len(held.requests) == 2


def test_the_model_is_told_only_what_was_heard_of_its_answer(held: Talk) -> None:
    first, second = held.requests
    assert "Once there was a clock" not in json.dumps(first)
    heard = held.shown["replies"][0]["delivered"]
    assert STORY.startswith(heard)
    assert 0 < len(heard) < len(STORY) / 2
    messages = second["messages"]
    assert isinstance(messages, list)
    (said,) = [message for message in messages if isinstance(message, dict) and message["role"] == "assistant"]
    text = said["content"] if isinstance(said["content"], str) else json.dumps(said["content"])
    assert f"{heard} {INTERRUPTED_MARKER}" in text
    assert text.count("Once there was") <= heard.count("Once there was")


def test_no_key_is_left_anywhere(held: Talk) -> None:
    assert KEY not in held.left
    assert any(KEY in value for request in held.model.requests for value in request.headers.values())


def test_the_ear_is_told_the_end_of_each_utterance_and_then_closed(talks: Mapping[str, Talk]) -> None:
    prepared, *utterances = talks["everything"].ear.peers
    assert [message for message in prepared.received if not message.is_text] == []
    assert len(utterances) == 2
    for peer in utterances:
        texts = [message.json()["type"] for message in peer.received if message.is_text]
        assert [text for text in texts if text != "KeepAlive"] == ["Finalize", "CloseStream"]


def test_the_interrupted_voice_is_closed_and_another_one_speaks_the_next_reply(talks: Mapping[str, Talk]) -> None:
    old, new, *_ = talks["everything"].voice.peers
    assert old.close_code == 1000
    contexts = [{str(message.json()["context_id"]) for message in peer.received} for peer in (old, new)]
    assert contexts[0].isdisjoint(contexts[1])
    assert contexts[1]
    asked = [str(message.json().get("text", "")).strip() for message in old.received]
    assert len(" ".join(asked)) < len(STORY), "it was asked for all of a reply that was cut"


def test_nobody_far_away_is_spoken_to_who_was_not_chosen(talks: Mapping[str, Talk]) -> None:
    for name in ("chat", "anthropic"):
        assert talks[name].ear.requests == talks[name].voice.requests == 0
    assert talks["chat"].shown["parts"]["voice"] == "eSpeak NG en-us"
    assert talks["chat"].requests[0]["messages"] != talks["anthropic"].requests[0]["messages"]
