"""Shared fixtures. Everything under test is imported as `voicechart…`, from where it is installed."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from voicechart.statecharts import Conversation, InterruptionPolicy, Policies, SeededIds
from voicechart.statecharts import facts as said
from voicechart.statecharts.capabilities import Capabilities, SpeakerCapabilities
from voicechart.statecharts.values import InterruptionSource, TurnAuthority


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """Run every `@pytest.mark.anyio` test on asyncio, which is what production runs on.

    A test that needs trio's virtual clock says so itself: `@pytest.mark.parametrize("anyio_backend", ["trio"])`.
    """
    return "asyncio"


@pytest.fixture
def make_conversation() -> Callable[[], Conversation]:
    """Makes a conversation in which speech may interrupt, the same one each time."""
    interruption = InterruptionPolicy(sources=frozenset(InterruptionSource), full_duplex=True, min_words=2)
    return lambda: Conversation("kitchen", policies=Policies(interruption=interruption), ids=SeededIds("test"))


@pytest.fixture
def drive_to_an_interruption() -> Callable[[Conversation], None]:
    """Drives a conversation through one turn and a reply that is interrupted: 22 facts, the last but one ignored."""
    return _drive_to_an_interruption


def _drive_to_an_interruption(conversation: Conversation) -> None:
    second_ns = 1_000_000_000
    now = second_ns
    handle = conversation.handle

    def tick(ms: int = 100) -> int:
        nonlocal now
        now += ms * 1_000_000
        return now

    def heard(segment: str, text: str, revision: int) -> said.TranscriptUpdated:
        turn = conversation.context.turn
        assert turn is not None
        return said.TranscriptUpdated(
            at=tick(), recognition_id=turn.recognitions[-1], segment_id=segment, revision=revision, text=text
        )

    def final(segment: str, text: str) -> said.SegmentFinalized:
        turn = conversation.context.turn
        assert turn is not None
        return said.SegmentFinalized(
            at=tick(), recognition_id=turn.recognitions[-1], segment_id=segment, revision=9, text=text
        )

    handle(said.OpenRequested(at=now))
    capabilities = Capabilities(speaker=SpeakerCapabilities(pause=True, measured_position=True))
    handle(said.ConnectionReady(at=tick(), capabilities=capabilities))
    handle(said.SpeechStarted(at=tick()))
    handle(heard("a", "tell me", 1))
    handle(heard("a", "tell me a secret", 2))
    handle(final("a", "tell me a secret"))
    handle(said.TurnEnded(at=tick(), authority=TurnAuthority.RECOGNIZER))
    handle(said.TurnEnded(at=tick(), authority=TurnAuthority.VAD))
    turn = conversation.context.turn
    assert turn is not None
    handle(said.RecognitionClosed(at=tick(), recognition_id=turn.recognitions[-1]))
    reply = conversation.context.response
    assert reply is not None
    epoch = reply.output_epoch
    handle(said.OutputStarted(at=tick(), attempt_id=reply.attempt_id))
    handle(said.AudioStarted(at=tick(), output_epoch=epoch, sample_rate_hz=16_000))
    handle(said.SpeechUnitSynthesized(at=tick(), output_epoch=epoch, unit_index=0, start_sample=0, end_sample=16_000))
    handle(said.PrebufferFilled(at=tick(), output_epoch=epoch, stream_id=1, played_samples=320))
    handle(said.PlaybackProgressed(at=tick(), output_epoch=epoch, stream_id=1, played_samples=8_000))
    handle(said.SpeechStarted(at=tick(400)))
    handle(heard("b", "mhm", 1))
    handle(heard("b", "mhm wait stop", 2))
    handle(said.PlaybackStopped(at=tick(20), output_epoch=epoch, stream_id=1, played_samples=15_000))
    handle(said.CancelAcknowledged(at=tick(), attempt_id=reply.attempt_id))
    handle(final("b", "wait, stop"))
    handle(said.PlaybackDrained(at=tick(), output_epoch=epoch, stream_id=1, played_samples=99))
    handle(said.TurnEnded(at=tick(), authority=TurnAuthority.VAD))
