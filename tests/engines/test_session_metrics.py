"""The session publishes what every turn has cost, and sums it up."""

from __future__ import annotations

from dataclasses import asdict

import pytest
from trio.testing import MockClock

from voicechart.engines.testing import (
    LinkScript,
    OnCancel,
    Rehearsal,
    Script,
    ScriptedDevice,
    ScriptedRecognizer,
    ScriptedResponder,
    ScriptedSynthesizer,
    SpeakerScript,
    SpeechScript,
    hears,
    says,
)
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


async def test_a_spoken_turn_whose_reply_is_interrupted_has_every_milestone_there_is() -> None:
    device = ScriptedDevice(LinkScript(speaker=SpeakerScript(stop_receipt_after_ms=5)))
    rehearsal = Rehearsal(
        device=device,
        recognizer=ScriptedRecognizer(Script(hears("tell me a story")), Script(hears("stop it"))),
        responder=ScriptedResponder(
            Script(says(STORY, token_ms=150), acknowledge_after_ms=40), answers=lambda _: Script(says(ANSWER))
        ),
        synthesizer=ScriptedSynthesizer(SpeechScript(ms_per_char=20)),
    )
    async with rehearsal.running():
        microphone = device.microphone
        await microphone.listen(1_000, value=1_000)
        while not rehearsal.of("playback.started"):
            await microphone.listen(20)
        await microphone.listen(600, value=1_000)
        while not turns_of(rehearsal):
            await microphone.listen(20)
    metrics = turns_of(rehearsal)[0]
    moments = asdict(metrics.milestones)
    # The last sound of an interrupted reply that is still being written was never made.
    assert [name for name, moment in moments.items() if moment is None] == ["last_pcm"]
    assert moments["speech_started"] <= moments["first_transcript"] < moments["last_speech"] < moments["turn_accepted"]
    assert moments["turn_accepted"] <= moments["model_request"] < moments["first_text"] < moments["first_unit"]
    assert moments["first_unit"] <= moments["first_pcm"] < moments["first_rendered"] < moments["interruption_accepted"]
    assert metrics.interruption_stop_ms == pytest.approx(5, abs=0.1)
    assert metrics.interruption_acknowledgement_ms == pytest.approx(40, abs=0.1)
    assert moments["last_rendered"] == moments["local_stop"]


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
