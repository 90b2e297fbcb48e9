"""Serving and following as people do it: in processes of their own, over real sockets, ended by signals."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from signal import SIGINT, SIGTERM
from typing import Any

import httpx
import pytest

from voicechart.adapters.testing.command import RunningCommand, VoicechartCommand

pytestmark = [pytest.mark.slow, pytest.mark.timeout(150)]
Json = dict[str, Any]
SLOW = '[audio]\nendpoint = "unix:/nonexistent/audio.sock"\n[responder]\nkind = "companion"\ntoken_ms = 100\n'


def address_of(serving: RunningCommand) -> str:
    serving.wait_for_output("address")
    return json.loads(serving.output.read_text().splitlines()[0])["address"]


def events_of(response: httpx.Response) -> Iterator[Json]:
    for line in response.iter_lines():
        if line.startswith("data: "):
            yield json.loads(line.removeprefix("data: "))
        elif line.startswith("{"):
            yield json.loads(line)


def test_a_conversation_is_held_and_ended_by_a_signal_with_everybody_told(
    voicechart: VoicechartCommand, tmp_path: Path
) -> None:
    config = tmp_path / "voicechart.toml"
    config.write_text(SLOW)
    serving = voicechart.start("serve", "--config", config, "--port", "0", "--json")
    address = address_of(serving)
    with (
        httpx.Client(base_url=address, timeout=30) as client,
        client.stream("GET", "/api/events") as watching,
        client.stream("POST", "/api/chat", json={"text": "tell me a long story"}) as talking,
    ):
        said, seen = events_of(talking), events_of(watching)
        assert any(event["type"] == "text.delta" for event in said)
        serving.process.send_signal(SIGTERM)
        owned = [event["type"] for event in said]
        watched = [event["type"] for event in seen]
    assert {"run.terminal", "delivery.recorded"} <= set(owned)
    assert owned[-1] == watched[-1] == "session.closed"
    assert serving.ended() == 0
    assert "story" not in serving.errors.read_text()


def test_an_interrupt_ends_it_with_130(voicechart: VoicechartCommand) -> None:
    serving = voicechart.start("serve", "--port", "0")
    serving.wait_for_output("pattern companion answers at http://127.0.0.1:")
    assert serving.stop(SIGINT) == 130


def test_an_address_in_use_is_said(voicechart: VoicechartCommand) -> None:
    address = address_of(voicechart.start("serve", "--port", "0", "--json"))
    refused = voicechart.run("serve", "--port", address.rpartition(":")[2])
    assert refused.returncode == 1
    assert "connection/web_address_in_use" in refused.stderr


def test_what_was_said_is_remembered_across_restarts(voicechart: VoicechartCommand, tmp_path: Path) -> None:
    config = tmp_path / "voicechart.toml"
    config.write_text(SLOW.replace("100", "0") + '[history]\npath = "history.db"\n')
    cursors: list[str] = []
    for text in ("what time is it?", "who are you?"):
        serving = voicechart.start("serve", "--config", config, "--port", "0", "--json")
        with httpx.Client(base_url=address_of(serving), timeout=30) as client:
            with client.stream("POST", "/api/chat", json={"text": text}) as talking:
                assert [event["type"] for event in events_of(talking)][-1] in ("run.terminal", "delivery.recorded")
            if cursors:
                old = client.get("/api/events", params={"follow": "false"}, headers={"last-event-id": cursors[0]})
                assert [event["type"] for event in events_of(old)] == ["snapshot"]
            cursors.append(client.get("/api/state").json()["watermark"])
        assert serving.stop(SIGTERM) == 0
    shown = json.loads(voicechart.run("history", "show", "--config", config, "--json").stdout)
    assert [record["text"] for record in shown["records"] if record["kind"] == "turn"] == [
        "what time is it?",
        "who are you?",
    ]


def test_a_terminal_follows_finds_its_way_back_and_ends_with_the_conversation(
    voicechart: VoicechartCommand, tmp_path: Path
) -> None:
    serving = voicechart.start("serve", "--port", "0", "--json")
    address = address_of(serving)
    shown = voicechart.start("attach", address)
    shown.wait_for_output("ready")
    with httpx.Client(base_url=address, timeout=30) as client:
        client.post("/api/chat", json={"text": "what time is it?"}).read()
        shown.wait_for_output("It is")
    # The server is gone without a word, and another one is there.
    serving.process.kill()
    shown.wait_for_error("lost")
    port = address.rpartition(":")[2]
    again = voicechart.start("serve", "--port", port, "--json")
    shown.wait_for_error("back behind")
    assert again.stop(SIGTERM) == 0
    assert shown.ended() == 0
    assert "closed (stopped)" in shown.output.read_text()


def test_a_program_follows_line_by_line_from_a_cursor(voicechart: VoicechartCommand, tmp_path: Path) -> None:
    serving = voicechart.start("serve", "--port", "0", "--json")
    address = address_of(serving)
    with httpx.Client(base_url=address, timeout=30) as client:
        cursor = client.get("/api/state").json()["watermark"]
        client.post("/api/chat", json={"text": "what time is it?"}).read()
    lines = voicechart.start("attach", address, "--json", "--after", cursor)
    lines.wait_for_output("delivery.recorded")
    assert serving.stop(SIGTERM) == 0
    assert lines.ended() == 0
    kinds = [json.loads(line)["type"] for line in lines.output.read_text().splitlines()]
    assert kinds[0] == "turn.committed"
    assert kinds[-1] == "session.closed"


def test_a_server_that_refuses_is_not_asked_again(
    voicechart: VoicechartCommand, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WEB_TOKEN", "a long random text")
    address = address_of(voicechart.start("serve", "--port", "0", "--json", "--token-env", "WEB_TOKEN"))
    refused = voicechart.run("attach", address)
    assert refused.returncode == 1
    assert "Bearer" in refused.stderr
    allowed = voicechart.start("attach", address, "--token-env", "WEB_TOKEN")
    allowed.wait_for_output("ready")
    assert allowed.stop(SIGINT) == 130


def test_a_typed_message_interrupts_the_device_while_it_speaks_and_others_write_beside_it(
    voicechart: VoicechartCommand, tmp_path: Path, recording: Callable[[str], Path]
) -> None:
    config = tmp_path / "voicechart.toml"
    config.write_text(
        'conversation_id = "kitchen"\n[audio]\nendpoint = "unix:%s"\n[voice]\nkind = "espeak"\n'
        "[web]\nenabled = true\nport = 0\n" % (tmp_path / "audio.sock")
    )
    service = voicechart.start(
        *("audio-service", "--socket", tmp_path / "audio.sock", "--speaker-wav", tmp_path / "heard.wav"),
        *("--wav-microphone", recording("Tell me a long story.")),
    )
    service.wait_for_error("listening at")
    daemon = voicechart.start("daemon", "--config", config)
    daemon.wait_for_error("the conversation is at ")
    address = next(line for line in daemon.errors.read_text().splitlines() if "conversation is at" in line).split()[-1]
    daemon.wait_for_error("playback.started")
    beside: list[str] = []

    def write() -> None:
        with httpx.Client(base_url=address, timeout=30) as other:
            answer = other.post("/api/chat", json={"text": "what time is it?", "conversation_id": "desk"})
            beside.extend(event["type"] for event in events_of(answer))

    writing = threading.Thread(target=write)
    writing.start()
    with httpx.Client(base_url=address, timeout=60) as client:
        with client.stream("POST", "/api/chat", json={"text": "what day is it?"}) as talking:
            kinds = [event["type"] for event in events_of(talking)]
        state = client.get("/api/state").json()
        writing.join()
        listed = client.get("/api/conversations").json()["conversations"]
    assert {"run.terminal", "playback.started", "delivery.recorded"} <= set(kinds)
    assert "run.terminal" in beside
    assert "playback.started" not in beside
    assert [(line["conversation_id"], line["kind"]) for line in listed] == [("kitchen", "voice"), ("desk", "text")]
    story, asked = [entry for entry in state["state"]["entries"] if entry["kind"] == "assistant"]
    assert story["interrupted"]["source"] == "client"
    assert story["delivery"]["status"] == "interrupted"
    assert asked["delivery"]["status"] == "delivered"
    assert daemon.stop(SIGTERM) == 0
