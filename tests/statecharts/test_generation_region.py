"""The Generation region, row by row: admission, retries, endings, cancels."""

from __future__ import annotations

from dataclasses import replace

import pytest

from voicechart.statecharts import GenerationPolicy, Policies
from voicechart.statecharts.actions import (
    CancelGeneration,
    CancelSynthesis,
    CancelTools,
    RecordResponse,
    StartGeneration,
    StartTimer,
    StopPlayback,
)
from voicechart.statecharts.context import TimerKind
from voicechart.statecharts.published import (
    CancelConfirmed,
    CancelRequested,
    ResponseStarted,
    ResponseTerminal,
    RunTerminal,
    StreamError,
    UsageChanged,
)
from voicechart.statecharts.testing import HANDS_FREE, Reached, ScriptedConversation, scripted_error
from voicechart.statecharts.values import DeliveryStatus, Outcome, Usage


def with_generation(**policy: object) -> ScriptedConversation:
    generation = GenerationPolicy(**policy)  # pyright: ignore[reportArgumentType]
    script = ScriptedConversation(Policies(generation=generation, interruption=HANDS_FREE)).opened()
    script.user_says("what time is it")
    return script


# -- admission -----------------------------------------------------------------------------------------------------


def test_an_admitted_turn_starts_a_run_a_response_and_an_attempt_in_the_present_epoch(reached: Reached) -> None:
    script = reached.waiting()
    start = script.generation
    assert len({start.run_id, start.response_id, start.attempt_id}) == 3
    assert start.output_epoch == script.conversation.context.output_epoch == start.stamp.output_epoch
    assert [told.attempt for told in script.record.published(ResponseStarted)] == [1]
    assert len(script.running(TimerKind.PROGRESS)) == 1


def test_identities_are_never_used_again(reached: Reached) -> None:
    script = reached.drained()
    script.user_types("and now")
    first, second = script.record.of(StartGeneration)
    assert {first.run_id, first.response_id, first.attempt_id}.isdisjoint(
        {second.run_id, second.response_id, second.attempt_id}
    )


@pytest.mark.parametrize("state", ["playing", "draining"])
def test_the_next_reply_waits_until_the_former_one_is_over_at_the_ear(reached: Reached, state: str) -> None:
    script = reached.everywhere()[state]
    patient = replace(script.conversation.policies, interruption=replace(HANDS_FREE, sources=frozenset()))
    script = ScriptedConversation(patient).opened()
    script.user_says("what time is it")
    script.reply_is_playing((16_000,))
    if state == "draining":
        script.model_finishes()
        script.audio_ends(16_000)
    script.user_types("and in Paris")
    assert len(script.record.replies()) == 1
    script.reply_is_drained(16_000)
    assert script.record.answers()[-1] == ("and in Paris",)


# -- going on ------------------------------------------------------------------------------------------------------


def test_the_first_output_makes_it_streaming_once(reached: Reached) -> None:
    script = reached.waiting()
    script.model_starts_writing()
    assert script.conversation.configuration.generation == "streaming"
    assert script.model_starts_writing() == ()


def test_facts_of_another_attempt_change_nothing_but_usage(reached: Reached) -> None:
    script = reached.streaming()
    leaves = script.leaves
    assert script.model_starts_writing("another") == ()
    assert script.model_goes_on("another") == ()
    assert script.model_calls_tool("call-1", "another") == ()
    assert script.model_waits_for_tools("another") == ()
    assert script.model_finishes("another") == ()
    assert script.model_fails(attempt_id="another") == ()
    assert script.leaves == leaves
    assert script.usage_is_reported(Usage(1, 2), "another") != ()
    assert script.leaves == leaves


@pytest.mark.parametrize("state", ["idle", "waiting", "cancelling", "cancelled", "failed", "drained"])
def test_usage_is_published_whenever_it_comes(reached: Reached, state: str) -> None:
    script = reached.everywhere()[state]
    of_the_reply = state != "idle"
    script.usage_is_reported(Usage(10, 20), None if of_the_reply else "unknown")
    assert script.record.published(UsageChanged) == [UsageChanged(Usage(10, 20))]
    response = script.conversation.context.response
    assert (response.usage if response else None) == (Usage(10, 20) if of_the_reply else None)


def test_a_model_that_goes_on_is_not_given_up(reached: Reached) -> None:
    script = reached.streaming()
    stall_ms = script.conversation.policies.generation.stall_ms
    for _ in range(3):
        script.wait(stall_ms - 1)
        script.model_goes_on()
    assert script.conversation.configuration.generation == "streaming"


def test_a_model_without_progress_is_given_up_and_asked_again_when_nothing_was_heard(reached: Reached) -> None:
    script = reached.streaming()
    script.wait(script.conversation.policies.generation.stall_ms)
    script.record.assert_in_order(StopPlayback, CancelGeneration, CancelSynthesis)
    assert script.conversation.configuration.generation == "cancelling"
    assert [told.error.code for told in script.record.published(StreamError)] == ["generation_stalled"]
    assert script.record.interruptions() == []
    script.model_acknowledges_cancel()
    assert script.record.answers() == [("what time is it",)] * 2


def test_a_model_that_stalls_while_it_is_heard_is_not_asked_again(reached: Reached) -> None:
    script = reached.playing()
    for _ in range(10):
        script.wait(script.conversation.policies.generation.stall_ms / 10)
        script.speaker_has_played(20_000 + script.now_ns // 1_000_000)
    assert script.conversation.configuration.generation == "cancelling"
    script.model_acknowledges_cancel()
    script.speaker_has_stopped(30_000)
    script.wait(60_000)
    assert len(script.record.replies()) == 1
    assert script.record.outcome_of(script.generation.response_id) is Outcome.CANCELLED


# -- endings -------------------------------------------------------------------------------------------------------


def test_a_completed_generation_says_nothing_about_playback(reached: Reached) -> None:
    script = reached.playing()
    script.model_finishes()
    assert script.leaves == "ready | committed | completed | playing"
    [terminal] = script.record.published(ResponseTerminal)
    assert (terminal.outcome, terminal.reason, terminal.acknowledged) == (Outcome.COMPLETED, "", True)
    assert [told.outcome for told in script.record.published(RunTerminal)] == [Outcome.COMPLETED]
    assert script.record.deliveries() == []


def test_a_completed_reply_has_so_long_to_its_first_audio(reached: Reached) -> None:
    script = reached.streaming()
    script.model_finishes()
    first_audio_ms = script.conversation.policies.generation.first_audio_ms
    script.wait(first_audio_ms - 1)
    assert script.record.deliveries() == []
    script.wait(1)
    assert script.record.deliveries() == [DeliveryStatus.FAILED]
    assert len(script.record.of(CancelSynthesis)) == 1


def test_a_failure_after_visible_output_is_marked_and_never_begun_anew(reached: Reached) -> None:
    script = reached.playing()
    script.model_fails()
    assert script.leaves == "ready | committed | failed | playing"
    assert [told.error.code for told in script.record.published(StreamError)] == ["model_lost"]
    script.audio_ends(32_000)
    script.speaker_drains(32_000)
    delivery = script.record.delivery_of(script.generation.response_id)
    assert (delivery.status, delivery.units) == (DeliveryStatus.FAILED, 2)
    assert len(script.record.of(StartGeneration)) == 1


def test_a_failure_without_any_output_leaves_nothing_to_wait_for(reached: Reached) -> None:
    script = reached.waiting()
    script.model_fails(scripted_error("auth_refused", retryable=False))
    assert script.record.deliveries() == [DeliveryStatus.FAILED]
    assert not script.timers
    script.user_types("try again")
    assert script.record.answers()[-1] == ("try again",)


# -- retries -------------------------------------------------------------------------------------------------------


def test_a_passing_failure_is_retried_with_growing_delays_as_new_attempts_of_the_same_response() -> None:
    script = with_generation(max_attempts=4, retry_ms=500, max_retry_ms=1_500)
    delays: list[int] = []
    for _ in range(3):
        script.model_fails()
        [timer] = [a for a in script.record.last if isinstance(a, StartTimer)]
        assert timer.kind is TimerKind.RETRY
        delays.append(timer.delay_ms)
        script.wait(timer.delay_ms)
    assert delays == [500, 1_000, 1_500]
    starts = script.record.of(StartGeneration)
    assert len({start.attempt_id for start in starts}) == 4
    assert len({start.response_id for start in starts}) == len({start.run_id for start in starts}) == 1
    assert [told.attempt for told in script.record.published(ResponseStarted)] == [1, 2, 3, 4]
    script.model_fails()
    assert script.record.outcome_of(starts[0].response_id) is Outcome.FAILED


@pytest.mark.parametrize(("retry_after_ms", "delay_ms"), [(100, 500), (4_000, 4_000), (99_000, 10_000)])
def test_retry_after_is_honoured_and_capped(retry_after_ms: int, delay_ms: int) -> None:
    script = with_generation()
    script.model_fails(scripted_error("busy", retry_after_ms=retry_after_ms))
    assert script.record.of(StartTimer)[-1].delay_ms == delay_ms


@pytest.mark.parametrize(
    "obstacle", ["visible output", "a dispatched tool", "partial output", "not retryable", "budget"]
)
def test_there_is_no_retry_once_something_may_be_repeated_or_nothing_can_help(obstacle: str) -> None:
    script = with_generation(max_attempts=1 if obstacle == "budget" else 3)
    error = scripted_error("model_lost", retryable=obstacle != "not retryable")
    if obstacle == "visible output":
        script.model_starts_writing()
    elif obstacle == "a dispatched tool":
        script.model_calls_tool("call-1")
    elif obstacle == "partial output":
        error = replace(error, partial_output=True)
    script.model_fails(error)
    assert script.conversation.configuration.generation == "failed"
    assert script.running(TimerKind.RETRY) == []


def test_the_failed_attempt_says_nothing_more_while_its_retry_waits() -> None:
    script = with_generation()
    failed = script.generation.attempt_id
    script.model_fails()
    assert script.model_starts_writing(failed) == ()
    assert script.model_finishes(failed) == ()
    assert script.conversation.configuration.generation == "waiting"


def test_an_interruption_ends_a_waiting_retry() -> None:
    script = with_generation()
    script.model_fails()
    script.user_presses_stop()
    assert script.running(TimerKind.RETRY) == []
    script.model_acknowledges_cancel(script.record.cancelled_attempts()[-1])
    script.wait(60_000)
    assert len(script.record.of(StartGeneration)) == 1
    assert script.record.outcome_of(script.generation.response_id) is Outcome.CANCELLED


# -- cancelling ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("state", ["waiting", "streaming", "tools", "playing"])
def test_an_interruption_asks_the_model_to_end_and_waits(reached: Reached, state: str) -> None:
    script = reached.everywhere()[state]
    script.user_presses_stop()
    assert script.conversation.configuration.generation == "cancelling"
    [cancel] = script.record.of(CancelGeneration)
    assert cancel.attempt_id == script.generation.attempt_id
    assert [told.reason for told in script.record.published(CancelRequested)] == ["asked_for"]
    assert script.record.of(RecordResponse) == []
    assert len(script.running(TimerKind.CANCEL_ACK)) == 1
    assert script.running(TimerKind.PROGRESS) == []


@pytest.mark.parametrize("answer", ["acknowledged", "completed", "failed", "step completed"])
def test_any_answer_of_this_attempt_ends_the_cancel(reached: Reached, answer: str) -> None:
    script = reached.cancelling()
    if answer == "acknowledged":
        script.model_acknowledges_cancel()
    elif answer == "completed":
        script.model_finishes()
    elif answer == "failed":
        script.model_fails()
    else:
        script.model_waits_for_tools()
    assert script.conversation.configuration.generation == "cancelled"
    [terminal] = script.record.published(ResponseTerminal)
    assert (terminal.outcome, terminal.reason, terminal.acknowledged) == (Outcome.CANCELLED, "asked_for", True)
    assert len(script.record.published(CancelConfirmed)) == (1 if answer == "acknowledged" else 0)
    assert script.running(TimerKind.CANCEL_ACK) == []


def test_an_acknowledgement_of_another_attempt_does_not_end_the_cancel(reached: Reached) -> None:
    script = reached.cancelling()
    assert script.model_acknowledges_cancel("another") == ()
    assert script.conversation.configuration.generation == "cancelling"


def test_a_lost_connection_ends_a_cancel_unacknowledged(reached: Reached) -> None:
    script = reached.cancelling()
    script.connection_breaks()
    [terminal] = script.record.published(ResponseTerminal)
    assert (terminal.outcome, terminal.acknowledged) == (Outcome.CANCELLED, False)


def test_a_cancel_that_nobody_acknowledges_reconnects_and_then_admits(reached: Reached) -> None:
    script = reached.cancelling()
    script.user_types("what day is it")
    cancel_ack_ms = script.conversation.policies.generation.cancel_ack_ms
    script.wait(cancel_ack_ms - 1)
    assert script.conversation.configuration.generation == "cancelling"
    script.wait(1)
    assert script.leaves == "reconnecting | committed | cancelled | idle"
    assert len(script.record.replies()) == 1
    script.connects()
    assert script.record.answers()[-1] == ("what day is it",)


def test_a_second_interruption_while_cancelling_changes_nothing(reached: Reached) -> None:
    script = reached.cancelling()
    epoch = script.conversation.context.output_epoch
    assert script.user_presses_stop() == ()
    assert script.client_cancels() == ()
    assert script.conversation.context.output_epoch == epoch


def test_a_cancel_names_no_tools_when_none_is_open(reached: Reached) -> None:
    script = reached.cancelling()
    assert script.record.of(CancelTools) == []


def test_a_client_cancels_only_the_run_it_names(reached: Reached) -> None:
    script = reached.playing()
    assert script.client_cancels("another-run") == ()
    script.client_cancels(script.generation.run_id)
    assert script.conversation.configuration.generation == "cancelling"
