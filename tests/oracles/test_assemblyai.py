"""AssemblyAI's streaming v3, judged by assemblyai."""

from __future__ import annotations

import json

import anyio
import pytest
from assemblyai.streaming.v3 import (
    AsyncStreamingClient,
    StreamingClientOptions,
    StreamingEvents,
    StreamingParameters,
)
from assemblyai.streaming.v3.models import EventMessage, ForceEndpoint, KeepAlive, TerminateSession
from material import each_fixture, each_golden, json_of, judge
from strict import Json, check

from voicechart.adapters.providers.recognizers.assemblyai import API_VERSION
from voicechart.adapters.testing import ScriptedSocketServer, WireFixture
from voicechart.adapters.testing.recognition_servers import assemblyai_hears

pytestmark = pytest.mark.anyio


@each_fixture("assemblyai")
def test_what_the_scripted_server_says_is_what_the_vendor_declares(fixture: WireFixture) -> None:
    judge(fixture, lambda event: check(json_of(event), EventMessage))


@each_golden("assemblyai")
def test_what_we_send_is_what_the_vendor_declares(golden: dict[str, Json]) -> None:
    for frame in golden["frames"]:
        if isinstance(frame, dict):
            check(frame, ForceEndpoint | TerminateSession | KeepAlive, exact_types=True)
    check({name: value_of(text) for name, text in golden["query"].items()}, StreamingParameters)


def value_of(text: str) -> Json:
    """What their client makes a query of: JSON for lists and numbers, and names as they are."""
    try:
        return json.loads(text)
    except ValueError:
        return text


async def test_the_vendors_client_understands_the_scripted_server() -> None:
    server = ScriptedSocketServer(assemblyai_hears("Turn on"))
    seen: list[Json] = []
    ended = anyio.Event()

    def note(_: object, event: Json) -> None:
        seen.append(event)
        if event.type == "Turn" and event.turn_is_formatted:
            ended.set()

    async with server.running() as base_url:
        client = AsyncStreamingClient(StreamingClientOptions(api_key="k", api_host=base_url))
        for kind in (StreamingEvents.Begin, StreamingEvents.Turn, StreamingEvents.Termination, StreamingEvents.Error):
            client.on(kind, note)
        await client.connect(StreamingParameters(sample_rate=16_000, format_turns=True))
        await client.stream(bytes(32_000))
        await client.force_endpoint()
        with anyio.fail_after(10):
            await ended.wait()
        await client.disconnect(terminate=True)
    assert [event.type for event in seen] == ["Begin", "Turn", "Turn", "Turn", "Turn", "Termination"]
    assert [event.transcript for event in seen[1:-1]] == ["", "Turn", "Turn on", "Turn on"]
    peer = server.peers[0]
    assert peer.path == "/v3/ws"
    assert (peer.headers["authorization"], peer.headers["assemblyai-version"]) == ("k", API_VERSION)
    assert [message.json()["type"] for message in peer.received if message.is_text] == ["ForceEndpoint", "Terminate"]
