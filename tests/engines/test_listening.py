"""From the microphone to the transcript: the whole utterance, or an explicit failure."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from itertools import pairwise

import anyio
import pytest
from trio.testing import MockClock

from voicechart.audio.formats import SPEECH_FORMAT, AudioFormat, AudioFrame
from voicechart.audio.voice_activity import VoiceActivitySettings
from voicechart.engines.ports import RecognitionRequest
from voicechart.engines.reports import (
    PortError,
    RecognitionEnded,
    RecognitionErrored,
    RecognitionReport,
    SegmentFinal,
    SegmentHypothesis,
)
from voicechart.engines.testing import (
    HANDS_FREE,
    LinkScript,
    Rehearsal,
    Script,
    ScriptedDevice,
    ScriptedMicrophone,
    ScriptedRecognitionStream,
    ScriptedRecognizer,
    ScriptedResponder,
    Step,
    hears,
    says,
    scripted_error,
)
from voicechart.statecharts.capabilities import RecognizerCapabilities
from voicechart.statecharts.facts import CloseRequested, TurnCancelled
from voicechart.statecharts.policies import Policies, TurnPolicy
from voicechart.statecharts.published import FallbackStarted, StreamDiscontinuity, TurnDiscarded
from voicechart.statecharts.values import TurnAuthority

pytestmark = pytest.mark.anyio
VOICE = 1_000
QUICK = VoiceActivitySettings(min_speech_ms=64, min_silence_ms=320)
PREFIX_MS = 300


@pytest.fixture
def anyio_backend() -> object:
    return "trio", {"clock": MockClock(autojump_threshold=0)}


def listening(
    *scripts: Script[RecognitionReport],
    recognizer: ScriptedRecognizer | None = None,
    device: ScriptedDevice | None = None,
    policies: Policies = HANDS_FREE,
) -> Rehearsal:
    return Rehearsal(
        recognizer=recognizer or ScriptedRecognizer(*scripts),
        device=device or ScriptedDevice(),
        responder=ScriptedResponder(answers=lambda _: Script(says("Very well, as you wish."))),
        voice_activity_settings=QUICK,
        policies=policies,
    )


def recognizer_of(rehearsal: Rehearsal) -> ScriptedRecognizer:
    recognizer = rehearsal.engine.ports.recognizer
    assert isinstance(recognizer, ScriptedRecognizer)
    return recognizer


def microphone_of(rehearsal: Rehearsal) -> ScriptedMicrophone:
    device = rehearsal.engine.ports.device
    assert isinstance(device, ScriptedDevice)
    return device.microphone


async def speak(rehearsal: Rehearsal, duration_ms: int = 1_000, before_ms: int = 1_000, after_ms: int = 500) -> None:
    """Silence, speech, silence, in their time."""
    microphone = microphone_of(rehearsal)
    await microphone.listen(before_ms)
    await microphone.listen(duration_ms, VOICE)
    await microphone.listen(after_ms)


def pcm_of(stream: ScriptedRecognitionStream) -> bytes:
    return b"".join(frame.data for frame in stream.frames)


def sound_ms(pcm: bytes) -> float:
    """How much of it is the voice."""
    samples = sum(1 for place in range(0, len(pcm), 2) if pcm[place : place + 2] == VOICE.to_bytes(2, "little"))
    return SPEECH_FORMAT.duration_ms(samples)


def leading_silence_ms(pcm: bytes) -> float:
    return SPEECH_FORMAT.duration_ms((len(pcm) - len(pcm.lstrip(b"\0"))) // 2)


def discard_reasons(rehearsal: Rehearsal) -> list[str]:
    return [
        event.payload.reason for event in rehearsal.of("turn.discarded") if isinstance(event.payload, TurnDiscarded)
    ]


# -- the utterance -------------------------------------------------------------------------------------------------


async def test_an_utterance_is_recognised_with_what_was_before_its_onset_and_answered() -> None:
    """Case 29: voice activity is always late; the prefix is sent whole."""
    rehearsal = listening(Script(hears("what time is it", after_samples=8_000)))
    async with rehearsal.running():
        await speak(rehearsal)
        await rehearsal.until("delivery.recorded")
    stream = recognizer_of(rehearsal).streams[0]
    assert sound_ms(pcm_of(stream)) == 1_000
    assert leading_silence_ms(pcm_of(stream)) == pytest.approx(PREFIX_MS, abs=32)
    assert stream.frames[0].start_sample == pytest.approx(16_000 - 4_800, abs=512)
    assert [event.payload.text for event in rehearsal.of("turn.committed")] == ["what time is it"]  # type: ignore[attr-defined]
    assert len(rehearsal.of("transcript.updated")) == 4
    assert rehearsal.left_behind == ()


async def test_speech_in_the_first_moment_of_the_track_has_no_prefix_and_loses_nothing() -> None:
    rehearsal = listening(Script(hears("hello")))
    async with rehearsal.running():
        await speak(rehearsal, before_ms=0)
        await rehearsal.until("turn.committed")
    stream = recognizer_of(rehearsal).streams[0]
    assert stream.frames[0].start_sample == 0
    assert sound_ms(pcm_of(stream)) == 1_000


async def test_a_slow_recogniser_gets_everything_from_the_first_sample_on() -> None:
    rehearsal = listening(Script(hears("hello"), open_after_ms=1_500))
    async with rehearsal.running():
        await speak(rehearsal, duration_ms=1_800)
        await rehearsal.until("turn.committed")
    assert sound_ms(pcm_of(recognizer_of(rehearsal).streams[0])) == 1_800


async def test_a_recogniser_that_is_not_ready_after_two_seconds_of_speech_fails_explicitly() -> None:
    rehearsal = listening(Script(hears("hello"), open_after_ms=9_000), Script(hears("hello again")))
    async with rehearsal.running():
        began_s = anyio.current_time()
        await speak(rehearsal, duration_ms=4_000)
        await rehearsal.until("turn.committed")
        assert anyio.current_time() - began_s < 9
    fallback = rehearsal.of("input.fallback")[0].payload
    assert isinstance(fallback, FallbackStarted)
    assert fallback.error.code == "recognizer_not_ready"
    # The second one heard all of it: the recording, what came meanwhile, and what followed.
    assert sound_ms(pcm_of(recognizer_of(rehearsal).streams[-1])) == 4_000
    assert rehearsal.left_behind == ()


async def test_a_recogniser_that_is_ready_just_within_the_bound_does_not_fail() -> None:
    rehearsal = listening(Script(hears("hello"), open_after_ms=1_980))
    async with rehearsal.running():
        await speak(rehearsal, duration_ms=4_000)
        await rehearsal.until("turn.committed")
    assert not rehearsal.of("input.fallback")


class _Slow(ScriptedRecognitionStream):
    """Takes a frame every hundred milliseconds: five times slower than speech."""

    async def write(self, frame: AudioFrame) -> None:
        await anyio.sleep(0.1)
        await super().write(frame)


class _SlowRecognizer(ScriptedRecognizer):
    async def open(self, request: RecognitionRequest) -> ScriptedRecognitionStream:
        stream = _Slow(request, Script(hears("hello")))
        self.streams.append(stream)
        return stream


async def test_a_recogniser_that_falls_two_seconds_behind_fails_explicitly() -> None:
    rehearsal = listening(recognizer=_SlowRecognizer())
    async with rehearsal.running():
        await speak(rehearsal, duration_ms=6_000)
        await rehearsal.until("turn.discarded")
    assert rehearsal.of("input.fallback")[0].as_json()["payload"]["error"]["code"] == "recognizer_too_slow"
    assert discard_reasons(rehearsal) == ["recognizer_too_slow"]


# -- batch attempts ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("last", "code"),
    [
        (RecognitionErrored(scripted_error("stt_died", "recognition")), "stt_died"),
        (SegmentHypothesis("s", 1, "he"), "recognizer_cut_off"),
        (RecognitionEnded(), "recognizer_cut_off"),
        (RecognitionEnded(cancelled=True), "recognizer_cut_off"),
    ],
)
async def test_when_recognition_fails_the_whole_recording_is_sent_again_once(
    last: RecognitionReport, code: str
) -> None:
    broken = Script([Step(last, written_samples=9_600)])
    rehearsal = listening(broken, Script(hears("what time is it")))
    async with rehearsal.running():
        await speak(rehearsal, duration_ms=2_000)
        await rehearsal.until("turn.committed")
    fallback = rehearsal.of("input.fallback")[0].payload
    assert isinstance(fallback, FallbackStarted)
    assert fallback.error.code == code
    assert fallback.recorded_ms == pytest.approx(600, abs=60)
    first, second = recognizer_of(rehearsal).streams
    assert second.frames[0].start_sample == first.frames[0].start_sample
    assert sound_ms(pcm_of(second)) == 2_000


async def test_a_fallback_recogniser_hears_the_recording_of_what_failed() -> None:
    dead: Script[RecognitionReport] = Script(
        [Step(RecognitionErrored(scripted_error("stt_died", "recognition")), written_samples=9_600)]
    )
    live, batch = ScriptedRecognizer(dead), ScriptedRecognizer(Script(hears("what time is it")))
    rehearsal = Rehearsal(recognizer=live, fallback_recognizer=batch, voice_activity_settings=QUICK)
    async with rehearsal.running():
        assert batch.prepared
        await speak(rehearsal, duration_ms=2_000)
        await rehearsal.until("turn.committed")
    assert (live.opened, batch.opened) == (1, 1)
    assert sound_ms(pcm_of(batch.streams[0])) == 2_000
    assert (live.closed, batch.closed) == (True, True)


async def test_a_second_failure_gives_the_turn_up_with_its_reason() -> None:
    dead: Script[RecognitionReport] = Script(
        [Step(RecognitionErrored(scripted_error("stt_died", "recognition")), written_samples=3_200)]
    )
    rehearsal = listening(dead, dead, Script(hears("hello")))
    async with rehearsal.running():
        await speak(rehearsal)
        await rehearsal.until("turn.discarded")
        await speak(rehearsal)
        await rehearsal.until("turn.committed")
    assert discard_reasons(rehearsal) == ["stt_died"]
    assert rehearsal.of("stream.error")[0].as_json()["payload"]["error"]["code"] == "stt_died"


@pytest.mark.slow
@pytest.mark.parametrize(("duration_ms", "falls_back"), [(29_000, True), (30_500, False)])
async def test_a_recording_of_more_than_thirty_seconds_is_not_sent_again(duration_ms: int, falls_back: bool) -> None:
    samples = SPEECH_FORMAT.samples_for_ms(duration_ms)
    dead: Script[RecognitionReport] = Script(
        [Step(RecognitionErrored(scripted_error("stt_died", "recognition")), written_samples=samples)]
    )
    policies = replace(HANDS_FREE, turn=TurnPolicy(input_timeout_ms=60_000))
    rehearsal = listening(dead, Script(hears("a long story")), policies=policies)
    async with rehearsal.running():
        await speak(rehearsal, duration_ms=duration_ms + 500)
        await rehearsal.until("turn.committed" if falls_back else "turn.discarded")
    assert bool(rehearsal.of("input.fallback")) == falls_back
    assert discard_reasons(rehearsal) == ([] if falls_back else ["stt_died"])


async def test_a_recogniser_that_tells_the_end_by_itself_may_end_before_the_input_does() -> None:
    ends_early: Script[RecognitionReport] = Script(
        [Step(SegmentFinal("s", 1, "stop"), written_samples=9_600), Step(RecognitionEnded())]
    )
    recognizer = ScriptedRecognizer(
        ends_early, capabilities=RecognizerCapabilities(live_input=True, interim=True, endpointing=True)
    )
    rehearsal = listening(recognizer=recognizer)
    async with rehearsal.running():
        await speak(rehearsal)
        await rehearsal.until("turn.committed")
    assert not rehearsal.of("input.fallback")


class _Raising(ScriptedRecognitionStream):
    async def reports(self) -> AsyncIterator[RecognitionReport]:
        yield SegmentHypothesis("s", 1, "he")
        raise ZeroDivisionError


class _Broken(ScriptedRecognizer):
    """The first stream breaks the contract, the others are scripted."""

    async def open(self, request: RecognitionRequest) -> ScriptedRecognitionStream:
        if not self.streams:
            self.streams.append(_Raising(request, Script()))
            return self.streams[0]
        return await super().open(request)


async def test_a_recogniser_that_raises_what_it_may_not_fails_its_utterance_and_nothing_else() -> None:
    rehearsal = listening(recognizer=_Broken(Script(hears("what time is it"))))
    async with rehearsal.running():
        await speak(rehearsal)
        await rehearsal.until("turn.committed")
    assert rehearsal.of("input.fallback")[0].as_json()["payload"]["error"]["code"] == "port_broken"
    assert rehearsal.left_behind == ()


class _RefusesAudio(ScriptedRecognitionStream):
    async def write(self, frame: AudioFrame) -> None:
        raise PortError(scripted_error("audio_refused", "recognition"))


class _Refusing(ScriptedRecognizer):
    async def open(self, request: RecognitionRequest) -> ScriptedRecognitionStream:
        stream = _RefusesAudio(request, Script(hears("hello")))
        self.streams.append(stream)
        return stream


async def test_a_recogniser_that_refuses_audio_is_a_failure() -> None:
    rehearsal = listening(recognizer=_Refusing())
    async with rehearsal.running():
        await speak(rehearsal)
        await rehearsal.until("turn.discarded")
    assert discard_reasons(rehearsal) == ["audio_refused"]
    assert all(stream.closed for stream in recognizer_of(rehearsal).streams)


async def test_a_recogniser_that_refuses_to_open_is_told_by_its_own_error() -> None:
    refused: Script[RecognitionReport] = Script(open_error=scripted_error("no_weights", "recognition"))
    rehearsal = listening(refused, refused)
    async with rehearsal.running():
        await speak(rehearsal)
        await rehearsal.until("turn.discarded")
    assert discard_reasons(rehearsal) == ["no_weights"]
    assert rehearsal.of("input.fallback")[0].as_json()["payload"]["error"]["code"] == "no_weights"


async def test_a_recogniser_that_never_opens_is_given_up_when_the_transcript_is_due() -> None:
    forever: Script[RecognitionReport] = Script(open_after_ms=3_600_000)
    rehearsal = listening(forever, forever)
    async with rehearsal.running():
        await speak(rehearsal, duration_ms=1_000)
        await rehearsal.until("turn.discarded")
    assert discard_reasons(rehearsal) == ["recognizer_not_finished"]
    assert rehearsal.left_behind == ()


def hanging(text: str) -> Script[RecognitionReport]:
    """It tells a hypothesis and never ends."""
    return Script([Step(SegmentHypothesis("s", 1, text)), Step(RecognitionEnded(), wait_ms=3_600_000)])


async def test_a_recogniser_that_hangs_after_the_input_ended_is_given_up_and_its_hypothesis_is_not_committed() -> None:
    rehearsal = listening(hanging("what time"), hanging("what time"))
    async with rehearsal.running():
        await speak(rehearsal)
        await rehearsal.until("turn.discarded")
    assert discard_reasons(rehearsal) == ["recognizer_not_finished"]
    for stream in recognizer_of(rehearsal).streams:
        assert stream.cancel_reason == "recognition cancelled"
        assert stream.closed
    assert rehearsal.left_behind == ()


async def test_what_a_hanging_recogniser_kept_to_itself_is_transcribed_from_the_recording() -> None:
    rehearsal = listening(hanging("what time"), Script(hears("what time is it")))
    async with rehearsal.running():
        await speak(rehearsal)
        await rehearsal.until("turn.committed")
    assert [event.payload.text for event in rehearsal.of("turn.committed")] == ["what time is it"]  # type: ignore[attr-defined]
    live, batch = recognizer_of(rehearsal).streams
    assert pcm_of(batch) == pcm_of(live)
    assert batch.input_finished


async def test_a_batch_attempt_of_an_ended_recognition_does_not_hear_what_came_after_it() -> None:
    """The user went on before the transcript was there: the rest belongs to the second recognition."""
    rehearsal = listening(
        hanging("what time"), Script(hears("in Paris", every_samples=800)), Script(hears("what time is it"))
    )
    async with rehearsal.running():
        await speak(rehearsal, after_ms=400)
        await speak(rehearsal, before_ms=600, duration_ms=6_000)
        await rehearsal.until("turn.committed")
    assert [event.payload.text for event in rehearsal.of("turn.committed")] == ["what time is it in Paris"]  # type: ignore[attr-defined]
    first, second, batch = recognizer_of(rehearsal).streams
    assert pcm_of(batch) == pcm_of(first)
    assert sound_ms(pcm_of(second)) == 6_000


async def test_a_cancel_reaches_the_stream() -> None:
    rehearsal = listening(Script(hears("never mind")))
    async with rehearsal.running():
        await microphone_of(rehearsal).listen(500, VOICE)
        rehearsal.tell(TurnCancelled(at=rehearsal.now_ns))
        await rehearsal.until("turn.discarded")
        await anyio.wait_all_tasks_blocked()
        stream = recognizer_of(rehearsal).streams[0]
        assert (stream.cancel_reason, stream.closed) == ("recognition cancelled", True)


async def test_closing_cancels_what_is_being_recognised() -> None:
    rehearsal = listening(Script(hears("never mind")))
    async with rehearsal.running():
        await microphone_of(rehearsal).listen(500, VOICE)
        rehearsal.tell(CloseRequested(at=rehearsal.now_ns))
        await rehearsal.until("session.closed")
    assert recognizer_of(rehearsal).streams[0].closed
    assert rehearsal.left_behind == ()


# -- gaps ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("announced", [True, False])
async def test_a_short_gap_is_filled_with_silence_and_told(announced: bool) -> None:
    rehearsal = listening(Script(hears("what time is it")))
    async with rehearsal.running():
        microphone = microphone_of(rehearsal)
        await microphone.listen(500, VOICE)
        microphone.lose(100, announced=announced)
        await microphone.listen(500, VOICE)
        await microphone.listen(500)
        await rehearsal.until("turn.committed")
    assert [event.payload for event in rehearsal.of("stream.discontinuity")] == [StreamDiscontinuity(100)]
    stream = recognizer_of(rehearsal).streams[0]
    assert sound_ms(pcm_of(stream)) == 1_000
    silence = bytes(2 * SPEECH_FORMAT.samples_for_ms(100))
    voice = VOICE.to_bytes(2, "little")
    assert voice + silence + voice in pcm_of(stream)
    assert len(rehearsal.of("input.speech_started")) == 1


async def test_a_gap_in_which_the_user_stopped_still_ends_the_turn() -> None:
    rehearsal = listening(Script(hears("what time is it")))
    async with rehearsal.running():
        microphone = microphone_of(rehearsal)
        await microphone.listen(500, VOICE)
        microphone.lose(100)
        await microphone.listen(500)
        await rehearsal.until("turn.committed")


async def test_a_gap_beyond_the_policy_discards_the_turn_and_the_next_one_is_heard() -> None:
    rehearsal = listening(Script(hears("what time")), Script(hears("what time is it")))
    async with rehearsal.running():
        microphone = microphone_of(rehearsal)
        await microphone.listen(500, VOICE)
        microphone.lose(300)
        await microphone.listen(500)
        await rehearsal.until("turn.discarded")
        await speak(rehearsal)
        await rehearsal.until("turn.committed")
    assert discard_reasons(rehearsal) == ["discontinuity"]


async def test_a_gap_of_more_than_a_second_fails_what_is_being_recognised_whatever_the_policy() -> None:
    policies = replace(HANDS_FREE, turn=TurnPolicy(max_gap_ms=5_000))
    rehearsal = listening(Script(hears("what time")), Script(hears("is it")), policies=policies)
    async with rehearsal.running():
        microphone = microphone_of(rehearsal)
        await microphone.listen(500, VOICE)
        microphone.lose(1_020)
        await microphone.listen(500, VOICE)
        await rehearsal.until("turn.discarded")
        await microphone.listen(500)
        await rehearsal.until("turn.committed")
    assert discard_reasons(rehearsal) == ["audio_incomplete"]
    assert not rehearsal.of("input.fallback")
    assert sound_ms(pcm_of(recognizer_of(rehearsal).streams[1])) == 500


async def test_a_gap_of_a_second_is_bridged_when_the_policy_allows_it() -> None:
    policies = replace(HANDS_FREE, turn=TurnPolicy(max_gap_ms=5_000))
    rehearsal = Rehearsal(
        recognizer=ScriptedRecognizer(Script(hears("what time is it"))),
        responder=ScriptedResponder(Script(says("It is noon."))),
        voice_activity_settings=replace(QUICK, min_silence_ms=2_000),
        policies=policies,
    )
    async with rehearsal.running():
        microphone = microphone_of(rehearsal)
        await microphone.listen(500, VOICE)
        microphone.lose(1_000)
        await microphone.listen(500, VOICE)
        await microphone.listen(2_500)
        await rehearsal.until("turn.committed")
    assert sound_ms(pcm_of(recognizer_of(rehearsal).streams[0])) == 1_000


async def test_a_microphone_of_another_rate_loses_nothing_over_a_gap() -> None:
    device = ScriptedDevice(LinkScript(microphone_format=AudioFormat(48_000, 2)))
    rehearsal = listening(Script(hears("what time is it")), device=device)
    async with rehearsal.running():
        microphone = microphone_of(rehearsal)
        await microphone.listen(500, VOICE)
        microphone.lose(100)
        await microphone.listen(500, VOICE)
        await microphone.listen(600)
        await rehearsal.until("turn.committed")
    frames = recognizer_of(rehearsal).streams[0].frames
    assert all(one.end_sample == two.start_sample for one, two in pairwise(frames))
    assert frames[-1].end_sample >= SPEECH_FORMAT.samples_for_ms(1_100)


# -- the track over device sessions --------------------------------------------------------------------------------


async def test_the_end_of_a_recording_ends_the_turn_that_is_being_said() -> None:
    rehearsal = listening(Script(hears("what time is it")))
    async with rehearsal.running():
        microphone = microphone_of(rehearsal)
        await microphone.listen(1_000, VOICE)
        microphone.end()
        await rehearsal.until("turn.committed")
        await rehearsal.until("delivery.recorded")


async def test_a_microphone_that_is_gone_is_a_lost_session_and_the_next_one_is_listened_to() -> None:
    rehearsal = listening(Script(hears("what time")), Script(hears("what time is it")))
    async with rehearsal.running():
        await microphone_of(rehearsal).listen(500, VOICE)
        microphone_of(rehearsal).end(scripted_error("microphone_lost", "capture"))
        await rehearsal.until("session.ready", 2)
        await speak(rehearsal)
        await rehearsal.until("turn.committed")
    assert rehearsal.of("session.reconnecting")[0].as_json()["payload"]["reason"] == "microphone_lost"
    assert len(rehearsal.of("turn.committed")) == 1
    stream = recognizer_of(rehearsal).streams[-1]
    assert sound_ms(pcm_of(stream)) == 1_000
    assert rehearsal.left_behind == ()


async def test_speech_that_nobody_hears_any_more_is_a_new_utterance_in_the_next_session() -> None:
    """The user speaks on over the loss, so that voice activity alone would tell no onset."""
    dies: Script[RecognitionReport] = Script(
        [Step(RecognitionErrored(scripted_error("stt_died", "recognition")), written_samples=3_200)]
    )
    rehearsal = listening(dies, dies, Script(hears("what time is it")))
    async with rehearsal.running():
        await microphone_of(rehearsal).listen(600, VOICE)
        await rehearsal.until("turn.discarded")
        device = rehearsal.engine.ports.device
        assert isinstance(device, ScriptedDevice)
        device.speaker.lose(scripted_error("speaker_lost", "playback", retryable=True))
        await rehearsal.until("session.ready", 2)
        await speak(rehearsal, before_ms=0)
        await rehearsal.until("turn.committed")
    assert [event.as_json()["payload"]["text"] for event in rehearsal.of("turn.committed")] == ["what time is it"]


async def test_with_push_to_talk_voice_activity_commits_nothing() -> None:
    policies = replace(HANDS_FREE, turn=TurnPolicy(authority=TurnAuthority.MANUAL))
    rehearsal = listening(Script(hears("hello")), policies=policies)
    async with rehearsal.running():
        await speak(rehearsal)
    assert not rehearsal.of("input.speech_started")
    assert recognizer_of(rehearsal).opened == 0
