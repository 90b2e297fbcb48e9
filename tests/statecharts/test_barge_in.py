"""Barge-in: judged once, one macrostep, a fixed order, whatever the output regions are doing."""

from __future__ import annotations

from dataclasses import replace

import pytest

from voicechart.statecharts import (
    Conversation,
    Evidence,
    GenerationPolicy,
    InterruptionPolicy,
    Judgement,
    Policies,
    TurnPolicy,
    Verdict,
)
from voicechart.statecharts.actions import (
    CancelGeneration,
    CancelSynthesis,
    CancelTools,
    PausePlayback,
    Publish,
    RecordInterruption,
    ResumePlayback,
    StartTimer,
    StopPlayback,
    TruncateContext,
)
from voicechart.statecharts.capabilities import Capabilities, SpeakerCapabilities
from voicechart.statecharts.context import TimerKind
from voicechart.statecharts.published import InterruptionAccepted, InterruptionRejected
from voicechart.statecharts.testing import HANDS_FREE, Reached, ScriptedConversation
from voicechart.statecharts.values import DeliveryStatus, InterruptionSource, PositionSource, ToolStatus, TurnAuthority

REALTIME = Capabilities(speaker=SpeakerCapabilities(pause=True), truncate_context=True)
TRANSACTION = (
    StopPlayback,
    CancelGeneration,
    CancelSynthesis,
    CancelTools,
    TruncateContext,
    StartTimer,
    RecordInterruption,
    Publish,
)


def with_interruption(**changes: object) -> ScriptedConversation:
    policy = replace(HANDS_FREE, **changes)  # pyright: ignore[reportArgumentType]
    script = ScriptedConversation(Policies(interruption=policy)).opened()
    script.user_says("tell me a story")
    script.reply_is_playing((16_000, 32_000), played_samples=20_000)
    return script


# -- the transaction -----------------------------------------------------------------------------------------------


def test_the_whole_transaction_is_one_macrostep_in_a_fixed_order() -> None:
    script = ScriptedConversation(capabilities=REALTIME).opened()
    script.user_says("tell me a story")
    script.reply_is_playing((16_000, 32_000), played_samples=20_000)
    script.model_calls_tool("look-up")
    script.model_calls_tool("timer", background=True)
    reply, epoch = script.generation, script.conversation.context.output_epoch
    script.user_starts_speaking()

    actions = script.hears("stop it")

    script.record.assert_in_order(*TRANSACTION)
    assert script.leaves == "ready | hypothesis | cancelling | stopped"
    assert script.conversation.context.output_epoch == epoch + 1
    assert {action.stamp.output_epoch for action in actions} == {epoch + 1}
    assert [a.before_epoch for a in script.record.of(StopPlayback)] == [epoch + 1]
    assert [a.attempt_id for a in script.record.of(CancelGeneration)] == [reply.attempt_id]
    assert [a.response_id for a in script.record.of(CancelSynthesis)] == [reply.response_id]
    assert [a.call_ids for a in script.record.of(CancelTools)] == [("look-up",)]
    [cut] = script.record.of(TruncateContext)
    assert (cut.response_id, cut.played_samples, cut.source) == (
        reply.response_id,
        20_000,
        PositionSource.MEASURED,
    )
    assert {a.kind for a in actions if isinstance(a, StartTimer)} >= {TimerKind.CANCEL_ACK, TimerKind.STOP_RECEIPT}
    [interruption] = script.record.of(RecordInterruption)
    assert (interruption.source, interruption.at) == (InterruptionSource.SPEECH, script.now_ns)
    assert script.record.published(InterruptionAccepted) == [
        InterruptionAccepted(InterruptionSource.SPEECH, "enough_words")
    ]
    assert [(call.call_id, call.status) for call in script.conversation.context.response.tools] == [  # pyright: ignore[reportOptionalMemberAccess]
        ("look-up", ToolStatus.CANCELLED),
        ("timer", None),
    ]


def test_the_user_goes_on_speaking_through_the_transaction() -> None:
    script = with_interruption()
    script.user_starts_speaking()
    recognition_id = script.recognition_id
    script.hears("stop and tell")
    script.finishes_saying("stop and tell me a joke")
    assert script.recognition_id == recognition_id
    assert script.record.committed_turns() == ["tell me a story", "stop and tell me a joke"]


@pytest.mark.parametrize("state", ["waiting", "streaming", "tools", "buffering", "playing", "paused", "draining"])
def test_the_transaction_is_the_same_whichever_output_region_is_idle(reached: Reached, state: str) -> None:
    script = reached.everywhere()[state]
    epoch = script.conversation.context.output_epoch
    script.user_presses_stop()
    assert script.conversation.context.output_epoch == epoch + 1
    kinds = [type(action) for action in script.record.last]
    assert kinds[0] is StopPlayback
    assert CancelSynthesis in kinds
    assert kinds.index(RecordInterruption) < kinds.index(Publish)
    assert (CancelGeneration in kinds) is (state != "draining")
    assert script.record.interruptions() == [InterruptionSource.BUTTON]


def test_a_reply_interrupted_before_its_first_audio_has_its_record_at_once(reached: Reached) -> None:
    script = reached.streaming()
    script.user_presses_stop()
    delivery = script.record.delivery_of(script.generation.response_id)
    assert (delivery.status, delivery.units, delivery.played_samples) == (DeliveryStatus.INTERRUPTED, 0, 0)


@pytest.mark.parametrize(("state", "played"), [("streaming", 0), ("buffering", None), ("playing", 20_000)])
def test_the_context_is_cut_at_what_was_played(state: str, played: int | None) -> None:
    script = ScriptedConversation(capabilities=REALTIME).opened()
    script.user_says("tell me a story")
    script.model_starts_writing()
    if state != "streaming":
        script.audio_starts()
    if state == "playing":
        script.sound_begins(20_000)
    script.user_presses_stop()
    assert [cut.played_samples for cut in script.record.of(TruncateContext)] == [played]


@pytest.mark.parametrize("state", ["idle", "speech", "drained", "cancelled", "cancelling", "opening", "reconnecting"])
def test_with_nothing_to_interrupt_nothing_is_interrupted(reached: Reached, state: str) -> None:
    script = reached.everywhere()[state]
    before = len(script.record.interruptions())
    epoch = script.conversation.context.output_epoch
    assert script.user_presses_stop() == ()
    assert script.provider_interrupts() == ()
    assert script.client_cancels() == ()
    assert len(script.record.interruptions()) == before
    assert script.conversation.context.output_epoch == epoch


# -- in whose name -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("source", list(InterruptionSource))
@pytest.mark.parametrize("allowed", [True, False])
def test_only_an_allowed_source_interrupts_and_a_refused_one_is_told(source: InterruptionSource, allowed: bool) -> None:
    sources = frozenset({source}) if allowed else frozenset(InterruptionSource) - {source}
    script = with_interruption(sources=sources)
    if source is InterruptionSource.BUTTON:
        script.user_presses_stop()
    elif source is InterruptionSource.PROVIDER:
        script.provider_interrupts()
    elif source is InterruptionSource.CLIENT:
        script.client_cancels()
    else:
        script.user_says("stop it now")
    assert script.record.interruptions() == ([source] if allowed else [])
    refused = [InterruptionRejected(source, "source_not_allowed")]
    assert script.record.published(InterruptionRejected) == ([] if allowed else refused)


def test_by_default_only_the_button_and_a_client_interrupt() -> None:
    script = ScriptedConversation(Policies()).opened()
    script.user_says("tell me a story")
    script.reply_is_playing((16_000,))
    assert script.user_starts_speaking() == (), "the board would hear itself"
    script.provider_interrupts()
    assert script.record.interruptions() == []
    script.user_presses_stop()
    assert script.record.interruptions() == [InterruptionSource.BUTTON]


def test_the_talk_button_interrupts_and_opens_the_turn_in_one_macrostep() -> None:
    policies = Policies(turn=TurnPolicy(authority=TurnAuthority.MANUAL))
    script = ScriptedConversation(policies).opened()
    script.user_says("tell me a story")
    script.reply_is_playing((16_000,))
    script.user_starts_speaking()
    assert script.record.interruptions() == [InterruptionSource.BUTTON]
    assert script.leaves == "ready | speech | cancelling | stopped"


def test_an_empty_message_does_not_interrupt() -> None:
    script = with_interruption()
    assert script.user_types(" ") == ()
    assert script.conversation.configuration.playback == "playing"


def test_switched_off_nothing_interrupts_and_what_is_said_waits() -> None:
    script = with_interruption(interruptible=False)
    script.user_presses_stop()
    script.user_says("stop it now")
    script.user_types("and a joke")
    assert script.record.interruptions() == []
    assert {told.reason for told in script.record.published(InterruptionRejected)} == {"uninterruptible"}
    script.reply_is_drained(32_000)
    assert script.record.answers()[-1] == ("stop it now", "and a joke")


def test_switched_off_an_unheard_reply_is_not_superseded_either() -> None:
    policies = Policies(interruption=replace(HANDS_FREE, interruptible=False))
    script = ScriptedConversation(policies).opened()
    script.user_says("tell me a story")
    script.user_says("about a king")
    script.user_types("please")
    assert len(script.record.replies()) == 1
    assert script.conversation.configuration.generation == "waiting"


# -- speech --------------------------------------------------------------------------------------------------------


def test_a_sound_alone_does_not_interrupt_words_do() -> None:
    script = with_interruption()
    script.user_starts_speaking()
    script.user_keeps_speaking(5_000)
    assert script.conversation.configuration.playback == "playing"
    script.hears("stop")
    assert script.conversation.configuration.playback == "stopped"


@pytest.mark.parametrize(("speech_ms", "interrupts"), [(599, False), (600, True)])
def test_long_speech_interrupts_without_words_where_a_duration_is_configured(speech_ms: int, interrupts: bool) -> None:
    script = with_interruption(min_duration_ms=600)
    script.user_starts_speaking()
    script.user_keeps_speaking(speech_ms)
    assert (script.conversation.configuration.playback == "stopped") is interrupts


def test_a_turn_ended_by_its_limit_or_its_deadline_interrupts_as_one_that_ends_by_itself() -> None:
    for ending in ("limit", "deadline"):
        turn = TurnPolicy(max_turn_ms=1_000, finalization_ms=1_000)
        script = ScriptedConversation(Policies(turn=turn, interruption=replace(HANDS_FREE, min_words=2))).opened()
        script.user_says("tell me a story")
        script.wait(2_000)
        script.user_starts_speaking()
        script.understands("stop", "1")
        if ending == "limit":
            script.wait(1_000)
        else:
            script.user_stops_speaking()
        script.wait(1_000)
        assert script.record.committed_turns() == ["tell me a story", "stop"], ending
        assert script.conversation.configuration.generation == "cancelling"


def test_after_an_interruption_speech_backs_off_for_a_while_and_the_button_does_not() -> None:
    script = with_interruption(backoff_ms=10_000)
    script.user_says("stop it")
    script.model_acknowledges_cancel()
    script.speaker_has_stopped(20_000)
    script.reply_is_playing((16_000, 32_000))
    script.wait(2_000)
    script.user_says("stop again")
    assert [told.reason for told in script.record.published(InterruptionRejected)] == ["backing_off"]
    assert script.conversation.configuration.playback == "playing"
    script.user_presses_stop()
    assert script.record.interruptions() == [InterruptionSource.SPEECH, InterruptionSource.BUTTON]


def test_a_deferred_turn_is_answered_when_the_reply_is_over() -> None:
    script = with_interruption(sources=frozenset({InterruptionSource.BUTTON}))
    script.user_says("and then a joke")
    assert script.record.committed_turns() == ["tell me a story", "and then a joke"]
    script.reply_is_drained(32_000)
    assert script.record.answers()[-1] == ("and then a joke",)


def test_words_of_an_unheard_reply_s_user_supersede_without_asking_the_policy() -> None:
    script = ScriptedConversation(Policies(interruption=InterruptionPolicy(min_words=50))).opened()
    script.user_says("tell me a story")
    script.wait(2_000)
    script.user_says("short")
    assert script.record.interruptions() == []
    script.model_acknowledges_cancel()
    assert script.record.answers()[-1] == ("tell me a story", "short")


def test_a_hypothesis_alone_does_not_supersede_an_unheard_reply() -> None:
    script = ScriptedConversation(Policies(interruption=HANDS_FREE)).opened()
    script.user_says("tell me a story")
    script.wait(2_000)
    script.user_starts_speaking()
    script.hears("make it a long one")
    assert script.conversation.configuration.generation == "waiting"


def test_the_policy_is_asked_once_a_macrostep() -> None:
    asked: list[Evidence] = []

    class Counting(InterruptionPolicy):
        def judge(self, evidence: Evidence) -> Judgement:
            asked.append(evidence)
            return super().judge(evidence)

    policy = Counting(sources=frozenset(InterruptionSource), full_duplex=True)
    script = ScriptedConversation(Policies(interruption=policy)).opened()
    script.user_says("tell me a story")
    script.reply_is_playing((16_000,))
    assert asked == []
    script.user_starts_speaking()
    script.hears("ok")
    script.understands("ok")
    script.user_stops_speaking()
    script.recognition_ends()
    assert len(asked) == 4, "the end of the turn is asked about when its transcript is complete"


def test_a_policy_of_the_embedder_decides() -> None:
    class Never(InterruptionPolicy):
        def judge(self, evidence: Evidence) -> Judgement:
            return Judgement(Verdict.DEFERRED, "house_rules")

    script = ScriptedConversation(Policies(interruption=Never(full_duplex=True))).opened()
    script.user_says("tell me a story")
    script.reply_is_playing((16_000,))
    script.user_presses_stop()
    assert script.record.published(InterruptionRejected) == [
        InterruptionRejected(InterruptionSource.BUTTON, "house_rules")
    ]


# -- suspicion -----------------------------------------------------------------------------------------------------


def test_a_speaker_that_cannot_pause_is_not_paused() -> None:
    policies = Policies(interruption=replace(HANDS_FREE, pause_first=True))
    script = ScriptedConversation(policies, capabilities=Capabilities()).opened()
    script.user_says("tell me a story")
    script.reply_is_playing((16_000,))
    script.user_starts_speaking()
    assert script.conversation.configuration.playback == "playing"
    assert script.record.of(PausePlayback) == []


def test_one_turn_pauses_the_reply_once(reached: Reached) -> None:
    script = reached.paused()
    script.wait(script.conversation.policies.interruption.false_alarm_ms)
    assert script.conversation.configuration.playback == "playing"
    script.hears("mhm")
    script.user_keeps_speaking(3_000)
    assert script.conversation.configuration.playback == "playing"
    assert len(script.record.of(PausePlayback)) == 1


def test_the_next_turn_may_pause_it_again(reached: Reached) -> None:
    script = reached.paused()
    script.finishes_saying("mhm")
    script.user_starts_speaking()
    assert script.conversation.configuration.playback == "paused"
    assert len(script.record.of(PausePlayback)) == 2
    assert len(script.record.of(ResumePlayback)) == 1


def test_a_refused_request_leaves_a_paused_reply_paused() -> None:
    policies = Policies(
        interruption=replace(HANDS_FREE, pause_first=True, sources=frozenset({InterruptionSource.SPEECH}))
    )
    script = ScriptedConversation(policies).opened()
    script.user_says("tell me a story")
    script.reply_is_playing((16_000,))
    script.user_starts_speaking()
    script.user_presses_stop()
    assert script.conversation.configuration.playback == "paused"
    assert len(script.running(TimerKind.FALSE_ALARM)) == 1


def test_an_interruption_ends_the_wait_for_a_false_alarm(reached: Reached) -> None:
    script = reached.paused()
    script.user_presses_stop()
    assert script.running(TimerKind.FALSE_ALARM) == []
    script.wait(60_000)
    assert script.record.of(ResumePlayback) == []


def test_a_lost_connection_stops_a_paused_reply(reached: Reached) -> None:
    script = reached.paused()
    script.connection_breaks()
    assert script.conversation.configuration.playback == "stopped"
    assert script.running(TimerKind.FALSE_ALARM) == []


# -- epochs --------------------------------------------------------------------------------------------------------


def test_epochs_begin_where_the_embedder_says_and_only_grow() -> None:
    conversation = Conversation(
        policies=Policies(interruption=HANDS_FREE, generation=GenerationPolicy(cancel_ack_ms=10)),
        session_epoch=7,
        output_epoch=41,
    )
    script = ScriptedConversation(conversation=conversation).opened()
    seen: list[tuple[int, int]] = []
    conversation.observe(lambda step: seen.append((step.after.context.session_epoch, step.after.context.output_epoch)))
    script.user_says("tell me a story")
    assert script.generation.output_epoch == 41
    script.user_presses_stop()
    script.wait(10)
    script.connects()
    script.user_types("again")
    script.connection_breaks()
    script.closes()
    assert seen == sorted(seen)
    assert seen[-1] == (9, 45)
