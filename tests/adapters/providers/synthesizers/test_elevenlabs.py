"""ElevenLabs: what its traps must come to, and what goes out to it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import anyio
import pytest
from pydantic import JsonValue

from voicechart.adapters.providers import Secrets
from voicechart.adapters.providers.synthesis import SpeechLimits
from voicechart.adapters.providers.synthesizers.elevenlabs import ElevenLabsVoice, make
from voicechart.adapters.testing import Refusal, ScriptedSocketServer, SocketPeer
from voicechart.adapters.testing.speech_peers import elevenlabs_audio, elevenlabs_voice
from voicechart.engines.ports import SpeechUnit, SynthesisRequest, Synthesizer
from voicechart.engines.reports import (
    PortError,
    SynthesisEnded,
    SynthesisErrored,
    SynthesisReport,
    SynthesisStopped,
    Synthesized,
    UnitSynthesized,
)

pytestmark = pytest.mark.anyio

Golden = Callable[[str, JsonValue], None]
Make = Callable[..., Synthesizer]
Speak = Callable[..., Awaitable[list[SynthesisReport]]]


@pytest.fixture
def voice(secrets: Secrets, numbered: Callable[[], str]) -> Make:
    def voice(url: str, limits: SpeechLimits | None = None, **settings: object) -> Synthesizer:
        chosen: dict[str, object] = {"kind": "elevenlabs", "voice_id": "vid", "api_key_env": "VOICE_KEY", **settings}
        return make(
            ElevenLabsVoice.model_validate({**chosen, "base_url": url}), secrets, limits=limits, new_id=numbered
        )

    return voice


def frames(peer: SocketPeer) -> list[JsonValue]:
    return [message.json() for message in peer.received]


async def test_what_is_sent_for_a_reply(voice: Make, speak: Speak, golden: Golden) -> None:
    server = ScriptedSocketServer(elevenlabs_voice())
    async with server.running() as url:
        synthesizer = voice(url, language="en", stability=0.5, similarity_boost=0.8, speed=1.1)
        await speak(synthesizer, "Hello there.", "Bye.")
        await synthesizer.aclose()
    (peer,) = server.peers
    assert peer.headers["xi-api-key"] == "sk-planted-0123456789"
    golden("elevenlabs/reply", {"path": peer.path, "query": {**peer.query}, "frames": frames(peer)})


async def test_trap_50_is_final_beside_audio_is_null_and_ends_nothing(voice: Make, speak: Speak) -> None:
    server = ScriptedSocketServer(elevenlabs_voice())
    async with server.running() as url:
        synthesizer = voice(url)
        reports = await speak(synthesizer, "One two three.")
        await synthesizer.aclose()
    assert len([report for report in reports if isinstance(report, UnitSynthesized)]) == 1
    assert isinstance(reports[-1], SynthesisEnded)


async def test_trap_51_a_unit_ends_by_closing_its_context_because_a_flush_ends_nothing(voice: Make) -> None:
    ended = anyio.Event()

    async def script(peer: SocketPeer) -> None:
        await peer.expect({"text": "Hi. ", "context_id": "id-1"})
        await peer.expect({"flush": True, "context_id": "id-1"})
        for audio in elevenlabs_audio("id-1", "Hi.", 0):
            await peer.send_json(audio)
        await peer.expect({"close_context": True, "context_id": "id-1"})
        await ended.wait()
        await peer.send_json({"isFinal": True, "contextId": "id-1"})

    async with ScriptedSocketServer(script).running() as url:
        synthesizer = voice(url)
        stream = await synthesizer.open(SynthesisRequest("r", 1))
        await stream.write(SpeechUnit(0, "Hi."))
        reports = stream.reports()
        with anyio.fail_after(10):
            said = await anext(reports)
            while isinstance(said, Synthesized) and said.frame.end_sample < 60 * 24:
                said = await anext(reports)
            assert isinstance(said, Synthesized), "the unit ended although its context had not"
            ended.set()
            unit = await anext(reports)
        assert isinstance(unit, UnitSynthesized)
        assert (unit.start_sample, unit.end_sample) == (0, 60 * 24)
        await stream.aclose()
        await synthesizer.aclose()


async def test_trap_52_no_context_is_opened_by_ending_it_and_few_are_open_at_once(voice: Make, speak: Speak) -> None:
    most = 0

    async def script(peer: SocketPeer) -> None:
        nonlocal most
        opened: list[str] = []
        closing: list[str] = []
        while True:
            # Two at a time, so that whatever is sent ahead has been sent.
            message = (await peer.expect(str)).json()
            context_id = str(message["context_id"])
            if "text" in message:
                assert context_id not in opened
                opened.append(context_id)
            assert context_id in opened, "a phantom context"
            if message.get("close_context"):
                closing.append(context_id)
                most = max(most, len(opened) - (len(closing) - 1))
                await peer.send_json(next(elevenlabs_audio(context_id, "Hi.", 0)))
                await peer.send_json({"isFinal": True, "contextId": context_id})

    server = ScriptedSocketServer(script)
    async with server.running() as url:
        synthesizer = voice(url)
        reports = await speak(synthesizer, *["Hi."] * 8)
        assert isinstance(reports[-1], SynthesisEnded)
        stream = await synthesizer.open(SynthesisRequest("r", 1))
        stream.cancel("barge-in")
        await stream.aclose()
        await synthesizer.aclose()
    assert most <= 2
    assert len(frames(server.peers[0])) == 8 * 3


async def test_trap_53_a_socket_that_timed_out_while_nothing_was_to_be_said_is_replaced(voice: Make) -> None:
    async def timing_out(peer: SocketPeer) -> None:
        await peer.skip_to({"close_context": True})
        await peer.send_json(next(elevenlabs_audio("id-1", "Hi.", 0)))
        await peer.send_json({"isFinal": True, "contextId": "id-1"})
        await peer.close(1008, "Input timeout exceeded")

    server = ScriptedSocketServer(timing_out, elevenlabs_voice())
    async with server.running() as url:
        synthesizer = voice(url)
        stream = await synthesizer.open(SynthesisRequest("r", 1))
        await stream.write(SpeechUnit(0, "Hi."))
        reports = stream.reports()
        with anyio.fail_after(10):
            while not isinstance(await anext(reports), UnitSynthesized):
                pass
            await server.has_connections(0)
            await stream.write(SpeechUnit(1, "Bye."))
            await stream.finish_input()
            rest = [report async for report in reports]
        await stream.aclose()
        await synthesizer.aclose()
    assert isinstance(rest[-1], SynthesisEnded)
    assert [report.start_sample for report in rest if isinstance(report, UnitSynthesized)] == [60 * 24]


async def test_trap_54_one_writer_whoever_hands_in_text(voice: Make) -> None:
    server = ScriptedSocketServer(elevenlabs_voice())
    async with server.running() as url:
        synthesizer = voice(url)
        stream = await synthesizer.open(SynthesisRequest("r", 1))
        async with anyio.create_task_group() as writers:
            for index in range(5):
                writers.start_soon(stream.write, SpeechUnit(index, f"Unit {index}."))
        await stream.finish_input()
        with anyio.fail_after(10):
            reports = [report async for report in stream.reports()]
        await stream.aclose()
        await synthesizer.aclose()
    assert isinstance(reports[-1], SynthesisEnded)
    sent = [message.json() for message in server.peers[0].received]
    kinds = ["text" if "text" in one else "flush" if "flush" in one else "close" for one in sent]
    assert kinds == ["text", "flush", "close"] * 5
    assert [one["context_id"] for one in sent] == [f"id-{place // 3 + 1}" for place in range(15)]


async def test_a_cancel_closes_the_socket_and_the_next_reply_finds_another_one_ready(voice: Make, speak: Speak) -> None:
    async def unfinished(peer: SocketPeer) -> None:
        await peer.skip_to({"close_context": True})
        for audio in elevenlabs_audio("id-1", "Word after word after word.", 0):
            await peer.send_json(audio)
        await peer.hung_up()

    server = ScriptedSocketServer(unfinished, elevenlabs_voice())
    async with server.running() as url:
        synthesizer = voice(url)
        await synthesizer.prepare()
        stream = await synthesizer.open(SynthesisRequest("r", 1))
        await stream.write(SpeechUnit(0, "Word after word after word."))
        reports = stream.reports()
        with anyio.fail_after(10):
            assert isinstance(await anext(reports), Synthesized)
            stream.cancel("barge-in")
            assert [report async for report in reports] == [SynthesisStopped()]
            await stream.aclose()
            await server.has_requests(2)  # before anybody asks for it
            assert await server.peers[0].hung_up() == 1000
        assert isinstance((await speak(synthesizer, "Hi."))[-1], SynthesisEnded)
        await synthesizer.aclose()
    assert len(server.peers) == 2


async def test_replies_share_a_socket_and_another_voice_has_its_own(voice: Make, speak: Speak) -> None:
    server = ScriptedSocketServer(elevenlabs_voice(), elevenlabs_voice())
    async with server.running() as url:
        synthesizer = voice(url)
        await synthesizer.prepare()
        await speak(synthesizer, "Hi.")
        await speak(synthesizer, "Bye.")
        await speak(synthesizer, "Hi.", voice="a b/c")
        await synthesizer.aclose()
        await server.has_connections(0)
    assert [peer.path for peer in server.peers] == [
        "/v1/text-to-speech/vid/multi-stream-input",
        "/v1/text-to-speech/a%20b%2Fc/multi-stream-input",
    ]


async def test_a_key_that_is_refused_shows_before_anybody_speaks(voice: Make) -> None:
    async with ScriptedSocketServer(Refusal(401, body=b'{"detail": {"status": "invalid_api_key"}}')).running() as url:
        synthesizer = voice(url)
        with pytest.raises(PortError, match="auth_refused") as refused:
            await synthesizer.prepare()
        await synthesizer.aclose()
    assert not refused.value.error.retryable
    assert "planted" not in f"{refused.value!r} {refused.value.error!r} {refused.value.__cause__!r}"


async def test_a_provider_that_says_much_but_speaks_nothing_is_silent(voice: Make, speak: Speak) -> None:
    async def chatter(peer: SocketPeer) -> None:
        while True:
            await peer.send_json({"hello": "again"})
            await anyio.sleep(0.005)

    async with ScriptedSocketServer(chatter).running() as url:
        synthesizer = voice(url, SpeechLimits(silence_s=0.1))
        (ended,) = await speak(synthesizer, "Hi.")
        await synthesizer.aclose()
    assert isinstance(ended, SynthesisErrored)
    assert (ended.error.code, ended.error.retryable) == ("provider_silent", True)


async def test_a_message_beyond_the_size_limit_ends_the_reply(voice: Make, speak: Speak) -> None:
    async def huge(peer: SocketPeer) -> None:
        await peer.skip_to({"close_context": True})
        await peer.send_json({"audio": "A" * (5 << 20), "contextId": "id-1"})

    async with ScriptedSocketServer(huge).running() as url:
        synthesizer = voice(url)
        (ended,) = await speak(synthesizer, "Hi.")
        await synthesizer.aclose()
    assert isinstance(ended, SynthesisErrored)
    assert ended.error.code == "message_too_large"
