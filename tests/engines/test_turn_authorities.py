"""Who ends a turn: exactly the configured authority, and whoever it is, no word behind the end is lost."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import anyio
import pytest
from trio.testing import MockClock

from voicechart.audio.formats import SPEECH_FORMAT
from voicechart.audio.voice_activity import VoiceActivitySettings
from voicechart.engines.end_of_turn import TurnJudgement, TurnSoFar
from voicechart.engines.reports import (
    DeviceButton,
    RecognitionEnded,
    RecognitionReport,
    SegmentFinal,
    SegmentHypothesis,
    UtteranceEnded,
    Word,
)
from voicechart.engines.testing import (
    HANDS_FREE,
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
)
from voicechart.engines.turn_ending import MAX_SILENCE_MS, UNJUDGED_WAIT_MS
from voicechart.statecharts.actions import RecordDelivery, StoreUserTurn
from voicechart.statecharts.capabilities import RecognizerCapabilities
from voicechart.statecharts.facts import TurnEnded
from voicechart.statecharts.policies import Policies, PolicyError, TurnPolicy
from voicechart.statecharts.published import TurnCommitted, TurnDiscarded
from voicechart.statecharts.values import DeliveryStatus, TurnAuthority

pytestmark = pytest.mark.anyio
VOICE = 1_000
QUICK = VoiceActivitySettings(min_speech_ms=64, min_silence_ms=320)
ENDPOINTING = RecognizerCapabilities(live_input=True, interim=True, endpointing=True)
SLACK_MS = 60
"""Voice activity judges hops of 32 ms, and frames come every 20 ms."""


@pytest.fixture
def anyio_backend() -> object:
    return "trio", {"clock": MockClock(autojump_threshold=0)}


class Judge:
    """Answers by the text; notes what it was asked, and when."""

    def __init__(self, *, wait_ms: int = 200, unfinished: tuple[str, ...] = (), takes_s: float = 0.0) -> None:
        self.asked: list[TurnSoFar] = []
        self.prepared = False
        self._wait_ms = wait_ms
        self._unfinished = unfinished
        self._takes_s = takes_s

    async def prepare(self) -> None:
        self.prepared = True

    async def judge(self, turn: TurnSoFar) -> TurnJudgement:
        self.asked.append(turn)
        await anyio.sleep(self._takes_s)
        if turn.text in self._unfinished:
            return TurnJudgement(0.1, 10_000)
        return TurnJudgement(0.9, self._wait_ms)


class BrokenJudge(Judge):
    async def judge(self, turn: TurnSoFar) -> TurnJudgement:
        self.asked.append(turn)
        raise ZeroDivisionError


def policies(authority: TurnAuthority, **changes: Any) -> Policies:  # noqa: ANN401 - fields of a policy
    return replace(HANDS_FREE, turn=TurnPolicy(authority=authority, **changes))


def listening(
    authority: TurnAuthority,
    *scripts: Script[RecognitionReport],
    judge: Judge | None = None,
    capabilities: RecognizerCapabilities = ENDPOINTING,
    responder: ScriptedResponder | None = None,
    **changes: Any,  # noqa: ANN401
) -> Rehearsal:
    return Rehearsal(
        recognizer=ScriptedRecognizer(*scripts, capabilities=capabilities),
        device=ScriptedDevice(),
        responder=responder or ScriptedResponder(answers=lambda _: Script(says("Very well, as you wish."))),
        voice_activity_settings=QUICK,
        end_of_turn=judge,
        policies=policies(authority, **changes),
    )


def microphone_of(rehearsal: Rehearsal) -> ScriptedMicrophone:
    device = rehearsal.engine.ports.device
    assert isinstance(device, ScriptedDevice)
    return device.microphone


def streams_of(rehearsal: Rehearsal) -> list[ScriptedRecognitionStream]:
    recognizer = rehearsal.engine.ports.recognizer
    assert isinstance(recognizer, ScriptedRecognizer)
    return recognizer.streams


def sound_ms(stream: ScriptedRecognitionStream) -> float:
    pcm = b"".join(frame.data for frame in stream.frames)
    samples = sum(1 for place in range(0, len(pcm), 2) if pcm[place : place + 2] == VOICE.to_bytes(2, "little"))
    return SPEECH_FORMAT.duration_ms(samples)


def stored(rehearsal: Rehearsal) -> dict[str, str]:
    """The text of each committed turn, as it stands at last."""
    return {action.turn_id: action.text for action in rehearsal.decided(StoreUserTurn)}


def committers(rehearsal: Rehearsal) -> list[TurnAuthority]:
    payloads = [event.payload for event in rehearsal.of("turn.committed")]
    return [payload.authority for payload in payloads if isinstance(payload, TurnCommitted)]


def discard_reasons(rehearsal: Rehearsal) -> list[str]:
    payloads = [event.payload for event in rehearsal.of("turn.discarded")]
    return [payload.reason for payload in payloads if isinstance(payload, TurnDiscarded)]


def endpoints(text: str, *, final_at: int, end_at: int) -> Script[RecognitionReport]:
    """A recogniser that tells the end of the utterance by itself; positions in samples that it was given."""
    return Script(
        [
            Step(SegmentHypothesis("s", 1, text), written_samples=final_at),
            Step(SegmentFinal("s", 2, text), written_samples=final_at),
            Step(UtteranceEnded(), written_samples=end_at),
            Step(RecognitionEnded(), input_finished=True),
        ]
    )


# -- never two committers ------------------------------------------------------------------------------------------

AUTHORITIES = [TurnAuthority.VAD, TurnAuthority.RECOGNIZER, TurnAuthority.SEMANTIC, TurnAuthority.MANUAL]


@pytest.mark.parametrize("authority", AUTHORITIES)
async def test_what_the_others_say_about_the_end_of_a_turn_commits_nothing(authority: TurnAuthority) -> None:
    never = Judge(unfinished=("go on",))
    rehearsal = listening(authority, Script(hears("go on")), judge=never)
    async with rehearsal.running():
        if authority is TurnAuthority.MANUAL:
            rehearsal.engine.press_talk()
        await microphone_of(rehearsal).listen(400, VOICE)
        for other in set(TurnAuthority) - {authority}:
            rehearsal.tell(TurnEnded(at=rehearsal.now_ns, authority=other))
        await microphone_of(rehearsal).listen(200, VOICE)
        assert rehearsal.of("input.speech_started")
        assert not rehearsal.of("turn.committed")
        rehearsal.tell(TurnEnded(at=rehearsal.now_ns, authority=authority))
        await rehearsal.until("turn.committed")
    assert committers(rehearsal) == [authority]


@pytest.mark.parametrize(
    ("authority", "code"),
    [
        (TurnAuthority.RECOGNIZER, "turn_authority_lacking"),
        (TurnAuthority.SEMANTIC, "turn_authority_lacking"),
        (TurnAuthority.ENGINE, "turn_authority_lacking"),
    ],
)
async def test_an_authority_that_is_not_there_is_an_error_before_anybody_speaks(
    authority: TurnAuthority, code: str
) -> None:
    rehearsal = listening(authority, capabilities=RecognizerCapabilities(live_input=True))
    async with rehearsal.running(ready=False):
        await rehearsal.until("session.closed")
    assert rehearsal.closed is not None
    assert rehearsal.closed.error is not None
    assert rehearsal.closed.error.code == code
    assert not rehearsal.of("session.ready")


# -- recognizer ----------------------------------------------------------------------------------------------------


async def test_a_recogniser_that_endpoints_ends_the_turn_before_voice_activity_would() -> None:
    rehearsal = listening(TurnAuthority.RECOGNIZER, endpoints("what time is it", final_at=9_600, end_at=17_600))
    async with rehearsal.running():
        await microphone_of(rehearsal).listen(1_000, VOICE)
        await microphone_of(rehearsal).listen(200)
        await rehearsal.until("turn.committed")
        await microphone_of(rehearsal).listen(1_000)
        await rehearsal.until("delivery.recorded")
    assert committers(rehearsal) == [TurnAuthority.RECOGNIZER]


async def test_silence_does_not_end_a_turn_that_its_recogniser_has_not_ended() -> None:
    rehearsal = listening(TurnAuthority.RECOGNIZER, Script(hears("what time is it")))
    async with rehearsal.running():
        await microphone_of(rehearsal).listen(1_000, VOICE)
        await microphone_of(rehearsal).listen(3_000)
        assert not rehearsal.of("turn.committed")


async def test_what_is_said_behind_the_recogniser_s_end_is_heard_from_its_first_sample_on() -> None:
    """The user did not pause long enough for voice activity: no new onset would ever tell that they go on."""
    rehearsal = listening(
        TurnAuthority.RECOGNIZER,
        endpoints("my name is", final_at=9_600, end_at=16_000),
        endpoints("John Doe", final_at=9_600, end_at=25_600),
        responder=ScriptedResponder(answers=lambda _: Script(says("Hello."), open_after_ms=2_000)),
    )
    async with rehearsal.running():
        await microphone_of(rehearsal).listen(2_400, VOICE)
        await microphone_of(rehearsal).listen(1_000)
        await rehearsal.until("turn.committed", 2)
    assert list(stored(rehearsal).values()) == ["my name is John Doe"]
    first, second = streams_of(rehearsal)
    assert second.frames[0].start_sample == first.frames[-1].end_sample
    assert sound_ms(first) + sound_ms(second) == 2_400


async def test_a_click_behind_the_end_of_a_turn_begins_nothing() -> None:
    rehearsal = listening(TurnAuthority.RECOGNIZER, endpoints("stop", final_at=9_600, end_at=17_600))
    async with rehearsal.running():
        microphone = microphone_of(rehearsal)
        await microphone.listen(1_000, VOICE)
        await microphone.listen(160)
        await rehearsal.until("turn.committed")
        await microphone.listen(20, VOICE)
        await microphone.listen(1_000)
    assert len(rehearsal.of("input.speech_started")) == 1


async def test_what_is_said_while_the_ended_turn_waits_for_its_transcript_is_not_lost() -> None:
    late: Script[RecognitionReport] = Script(
        [
            Step(SegmentHypothesis("s", 1, "my name"), written_samples=9_600),
            Step(UtteranceEnded(), written_samples=16_000),
            Step(SegmentFinal("s", 2, "my name is"), input_finished=True, wait_ms=900),
            Step(RecognitionEnded(), input_finished=True),
        ]
    )
    rehearsal = listening(TurnAuthority.RECOGNIZER, late, endpoints("John", final_at=4_800, end_at=12_800))
    async with rehearsal.running():
        await microphone_of(rehearsal).listen(1_600, VOICE)
        await microphone_of(rehearsal).listen(1_600)
        await rehearsal.until_true(lambda: "my name is John" in stored(rehearsal).values())
    assert len(stored(rehearsal)) == 1
    assert sum(map(sound_ms, streams_of(rehearsal))) == 1_600


async def test_a_turn_that_its_limit_ended_loses_nothing_that_follows() -> None:
    rehearsal = listening(
        TurnAuthority.VAD,
        Script(hears("one two three", every_samples=3_200)),
        Script(hears("and on")),
        max_turn_words=2,
        continuation_window_ms=0,
    )
    async with rehearsal.running():
        await microphone_of(rehearsal).listen(2_000, VOICE)
        await microphone_of(rehearsal).listen(500)
        await rehearsal.until("turn.committed", 2)
    assert sum(map(sound_ms, streams_of(rehearsal))) == 2_000
    assert list(stored(rehearsal).values()) == ["one two three", "and on"]


# -- manual --------------------------------------------------------------------------------------------------------


async def test_the_talk_button_begins_and_ends_a_turn_with_exactly_what_was_said_meanwhile() -> None:
    rehearsal = listening(TurnAuthority.MANUAL, Script(hears("what time is it")))
    async with rehearsal.running():
        microphone = microphone_of(rehearsal)
        await microphone.listen(500, VOICE)
        microphone.press(DeviceButton.TALK)
        await microphone.listen(400, VOICE)
        await microphone.listen(1_500)
        await microphone.listen(400, VOICE)
        microphone.press(DeviceButton.RELEASE)
        await microphone.listen(500, VOICE)
        await rehearsal.until("turn.committed")
    assert committers(rehearsal) == [TurnAuthority.MANUAL]
    assert sound_ms(streams_of(rehearsal)[0]) == 800
    assert len(streams_of(rehearsal)) == 1


async def test_a_cleared_turn_is_forgotten_and_its_recognition_cancelled() -> None:
    rehearsal = listening(TurnAuthority.MANUAL, Script(hears("what time is it")), Script(hears("never mind")))
    async with rehearsal.running():
        rehearsal.engine.press_talk()
        await microphone_of(rehearsal).listen(600, VOICE)
        rehearsal.engine.clear_talk()
        await rehearsal.until("turn.discarded")
        rehearsal.engine.release_talk()
        rehearsal.engine.press_talk()
        await microphone_of(rehearsal).listen(600, VOICE)
        rehearsal.engine.release_talk()
        await rehearsal.until("turn.committed")
    assert discard_reasons(rehearsal) == ["cleared"]
    assert list(stored(rehearsal).values()) == ["never mind"]
    assert streams_of(rehearsal)[0].cancel_reason is not None


async def test_the_talk_button_interrupts_the_reply_that_is_heard() -> None:
    responder = ScriptedResponder(Script(says("One long story. " * 20)), Script(says("Yes.")))
    rehearsal = listening(TurnAuthority.MANUAL, Script(hears("stop it")), responder=responder)
    async with rehearsal.running():
        rehearsal.say("tell me a story")
        await rehearsal.until("playback.started")
        rehearsal.engine.press_talk()
        await microphone_of(rehearsal).listen(600, VOICE)
        rehearsal.engine.release_talk()
        await rehearsal.until("delivery.recorded", 2)
    assert len(rehearsal.of("turn.interrupted")) + len(rehearsal.of("response.interrupted")) >= 0
    assert [reply.delivery.status.value for reply in rehearsal.replies if reply.delivery] == [
        "interrupted",
        "delivered",
    ]


async def test_the_stop_button_of_the_device_interrupts() -> None:
    rehearsal = listening(TurnAuthority.VAD, responder=ScriptedResponder(Script(says("One long story. " * 20))))
    async with rehearsal.running():
        rehearsal.say("tell me a story")
        await rehearsal.until("playback.started")
        microphone_of(rehearsal).press(DeviceButton.STOP)
        await rehearsal.until("delivery.recorded")
    assert [d.status for d in rehearsal.decided(RecordDelivery)] == [DeliveryStatus.INTERRUPTED]


# -- semantic ------------------------------------------------------------------------------------------------------


def silence_before_commit_ms(rehearsal: Rehearsal, spoken_ms: float) -> float:
    """From the last sample of speech to the commit, on the virtual clock."""
    started = rehearsal.of("session.ready")[0].occurred_at_ns
    return (rehearsal.of("turn.committed")[0].occurred_at_ns - started) / 1_000_000 - spoken_ms


async def test_a_finished_turn_ends_after_the_silence_that_the_judge_asks_for() -> None:
    judge = Judge(wait_ms=200)
    rehearsal = listening(TurnAuthority.SEMANTIC, Script(hears("what time is it")), judge=judge)
    async with rehearsal.running():
        await microphone_of(rehearsal).listen(1_000, VOICE)
        await microphone_of(rehearsal).listen(1_000)
        await rehearsal.until("turn.committed")
    assert judge.prepared
    assert committers(rehearsal) == [TurnAuthority.SEMANTIC]
    assert [turn.text for turn in judge.asked] == ["what time is it"]
    assert 200 <= silence_before_commit_ms(rehearsal, 1_000) <= 200 + SLACK_MS


async def test_an_unfinished_turn_is_waited_for_and_goes_on_in_the_same_recognition() -> None:
    judge = Judge(unfinished=("and then",))
    steps: Script[RecognitionReport] = Script(
        [
            Step(SegmentHypothesis("s", 1, "and then"), written_samples=8_000),
            Step(SegmentHypothesis("s", 2, "and then he left"), written_samples=40_000),
            Step(SegmentFinal("s", 3, "and then he left"), input_finished=True),
            Step(RecognitionEnded(), input_finished=True),
        ]
    )
    rehearsal = listening(TurnAuthority.SEMANTIC, steps, judge=judge)
    async with rehearsal.running():
        microphone = microphone_of(rehearsal)
        await microphone.listen(600, VOICE)
        await microphone.listen(1_500)
        assert not rehearsal.of("turn.committed")
        await microphone.listen(600, VOICE)
        await microphone.listen(1_000)
        await rehearsal.until("turn.committed")
    assert list(stored(rehearsal).values()) == ["and then he left"]
    assert len(streams_of(rehearsal)) == 1
    assert [turn.text for turn in judge.asked] == ["and then", "and then he left"]


async def test_a_newer_hypothesis_in_the_same_pause_is_judged_anew() -> None:
    """Recognition lags: the pause begins before its last words are known."""
    judge = Judge(unfinished=("what time is",), wait_ms=100)
    steps: Script[RecognitionReport] = Script(
        [
            Step(SegmentHypothesis("s", 1, "what time is"), written_samples=8_000),
            Step(
                SegmentHypothesis("s", 2, "what time is it", words=(Word("it", 6_000, 8_000),)),
                written_samples=24_000,
            ),
            Step(SegmentFinal("s", 3, "what time is it"), input_finished=True),
            Step(RecognitionEnded(), input_finished=True),
        ]
    )
    rehearsal = listening(TurnAuthority.SEMANTIC, steps, judge=judge)
    async with rehearsal.running():
        await microphone_of(rehearsal).listen(800, VOICE)
        await microphone_of(rehearsal).listen(2_000)
        await rehearsal.until("turn.committed")
    assert [turn.text for turn in judge.asked] == ["what time is", "what time is it"]
    assert judge.asked[1].words == (Word("it", 6_000, 8_000),)
    assert silence_before_commit_ms(rehearsal, 800) < 1_000


async def test_a_judge_that_always_waits_is_overruled_by_the_bound() -> None:
    rehearsal = listening(TurnAuthority.SEMANTIC, Script(hears("and then")), judge=Judge(unfinished=("and then",)))
    async with rehearsal.running():
        await microphone_of(rehearsal).listen(600, VOICE)
        await microphone_of(rehearsal).listen(MAX_SILENCE_MS - 100)
        assert not rehearsal.of("turn.committed")
        await microphone_of(rehearsal).listen(300)
        await rehearsal.until("turn.committed")
    assert len(rehearsal.of("turn.committed")) == 1


@pytest.mark.parametrize("judge", [Judge(takes_s=3_600), BrokenJudge()], ids=["hangs", "raises"])
async def test_without_an_answer_of_the_judge_a_fixed_silence_ends_the_turn(judge: Judge) -> None:
    rehearsal = listening(TurnAuthority.SEMANTIC, Script(hears("hello")), judge=judge)
    async with rehearsal.running():
        await microphone_of(rehearsal).listen(600, VOICE)
        await microphone_of(rehearsal).listen(2_000)
        await rehearsal.until("turn.committed")
    assert UNJUDGED_WAIT_MS <= silence_before_commit_ms(rehearsal, 600) <= UNJUDGED_WAIT_MS + SLACK_MS
    assert rehearsal.left_behind == ()


async def test_a_late_answer_about_an_older_pause_ends_nothing() -> None:
    judge = Judge(takes_s=0.4, wait_ms=0)
    rehearsal = listening(TurnAuthority.SEMANTIC, Script(hears("hello")), judge=judge)
    async with rehearsal.running():
        microphone = microphone_of(rehearsal)
        await microphone.listen(600, VOICE)
        await microphone.listen(200)
        await microphone.listen(600, VOICE)
        assert not rehearsal.of("turn.committed")
        await microphone.listen(1_000)
        await rehearsal.until("turn.committed")
    assert len(judge.asked) == 2


@pytest.mark.parametrize(("probability", "wait_ms"), [(-0.1, 0), (1.1, 0), (0.5, -1), (0.5, 10_001)])
def test_a_judgement_outside_its_bounds_is_refused(probability: float, wait_ms: int) -> None:
    with pytest.raises(PolicyError, match="end-of-turn judge"):
        TurnJudgement(probability, wait_ms)


@pytest.mark.parametrize(("probability", "finished"), [(0.0, False), (0.49, False), (0.5, True), (1.0, True)])
def test_a_turn_is_finished_from_one_half_on(probability: float, finished: bool) -> None:
    assert TurnJudgement(probability, 10_000).finished is finished
