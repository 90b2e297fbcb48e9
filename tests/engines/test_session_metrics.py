"""The session publishes what every turn has cost, and sums it up."""

from __future__ import annotations

import pytest
from trio.testing import MockClock

from voicechart.engines.testing import OnCancel, Rehearsal, Script, ScriptedResponder, says
from voicechart.engines.turn_metrics import TurnMetrics
from voicechart.statecharts.values import DeliveryStatus, Outcome

pytestmark = pytest.mark.anyio
ANSWER = "It is noon. Time for lunch."
STORY = "Once upon a time there was a clock. It told the time to nobody. One day somebody asked it. And it was glad."


@pytest.fixture
def anyio_backend() -> object:
    return "trio", {"clock": MockClock(autojump_threshold=0)}


def turns_of(rehearsal: Rehearsal) -> list[TurnMetrics]:
    payloads = [event.payload for event in rehearsal.of("metrics.turn")]
    return [payload for payload in payloads if isinstance(payload, TurnMetrics)]


async def test_a_turn_that_was_heard_is_published_with_its_identities_and_summed_up() -> None:
    rehearsal = Rehearsal(responder=ScriptedResponder(Script(says(ANSWER, token_ms=30))))
    async with rehearsal.running():
        rehearsal.say("what time is it")
        event = await rehearsal.until("metrics.turn")
        await rehearsal.until("delivery.recorded")
    (metrics,) = turns_of(rehearsal)
    (reply,) = rehearsal.replies
    assert (event.turn_id, event.response_id) == (metrics.turn_id, reply.response_id)
    assert (metrics.outcome, metrics.delivery) == (Outcome.COMPLETED, DeliveryStatus.DELIVERED)
    moments = metrics.milestones
    in_order = (
        moments.turn_accepted,
        moments.model_request,
        moments.first_text,
        moments.first_unit,
        moments.first_pcm,
        moments.first_rendered,
        moments.last_rendered,
    )
    known = [moment for moment in in_order if moment is not None]
    assert len(known) == len(in_order)
    assert known == sorted(known)
    assert metrics.peak_queue_ms is not None
    assert metrics.peak_queue_ms > 0
    assert metrics.stale_frames == 0
    assert rehearsal.session.metrics.totals.turns == 1
    assert "first_rendered_ms" in rehearsal.session.metrics.distributions()
    assert event.as_json()["payload"]["delivery"] == "delivered"


async def test_an_interrupted_turn_is_published_when_both_sides_have_ended() -> None:
    script = Script(says(STORY, token_ms=200), acknowledge_after_ms=300)
    rehearsal = Rehearsal(responder=ScriptedResponder(script))
    async with rehearsal.running():
        rehearsal.say("tell me a story")
        await rehearsal.until("playback.started")
        rehearsal.press_button()
        await rehearsal.until("delivery.recorded")
        assert turns_of(rehearsal) == []
        await rehearsal.until("metrics.turn")
    (metrics,) = turns_of(rehearsal)
    assert metrics.interrupted
    assert metrics.interruption_stop_ms is not None
    assert metrics.interruption_acknowledgement_ms == pytest.approx(300, abs=1)
    assert rehearsal.session.metrics.totals.interruptions == 1


async def test_closing_in_the_middle_of_a_reply_publishes_it_before_the_last_event() -> None:
    script = Script(says(STORY, token_ms=200), on_cancel=OnCancel.HANG)
    rehearsal = Rehearsal(responder=ScriptedResponder(script))
    async with rehearsal.running():
        rehearsal.say("tell me a story")
        await rehearsal.until("playback.started")
    assert len(turns_of(rehearsal)) == 1
    assert rehearsal.events[-1].type == "session.closed"


async def test_no_words_of_anybody_are_in_the_metrics() -> None:
    rehearsal = Rehearsal(responder=ScriptedResponder(Script(says(ANSWER))))
    async with rehearsal.running():
        rehearsal.say("what time is it")
        event = await rehearsal.until("metrics.turn")
    written = str(event.as_json())
    assert "noon" not in written
    assert "what time" not in written
