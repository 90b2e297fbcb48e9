"""Device sessions: connecting, losing them, coming back, and what is told about what cannot stream."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from itertools import pairwise

import anyio
import anyio.lowlevel
import pytest
from trio.testing import MockClock

from voicechart.engines import CascadePorts
from voicechart.engines.cascade import degradations_of
from voicechart.engines.device_facts import receipt_to_fact
from voicechart.engines.reports import (
    PlaybackPosition,
    PortError,
    RecognitionEnded,
    RecognitionReport,
    RenderingDrained,
    RenderingProgressed,
    RenderingStarted,
    RenderingStarved,
    RenderingStopped,
    SegmentFinal,
    SegmentHypothesis,
    SpeakerLost,
    SpeakerReport,
)
from voicechart.engines.testing import (
    HANDS_FREE,
    LinkScript,
    OnCancel,
    Rehearsal,
    Script,
    ScriptedDevice,
    ScriptedLink,
    ScriptedMicrophone,
    ScriptedRecognizer,
    ScriptedResponder,
    ScriptedSpeaker,
    ScriptedSynthesizer,
    SoundIsSpeech,
    Step,
    says,
)
from voicechart.statecharts import actions as do
from voicechart.statecharts.capabilities import (
    RecognizerCapabilities,
    ResponderCapabilities,
    StreamingPolicy,
    SynthesizerCapabilities,
)
from voicechart.statecharts.errors import ErrorScope, ScopedError
from voicechart.statecharts.facts import (
    ConnectionLost,
    Fact,
    PlaybackDrained,
    PlaybackProgressed,
    PlaybackStopped,
    PrebufferFilled,
    StreamFact,
    Underrun,
)
from voicechart.statecharts.policies import ConnectionPolicy, TurnPolicy
from voicechart.statecharts.published import SessionReady
from voicechart.statecharts.values import DeliveryStatus, Outcome, PositionSource

pytestmark = pytest.mark.anyio
STORY = "Once upon a time there was a clock. It told the time to nobody at all. And so it was glad for evermore."
LOST = ScopedError("audio_service_lost", "connection", ErrorScope.SESSION, "it went away", retryable=True)


@pytest.fixture
def anyio_backend() -> object:
    return "trio", {"clock": MockClock(autojump_threshold=0)}


def device_of(rehearsal: Rehearsal) -> ScriptedDevice:
    device = rehearsal.engine.ports.device
    assert isinstance(device, ScriptedDevice)
    return device


# -- receipts and capabilities -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("report", "fact"),
    [
        (RenderingStarted, PrebufferFilled),
        (RenderingProgressed, PlaybackProgressed),
        (RenderingStarved, Underrun),
        (RenderingDrained, PlaybackDrained),
        (RenderingStopped, PlaybackStopped),
    ],
)
@pytest.mark.parametrize("played", [None, 70])
def test_every_receipt_becomes_its_fact_with_all_three_positions(
    report: type[RenderingStarted], fact: type[StreamFact], played: int | None
) -> None:
    position = PlaybackPosition(100, 90, played, PositionSource.ESTIMATED, 0.5)
    assert receipt_to_fact(report(3, 7, position), at=11) == fact(
        at=11,
        stream_id=3,
        output_epoch=7,
        accepted_samples=100,
        submitted_samples=90,
        played_samples=played,
        source=PositionSource.ESTIMATED,
        confidence=0.5,
    )


def test_a_lost_speaker_is_a_lost_session() -> None:
    report: SpeakerReport = SpeakerLost(LOST)
    fact: Fact = receipt_to_fact(report, at=3)
    assert fact == ConnectionLost(at=3, error=LOST)


def ports(
    *, interim: bool = True, deltas: bool = True, incremental: bool = True, sentences: bool = True
) -> CascadePorts:
    return CascadePorts(
        device=ScriptedDevice(),
        recognizer=ScriptedRecognizer(capabilities=RecognizerCapabilities(live_input=True, interim=interim)),
        responder=ScriptedResponder(capabilities=ResponderCapabilities(text_deltas=deltas)),
        synthesizer=ScriptedSynthesizer(
            capabilities=SynthesizerCapabilities(incremental_pcm=incremental, sentence_input=sentences)
        ),
        voice_activity=SoundIsSpeech(),
    )


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (ports(), []),
        (ports(interim=False), ["no live captions"]),
        (ports(deltas=False), ["speech begins late"]),
        (ports(incremental=False), ["whole sentence"]),
        (ports(incremental=False, sentences=False), ["whole replies"]),
        (ports(sentences=False), ["whole replies"]),
        (ports(interim=False, deltas=False, incremental=False), ["captions", "late", "sentence"]),
    ],
)
def test_everything_that_does_not_stream_is_said(given: CascadePorts, words: list[str]) -> None:
    degradations = degradations_of(given)
    assert len(degradations) == len(words)
    assert all(word in said for word, said in zip(words, degradations, strict=True))


async def test_a_ready_session_says_what_does_not_stream() -> None:
    rehearsal = Rehearsal(responder=ScriptedResponder(capabilities=ResponderCapabilities()))
    async with rehearsal.running():
        pass
    assert rehearsal.of("session.ready")[0].payload == SessionReady(
        ("responder: whole replies only, speech begins late",)
    )


async def test_what_cannot_stream_is_refused_where_streaming_is_required() -> None:
    rehearsal = Rehearsal(
        responder=ScriptedResponder(capabilities=ResponderCapabilities()),
        policies=replace(HANDS_FREE, connection=ConnectionPolicy(streaming=StreamingPolicy.REQUIRED)),
    )
    async with rehearsal.running(ready=False):
        await rehearsal.until("session.closed")
    assert rehearsal.closed is not None
    assert rehearsal.closed.error is not None
    assert "responder.text_deltas" in rehearsal.closed.error.message
    assert rehearsal.left_behind == ()


# -- connecting ----------------------------------------------------------------------------------------------------


async def test_every_port_is_prepared_before_the_session_is_ready_and_released_at_its_end() -> None:
    recognizer, responder, synthesizer = ScriptedRecognizer(), ScriptedResponder(), ScriptedSynthesizer()
    rehearsal = Rehearsal(recognizer=recognizer, responder=responder, synthesizer=synthesizer)
    async with rehearsal.running():
        assert (recognizer.prepared, responder.prepared, synthesizer.prepared) == (True, True, True)
    assert (recognizer.closed, responder.closed, synthesizer.closed) == (True, True, True)
    assert device_of(rehearsal).link.left


async def test_a_connection_that_fails_is_tried_again() -> None:
    rehearsal = Rehearsal(device=ScriptedDevice(LinkScript(connect_error=LOST), LinkScript()))
    async with rehearsal.running():
        pass
    assert device_of(rehearsal).connections == 2
    assert len(rehearsal.of("session.reconnecting")) == 1


async def test_a_failure_that_no_retry_can_help_closes_with_its_error() -> None:
    refused = ScopedError("speaker_missing", "playback", ErrorScope.SESSION, "start the service with a speaker")
    rehearsal = Rehearsal(device=ScriptedDevice(LinkScript(connect_error=refused)))
    async with rehearsal.running(ready=False):
        await rehearsal.until("session.closed")
    assert rehearsal.closed is not None
    assert rehearsal.closed.error == refused
    assert device_of(rehearsal).connections == 1


class _Unprepared(ScriptedSynthesizer):
    async def prepare(self) -> None:
        raise PortError(ScopedError("voice_missing", "synthesis", ErrorScope.SESSION, "install the voice"))


async def test_a_port_that_cannot_be_prepared_closes_the_session_with_its_error() -> None:
    rehearsal = Rehearsal(synthesizer=_Unprepared())
    async with rehearsal.running(ready=False):
        await rehearsal.until("session.closed")
    assert rehearsal.closed is not None
    assert rehearsal.closed.reason == "voice_missing"
    assert device_of(rehearsal).connections == 0


async def test_a_device_that_never_connects_closes_the_session_at_its_deadline() -> None:
    rehearsal = Rehearsal(
        device=ScriptedDevice(LinkScript(connect_after_ms=3_600_000)),
        policies=replace(HANDS_FREE, connection=ConnectionPolicy(connect_ms=2_000)),
    )
    async with rehearsal.running(ready=False):
        began_s = anyio.current_time()
        await rehearsal.until("session.closed")
        assert anyio.current_time() - began_s == pytest.approx(2, abs=0.1)
    assert rehearsal.closed is not None
    assert rehearsal.closed.reason == "connect_timed_out"
    assert rehearsal.left_behind == ()


class _BrokenDevice:
    @asynccontextmanager
    async def connect(self) -> AsyncGenerator[ScriptedLink, None]:
        await anyio.lowlevel.checkpoint()
        raise ZeroDivisionError
        yield ScriptedLink(ScriptedMicrophone(), ScriptedSpeaker())


async def test_a_device_that_raises_what_it_may_not_closes_the_session_with_a_typed_error() -> None:
    rehearsal = Rehearsal(device=_BrokenDevice())
    async with rehearsal.running(ready=False):
        await rehearsal.until("session.closed")
    assert rehearsal.closed is not None
    assert rehearsal.closed.error is not None
    assert rehearsal.closed.error.code == "internal_error"
    assert rehearsal.left_behind == ()


class _BrokenVoiceActivity(SoundIsSpeech):
    def __call__(self, pcm: bytes, /) -> float:
        return 2.0


async def test_voice_activity_that_makes_no_sense_closes_the_session_instead_of_listening_wrongly() -> None:
    rehearsal = Rehearsal(voice_activity=_BrokenVoiceActivity())
    async with rehearsal.running():
        await device_of(rehearsal).microphone.listen(100)
        await rehearsal.until("session.closed")
    assert rehearsal.closed is not None
    assert rehearsal.closed.error is not None
    assert rehearsal.closed.error.code == "internal_error"


# -- losing and coming back ----------------------------------------------------------------------------------------


async def test_a_lost_session_comes_back_with_the_committed_context_and_replays_nothing() -> None:
    responder = ScriptedResponder(Script(says(STORY)), Script(says("Here I am again.")))
    rehearsal = Rehearsal(responder=responder)
    async with rehearsal.running():
        rehearsal.say("tell me a story")
        await rehearsal.until("playback.progress", 30)
        device_of(rehearsal).speaker.lose(LOST)
        await rehearsal.until("session.ready", 2)
        await anyio.sleep(5)
        assert device_of(rehearsal).speaker.outputs == {}
        rehearsal.say("are you there")
        await rehearsal.until("playback.drained")
    assert [event.session_epoch for event in rehearsal.of("session.ready")] == [1, 2]
    assert [reply.outcome for reply in rehearsal.replies] == [Outcome.COMPLETED, Outcome.COMPLETED]
    first = rehearsal.replies[0].delivery
    assert first is not None
    assert (first.status, first.text) == (DeliveryStatus.UNKNOWN, "Once upon a time there was a clock.")
    assert [(message.role, message.text) for message in responder.requests[1].messages] == [
        ("user", "tell me a story"),
        ("assistant", "Once upon a time there was a clock. [interrupted; how much was heard is unknown]"),
        ("user", "are you there"),
    ]
    streams = [action.stream_id for action in rehearsal.decided(do.OpenOutput)]
    assert streams == sorted(set(streams))
    assert [link.left for link in device_of(rehearsal).links] == [True, True]
    assert rehearsal.left_behind == ()


async def test_a_turn_whose_reply_was_lost_unheard_is_answered_in_the_next_session() -> None:
    responder = ScriptedResponder(Script(says(STORY, token_ms=5_000)), Script(says("Here I am again.")))
    rehearsal = Rehearsal(responder=responder)
    async with rehearsal.running():
        rehearsal.say("tell me a story")
        await rehearsal.until("text.delta")
        device_of(rehearsal).speaker.lose(LOST)
        await rehearsal.until("playback.drained")
    assert [(message.role, message.text) for message in responder.requests[1].messages] == [("user", "tell me a story")]
    assert rehearsal.replies[-1].generated == "Here I am again."


class _SilentEnd(ScriptedSpeaker):
    """Its receipts end, and nobody says why."""

    async def reports(self) -> AsyncIterator[SpeakerReport]:
        await anyio.sleep(1)
        return
        yield SpeakerLost(LOST)


class _EndingDevice(ScriptedDevice):
    @asynccontextmanager
    async def connect(self) -> AsyncGenerator[ScriptedLink, None]:
        async with super().connect() as link:
            if self.connections == 1:
                link.speaker = _SilentEnd()
            yield link


async def test_receipts_that_end_without_a_reason_are_a_lost_session_too() -> None:
    rehearsal = Rehearsal(device=_EndingDevice())
    async with rehearsal.running():
        await rehearsal.until("session.ready", 2)
    assert rehearsal.of("session.reconnecting")[0].as_json()["payload"]["reason"] == "device_session_ended"
    assert rehearsal.left_behind == ()


class _HardToLeave(ScriptedDevice):
    @asynccontextmanager
    async def connect(self) -> AsyncGenerator[ScriptedLink, None]:
        async with super().connect() as link:
            try:
                yield link
            finally:
                if self.connections == 1:
                    raise PortError(LOST)


async def test_trouble_in_leaving_a_lost_session_is_not_taken_for_trouble_in_making_the_next_one() -> None:
    rehearsal = Rehearsal(device=_HardToLeave())
    async with rehearsal.running():
        device_of(rehearsal).speaker.lose(LOST)
        await rehearsal.until("session.ready", 2)
        await anyio.sleep(10)
    assert len(rehearsal.of("session.reconnecting")) == 1


async def test_a_session_that_is_lost_in_the_moment_in_which_it_becomes_ready_comes_back() -> None:
    class _LostAtOnce(ScriptedDevice):
        @asynccontextmanager
        async def connect(self) -> AsyncGenerator[ScriptedLink, None]:
            async with super().connect() as link:
                if self.connections == 1:
                    link.speaker.lose(LOST)
                yield link

    rehearsal = Rehearsal(device=_LostAtOnce())
    async with rehearsal.running():
        await rehearsal.until("session.ready", 2)


async def test_what_the_user_is_saying_survives_the_renewal_of_the_session() -> None:
    """Decision 0008: one capture track over both sessions, with the hole filled and told."""
    hears_both: Script[RecognitionReport] = Script(
        [
            Step(SegmentHypothesis("s", 1, "stop it please"), written_samples=4_800),
            Step(SegmentFinal("s", 2, "stop it please now"), input_finished=True),
            Step(RecognitionEnded()),
        ]
    )
    recognizer = ScriptedRecognizer(hears_both)
    responder = ScriptedResponder(
        Script(says(STORY, token_ms=500), on_cancel=OnCancel.HANG), Script(says("Very well, as you wish."))
    )
    rehearsal = Rehearsal(
        recognizer=recognizer,
        responder=responder,
        policies=replace(HANDS_FREE, turn=TurnPolicy(max_gap_ms=1_000)),
    )
    async with rehearsal.running():
        rehearsal.say("tell me a story")
        await rehearsal.until("playback.started")
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(device_of(rehearsal).microphone.listen, 3_000, 1_000)
            await rehearsal.until("session.ready", 2)
            tasks.cancel_scope.cancel()
        await anyio.sleep(0.2)
        await device_of(rehearsal).microphone.listen(500, 1_000)
        await device_of(rehearsal).microphone.listen(800)
        await rehearsal.until("turn.committed", 2)
        await rehearsal.until("playback.drained")
    frames = recognizer.streams[0].frames
    assert all(one.end_sample == two.start_sample for one, two in pairwise(frames))
    assert len(rehearsal.of("stream.discontinuity")) == 1
    assert not rehearsal.of("turn.discarded")
