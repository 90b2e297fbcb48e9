"""Receipts of stopped streams: kept beside the present stream, each bounded, each settled once."""

from __future__ import annotations

import pytest

from voicechart.statecharts.context import TimerKind
from voicechart.statecharts.published import DeliveryRecorded
from voicechart.statecharts.testing import Reached, ScriptedConversation
from voicechart.statecharts.values import DeliveryStatus, PositionSource


def two_stopped_streams(reached: Reached) -> ScriptedConversation:
    """Two replies were interrupted one after the other; neither stop has been confirmed."""
    script = reached.stopped()
    script.user_types("another one")
    script.reply_is_playing((16_000,), played_samples=4_000)
    script.user_presses_stop()
    script.model_acknowledges_cancel()
    return script


@pytest.mark.parametrize("order", [(1, 2), (2, 1)])
def test_two_stopped_streams_are_settled_each_by_its_own_receipt_in_any_order(
    reached: Reached, order: tuple[int, int]
) -> None:
    script = two_stopped_streams(reached)
    assert len(script.running(TimerKind.STOP_RECEIPT)) == 2
    for stream_id in order:
        script.speaker_has_stopped({1: 32_000, 2: 8_000}[stream_id], stream_id)
    first, second = (script.record.delivery_of(reply) for reply in script.record.replies())
    assert (first.units, first.played_samples) == (2, 32_000)
    assert (second.units, second.played_samples) == (0, 8_000)
    assert script.running(TimerKind.STOP_RECEIPT) == []
    assert script.conversation.context.stopping == ()


def test_a_receipt_says_where_its_position_comes_from(reached: Reached) -> None:
    script = reached.stopped()
    script.speaker_has_stopped(20_160, source=PositionSource.ESTIMATED, confidence=0.7)
    delivery = script.record.delivery_of(script.generation.response_id)
    assert (delivery.source, delivery.confidence) == (PositionSource.ESTIMATED, 0.7)
    assert script.record.published(DeliveryRecorded)[-1] == DeliveryRecorded(
        DeliveryStatus.INTERRUPTED, 1, 20_160, PositionSource.ESTIMATED
    )


def test_a_receipt_that_comes_twice_is_counted_once(reached: Reached) -> None:
    script = reached.stopped()
    script.speaker_has_stopped(20_160)
    assert script.speaker_has_stopped(48_000) == ()
    assert script.record.delivery_of(script.generation.response_id).played_samples == 20_160


def test_a_receipt_comes_in_while_the_next_reply_is_playing(reached: Reached) -> None:
    script = reached.stopped()
    script.user_types("another one")
    script.reply_is_playing((16_000,), played_samples=4_000)
    script.speaker_has_stopped(20_160, stream_id=1)
    assert script.conversation.configuration.playback == "playing"
    assert script.record.deliveries() == [DeliveryStatus.INTERRUPTED]


def test_a_missing_receipt_is_unknown_after_its_deadline_and_stays_so(reached: Reached) -> None:
    script = reached.stopped()
    script.wait(script.conversation.policies.playback.stop_receipt_ms - 1)
    assert script.record.deliveries() == []
    script.wait(1)
    delivery = script.record.delivery_of(script.generation.response_id)
    assert (delivery.status, delivery.played_samples, delivery.confidence) == (DeliveryStatus.UNKNOWN, None, 0.0)
    assert delivery.units == 1
    assert script.speaker_has_stopped(20_160) == ()


@pytest.mark.parametrize("position", [48_000, None])
def test_a_drain_that_the_stop_did_not_overtake_means_delivered(reached: Reached, position: int | None) -> None:
    script = reached.draining()
    script.user_presses_stop()
    script.speaker_drains(position)
    delivery = script.record.delivery_of(script.generation.response_id)
    assert (delivery.status, delivery.units, delivery.played_samples) == (DeliveryStatus.DELIVERED, 3, 48_000)
    assert delivery.source is (PositionSource.ESTIMATED if position is None else PositionSource.MEASURED)


@pytest.mark.parametrize("what", ["generation", "synthesis"])
def test_a_drain_of_a_reply_that_had_failed_is_not_called_delivered(reached: Reached, what: str) -> None:
    script = reached.playing()
    if what == "generation":
        script.model_fails()
        script.audio_ends(32_000)
    else:
        script.model_finishes()
        script.synthesis_fails(32_000)
    script.user_presses_stop()
    script.speaker_drains(32_000)
    delivery = script.record.delivery_of(script.generation.response_id)
    assert (delivery.status, delivery.units) == (DeliveryStatus.INTERRUPTED, 2)


def test_closing_does_not_wait_for_receipts_beyond_its_deadline(reached: Reached) -> None:
    script = two_stopped_streams(reached)
    script.closes()
    assert script.conversation.configuration.connection == "closing"
    script.wait(script.conversation.policies.connection.shutdown_ms)
    assert script.conversation.is_closed
    assert script.record.deliveries() == [DeliveryStatus.UNKNOWN] * 2
    assert script.conversation.context.stopping == ()
