"""What others bring: curl, and a tester that reads the description and tries everything."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import settings

from voicechart.adapters.testing.command import VoicechartCommand
from voicechart.adapters.testing.web_site import Json
from voicechart.adapters.web.openapi import openapi_document

CURL = shutil.which("curl")
FOREVER = ("/api/events", "/api/trace/stream")


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Generator[str]:
    """Where `voicechart serve` serves, as a process of its own."""
    folder = tmp_path_factory.mktemp("serving")
    (folder / "voicechart.toml").write_text(
        '[audio]\nendpoint = "unix:/nonexistent/audio.sock"\n[responder]\nkind = "companion"\ntoken_ms = 0\n'
        "[web]\nrequests_per_minute = 100000\nburst = 10000\n"
    )
    command = VoicechartCommand(folder)
    serving = command.start("serve", "--config", folder / "voicechart.toml", "--port", "0", "--json")
    serving.wait_for_output("address")
    yield json.loads(serving.output.read_text().splitlines()[0])["address"]
    command.kill_all()


@pytest.mark.slow
@pytest.mark.skipif(CURL is None, reason="curl is not installed: what it would show is left out")
def test_curl_sees_every_event_as_it_comes(address: str, tmp_path: Path) -> None:
    assert CURL is not None
    seen = tmp_path / "seen"
    with seen.open("wb") as output, subprocess.Popen([CURL, "-sN", f"{address}/api/events"], stdout=output) as watching:
        while b"snapshot" not in seen.read_bytes():
            assert watching.poll() is None
        said = subprocess.run(
            [CURL, "-sN", "-H", "content-type: application/json", "-d", '{"text": "hello"}', f"{address}/api/chat"],
            capture_output=True,
            check=True,
            timeout=20,
        )
        while b"delivery.recorded" not in seen.read_bytes():
            assert watching.poll() is None
        watching.terminate()
    owned = [json.loads(line) for line in said.stdout.splitlines() if line]
    watched = [json.loads(line[6:]) for line in seen.read_bytes().splitlines() if line.startswith(b"data: ")]
    assert watched.pop(0)["type"] == "snapshot"
    assert (text_of(owned), others_of(owned)) == (text_of(watched), others_of(watched))
    assert others_of(owned)[:2] == ["turn.committed", "response.started"]


def text_of(events: list[Json]) -> str:
    return "".join(event["payload"]["text"] for event in events if event["type"] == "text.delta")


def others_of(events: list[Json]) -> list[str]:
    """An observer may get several deltas as one."""
    return [event["type"] for event in events if event["type"] != "text.delta"]


SCHEMA: Any = schemathesis.openapi.from_dict(openapi_document(8_000))


@pytest.mark.slow
@SCHEMA.parametrize()
@settings(max_examples=25, deadline=None)
def test_nothing_that_can_be_asked_is_a_defect(case: Any, address: str) -> None:  # noqa: ANN401 - its library types it by halves
    if case.path in FOREVER:
        # What goes on for ever is asked for what is there.
        case.query = {**(case.query or {}), "follow": "false"}
    response = case.call(base_url=address, timeout=20)
    assert response.status_code < 500 or response.status_code == 503, response.text
    if response.status_code >= 400:
        assert response.json()["error"]["message"]
    case.validate_response(response)
