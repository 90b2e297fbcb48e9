"""/audio/speech, judged by openai."""

from __future__ import annotations

import pytest
from material import FIXTURES, each_fixture, each_golden
from openai import AsyncOpenAI
from openai.types.audio.speech_create_params import SpeechCreateParams
from strict import Json, check

from voicechart.adapters.testing import HttpExchange, ScriptedHttpServer, WireFixture

pytestmark = pytest.mark.anyio


@each_fixture("openai-speech")
def test_what_the_scripted_server_says_is_bare_audio_or_an_error(fixture: WireFixture) -> None:
    assert all(event.binary is not None for event in fixture.events)
    assert fixture.status == 200 or fixture.body is not None


@each_golden("openai-speech")
def test_what_we_ask_is_what_the_vendor_declares(golden: dict[str, Json]) -> None:
    assert (golden["method"], golden["path"]) == ("POST", "/v1/audio/speech")
    check(golden["body"], SpeechCreateParams, exact_types=True)


async def test_the_vendors_client_understands_the_scripted_server() -> None:
    fixture = FIXTURES["openai/speech/speech"]
    pieces = [event.content for event in fixture.events]
    server = ScriptedHttpServer({"/audio/speech": [HttpExchange(pieces, headers=fixture.headers)]})
    async with (
        server.running() as base_url,
        AsyncOpenAI(api_key="k", base_url=base_url, max_retries=0) as client,
        client.audio.speech.with_streaming_response.create(
            model="gpt-4o-mini-tts", voice="alloy", input="Hi.", response_format="pcm"
        ) as response,
    ):
        heard = b"".join([piece async for piece in response.iter_bytes()])
    assert heard == b"".join(pieces)
    assert server.requests[0].path == "/v1/audio/speech"
