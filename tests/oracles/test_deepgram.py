"""Deepgram's listen v1, judged by deepgram-sdk."""

from __future__ import annotations

import inspect

import pytest
from deepgram import AsyncDeepgramClient
from deepgram.environment import DeepgramClientEnvironment
from deepgram.listen.v1.client import AsyncV1Client
from deepgram.listen.v1.socket_client import V1SocketClientResponse
from deepgram.listen.v1.types import ListenV1CloseStream, ListenV1Finalize, ListenV1KeepAlive
from material import each_fixture, each_golden, json_of, judge
from strict import Json, check

from voicechart.adapters.testing import ScriptedSocketServer, WireFixture
from voicechart.adapters.testing.recognition_servers import deepgram_hears

pytestmark = pytest.mark.anyio

CLIENT = ListenV1Finalize | ListenV1CloseStream | ListenV1KeepAlive


@each_fixture("deepgram")
def test_what_the_scripted_server_says_is_what_the_vendor_declares(fixture: WireFixture) -> None:
    judge(fixture, lambda event: check(json_of(event), V1SocketClientResponse))


@each_golden("deepgram")
def test_what_we_send_is_what_the_vendor_declares(golden: dict[str, Json]) -> None:
    for frame in golden["frames"]:
        if isinstance(frame, dict):
            check(frame, CLIENT, exact_types=True)
    assert set(golden["query"]) <= set(inspect.signature(AsyncV1Client.connect).parameters)


def test_our_keep_alive_is_what_the_vendor_declares() -> None:
    check({"type": "KeepAlive"}, CLIENT, exact_types=True)


async def test_the_vendors_client_understands_the_scripted_server() -> None:
    server = ScriptedSocketServer(deepgram_hears("Turn on"))
    async with server.running() as base_url:
        http = base_url.replace("ws:", "http:")
        environment = DeepgramClientEnvironment(base=http, production=base_url, agent=base_url, agent_rest=http)
        client = AsyncDeepgramClient(api_key="k", environment=environment)
        async with client.listen.v1.connect(
            model="nova-3", encoding="linear16", sample_rate=16_000, interim_results=True
        ) as session:
            await session.send_media(bytes(32_000))
            await session.send_keep_alive()
            await session.send_finalize()
            await session.send_close_stream()
            seen = [message async for message in session]
    results = [message for message in seen if message.type == "Results"]
    assert [message.channel.alternatives[0].transcript for message in results] == ["Turn", "Turn on", "Turn on"]
    assert (results[-1].is_final, results[-1].from_finalize) == (True, True)
    assert seen[-1].type == "Metadata"
    # The same address, the same header and the same words as ours.
    peer = server.peers[0]
    assert peer.path == "/v1/listen"
    assert peer.headers["authorization"] == "Token k"
    sent = [message.json()["type"] for message in peer.received if message.is_text]
    assert sent == ["KeepAlive", "Finalize", "CloseStream"]
