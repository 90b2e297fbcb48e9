"""A conversation with a model that hears and speaks by itself, on a scripted model and virtual time."""

from __future__ import annotations

import json
from dataclasses import replace

import anyio
import pytest
from pydantic import BaseModel
from trio.testing import MockClock

from voicechart.audio.voice_activity import VoiceActivitySettings
from voicechart.engines.history import Reply, UserTurn
from voicechart.engines.public_events import ContextTruncated, TextAppended
from voicechart.engines.realtime.engine import cuts_of
from voicechart.engines.realtime.reports import (
    AnswerCallsTool,
    AnswerEnded,
    AnswerFailed,
    AnswerText,
    AnswerUsage,
    ProviderInterruption,
    SessionExpires,
    SessionResumable,
    SpeechCommitted,
    SpeechDetected,
    ToolCallsWithdrawn,
    Transcribed,
    TranscriptionEnded,
    TruncationRefused,
)
from voicechart.engines.realtime.speaking import SpokenItem
from voicechart.engines.testing import (
    HANDS_FREE,
    REALTIME_FORMAT,
    RealtimeRehearsal,
    ScriptedDevice,
    ScriptedMicrophone,
    ScriptedRealtimeModel,
    ScriptedRealtimeSession,
    ScriptedSynthesizer,
    answers,
    nothing,
)
from voicechart.engines.testing.realtime import Answering
from voicechart.engines.tools import Tool
from voicechart.statecharts.actions import RecordInterruption, StopPlayback, TruncateContext
from voicechart.statecharts.capabilities import RealtimeCapabilities
from voicechart.statecharts.errors import ErrorScope, ScopedError
from voicechart.statecharts.policies import GenerationPolicy, InterruptionPolicy, Policies, TurnPolicy
from voicechart.statecharts.published import PlaybackFinished, SessionReady, StreamError, UsageChanged
from voicechart.statecharts.values import (
    AnnouncementOutcome,
    DeliveryStatus,
    InterruptionSource,
    ToolStatus,
    TurnAuthority,
    Usage,
)

pytestmark = pytest.mark.anyio
QUICK = VoiceActivitySettings(min_speech_ms=64, min_silence_ms=320)
OPEN = InterruptionPolicy(frozenset(InterruptionSource), full_duplex=True, min_duration_ms=200)
BY_VOICE = replace(HANDS_FREE, interruption=OPEN)
BY_PROVIDER = replace(BY_VOICE, turn=TurnPolicy(authority=TurnAuthority.ENGINE))
TROUBLE = ScopedError("provider_broke", "generation", ErrorScope.RESPONSE, "it broke", retryable=True)


@pytest.fixture
def anyio_backend() -> object:
    return "trio", {"clock": MockClock(autojump_threshold=0)}


def rehearse(
    *answering: Answering,
    policies: Policies = BY_VOICE,
    model: ScriptedRealtimeModel | None = None,
    tools: tuple[Tool, ...] = (),
    announcer: ScriptedSynthesizer | None = None,
) -> tuple[RealtimeRehearsal, ScriptedRealtimeModel]:
    model = model or ScriptedRealtimeModel(*answering)
    rehearsal = RealtimeRehearsal(
        model, voice_activity_settings=QUICK, policies=policies, tools=tools, announcer=announcer
    )
    return rehearsal, model


def microphone_of(rehearsal: RealtimeRehearsal) -> ScriptedMicrophone:
    device = rehearsal.engine.ports.device
    assert isinstance(device, ScriptedDevice)
    return device.microphone


async def speak(rehearsal: RealtimeRehearsal, milliseconds: int = 600) -> None:
    microphone = microphone_of(rehearsal)
    await microphone.listen(milliseconds, 1_000)
    await microphone.listen(600)


def turns(rehearsal: RealtimeRehearsal) -> list[str]:
    return [record.text for record in rehearsal.records if isinstance(record, UserTurn)]


# -- hearing and answering ---------------------------------------------------------------------------------------------


async def test_a_turn_is_heard_answered_and_played_without_a_transcript() -> None:
    rehearsal, model = rehearse(answers("It is noon."))
    async with rehearsal.running():
        await speak(rehearsal)
        await rehearsal.until("playback.drained")
    kinds = [call[0] for call in model.session.asked]
    assert kinds == ["begin", "commit", "respond"]
    assert REALTIME_FORMAT.duration_ms(model.session.heard_samples) >= 600
    [reply] = rehearsal.replies
    assert reply.delivery is not None
    assert (reply.generated, reply.delivery.status) == ("It is noon.", DeliveryStatus.DELIVERED)


async def test_what_was_understood_is_stored_when_it_comes_and_never_asked_again() -> None:
    rehearsal, model = rehearse(answers("It is noon."))
    async with rehearsal.running():
        await speak(rehearsal)
        await rehearsal.until("turn.committed")
        [(utterance,)] = model.session.asked_for("commit")
        model.session.tell(Transcribed(utterance, 1, "what time is it", is_final=True), TranscriptionEnded(utterance))
        await rehearsal.until("turn.committed", 2)
        await rehearsal.until("playback.drained")
    assert turns(rehearsal) == ["what time is it"]
    assert len(model.session.asked_for("respond")) == 1


async def test_a_transcript_that_fails_takes_nothing_back() -> None:
    rehearsal, model = rehearse(answers("It is noon."))
    async with rehearsal.running():
        await speak(rehearsal)
        await rehearsal.until("turn.committed")
        [(utterance,)] = model.session.asked_for("commit")
        model.session.tell(TranscriptionEnded(utterance, TROUBLE))
        await rehearsal.until("playback.drained")
    assert turns(rehearsal) == [""]


async def test_the_provider_may_end_turns() -> None:
    rehearsal, model = rehearse(answers("It is noon."), policies=BY_PROVIDER)
    async with rehearsal.running():
        assert model.session.request.provider_turns
        await microphone_of(rehearsal).listen(400, 1_000)
        model.session.tell(SpeechDetected("s1"))
        await rehearsal.until("input.speech_started")
        model.session.tell(SpeechCommitted("s1"), Transcribed("s1", 1, "what time", is_final=True))
        await rehearsal.until("playback.drained")
    assert turns(rehearsal) == ["what time"]
    assert [call[0] for call in model.session.asked] == ["respond"]
    assert model.session.heard_samples > 0


async def test_the_words_of_a_former_utterance_find_their_own_turn() -> None:
    rehearsal, model = rehearse(answers("One."), answers("Two."), policies=BY_PROVIDER)
    async with rehearsal.running():
        for speech in ("s1", "s2"):
            model.session.tell(SpeechDetected(speech))
            await rehearsal.until("input.speech_started", int(speech[1]))
            model.session.tell(SpeechCommitted(speech))
            await rehearsal.until("playback.drained", int(speech[1]))
        model.session.tell(SpeechDetected("s3"))
        await rehearsal.until("input.speech_started", 3)
        model.session.tell(Transcribed("s2", 1, "second", is_final=True))
        await rehearsal.until("turn.committed", 3)
    assert turns(rehearsal) == ["", "second"]


async def test_a_typed_message_is_told_to_the_model_and_answered() -> None:
    rehearsal, model = rehearse(answers("It is noon."))
    async with rehearsal.running():
        rehearsal.say("what time is it")
        await rehearsal.until("playback.drained")
    assert [call[0] for call in model.session.asked] == ["text", "respond"]
    assert model.session.asked_for("text") == [("what time is it",)]


async def test_a_model_that_speaks_without_words_is_heard() -> None:
    def wordless(session: ScriptedRealtimeSession, answer_id: str) -> None:
        session.says(answer_id, "", 400)
        session.tell(AnswerEnded(answer_id))

    rehearsal, _ = rehearse(wordless)
    async with rehearsal.running():
        rehearsal.say("hum")
        await rehearsal.until("playback.drained")
    [reply] = rehearsal.replies
    assert reply.delivery is not None
    assert reply.delivery.status is DeliveryStatus.DELIVERED


@pytest.mark.parametrize("order", ["audio first", "text first", "text last"])
async def test_generation_turn_and_playback_end_each_in_its_own_time_whatever_the_order(order: str) -> None:
    def answer(session: ScriptedRealtimeSession, answer_id: str) -> None:
        if order == "text first":
            session.tell(AnswerText(answer_id, "It is noon."))
        session.says(answer_id, "", 800)
        if order != "text first":
            session.tell(AnswerText(answer_id, "It is noon."))
        session.tell(AnswerEnded(answer_id))

    rehearsal, _ = rehearse(answer)
    async with rehearsal.running():
        rehearsal.say("what time is it")
        terminal = await rehearsal.until("run.terminal")
        drained = await rehearsal.until("playback.drained")
    assert drained.occurred_at_ns - terminal.occurred_at_ns >= 700_000_000
    [reply] = rehearsal.replies
    assert reply.generated == "It is noon."


# -- barge-in ----------------------------------------------------------------------------------------------------------


async def test_speech_over_a_reply_silences_it_cancels_it_and_cuts_what_the_model_believes() -> None:
    def endless(session: ScriptedRealtimeSession, answer_id: str) -> None:
        session.says(answer_id, "Once upon a time there was a king.", 10_000)

    rehearsal, model = rehearse(endless, answers("Very well."))
    async with rehearsal.running():
        rehearsal.say("tell me a story")
        await rehearsal.until("playback.started")
        await anyio.sleep(1.0)
        await speak(rehearsal)
        await rehearsal.until("playback.drained")
        await rehearsal.until("context.truncated")
    first = rehearsal.decided(RecordInterruption)
    assert [action.source for action in first] == [InterruptionSource.SPEECH]
    [(answer,)] = model.session.asked_for("cancel")
    [(item, played_ms)] = model.session.asked_for("truncate")
    assert item == f"item of {answer}"
    assert 1_000 <= int(played_ms) <= 1_500
    kinds = [call[0] for call in model.session.asked]
    assert kinds.index("cancel") < kinds.index("truncate")
    story, _ = rehearsal.replies
    assert story.delivery is not None
    assert (story.delivery.status, story.delivery.text) == (DeliveryStatus.INTERRUPTED, "")


async def test_a_barge_in_after_the_model_has_finished_cancels_nothing_and_cuts_all_the_same() -> None:
    """Kind 12."""
    rehearsal, model = rehearse(answers("A long story.", 5_000), answers("Very well."))
    async with rehearsal.running():
        rehearsal.say("tell me a story")
        await rehearsal.until("playback.started")
        await anyio.sleep(1.0)
        rehearsal.press_button()
        await rehearsal.until("context.truncated")
    assert model.session.asked_for("cancel") == []
    [(_, played_ms)] = model.session.asked_for("truncate")
    assert 900 <= int(played_ms) <= 1_200


async def test_what_comes_after_the_cancel_is_not_heard() -> None:
    rehearsal, model = rehearse(model=ScriptedRealtimeModel(acknowledges=False))
    async with rehearsal.running():
        rehearsal.say("tell me a story")
        await rehearsal.until("response.started")
        await anyio.sleep(0.1)
        [(answer,)] = model.session.asked_for("respond")
        model.session.says(answer, "Once", 2_000)
        await rehearsal.until("playback.started")
        rehearsal.press_button()
        await rehearsal.until("interruption.accepted")
        model.session.says(answer, " upon a time", 2_000)
        await rehearsal.until("session.reconnecting")
    assert [event.payload for event in rehearsal.of("text.delta")] == [TextAppended("Once")]


async def test_the_provider_may_say_that_the_user_interrupted() -> None:
    rehearsal, model = rehearse(answers("A long story.", 5_000), policies=BY_PROVIDER)
    async with rehearsal.running():
        rehearsal.say("tell me a story")
        await rehearsal.until("playback.started")
        model.session.tell(ProviderInterruption())
        await rehearsal.until("interruption.accepted")
    assert [action.source for action in rehearsal.decided(RecordInterruption)] == [InterruptionSource.PROVIDER]


async def test_a_refused_truncation_is_not_fatal_and_is_told() -> None:
    """Kind 25."""
    rehearsal, model = rehearse(answers("A long story.", 5_000), answers("Very well."))
    async with rehearsal.running():
        rehearsal.say("tell me a story")
        await rehearsal.until("playback.started")
        model.session.tell(TruncationRefused("item", TROUBLE))
        told = await rehearsal.until("context.truncated")
        await rehearsal.until("playback.drained")
    assert told.payload == ContextTruncated(None, applied=False, reason="provider_broke")


@pytest.mark.parametrize(
    ("played", "cuts"),
    [
        (0, (("a", 0), ("b", 0))),
        (12_000, (("a", 500), ("b", 0))),
        (24_000, (("b", 0),)),
        (36_000, (("b", 500),)),
        (48_000, ()),
        (99_000, ()),
        (None, ()),
    ],
)
def test_a_cut_is_never_beyond_what_was_received_and_nothing_heard_is_removed(
    played: int | None, cuts: tuple[tuple[str, int], ...]
) -> None:
    """Kind 25: two items of a second each."""
    items = (SpokenItem("a", 0, 24_000), SpokenItem("b", 24_000, 48_000))
    assert cuts_of(items, played, REALTIME_FORMAT) == cuts


async def test_nothing_is_cut_of_a_reply_that_was_heard_to_its_end() -> None:
    rehearsal, model = rehearse(answers("It is noon."))
    async with rehearsal.running():
        rehearsal.say("what time is it")
        await rehearsal.until("playback.drained")
        rehearsal.press_button()
    assert rehearsal.decided(TruncateContext) == []
    assert model.session.asked_for("truncate") == []


# -- tools -------------------------------------------------------------------------------------------------------------


class Place(BaseModel):
    city: str


def weather(ran: list[str], takes_s: float = 0.0) -> Tool:
    async def run(place: Place) -> str:
        ran.append(place.city)
        await anyio.sleep(takes_s)
        return "sunny"

    return Tool("weather", "The weather.", Place, run)


def calls(call_id: str = "c1", milliseconds: int = 800) -> Answering:
    def answer(session: ScriptedRealtimeSession, answer_id: str) -> None:
        session.says(answer_id, "Let me see.", milliseconds)
        session.tell(AnswerCallsTool(answer_id, call_id, "weather", json.dumps({"city": "Oslo"})))
        session.tell(AnswerEnded(answer_id, awaits_tools=True))

    return answer


async def test_a_tool_call_ends_an_answer_and_every_millisecond_of_it_is_played() -> None:
    """Kind 26."""
    ran: list[str] = []
    rehearsal, model = rehearse(calls(), answers("It is sunny.", 400), tools=(weather(ran),))
    async with rehearsal.running():
        rehearsal.say("how is the weather in Oslo")
        drained = await rehearsal.until("playback.drained")
    assert ran == ["Oslo"]
    assert drained.payload == PlaybackFinished(REALTIME_FORMAT.samples_for_ms(1_200))
    assert model.session.asked_for("output") == [("c1", "sunny")]
    assert [call[0] for call in model.session.asked] == ["text", "respond", "output", "respond"]
    [reply] = rehearsal.replies
    assert reply.generated == "Let me see.It is sunny."


async def test_a_call_that_the_provider_takes_back_is_cancelled_and_its_outcome_not_told() -> None:
    """Kind 27."""
    ran: list[str] = []
    rehearsal, model = rehearse(calls(), answers("Never mind.", 400), tools=(weather(ran, takes_s=5.0),))
    async with rehearsal.running():
        rehearsal.say("how is the weather in Oslo")
        await rehearsal.until("tool.started")
        model.session.tell(ToolCallsWithdrawn(("c1",)))
        await rehearsal.until("tool.ended")
        await rehearsal.until("playback.drained")
    assert model.session.asked_for("output") == []
    [reply] = rehearsal.replies
    assert [exchange.status for exchange in reply.tools] == [ToolStatus.UNKNOWN]


async def test_what_a_tool_said_before_an_interruption_is_told_once_and_it_never_runs_again() -> None:
    """Kind 28."""
    ran: list[str] = []
    rehearsal, model = rehearse(calls(), nothing, answers("As I said."), tools=(weather(ran),))
    async with rehearsal.running():
        rehearsal.say("how is the weather in Oslo")
        await rehearsal.until("tool.ended")
        await rehearsal.until("playback.started")
        rehearsal.press_button()
        await rehearsal.until("interruption.accepted")
        rehearsal.say("and?")
        await rehearsal.until("playback.drained")
    assert ran == ["Oslo"]
    assert model.session.asked_for("output") == [("c1", "sunny")]


async def test_a_cancelled_call_has_an_output_too() -> None:
    ran: list[str] = []
    rehearsal, model = rehearse(calls(), answers("Very well."), tools=(weather(ran, takes_s=30.0),))
    async with rehearsal.running():
        rehearsal.say("how is the weather in Oslo")
        await rehearsal.until("tool.started")
        await rehearsal.until("playback.started")
        rehearsal.press_button()
        await rehearsal.until("tool.ended")
        rehearsal.say("never mind")
        await rehearsal.until("playback.drained")
    [(call_id, output)] = model.session.asked_for("output")
    assert call_id == "c1"
    assert output


# -- the session -------------------------------------------------------------------------------------------------------


async def test_a_lost_session_is_made_anew_with_what_was_committed_and_replays_nothing() -> None:
    rehearsal, model = rehearse(answers("It is noon."), answers("One."))
    async with rehearsal.running():
        rehearsal.say("what time is it")
        await rehearsal.until("playback.drained")
        model.session.is_lost()
        await rehearsal.until("session.ready", 2)
        rehearsal.say("and now?")
        await rehearsal.until("playback.drained", 2)
    first, second = model.sessions
    assert first.closed
    assert [(message.role, message.text) for message in second.request.messages] == [
        ("user", "what time is it"),
        ("assistant", "It is noon."),
    ]
    assert [call[0] for call in second.asked] == ["text", "respond"]


async def test_what_an_answer_took_counts_although_it_is_told_behind_the_end() -> None:
    rehearsal, model = rehearse(answers("It is noon."))
    async with rehearsal.running():
        rehearsal.say("what time is it")
        await rehearsal.until("response.terminal")
        [[answer_id]] = model.session.asked_for("respond")
        model.session.tell(AnswerUsage(answer_id, Usage(5, 3)))
        told = await rehearsal.until("usage.updated")
    assert isinstance(told.payload, UsageChanged)
    assert told.payload.usage == Usage(5, 3)
    assert told.response_id is not None


async def test_a_provider_that_goes_silent_after_its_goodbye_is_left_in_time() -> None:
    """Trap 33: by the chart's timer, while nothing comes any more."""
    rehearsal, model = rehearse(nothing)
    async with rehearsal.running():
        rehearsal.say("tell me a story")
        await rehearsal.until("response.started")
        model.session.tell(SessionResumable("latest"), SessionExpires(10_000))
        again = await rehearsal.until("session.reconnecting")
        await rehearsal.until("session.ready", 2)
    assert again.occurred_at_ns < 11_000_000_000
    assert model.sessions[0].closed
    assert model.sessions[1].request.resumption == "latest"


async def test_an_expiring_session_lets_what_is_being_said_end_and_goes_on_by_its_handle() -> None:
    rehearsal, model = rehearse(answers("A long story.", 3_000))
    async with rehearsal.running():
        rehearsal.say("tell me a story")
        await rehearsal.until("playback.started")
        model.session.tell(SessionResumable("first"), SessionResumable("latest"), SessionExpires(30_000))
        drained = await rehearsal.until("playback.drained")
        again = await rehearsal.until("session.reconnecting")
        await rehearsal.until("session.ready", 2)
    assert again.occurred_at_ns - drained.occurred_at_ns < 100_000_000
    assert model.sessions[1].request.resumption == "latest"


async def test_a_handle_that_is_refused_is_forgotten() -> None:
    rehearsal, model = rehearse(answers("It is noon."))
    async with rehearsal.running():
        model.session.tell(SessionResumable("stale"))
        await anyio.sleep(0.1)
        model.refusals.append(replace(TROUBLE, scope=ErrorScope.SESSION, stage="connection"))
        model.session.is_lost()
        await rehearsal.until("session.ready", 2)
    assert model.sessions[1].request.resumption is None


async def test_no_progress_ends_an_answer_however_much_the_user_says() -> None:
    policies = replace(BY_PROVIDER, generation=GenerationPolicy(stall_ms=2_000, max_attempts=1))
    rehearsal, _ = rehearse(policies=policies)
    async with rehearsal.running():
        rehearsal.say("tell me a story")
        await rehearsal.until("response.started")
        await microphone_of(rehearsal).listen(3_000, 1_000)
        stalled = await rehearsal.until("stream.error")
    assert isinstance(stalled.payload, StreamError)
    assert stalled.payload.error.code == "generation_stalled"


async def test_an_answer_that_fails_before_anything_was_heard_is_asked_for_again() -> None:
    def fails(session: ScriptedRealtimeSession, answer_id: str) -> None:
        session.tell(AnswerFailed(answer_id, TROUBLE))

    rehearsal, model = rehearse(fails, answers("It is noon."))
    async with rehearsal.running():
        rehearsal.say("what time is it")
        await rehearsal.until("playback.drained")
    assert len(model.session.asked_for("respond")) == 2
    assert len(model.session.asked_for("text")) == 1


async def test_a_model_that_cannot_end_turns_is_refused_where_it_should() -> None:
    model = ScriptedRealtimeModel(capabilities=RealtimeCapabilities(takes_turns=True))
    rehearsal, _ = rehearse(model=model, policies=BY_PROVIDER)
    async with rehearsal.running(ready=False):
        await rehearsal.until("session.closed")
    assert rehearsal.closed is not None
    assert rehearsal.closed.error is not None
    assert rehearsal.closed.error.code == "turn_authority_lacking"


@pytest.mark.parametrize(("min_duration_ms", "is_told"), [(0, True), (1, False)])
async def test_that_speech_interrupts_late_is_told(min_duration_ms: int, is_told: bool) -> None:
    policies = replace(BY_VOICE, interruption=replace(OPEN, min_duration_ms=min_duration_ms))
    rehearsal, _ = rehearse(policies=policies)
    async with rehearsal.running():
        ready = (await rehearsal.until("session.ready")).payload
    assert isinstance(ready, SessionReady)
    told = [reason for reason in ready.degradations if reason.startswith("interruption:")]
    assert bool(told) is is_told


async def test_without_a_voice_of_its_own_a_text_cannot_be_said_as_it_is_and_that_is_told() -> None:
    rehearsal, _ = rehearse()
    async with rehearsal.running():
        said = await rehearsal.session.say("The tea is ready.").wait()
    assert said.outcome is AnnouncementOutcome.DROPPED


async def test_with_a_voice_beside_it_a_text_is_said_as_it_is() -> None:
    rehearsal, _ = rehearse(announcer=ScriptedSynthesizer())
    async with rehearsal.running():
        said = await rehearsal.session.say("The tea is ready.").wait()
    assert said.outcome is AnnouncementOutcome.PLAYED


async def test_nothing_is_left_behind() -> None:
    rehearsal, model = rehearse(answers("A long story.", 5_000))
    async with rehearsal.running():
        rehearsal.say("tell me a story")
        await rehearsal.until("playback.started")
    assert rehearsal.left_behind == ()
    assert model.closed
    assert model.session.closed
    assert rehearsal.decided(StopPlayback)
    assert any(isinstance(record, Reply) for record in rehearsal.records)
