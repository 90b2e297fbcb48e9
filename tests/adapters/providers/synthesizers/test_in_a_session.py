"""ElevenLabs' protocol under the real cascade engine, over a real socket: an interruption in the middle."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from itertools import count

import anyio
import pytest

from voicechart.adapters.providers import Secrets
from voicechart.adapters.providers.synthesizers import cartesia, dashscope_speech
from voicechart.adapters.providers.synthesizers.elevenlabs import ElevenLabsVoice, make
from voicechart.adapters.testing import ClientGone, ScriptedSocketServer, SocketPeer
from voicechart.adapters.testing.speech_peers import Script as Plays
from voicechart.adapters.testing.speech_peers import (
    cartesia_voice,
    cosyvoice_voice,
    elevenlabs_audio,
    elevenlabs_voice,
    qwen_voice,
)
from voicechart.engines.history import Cut
from voicechart.engines.ports import Synthesizer
from voicechart.engines.testing import Rehearsal, Script, ScriptedDevice, ScriptedResponder, says
from voicechart.statecharts.values import DeliveryStatus

pytestmark = pytest.mark.anyio

FIRST = "Once upon a time."
SECOND = "There was a clock that told the time to nobody at all."
OLD, LATE, NEW = 3, 6, 0
"""What the sound of a unit is made of: `speech_peers` plays the number plus one."""
MS_PER_CHAR = 25


async def test_nothing_of_an_interrupted_reply_is_heard_and_its_socket_is_closed(secrets: Secrets) -> None:
    """The second unit is half made when the button is pressed; what the provider says from then on is nobody's."""
    interrupted = anyio.Event()
    late_messages = 0

    async def half_a_story(peer: SocketPeer) -> None:
        nonlocal late_messages
        await peer.skip_to({"close_context": True})
        for audio in elevenlabs_audio("id-1", FIRST, OLD, MS_PER_CHAR):
            await peer.send_json(audio)
        await peer.send_json({"isFinal": True, "contextId": "id-1"})
        await peer.skip_to({"close_context": True})
        words = list(elevenlabs_audio("id-2", SECOND, OLD, MS_PER_CHAR))
        for audio in words[:4]:
            await peer.send_json(audio)
        await interrupted.wait()
        try:
            for audio in elevenlabs_audio("id-2", SECOND, LATE, MS_PER_CHAR):
                await peer.send_json(audio)
                late_messages += 1
        except ClientGone:
            pass
        assert await peer.hung_up() == 1000

    server = ScriptedSocketServer(half_a_story, elevenlabs_voice(MS_PER_CHAR))
    numbers = count(1)
    async with server.running() as url:
        settings = ElevenLabsVoice(kind="elevenlabs", voice_id="v", api_key_env="VOICE_KEY", base_url=url)
        synthesizer = make(settings, secrets, new_id=lambda: f"id-{next(numbers)}")
        device = ScriptedDevice()
        rehearsal = Rehearsal(
            responder=ScriptedResponder(Script(says(f"{FIRST} {SECOND}")), Script(says("Very well."))),
            synthesizer=synthesizer,
            device=device,
        )
        with anyio.fail_after(30):
            async with rehearsal.running():
                rehearsal.say("tell me a story")
                # All of the first unit (17 characters) and a little of the second.
                await rehearsal.until("playback.progress", 6)
                rehearsal.press_button()
                interrupted.set()
                await rehearsal.until("interruption.accepted")
                await rehearsal.until("delivery.recorded")
                await server.has_completed()
                rehearsal.say("something else")
                await rehearsal.until("playback.drained")
        await synthesizer.aclose()
    assert rehearsal.left_behind == ()
    first, second = (output.heard_pcm for output in device.speaker.outputs.values())
    assert samples(first) == {OLD + 1}, "late audio was heard"
    assert samples(second) == {NEW + 1}
    assert len(second) == len("Very well.") * MS_PER_CHAR * 48
    old, new = ([message.json() for message in peer.received] for peer in server.peers)
    assert [next(iter(one.keys() & {"text", "flush", "close_context"})) for one in old] == [
        "text",
        "flush",
        "close_context",
    ] * 2
    assert {str(one["context_id"]) for one in old}.isdisjoint(str(one["context_id"]) for one in new)
    delivery = rehearsal.replies[0].delivery
    assert delivery is not None
    assert delivery.status is DeliveryStatus.INTERRUPTED
    # By the alignment: at least one word of the second unit had been played, and not all of them.
    assert delivery.cut is Cut.WORD
    assert f"{FIRST} {SECOND}".startswith(delivery.text)
    assert len(FIRST) < len(delivery.text) < len(FIRST) + len(SECOND)


def samples(pcm: bytes) -> set[int]:
    return {int.from_bytes(pcm[place : place + 2], "little", signed=True) for place in range(0, len(pcm), 2)}


LONG = " ".join(f"Once there was a clock with number {number}, and it told a story." for number in range(12))
PACE_S = 0.004
"""Between two messages of a provider: hardly faster than the sound that they hold."""


class Paced:
    """Nothing is said faster than it could be heard."""

    async def pass_on(self, data: str | bytes, peer: SocketPeer) -> AsyncIterator[str | bytes]:
        await anyio.sleep(PACE_S)
        yield data


VOICES: dict[str, tuple[Callable[[int], Plays], Callable[[str, Secrets], Synthesizer]]] = {
    "elevenlabs": (
        elevenlabs_voice,
        lambda url, secrets: make(
            ElevenLabsVoice(kind="elevenlabs", voice_id="v", api_key_env="VOICE_KEY", base_url=url), secrets
        ),
    ),
    "cartesia": (
        cartesia_voice,
        lambda url, secrets: cartesia.make(
            cartesia.CartesiaVoice(kind="cartesia", voice_id="v", api_key_env="VOICE_KEY", base_url=url), secrets
        ),
    ),
    "cosyvoice": (
        cosyvoice_voice,
        lambda url, secrets: dashscope_speech.make(
            dashscope_speech.DashScopeVoice(kind="dashscope-speech", voice="v", api_key_env="VOICE_KEY", base_url=url),
            secrets,
        ),
    ),
    "qwen-tts": (
        qwen_voice,
        lambda url, secrets: dashscope_speech.make(
            dashscope_speech.DashScopeVoice(
                kind="dashscope-speech", voice="v", model="qwen-tts-realtime", api_key_env="VOICE_KEY", base_url=url
            ),
            secrets,
        ),
    ),
}


@pytest.mark.parametrize("kind", VOICES)
async def test_a_long_reply_of_a_slow_voice_is_heard_to_its_end(kind: str, secrets: Secrets) -> None:
    """The engine hands in the next unit in the moment in which the last one has ended and nothing is owed."""
    voice, make_synthesizer = VOICES[kind]

    async def speaks(peer: SocketPeer) -> None:
        peer.interference = Paced()
        await voice(1)(peer)

    async with ScriptedSocketServer(speaks, speaks).running() as url:
        synthesizer = make_synthesizer(url, secrets)
        rehearsal = Rehearsal(responder=ScriptedResponder(Script(says(LONG))), synthesizer=synthesizer)
        with anyio.fail_after(30):
            async with rehearsal.running():
                rehearsal.say("tell me a story")
                await rehearsal.until("delivery.recorded")
    assert not rehearsal.of("stream.error")
    (reply,) = rehearsal.replies
    assert reply.delivery is not None
    assert reply.delivery.status is DeliveryStatus.DELIVERED
    assert reply.delivery.text == LONG
