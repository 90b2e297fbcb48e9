"""OpenAI Realtime, judged by openai."""

from __future__ import annotations

import base64

import pytest
from material import each_fixture, each_golden, json_of, judge
from openai import AsyncOpenAI
from openai.types.realtime import RealtimeClientEvent, RealtimeServerEvent
from strict import Json, Refused, check

from voicechart.adapters.testing import ScriptedSocketServer, WireFixture
from voicechart.adapters.testing.realtime_servers import RealtimeVoice, Says

pytestmark = pytest.mark.anyio

DOCUMENTED = frozenset({"object", "id"})
"""Of a session: they stand in the documentation, and not in the type of what may be asked for."""


@each_fixture("openai-realtime")
def test_what_the_scripted_server_says_is_what_the_vendor_declares(fixture: WireFixture) -> None:
    judge(fixture, lambda event: check(json_of(event), RealtimeServerEvent, besides=DOCUMENTED))


@each_golden("openai-realtime")
def test_what_we_send_is_what_the_vendor_declares(golden: dict[str, Json]) -> None:
    for frame in golden["frames"]:
        check(frame, RealtimeClientEvent, exact_types=True)


@pytest.mark.parametrize("end_ms", ["1200", 1200.0, 1200.5])
def test_a_cut_at_anything_but_a_whole_number_would_be_seen(end_ms: object) -> None:
    """Trap 13: lax types take them."""
    message = {"type": "conversation.item.truncate", "item_id": "i", "content_index": 0, "audio_end_ms": end_ms}
    with pytest.raises(Refused):
        check(message, RealtimeClientEvent, exact_types=True)


async def test_the_vendors_client_talks_to_the_scripted_server() -> None:
    """A turn, an answer with a tool, a second one that is cancelled and cut; and every rule that the server keeps."""
    voice = RealtimeVoice(
        Says("It is noon.", 400, calls=(("call_1", "weather", '{"city":"Oslo"}'),)),
        Says("A long story.", 2_000, goes_on=True),
        hears=("what time is it",),
    )
    server = ScriptedSocketServer(voice)
    seen: list[Json] = []
    async with (
        server.running() as base_url,
        AsyncOpenAI(api_key="k", websocket_base_url=f"{base_url}/v1") as client,
        client.realtime.connect(model="gpt-realtime-2.1") as session,
    ):

        async def until(kind: str) -> Json:
            while True:
                event = await session.recv()
                seen.append(event.model_dump(exclude_unset=True, by_alias=True))
                if event.type == kind:
                    return event

        await until("session.created")
        heard = {"transcription": {"model": "gpt-live-transcribe"}, "turn_detection": None}
        await session.session.update(session={"type": "realtime", "audio": {"input": heard}})
        await until("session.updated")
        await session.response.cancel()
        assert (await until("error")).error.code == "response_cancel_not_active"
        await session.input_audio_buffer.commit()
        assert (await until("error")).error.code == "input_audio_buffer_commit_empty"
        await session.input_audio_buffer.append(audio=base64.b64encode(bytes(9_600)).decode())
        await session.input_audio_buffer.commit()
        done = await until("conversation.item.input_audio_transcription.completed")
        assert done.transcript == "what time is it"
        await session.response.create()
        first = (await until("response.done")).response
        assert (first.status, first.output[-1].arguments) == ("completed", '{"city":"Oslo"}')
        output = {"type": "function_call_output", "call_id": "call_1", "output": "rain"}
        await session.conversation.item.create(item=output)
        await session.response.create()
        item_id = (await until("response.output_audio.delta")).item_id
        await session.response.create()
        assert (await until("error")).error.code == "conversation_already_has_active_response"
        await session.response.cancel()
        assert (await until("response.done")).response.status_details.reason == "client_cancelled"
        await session.conversation.item.truncate(item_id=item_id, content_index=0, audio_end_ms=9_999)
        assert (await until("error")).error.code == "invalid_value"
        await session.conversation.item.truncate(item_id=item_id, content_index=0, audio_end_ms=300)
        assert (await until("conversation.item.truncated")).audio_end_ms == 300
        await session.conversation.item.delete(item_id=item_id)
        await until("conversation.item.deleted")
    for event in seen:
        check(event, RealtimeServerEvent, besides=DOCUMENTED)
    assert voice.believed_ms == {next(iter(voice.spoken_ms)): 400}
    peer = server.peers[0]
    assert (peer.path, peer.query) == ("/v1/realtime", {"model": "gpt-realtime-2.1"})
    assert peer.headers["authorization"] == "Bearer k"
    assert "openai-beta" not in peer.headers
