"""What every message of a vendor's voice becomes: each fixture, played by a scripted server to the adapter."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from itertools import count
from pathlib import Path

import anyio
import pytest
from pydantic import JsonValue

from voicechart.adapters.providers import Secrets
from voicechart.adapters.providers.synthesizers import cartesia, dashscope_speech, elevenlabs, openai_speech
from voicechart.adapters.testing import (
    HttpExchange,
    ScriptedHttpServer,
    ScriptedSocketServer,
    WireFixture,
    load_fixtures,
)
from voicechart.engines.ports import SpeechUnit, SynthesisRequest, Synthesizer
from voicechart.engines.reports import (
    PortError,
    SynthesisErrored,
    SynthesisReport,
    Synthesized,
    UnitSynthesized,
)

pytestmark = pytest.mark.anyio

KEY = "sk-planted-0123456789"
SECRETS = Secrets({"VOICE_KEY": KEY})
DEADLINE_S = 10.0
PROTOCOLS = ("elevenlabs", "cartesia", "dashscope-speech", "openai-speech")
FIXTURES = {
    name: fixture
    for name, fixture in load_fixtures(Path(__file__).parent / "fixtures").items()
    if fixture.protocol in PROTOCOLS
}


def make(fixture: WireFixture, url: str) -> Synthesizer:
    numbers = count(1)

    def new_id() -> str:
        return f"id-{next(numbers)}"

    match fixture.protocol:
        case "elevenlabs":
            eleven = elevenlabs.ElevenLabsVoice(
                kind="elevenlabs", voice_id="v", model=fixture.model, api_key_env="VOICE_KEY", base_url=url
            )
            return elevenlabs.make(eleven, SECRETS, new_id=new_id)
        case "cartesia":
            sonic = cartesia.CartesiaVoice(
                kind="cartesia", voice_id="v", model=fixture.model, api_key_env="VOICE_KEY", base_url=url
            )
            return cartesia.make(sonic, SECRETS, new_id=new_id)
        case "dashscope-speech":
            dash = dashscope_speech.DashScopeVoice(
                kind="dashscope-speech", voice="v", model=fixture.model, api_key_env="VOICE_KEY", base_url=url
            )
            return dashscope_speech.make(dash, SECRETS, new_id=new_id)
        case _:
            spoken = openai_speech.OpenAISpeechVoice(
                kind="openai-speech", base_url=url, api_key_env="VOICE_KEY", streaming=True
            )
            return openai_speech.make(spoken, SECRETS)


def server(fixture: WireFixture) -> AbstractAsyncContextManager[str]:
    if fixture.protocol != "openai-speech":
        return ScriptedSocketServer(fixture.script()).running()
    if fixture.body is not None:
        exchange = fixture.exchange()
    else:
        pieces = [event.content for event in fixture.events]
        exchange = HttpExchange(pieces, fixture.status, fixture.headers, fixture.ends == "whole")
    return ScriptedHttpServer({"/audio/speech": [exchange]}).running()


@pytest.mark.parametrize("fixture", [pytest.param(fixture, id=name) for name, fixture in FIXTURES.items()])
async def test_a_fixture_becomes_the_reports_that_it_names(fixture: WireFixture) -> None:
    async with server(fixture) as url:
        synthesizer = make(fixture, url)
        try:
            reports = await played(synthesizer, fixture.texts)
        finally:
            await synthesizer.aclose()
    seen = [shown(report) for report in reports]
    assert [restricted(one, expected) for one, expected in zip(seen, fixture.expected, strict=False)] == list(
        fixture.expected
    )
    assert len(seen) == len(fixture.expected), seen
    assert KEY not in str(reports)


async def played(synthesizer: Synthesizer, texts: tuple[str, ...]) -> list[SynthesisReport | PortError]:
    with anyio.fail_after(DEADLINE_S):
        try:
            stream = await synthesizer.open(SynthesisRequest("r1", 1))
        except PortError as refused:
            return [refused]
        try:
            for index, text in enumerate(texts):
                await stream.write(SpeechUnit(index, text))
            await stream.finish_input()
            return [report async for report in stream.reports()]
        finally:
            await stream.aclose()


def shown(report: SynthesisReport | PortError) -> dict[str, JsonValue]:
    """A report as fixtures write it: words as [text, start, end]."""
    kind: dict[str, JsonValue] = {"report": "PortError" if isinstance(report, PortError) else type(report).__name__}
    if isinstance(report, PortError | SynthesisErrored):
        error = report.error
        return kind | {
            "code": error.code,
            "scope": error.scope.value,
            "retryable": error.retryable,
            "retry_after_ms": error.retry_after_ms,
            "partial_output": error.partial_output,
        }
    if isinstance(report, Synthesized | UnitSynthesized):
        kind |= {"words": [[word.text, word.start_sample, word.end_sample] for word in report.words]}
        kind |= {"unit_index": report.unit_index}
    if isinstance(report, Synthesized):
        return kind | {"start_sample": report.frame.start_sample, "samples": report.frame.samples}
    if isinstance(report, UnitSynthesized):
        kind |= {"start_sample": report.start_sample}
    return kind | {"end_sample": getattr(report, "end_sample", None)}


def restricted(seen: Mapping[str, JsonValue], expected: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """What was seen, as far as the fixture says anything about it."""
    return {name: value for name, value in seen.items() if name in expected}
