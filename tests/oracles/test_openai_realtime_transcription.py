"""OpenAI's realtime transcription, judged by openai."""

from __future__ import annotations

import base64

import pytest
from material import each_fixture, each_golden, json_of, judge
from openai import AsyncOpenAI
from openai.types.realtime import RealtimeClientEvent, RealtimeServerEvent
from strict import Json, check

from voicechart.adapters.testing import ScriptedSocketServer, WireFixture
from voicechart.adapters.testing.recognition_servers import openai_realtime_hears

pytestmark = pytest.mark.anyio


@each_fixture("openai-realtime-transcription")
def test_what_the_scripted_server_says_is_what_the_vendor_declares(fixture: WireFixture) -> None:
    # `object` and `id` of a session stand in the documentation, and not in the type of what may be asked for.
    judge(fixture, lambda event: check(json_of(event), RealtimeServerEvent, besides=frozenset({"object", "id"})))


@each_golden("openai-realtime-transcription")
def test_what_we_send_is_what_the_vendor_declares(golden: dict[str, Json]) -> None:
    for frame in golden["frames"]:
        check(frame, RealtimeClientEvent, exact_types=True)


async def test_the_vendors_client_understands_the_scripted_server() -> None:
    server = ScriptedSocketServer(openai_realtime_hears("Turn on"))
    seen: list[Json] = []
    async with (
        server.running() as base_url,
        AsyncOpenAI(api_key="k", websocket_base_url=f"{base_url}/v1") as client,
        client.realtime.connect(extra_query={"intent": "transcription"}) as session,
    ):
        seen.append(await session.recv())
        await session.session.update(
            session={
                "type": "transcription",
                "audio": {"input": {"transcription": {"model": "gpt-live-transcribe"}, "turn_detection": None}},
            }
        )
        seen.append(await session.recv())
        await session.input_audio_buffer.append(audio=base64.b64encode(bytes(48_000)).decode())
        seen.extend([await session.recv(), await session.recv()])
        await session.input_audio_buffer.commit()
        seen.extend([await session.recv(), await session.recv()])
    prefix = "conversation.item.input_audio_transcription"
    assert [event.type for event in seen] == [
        "session.created",
        "session.updated",
        f"{prefix}.delta",
        f"{prefix}.delta",
        "input_audio_buffer.committed",
        f"{prefix}.completed",
    ]
    assert seen[-1].transcript == "Turn on"
    peer = server.peers[0]
    assert (peer.path, peer.query) == ("/v1/realtime", {"intent": "transcription"})
    assert peer.headers["authorization"] == "Bearer k"
    assert "openai-beta" not in peer.headers
