"""`/audio/transcriptions`, judged by openai."""

from __future__ import annotations

import pytest
from material import FIXTURES, each_fixture, each_golden, json_of, judge
from openai import AsyncOpenAI
from openai.types.audio import Transcription, TranscriptionStreamEvent, TranscriptionVerbose
from openai.types.audio.transcription_create_params import (
    TranscriptionCreateParamsNonStreaming,
    TranscriptionCreateParamsStreaming,
)
from strict import Json, check

from voicechart.adapters.testing import ScriptedHttpServer, WireFixture

pytestmark = pytest.mark.anyio

WAV = ("speech.wav", b"RIFF", "audio/wav")


@each_fixture("openai-transcriptions")
def test_what_the_scripted_server_says_is_what_the_vendor_declares(fixture: WireFixture) -> None:
    judge(fixture, lambda event: check(json_of(event), TranscriptionStreamEvent))
    if fixture.status == 200 and fixture.body is not None and "txt" not in fixture.body:
        # Their client reads `task`, which the type does not name.
        check(fixture.body, Transcription | TranscriptionVerbose, besides=frozenset({"task"}))


@each_golden("openai-transcriptions")
def test_what_we_send_is_what_the_vendor_declares(golden: dict[str, Json]) -> None:
    assert (golden["method"], golden["path"]) == ("POST", "/v1/audio/transcriptions")
    form = {**golden["form"], "file": b""}
    if "temperature" in form:
        form["temperature"] = float(form["temperature"])
    if "timestamp_granularities[]" in form:
        form["timestamp_granularities"] = [form.pop("timestamp_granularities[]")]
    file = form.pop("file")
    assert file == b""
    streams = form.pop("stream", None) == "true"
    wanted = TranscriptionCreateParamsStreaming if streams else TranscriptionCreateParamsNonStreaming
    known = set(wanted.__annotations__) | {
        key for base in wanted.__orig_bases__ for key in getattr(base, "__annotations__", {})
    }
    assert set(form) <= known


async def test_the_vendors_client_understands_the_scripted_server() -> None:
    server = ScriptedHttpServer(
        {
            "/audio/transcriptions": [
                FIXTURES["openai/transcriptions/in-pieces"].exchange(),
                FIXTURES["openai/transcriptions/whole"].exchange(),
            ]
        }
    )
    async with (
        server.running() as base_url,
        AsyncOpenAI(api_key="k", base_url=base_url, max_retries=0) as client,
    ):
        pieces = await client.audio.transcriptions.create(model="gpt-transcribe", file=WAV, stream=True)
        seen = [event async for event in pieces]
        whole = await client.audio.transcriptions.create(model="gpt-transcribe", file=WAV)
    assert [event.type for event in seen] == ["transcript.text.delta", "transcript.text.delta", "transcript.text.done"]
    assert (seen[-1].text, whole.text) == ("Turn on.", " Turn on.")
    assert server.requests[0].path == "/v1/audio/transcriptions"
    assert b'name="stream"\r\n\r\ntrue\r\n' in server.requests[0].body
