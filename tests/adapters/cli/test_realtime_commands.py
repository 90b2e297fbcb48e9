"""`voicechart providers` and `check-config --connect` with a native realtime model."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import anyio
import anyio.from_thread
import pytest
from typer.testing import CliRunner, Result

from voicechart.adapters.cli import app
from voicechart.adapters.testing import Refusal, ScriptedSocketServer
from voicechart.adapters.testing.realtime_servers import RealtimeVoice
from voicechart.adapters.testing.socket_server import Script

KEY = "sk-planted-0123456789"


@pytest.fixture(autouse=True)
def in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("NATIVE_KEY", KEY)


def voicechart(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments], prog_name="voicechart")


def written(base_url: str = "ws://127.0.0.1:9", kind: str = "openai-realtime") -> Path:
    file = Path("voicechart.toml")
    file.write_text(
        'realtime = "native"\n[audio]\nendpoint = "unix:/run/voicechart/audio.sock"\n'
        f'[model_settings.native]\nkind = "{kind}"\nbase_url = "{base_url}"\napi_key_env = "NATIVE_KEY"\n'
    )
    return file


def shown(ran: Result) -> dict[str, Any]:
    return json.loads(ran.stdout)


@pytest.mark.parametrize(
    ("script", "code", "exit_code"),
    [
        (RealtimeVoice(), None, 0),
        (Refusal(401), "auth_refused", 1),
        (Refusal(429, {"Retry-After": "7"}), "rate_limited", 1),
    ],
    ids=["works", "key refused", "too many"],
)
def test_connecting_opens_and_closes_a_session(
    script: Script | Refusal, code: str | None, exit_code: int, caplog: pytest.LogCaptureFixture
) -> None:
    server = ScriptedSocketServer(script)
    with (
        caplog.at_level(logging.DEBUG),
        anyio.from_thread.start_blocking_portal("asyncio") as portal,
        portal.wrap_async_context_manager(server.running()) as base_url,
    ):
        ran = voicechart("check-config", "--config", written(base_url), "--connect", "--json")
    assert ran.exit_code == exit_code, ran.stderr
    (part,) = shown(ran)["connected"]
    assert (part["part"], part["ok"]) == ("realtime", exit_code == 0)
    assert (part["error"]["code"] if part["error"] is not None else None) == code
    for peer in server.peers:
        assert [message.json()["type"] for message in peer.received] == ["session.update"]
        assert peer.close_code == 1000
    assert KEY not in ran.stdout + ran.stderr + caplog.text


@pytest.mark.parametrize(("kind", "cannot"), [("openai-realtime", "resume"), ("qwen-omni", "truncate")])
def test_what_a_native_model_cannot_do_is_told_with_its_reason(kind: str, cannot: str) -> None:
    ran = voicechart("providers", "--config", written(kind=kind), "--json")
    assert ran.exit_code == 0, ran.stderr
    (part,) = shown(ran)["parts"]
    abilities = {able["name"]: able for able in part["abilities"]}
    assert abilities["takes_turns"]["value"] is True
    assert abilities[cannot]["value"] is False
    assert abilities[cannot]["reason"]


def test_a_turn_authority_that_the_model_cannot_be_is_refused_at_its_key() -> None:
    file = written(kind="qwen-omni")
    file.write_text(f'{file.read_text()}[turn]\nauthority = "engine"\n')
    ran = voicechart("check-config", "--config", file, "--json")
    assert ran.exit_code == 2
    (problem,) = shown(ran)["problems"]
    assert problem["path"] == "turn.authority"
