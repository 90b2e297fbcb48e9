"""A planted key, services that refuse and repeat it in every way, and everything logged: nothing we write holds it."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import anyio
import httpx
import pytest

from voicechart.adapters.testing import HttpExchange, Refusal, ScriptedHttpServer, ScriptedSocketServer
from voicechart.adapters.testing.command import RUN, VoicechartCommand

pytestmark = [pytest.mark.slow, pytest.mark.timeout(200)]
DEADLINE_S = 150
KEY = "sk-planted-0123456789abcdef"
EVERYTHING_IS_LOGGED = "import logging; logging.basicConfig(level=logging.DEBUG)"
ECHO = {"X-Echo": f"Bearer {KEY}", "WWW-Authenticate": KEY, "Retry-After": KEY, "Content-Type": "application/json"}
BODY = json.dumps(
    {"error": {"code": KEY, "type": KEY, "message": f"Incorrect API key provided: Bearer {KEY}"}}
).encode()
HEAD = """
[audio]
endpoint = "unix:/nonexistent/audio.sock"
[trace]
path = "{name}.jsonl"
[history]
path = "{name}.db"
"""
MODEL = '[responder]\nkind = "openai-chat"\nmodel = "m"\nbase_url = "{http}"\napi_key_env = "PLANTED"\n'
FAR = """
[recognizer]
kind = "deepgram"
base_url = "{socket}"
api_key_env = "PLANTED"
[voice]
kind = "elevenlabs"
voice_id = "v"
base_url = "{socket}"
api_key_env = "PLANTED"
"""
NEAR = '[voice]\nkind = "espeak"\n'


class Shop:
    """Runs commands in a folder and keeps what they say."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.said: dict[str, str] = {}
        self.codes: dict[str, int] = {}

    async def run(self, name: str, *arguments: str | Path) -> None:
        command = [sys.executable, "-W", "error", "-c", f"{EVERYTHING_IS_LOGGED}\n{RUN}"]
        ran = await anyio.run_process(
            [*command, *map(str, arguments)], cwd=self.folder, check=False, env={**os.environ, "PLANTED": KEY}
        )
        self.said[name] = ran.stdout.decode() + ran.stderr.decode()
        self.codes[name] = ran.returncode

    async def serve(self, config: Path) -> None:
        """`serve`, with one question that the model refuses."""
        os.environ["PLANTED"] = KEY
        command = VoicechartCommand(self.folder)
        try:
            serving = command.start("serve", "--config", config, "--port", "0", "--json", before=EVERYTHING_IS_LOGGED)
            await anyio.to_thread.run_sync(serving.wait_for_output, "address")
            address = json.loads(serving.output.read_text().splitlines()[0])["address"]
            async with httpx.AsyncClient(timeout=60) as client:
                answer = await client.post(f"{address}/api/chat", json={"text": "hello"})
                page = await client.get(f"{address}/api/conversations")
            self.said["serve"] = answer.text + page.text
            assert "auth_refused" in answer.text
        finally:
            command.kill_all()
            del os.environ["PLANTED"]


@pytest.fixture(scope="module")
def shop(recording: Callable[[str], Path], tmp_path_factory: pytest.TempPathFactory) -> Shop:
    """Every command has been run, all at the same time."""
    shop = Shop(tmp_path_factory.mktemp("shop"))
    question = recording("Tell me a long story.")

    async def run_all() -> None:
        refusal = HttpExchange((BODY,), 401, ECHO)
        model = ScriptedHttpServer({"/chat/completions": [refusal] * 20})
        refusing = ScriptedHttpServer({"": [refusal] * 20})
        sockets = ScriptedSocketServer(*[Refusal(401, ECHO, BODY)] * 20)
        async with model.running() as model_url, refusing.running() as http, sockets.running() as socket:
            far, near = shop.folder / "far.toml", shop.folder / "near.toml"
            far.write_text((HEAD + MODEL + FAR).format(name="far", http=http, socket=socket))
            near.write_text((HEAD + MODEL + NEAR).format(name="near", http=model_url))
            wrong = shop.folder / "wrong.toml"
            slips = f'api_key_env = "{KEY}"\napi_key = "{KEY}"\n'
            wrong.write_text((HEAD + MODEL).format(name="wrong", http=http).replace('api_key_env = "PLANTED"', slips))
            with anyio.fail_after(DEADLINE_S):
                async with anyio.create_task_group() as group:
                    start = group.start_soon
                    start(shop.run, "check-config", "check-config", "--config", far, "--connect", "--json")
                    start(shop.run, "wrong", "check-config", "--config", wrong, "--json")
                    start(shop.run, "providers", "providers", "--config", far, "--json")
                    start(shop.run, "daemon", "daemon", "--config", far)
                    start(shop.run, "talk", "talk", question, "--config", near, "--history", "talk.db", "--json")
                    start(shop.serve, near)
        await shop.run("trace", "trace", "show", "out/trace.jsonl")
        await shop.run("history", "history", "show", "--history", "talk.db", "--json")

    anyio.run(run_all)
    return shop


def test_every_command_met_the_refusal_and_said_so(shop: Shop) -> None:
    refused: Mapping[str, int] = {"check-config": 1, "daemon": 1, "talk": 1, "wrong": 2}
    assert {name: shop.codes[name] for name in refused} == refused, shop.said
    for name in ("check-config", "daemon", "talk"):
        assert "auth_refused" in shop.said[name], shop.said[name]
    assert shop.codes["trace"] == shop.codes["providers"] == 0


def test_no_command_says_the_key(shop: Shop) -> None:
    assert [name for name, said in shop.said.items() if KEY in said] == []


def test_no_file_holds_the_key(shop: Shop) -> None:
    """Traces, histories, logs of processes: all but the configuration into which it was written by mistake."""
    files = [path for path in shop.folder.rglob("*") if path.is_file() and path.name != "wrong.toml"]
    assert {"trace.jsonl", "far.jsonl", "near.db", "talk.db", "heard.wav"} <= {path.name for path in files}
    assert [path for path in files if KEY.encode() in path.read_bytes()] == []
