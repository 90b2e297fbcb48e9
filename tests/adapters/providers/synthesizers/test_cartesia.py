"""Cartesia: what its traps must come to, and what goes out to it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import anyio
import anyio.lowlevel
import pytest
from pydantic import JsonValue

from voicechart.adapters.providers import Secrets
from voicechart.adapters.providers.synthesizers.cartesia import CartesiaVoice, make
from voicechart.adapters.testing import ScriptedSocketServer, SocketPeer
from voicechart.adapters.testing.speech_peers import cartesia_audio, cartesia_voice
from voicechart.engines.ports import SpeechUnit, SynthesisRequest, Synthesizer
from voicechart.engines.reports import (
    SynthesisEnded,
    SynthesisErrored,
    SynthesisReport,
    SynthesisStopped,
    Synthesized,
    UnitSynthesized,
)

pytestmark = pytest.mark.anyio

Make = Callable[..., Synthesizer]
Speak = Callable[..., Awaitable[list[SynthesisReport]]]


@pytest.fixture
def voice(secrets: Secrets, numbered: Callable[[], str]) -> Make:
    def voice(url: str, **settings: object) -> Synthesizer:
        chosen: dict[str, object] = {"kind": "cartesia", "voice_id": "vid", "api_key_env": "VOICE_KEY", **settings}
        return make(CartesiaVoice.model_validate({**chosen, "base_url": url}), secrets, new_id=numbered)

    return voice


async def test_what_is_sent_for_a_reply_and_for_a_cancelled_one(
    voice: Make, speak: Speak, golden: Callable[[str, JsonValue], None]
) -> None:
    cancelled = anyio.Event()

    async def script(peer: SocketPeer) -> None:
        for number, text in enumerate(("Hello there.", "Bye.")):
            await peer.skip_to({"flush": True})
            for event in cartesia_audio("id-1", number + 1, text, number):
                await peer.send_json(event)
        await peer.expect({"continue": False})
        await peer.skip_to({"cancel": True})
        cancelled.set()

    server = ScriptedSocketServer(script)
    async with server.running() as url:
        synthesizer = voice(url, language="en")
        reports = await speak(synthesizer, "Hello there.", "Bye.")
        assert isinstance(reports[-1], SynthesisEnded)
        stream = await synthesizer.open(SynthesisRequest("r", 2))
        await stream.write(SpeechUnit(0, "Never heard."))
        with anyio.fail_after(10):
            while len(server.peers[0].received) < 7:
                await anyio.lowlevel.checkpoint()
            await stream.aclose()
            await cancelled.wait()
        await synthesizer.aclose()
    (peer,) = server.peers
    assert peer.headers["authorization"] == "Bearer sk-planted-0123456789"
    sent: JsonValue = {
        "path": peer.path,
        "headers": {"cartesia-version": peer.headers["cartesia-version"]},
        "frames": [message.json() for message in peer.received],
    }
    golden("cartesia/replies", sent)


async def test_trap_55_a_cancelled_context_may_go_on_and_is_fenced_by_its_id(voice: Make, speak: Speak) -> None:
    async def script(peer: SocketPeer) -> None:
        await peer.skip_to({"flush": True, "context_id": "id-1"})
        running = list(cartesia_audio("id-1", 1, "A long story about something.", 7))
        await peer.send_json(running[0])
        await peer.skip_to({"cancel": True, "context_id": "id-1"})
        await peer.skip_to({"flush": True, "context_id": "id-2"})
        new = list(cartesia_audio("id-2", 1, "Hi.", 1))
        for late, event in zip(running[1 : 1 + len(new)], new, strict=True):
            await peer.send_json(late)
            await peer.send_json(event)
        await peer.send_json(running[-1])
        await peer.send_json({"type": "done", "context_id": "id-1", "done": True, "status_code": 200})
        await peer.hung_up()

    server = ScriptedSocketServer(script)
    async with server.running() as url:
        synthesizer = voice(url)
        stream = await synthesizer.open(SynthesisRequest("r", 1))
        await stream.write(SpeechUnit(0, "A long story about something."))
        reports = stream.reports()
        with anyio.fail_after(10):
            assert isinstance(await anext(reports), Synthesized)
            stream.cancel("barge-in")
            assert [report async for report in reports] == [SynthesisStopped()]
            await stream.aclose()
        heard = await speak(synthesizer, "Hi.")
        await synthesizer.aclose()
    assert len(server.peers) == 1, "the socket serves on"
    pcm = b"".join(report.frame.data for report in heard if isinstance(report, Synthesized))
    assert pcm == b"\x02\x00" * (60 * 24)


async def test_trap_56_an_error_without_a_context_is_the_connections(voice: Make, speak: Speak) -> None:
    async def script(peer: SocketPeer) -> None:
        await peer.skip_to({"flush": True})
        await peer.send_json({"type": "error", "done": True, "status_code": 500, "error_code": "internal_error"})

    server = ScriptedSocketServer(script, cartesia_voice())
    async with server.running() as url:
        synthesizer = voice(url)
        (ended,) = await speak(synthesizer, "Hi.")
        assert isinstance(ended, SynthesisErrored)
        assert (ended.error.code, ended.error.retryable) == ("provider_unavailable", True)
        assert isinstance((await speak(synthesizer, "Hi."))[-1], SynthesisEnded)
        await synthesizer.aclose()
    assert len(server.peers) == 2, "nothing more is said on that socket"


async def test_after_a_pause_the_next_unit_begins_another_context(voice: Make) -> None:
    server = ScriptedSocketServer(cartesia_voice())
    async with server.running() as url:
        synthesizer = voice(url)
        stream = await synthesizer.open(SynthesisRequest("r", 1))
        reports = stream.reports()
        with anyio.fail_after(10):
            for index in range(2):
                await stream.write(SpeechUnit(index, "Hi there."))
                while not isinstance(spoken := await anext(reports), UnitSynthesized):
                    pass
                assert [word.text for word in spoken.words] == ["Hi", "there."]
                assert spoken.words[0].start_sample == spoken.start_sample
        await stream.aclose()
        await synthesizer.aclose()
    asked = [message.json() for message in server.peers[0].received]
    assert {str(one["context_id"]) for one in asked if one.get("transcript")} == {"id-1", "id-2"}


async def test_without_word_times_none_are_asked_for_and_none_are_promised(voice: Make, speak: Speak) -> None:
    server = ScriptedSocketServer(cartesia_voice())
    async with server.running() as url:
        synthesizer = voice(url, word_times=False)
        assert not synthesizer.capabilities.alignment
        await speak(synthesizer, "Hi.")
        await synthesizer.aclose()
    assert "add_timestamps" not in server.peers[0].received[0].json()
