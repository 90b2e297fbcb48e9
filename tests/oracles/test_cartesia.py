"""Cartesia's /tts/websocket, judged by cartesia."""

from __future__ import annotations

import pytest
from cartesia import AsyncCartesia
from cartesia.types import WebsocketClientEvent, WebsocketResponse
from material import each_fixture, each_golden, json_of, judge
from strict import Json, check

from voicechart.adapters.providers.synthesizers.cartesia import API_VERSION
from voicechart.adapters.testing import ScriptedSocketServer, WireEvent, WireFixture
from voicechart.adapters.testing.speech_peers import cartesia_voice

pytestmark = pytest.mark.anyio


@each_fixture("cartesia")
def test_what_the_scripted_server_says_is_what_the_vendor_declares(fixture: WireFixture) -> None:
    def is_a_message(event: WireEvent) -> None:
        check(json_of(event), WebsocketResponse)

    judge(fixture, is_a_message)


@each_golden("cartesia")
def test_what_we_send_is_what_the_vendor_declares(golden: dict[str, Json]) -> None:
    assert golden["headers"] == {"cartesia-version": API_VERSION}
    for frame in golden["frames"]:
        check(frame, WebsocketClientEvent, exact_types=True)


async def test_the_vendors_client_understands_the_scripted_server() -> None:
    server = ScriptedSocketServer(cartesia_voice())
    async with (
        server.running() as url,
        AsyncCartesia(api_key="k", base_url=url.replace("ws", "http", 1), websocket_base_url=url) as client,
        client.tts.websocket_connect() as connection,
    ):
        request: Json = {
            "model_id": "sonic-3",
            "transcript": "Hi there.",
            "voice": {"mode": "id", "id": "v"},
            "output_format": {"container": "raw", "encoding": "pcm_s16le", "sample_rate": 24_000},
            "context_id": "c1",
            "flush": True,
            "continue": False,
        }
        await connection.send(request)
        said = []
        while not said or said[-1].type != "done":
            said.append(await connection.recv())
    kinds = [event.type for event in said]
    assert (kinds[0], kinds[-2:]) == ("chunk", ["flush_done", "done"])
    (times,) = (event.word_timestamps for event in said if event.type == "timestamps")
    assert times.words == ["Hi", "there."]
    assert server.peers[0].headers["cartesia-version"] == API_VERSION
