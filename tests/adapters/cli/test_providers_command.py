"""`voicechart providers`, `check-config --connect` and the records that `talk` may choose."""

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
from voicechart.adapters.cli.trying import try_parts
from voicechart.adapters.composition import Part
from voicechart.adapters.providers.declaration import Prepared
from voicechart.adapters.providers.registry import Role, kinds
from voicechart.adapters.testing import ScriptedChatServer
from voicechart.statecharts.capabilities import ResponderCapabilities

KEY = "sk-planted-0123456789"
AUDIO = '[audio]\nendpoint = "unix:/run/voicechart/audio.sock"\n'
RECORDS = (
    '[model_settings.far]\nkind = "openai-chat"\nmodel = "m"\nbase_url = "%s"\napi_key_env = "FAR_KEY"\n'
    '[voice_settings.loud]\nkind = "espeak"\n'
)


@pytest.fixture(autouse=True)
def in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("FAR_KEY", KEY)


def voicechart(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments], prog_name="voicechart")


def written(tables: str = "", base_url: str = "http://127.0.0.1:9/v1") -> Path:
    file = Path("voicechart.toml")
    file.write_text(f'responder = "far"\nvoice = "loud"\n{AUDIO}{RECORDS % base_url}{tables}')
    return file


def shown(ran: Result) -> dict[str, Any]:
    return json.loads(ran.stdout)


def test_every_provider_is_listed_with_what_it_is_and_needs() -> None:
    ran = voicechart("providers", "--json")
    assert ran.exit_code == 0, ran.stderr
    found = {(one["role"], one["kind"]): one for one in shown(ran)["providers"]}
    assert set(found) == {(role.value, kind) for role in Role for kind in kinds(role)}
    chat = found["responder", "openai-chat"]
    assert chat["settings"]["model"] == {"required": True}
    assert chat["settings"]["api_key_env"] == {"required": False, "default": None}
    whisper = found["recognizer", "whisper"]
    assert (whisper["installed"], whisper["extra"], whisper["missing"]) == (True, "local", [])
    assert whisper["offers"]["interim"] is True
    for_people = voicechart("providers").stdout
    assert all(kind in for_people for role in Role for kind in kinds(role))


def test_a_provider_that_is_not_installed_says_which_extra_brings_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "espeakng_loader", None)
    (espeak,) = [one for one in shown(voicechart("providers", "--json"))["providers"] if one["kind"] == "espeak"]
    assert (espeak["installed"], espeak["missing"]) == (False, ["espeakng_loader"])
    assert "espeakng_loader (extra local)" in voicechart("providers").stdout


def test_the_matrix_of_a_configuration_has_every_dimension_and_the_reason_of_every_degradation() -> None:
    ran = voicechart("providers", "--config", written(), "--json")
    assert ran.exit_code == 0, ran.stderr
    matrix = shown(ran)
    assert matrix["streaming_policy"] == "prefer"
    dimensions = {part["role"]: {able["name"] for able in part["abilities"]} for part in matrix["parts"]}
    assert dimensions == {
        "recognizer": {"live_input", "interim", "segment_finals", "endpointing", "word_times"},
        "responder": {
            *("text_deltas", "tool_calls", "tool_argument_deltas", "usage", "usage_during", "cancel", "resume"),
        },
        "synthesizer": {"incremental_text", "sentence_input", "incremental_pcm", "alignment", "flush", "cancel"},
    }
    assert {able["name"] for able in matrix["playback"]["abilities"]} == {
        *("live_writes", "drain", "pause", "stop_receipt", "max_queue_ms", "played_position", "echo_cancellation"),
    }
    for part in matrix["parts"]:
        for able in part["abilities"]:
            assert (able["reason"] is None) == (able["value"] is True)
    assert any("recognizer.endpointing: " in line for line in matrix["degradations"])


def test_what_is_collected_says_that_the_policy_wants_it() -> None:
    matrix = shown(voicechart("providers", "--config", written('[connection]\nstreaming = "disabled"\n'), "--json"))
    reasons = {
        f"{part['role']}.{able['name']}": able["reason"] for part in matrix["parts"] for able in part["abilities"]
    }
    for collected in ("recognizer.interim", "responder.text_deltas", "synthesizer.incremental_pcm"):
        assert "connection.streaming" in reasons[collected]


def test_a_configuration_that_the_daemon_would_refuse_has_no_matrix() -> None:
    ran = voicechart("providers", "--config", written("[turn]\nx = 1\n"), "--json")
    assert ran.exit_code == 2
    assert [problem["path"] for problem in shown(ran)["problems"]] == ["turn.x"]
    assert "turn.x" in ran.stderr


@pytest.mark.slow
@pytest.mark.parametrize(("status", "code", "exit_code"), [(200, None, 0), (401, "auth_refused", 1)])
def test_connecting_tells_of_every_part_and_shows_no_secret(
    status: int, code: str | None, exit_code: int, caplog: pytest.LogCaptureFixture
) -> None:
    server = ScriptedChatServer(models_status=status)
    with (
        caplog.at_level(logging.DEBUG),
        anyio.from_thread.start_blocking_portal("asyncio") as portal,
        portal.wrap_async_context_manager(server.running()) as base_url,
    ):
        file = written('[recognizer]\nkind = "whisper"\n', base_url)
        ran = voicechart("check-config", "--config", file, "--connect", "--json")
    assert ran.exit_code == exit_code, ran.stderr
    parts = {one["part"]: one for one in shown(ran)["connected"]}
    assert list(parts) == ["recognizer", "responder", "voice"]
    assert (parts["recognizer"]["ok"], parts["voice"]["ok"]) == (True, True)
    error = parts["responder"]["error"]
    assert (error["code"] if error is not None else None) == code
    assert shown(ran)["ok"] is (exit_code == 0)
    assert all(one["elapsed_ms"] >= 0 for one in parts.values())
    assert "responder: " in ran.stderr
    assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"
    assert KEY not in ran.stdout + ran.stderr + caplog.text


class Stuck:
    """A part that is never ready, or breaks its contract."""

    def __init__(self, failure: Exception | None = None) -> None:
        self.failure = failure
        self.closed = False

    capabilities = ResponderCapabilities()

    async def prepare(self) -> None:
        if self.failure is not None:
            raise self.failure
        await anyio.sleep_forever()

    async def aclose(self) -> None:
        self.closed = True


def test_a_part_that_is_never_ready_or_breaks_its_contract_is_an_error_and_everything_is_closed() -> None:
    stuck, broken = Stuck(), Stuck(RuntimeError(KEY))
    parts: list[Part[Prepared]] = [
        Part(Role.RESPONDER, part, name, name, "x", ResponderCapabilities(), "responder")
        for part, name in ((stuck, "stuck"), (broken, "broken"))
    ]
    tried = try_parts(parts, deadline_s=0.01)
    codes = [one.error.code if one.error is not None else None for one in tried]
    assert codes == ["not_ready_in_time", "port_broken"]
    assert KEY not in str(tried)
    assert stuck.closed
    assert broken.closed


def test_without_connecting_nobody_is_called() -> None:
    ran = voicechart("check-config", "--config", written(), "--json")
    assert ran.exit_code == 0, ran.stderr
    assert "connected" not in shown(ran)
    assert shown(ran)["responder"] == "m at http://127.0.0.1:9/v1"


@pytest.mark.parametrize(
    ("options", "part"),
    [
        (("--provider", "far"), "give --config too"),
        (("--config", "voicechart.toml", "--responder", "companion"), "the configuration says who takes part"),
        (("--config", "voicechart.toml", "--voice", "espeak"), "--voice"),
        (("--config", "none.toml"), "cannot be read"),
        (("--config", "voicechart.toml", "--provider", "near"), "there is no record 'near'; defined: 'far', 'loud'"),
    ],
)
def test_records_that_talk_cannot_choose_are_refused(options: tuple[str, ...], part: str, tmp_path: Path) -> None:
    written()
    silence = tmp_path / "a.wav"
    silence.write_bytes(b"")
    ran = voicechart("talk", silence, *options)
    assert ran.exit_code == 2
    assert part in " ".join(ran.stderr.split())
