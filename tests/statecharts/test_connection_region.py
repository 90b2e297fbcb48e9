"""The Connection region, row by row."""

from __future__ import annotations

from dataclasses import replace

import pytest

from voicechart.statecharts import ConnectionPolicy, Conversation, Policies, SeededIds
from voicechart.statecharts.actions import (
    CancelSynthesis,
    Connect,
    Disconnect,
    RecordResponse,
    Release,
    StartTimer,
    StopPlayback,
)
from voicechart.statecharts.capabilities import (
    Capabilities,
    RecognizerCapabilities,
    ResponderCapabilities,
    StreamingPolicy,
    SynthesizerCapabilities,
)
from voicechart.statecharts.context import TimerKind
from voicechart.statecharts.published import (
    SessionClosed,
    SessionClosing,
    SessionReady,
    SessionReconnecting,
    TurnDiscarded,
    TurnDropped,
)
from voicechart.statecharts.testing import HANDS_FREE, Reached, ScriptedConversation, scripted_error
from voicechart.statecharts.values import DeliveryStatus, Outcome, ToolStatus

STREAMING = Capabilities(
    recognizer=RecognizerCapabilities(live_input=True),
    responder=ResponderCapabilities(text_deltas=True),
    synthesizer=SynthesizerCapabilities(incremental_pcm=True),
)


def with_connection(**policy: object) -> ScriptedConversation:
    connection = ConnectionPolicy(**policy)  # pyright: ignore[reportArgumentType]
    return ScriptedConversation(Policies(connection=connection, interruption=HANDS_FREE))


def test_opening_asks_for_a_connection_once(unopened: ScriptedConversation) -> None:
    unopened.opens()
    assert [action.attempt for action in unopened.record.of(Connect)] == [1]
    assert unopened.opens() == ()
    assert len(unopened.running(TimerKind.CONNECT)) == 1


def test_a_connection_is_ready_when_it_is_negotiated(unopened: ScriptedConversation) -> None:
    unopened.opens()
    degraded = replace(STREAMING, degradations=("no captions",))
    unopened.connects(degraded)
    assert unopened.leaves == "ready | idle | idle | idle"
    assert [ready.degradations for ready in unopened.record.published(SessionReady)] == [("no captions",)]
    assert unopened.conversation.context.capabilities == degraded
    assert not unopened.timers


@pytest.mark.parametrize(
    ("lacking", "named"),
    [
        (replace(STREAMING, recognizer=RecognizerCapabilities()), "recognizer.live_input"),
        (replace(STREAMING, responder=ResponderCapabilities()), "responder.text_deltas"),
        (replace(STREAMING, synthesizer=SynthesizerCapabilities()), "synthesizer.incremental_pcm"),
    ],
)
@pytest.mark.parametrize("again", [False, True], ids=["opening", "reconnecting"])
def test_required_streaming_refuses_what_cannot_and_names_it(lacking: Capabilities, named: str, again: bool) -> None:
    script = with_connection(streaming=StreamingPolicy.REQUIRED)
    script.opens()
    if again:
        script.connecting_fails()
    script.connects(lacking)
    [closed] = script.record.published(SessionClosed)
    assert closed.reason == "streaming_required"
    assert closed.error is not None
    assert f"lacks: {named}." in closed.error.message
    assert not closed.error.retryable
    assert script.conversation.is_closed
    assert not script.timers


def test_required_streaming_accepts_what_can() -> None:
    script = with_connection(streaming=StreamingPolicy.REQUIRED)
    script.opens()
    script.connects(STREAMING)
    assert script.conversation.configuration.connection == "ready"


@pytest.mark.parametrize("policy", [StreamingPolicy.PREFER, StreamingPolicy.DISABLED])
def test_other_streaming_policies_accept_anything(policy: StreamingPolicy) -> None:
    script = with_connection(streaming=policy)
    script.opens()
    script.connects(Capabilities())
    assert script.conversation.configuration.connection == "ready"


def test_failed_attempts_back_off_longer_and_longer_up_to_the_bound() -> None:
    script = with_connection(backoff_ms=200, max_backoff_ms=1_000, max_attempts=6, connect_ms=600_000)
    script.opens()
    delays: list[int] = []
    for attempt in range(1, 6):
        script.connecting_fails()
        assert script.conversation.configuration.connection == "reconnecting"
        [timer] = [a for a in script.record.last if isinstance(a, StartTimer)]
        delays.append(timer.delay_ms)
        script.wait(timer.delay_ms)
        assert script.record.of(Connect)[-1].attempt == attempt + 1
    for delay_ms, full_ms in zip(delays, (200, 400, 800, 1_000, 1_000), strict=True):
        assert full_ms // 2 <= delay_ms <= full_ms, "half of it is jitter"
    told = script.record.published(SessionReconnecting)
    assert [(said.attempt, said.reason) for said in told] == [(n, "refused") for n in range(1, 6)]


def test_the_jitter_differs_between_conversations_and_repeats_on_replay() -> None:
    def first_delay(seed: str) -> int:
        policies = Policies(connection=ConnectionPolicy(backoff_ms=60_000, max_backoff_ms=60_000))
        script = ScriptedConversation(conversation=Conversation(policies=policies, ids=SeededIds(seed)))
        script.opens()
        script.connecting_fails()
        return script.record.of(StartTimer)[-1].delay_ms

    delays = [first_delay(str(seed)) for seed in range(20)]
    assert len(set(delays)) > 10
    assert delays == [first_delay(str(seed)) for seed in range(20)]


@pytest.mark.parametrize(("retry_after_ms", "delay_ms"), [(3_000, 3_000), (99_000, 5_000)])
def test_retry_after_is_honoured_up_to_the_longest_back_off(retry_after_ms: int, delay_ms: int) -> None:
    script = with_connection()
    script.opens()
    script.connecting_fails(retry_after_ms=retry_after_ms)
    assert script.record.of(StartTimer)[-1].delay_ms == delay_ms


@pytest.mark.parametrize("max_attempts", [1, 3])
def test_the_number_of_attempts_is_bounded(max_attempts: int) -> None:
    script = with_connection(max_attempts=max_attempts, connect_ms=600_000)
    script.opens()
    for _ in range(max_attempts - 1):
        script.connecting_fails()
        script.wait(10_000)
    assert not script.conversation.is_closed
    script.connecting_fails()
    assert script.conversation.is_closed
    assert len(script.record.of(Connect)) == max_attempts
    [closed] = script.record.published(SessionClosed)
    assert closed.reason == "refused"


@pytest.mark.parametrize("again", [False, True], ids=["opening", "reconnecting"])
def test_a_failure_that_cannot_pass_closes_at_once(again: bool) -> None:
    script = with_connection()
    script.opens()
    if again:
        script.connecting_fails()
    script.connecting_fails(retryable=False)
    assert script.conversation.is_closed
    [release] = script.record.of(Release)
    assert release.error is not None
    assert release.error.code == "refused"


@pytest.mark.parametrize("doing", ["an attempt", "a back-off"])
def test_all_attempts_share_one_deadline(doing: str) -> None:
    script = with_connection(connect_ms=1_000, backoff_ms=60_000, max_backoff_ms=60_000)
    script.opens()
    if doing == "a back-off":
        script.connecting_fails()
    script.wait(999)
    assert not script.conversation.is_closed
    script.wait(1)
    [closed] = script.record.published(SessionClosed)
    assert closed.reason == "connect_timed_out"
    assert closed.error is not None
    assert "no connection within 1000 ms" in closed.error.message
    assert not script.timers


def test_a_failure_before_anything_was_tried_is_bounded_too(unopened: ScriptedConversation) -> None:
    unopened.connecting_fails()
    assert unopened.conversation.configuration.connection == "reconnecting"
    unopened.wait(unopened.conversation.policies.connection.connect_ms)
    assert unopened.conversation.is_closed


def test_a_later_reconnect_has_the_whole_budget_again() -> None:
    script = with_connection(max_attempts=2)
    script.opens()
    script.connecting_fails()
    script.wait(1_000)
    script.connects()
    script.connection_breaks()
    script.connecting_fails()
    assert script.conversation.configuration.connection == "reconnecting"


def test_a_lost_connection_steps_both_epochs_and_silences_before_anything_else(reached: Reached) -> None:
    script = reached.playing()
    before = script.conversation.context
    epochs = before.session_epoch, before.output_epoch
    script.connection_breaks()
    after = script.conversation.context
    assert (after.session_epoch, after.output_epoch) == (epochs[0] + 1, epochs[1] + 1)
    script.record.assert_in_order(StopPlayback, CancelSynthesis, RecordResponse, Disconnect, Connect)
    assert script.leaves == "reconnecting | committed | failed | stopped"
    assert script.record.outcome_of(script.generation.response_id) is Outcome.FAILED
    [told] = script.record.published(SessionReconnecting)
    assert (told.attempt, told.reason) == (1, "device_lost")
    assert all(action.stamp.session_epoch == after.session_epoch for action in script.record.last)


def test_a_lost_reply_that_was_heard_is_not_said_again(reached: Reached) -> None:
    script = reached.playing()
    script.connection_breaks()
    script.speaker_has_stopped(20_000)
    script.connects()
    script.wait(60_000)
    assert len(script.record.replies()) == 1
    assert script.record.delivery_of(script.generation.response_id).status is DeliveryStatus.INTERRUPTED


def test_a_lost_reply_that_nobody_heard_is_asked_for_again(reached: Reached) -> None:
    script = reached.streaming()
    script.connection_breaks()
    script.connects()
    assert script.record.answers() == [("what time is it",)] * 2


def test_a_lost_reply_with_a_tool_that_ran_is_not_asked_for_again(reached: Reached) -> None:
    script = reached.tools()
    script.connection_breaks()
    script.connects()
    assert script.record.tool_runs() == ["call-1"]
    assert script.record.tool_outcome_of("call-1") is ToolStatus.UNKNOWN
    assert len(script.record.replies()) == 1


def test_speech_that_was_open_when_the_connection_broke_is_discarded(reached: Reached) -> None:
    script = reached.hypothesis()
    script.connection_breaks()
    assert [discarded.reason for discarded in script.record.published(TurnDiscarded)] == ["connection_lost"]
    assert script.leaves == "reconnecting | discarded | idle | idle"


def test_an_expiring_session_is_renewed_in_the_same_way(reached: Reached) -> None:
    script = reached.playing()
    script.session_expires()
    script.record.assert_in_order(StopPlayback, Disconnect, Connect)
    assert script.leaves == "reconnecting | committed | failed | stopped"
    [told] = script.record.published(SessionReconnecting)
    assert told.reason == "session_renewed"


def test_an_unacknowledged_cancel_reconnects(reached: Reached) -> None:
    script = reached.cancelling()
    session_epoch = script.conversation.context.session_epoch
    script.wait(script.conversation.policies.generation.cancel_ack_ms)
    assert script.leaves == "reconnecting | committed | cancelled | idle"
    assert script.conversation.context.session_epoch == session_epoch + 1


def test_a_turn_spoken_before_the_session_is_ready_is_answered_when_it_is(unopened: ScriptedConversation) -> None:
    unopened.opens()
    unopened.user_says("hello")
    assert unopened.record.replies() == []
    unopened.connects()
    assert unopened.record.answers() == [("hello",)]


@pytest.mark.parametrize("state", ["opening", "idle", "reconnecting"])
def test_a_conversation_at_rest_closes_at_once(reached: Reached, state: str) -> None:
    script = reached.everywhere()[state]
    script.closes("shutting down", scripted_error("disk_full"))
    assert script.conversation.is_closed
    assert [closing.reason for closing in script.record.published(SessionClosing)] == ["shutting down"]
    [release] = script.record.of(Release)
    assert release.reason == "shutting down"
    assert release.error is not None
    assert release.error.code == "disk_full"
    assert script.record.last[-1] is release, "the last thing that is ever asked for"
    assert not script.timers


@pytest.mark.parametrize("state", ["speech", "hypothesis", "waiting", "tools", "cancelling", "playing", "paused"])
def test_closing_waits_for_every_region_to_rest(reached: Reached, state: str) -> None:
    script = reached.everywhere()[state]
    script.closes()
    while script.conversation.configuration.generation == "cancelling":
        assert script.conversation.configuration.connection == "closing"
        script.model_acknowledges_cancel()
    if script.conversation.context.stopping:
        assert script.conversation.configuration.connection == "closing"
        script.speaker_has_stopped(20_000)
    assert script.conversation.is_closed
    assert script.now_ns == 0
    assert not script.timers


def test_closing_ends_within_the_shutdown_deadline_whatever_does_not_come(reached: Reached) -> None:
    script = reached.playing()
    script.model_calls_tool("call-1", background=True)
    script.closes()
    script.wait(script.conversation.policies.connection.shutdown_ms)
    assert script.conversation.is_closed
    assert script.record.outcome_of(script.generation.response_id) is Outcome.CANCELLED
    assert script.record.delivery_of(script.generation.response_id).status is DeliveryStatus.UNKNOWN
    assert script.record.tool_outcome_of("call-1") is ToolStatus.UNKNOWN
    assert not script.timers


def test_the_shutdown_deadline_alone_closes_too() -> None:
    policies = Policies(connection=ConnectionPolicy(shutdown_ms=50), interruption=HANDS_FREE)
    script = ScriptedConversation(policies).opened()
    script.user_says("what time is it")
    script.reply_is_playing((16_000,))
    script.closes()
    script.wait(49)
    assert script.conversation.configuration.connection == "closing"
    script.wait(1)
    assert script.conversation.is_closed
    assert script.record.outcome_of(script.generation.response_id) is Outcome.CANCELLED
    assert script.record.delivery_of(script.generation.response_id).status is DeliveryStatus.UNKNOWN


def test_turns_that_will_not_be_answered_are_reported_when_it_closes(unopened: ScriptedConversation) -> None:
    unopened.opens()
    unopened.user_types("first")
    unopened.user_types("second")
    unopened.closes()
    assert [dropped.reason for dropped in unopened.record.published(TurnDropped)] == ["closed", "closed"]


def test_nothing_is_begun_while_closing(reached: Reached) -> None:
    script = reached.closing()
    before = script.leaves
    assert script.user_starts_speaking() == ()
    assert script.user_types("hello") == ()
    assert script.connects() == ()
    assert script.leaves == before


def test_closed_is_final(reached: Reached) -> None:
    script = reached.closed()
    leaves = script.leaves
    for told in (script.opens, script.connects, script.connection_breaks, script.closes, script.user_starts_speaking):
        assert told() == ()
    assert script.leaves == leaves


def test_a_session_that_expires_in_silence_is_made_anew_at_once(reached: Reached) -> None:
    script = reached.idle()
    script.session_expires(within_ms=60_000)
    script.record.assert_in_order(StopPlayback, Disconnect, Connect)


def test_what_is_being_said_is_finished_before_an_expiring_session_is_made_anew(reached: Reached) -> None:
    script = reached.playing()
    epoch = script.conversation.context.session_epoch
    script.session_expires(within_ms=60_000)
    assert script.conversation.configuration.connection == "ready"
    script.reply_is_drained(16_000)
    script.wait(0)
    assert script.conversation.configuration.connection == "reconnecting"
    assert script.conversation.context.session_epoch == epoch + 1
    assert script.record.deliveries() == [DeliveryStatus.DELIVERED]


@pytest.mark.parametrize(("within_ms", "goes_on"), [(2_000, False), (2_001, True)])
def test_an_expiring_session_waits_only_when_it_lives_longer_than_the_margin(
    reached: Reached, within_ms: int, goes_on: bool
) -> None:
    script = reached.playing()
    script.session_expires(within_ms=within_ms)
    assert (script.conversation.configuration.connection == "ready") is goes_on


def test_an_expiring_session_is_made_anew_the_margin_before_its_end_whatever_is_being_said(reached: Reached) -> None:
    script = reached.playing()
    script.session_expires(within_ms=5_000)
    script.wait(2_999)
    assert script.conversation.configuration.connection == "ready"
    script.wait(1)
    assert script.conversation.configuration.connection == "reconnecting"


def test_a_session_that_is_lost_again_and_again_is_made_anew_more_and_more_slowly() -> None:
    script = ScriptedConversation().opened()
    waits: list[int] = []
    for _ in range(4):
        script.connection_breaks()
        backing_off = script.running(TimerKind.BACKOFF)
        waits.append(round((backing_off[0].due_ns - script.now_ns) / 1_000_000) if backing_off else 0)
        script.wait(waits[-1])
        script.connects()
    first, second, third, fourth = waits
    assert first == 0
    assert 125 <= second <= 250 <= third <= 500 <= fourth <= 1_000


@pytest.mark.parametrize(("lived_ms", "waits"), [(4_999, True), (5_000, False)])
def test_a_session_that_lasted_is_made_anew_at_once(lived_ms: int, waits: bool) -> None:
    script = ScriptedConversation().opened()
    script.connection_breaks()
    script.connects()
    script.wait(lived_ms)
    script.connection_breaks()
    assert bool(script.running(TimerKind.BACKOFF)) is waits
