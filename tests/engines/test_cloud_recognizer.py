"""A conversation that hears by a service over a real socket: a turn, a barge-in, and a connection that breaks."""

from __future__ import annotations

import anyio
import pytest

from voicechart.adapters.providers.recognizers.deepgram import DeepgramSettings, make_recognizer
from voicechart.adapters.providers.recognizers.openai_transcriptions import (
    OpenAITranscriptionsSettings,
    TranscriptionsRecognizer,
)
from voicechart.adapters.testing import ScriptedHttpServer, ScriptedSocketServer, SocketPeer
from voicechart.adapters.testing.recognition_servers import deepgram_hears, openai_transcription_of
from voicechart.audio.voice_activity import VoiceActivitySettings
from voicechart.engines.ports import Recognizer
from voicechart.engines.testing import Rehearsal, Script, ScriptedDevice, ScriptedResponder, says
from voicechart.statecharts.actions import RecordDelivery, StoreUserTurn
from voicechart.statecharts.values import DeliveryStatus

pytestmark = pytest.mark.anyio

VOICE = 1_000
QUICK = VoiceActivitySettings(min_speech_ms=64, min_silence_ms=320)
STORY = "Once upon a time there was a clock that nobody wound, and so it told no time at all, to anybody, ever."
DEADLINE_S = 20.0


async def only_ready(peer: SocketPeer) -> None:
    """What `prepare` meets."""
    await peer.hung_up()


def rehearsal_with(recognizer: Recognizer, fallback: Recognizer | None = None) -> Rehearsal:
    return Rehearsal(
        device=ScriptedDevice(),
        recognizer=recognizer,
        fallback_recognizer=fallback,
        responder=ScriptedResponder(answers=lambda _: Script(says(STORY))),
        voice_activity_settings=QUICK,
    )


def speak(rehearsal: Rehearsal, duration_ms: int, silence_ms: int = 500) -> None:
    device = rehearsal.engine.ports.device
    assert isinstance(device, ScriptedDevice)
    device.microphone.hear(duration_ms, VOICE)
    device.microphone.hear(silence_ms)


async def test_a_turn_is_heard_and_the_reply_interrupted_by_the_words_of_the_next_one() -> None:
    server = ScriptedSocketServer(only_ready, deepgram_hears("Tell me a story."), deepgram_hears("Stop that please."))
    with anyio.fail_after(DEADLINE_S):
        async with server.running() as base_url:
            recognizer = make_recognizer(DeepgramSettings(base_url=base_url), "key")
            rehearsal = rehearsal_with(recognizer)
            async with rehearsal.running():
                speak(rehearsal, 2_000)
                await rehearsal.until("playback.started")
                speak(rehearsal, 2_000)
                await rehearsal.until_true(lambda: len(rehearsal.decided(StoreUserTurn)) == 2)
            await server.has_connections(0)
    assert [turn.text for turn in rehearsal.decided(StoreUserTurn)] == ["Tell me a story.", "Stop that please."]
    assert rehearsal.decided(RecordDelivery)[0].status is DeliveryStatus.INTERRUPTED
    assert rehearsal.left_behind == ()
    for peer in server.peers[1:]:
        texts = [message.json()["type"] for message in peer.received if message.is_text]
        assert texts == ["Finalize", "CloseStream"]
        audio = b"".join(bytes(message.data) for message in peer.received if isinstance(message.data, bytes))
        # Two seconds of voice with what was before it and the silence that ended it, without a hole.
        assert audio.count(VOICE.to_bytes(2, "little")) >= 32_000


async def test_what_a_broken_connection_heard_is_transcribed_as_a_whole() -> None:
    async def breaks(peer: SocketPeer) -> None:
        await peer.expect(bytes)
        peer.drop()

    live = ScriptedSocketServer(only_ready, breaks)
    batch = ScriptedHttpServer({"/audio/transcriptions": [openai_transcription_of("Tell me a story.")]})
    with anyio.fail_after(DEADLINE_S):
        async with live.running() as socket_url, batch.running() as http_url:
            rehearsal = rehearsal_with(
                make_recognizer(DeepgramSettings(base_url=socket_url), "key"),
                TranscriptionsRecognizer(OpenAITranscriptionsSettings(base_url=http_url, model="m"), "key"),
            )
            async with rehearsal.running():
                speak(rehearsal, 2_000)
                await rehearsal.until("playback.started")
    assert [turn.text for turn in rehearsal.decided(StoreUserTurn)] == ["Tell me a story."]
    assert len(rehearsal.of("input.fallback")) == 1
    transcriptions = [request for request in batch.requests if request.method == "POST"]
    assert len(transcriptions) == 1
    assert transcriptions[0].body.count(VOICE.to_bytes(2, "little")) >= 32_000
