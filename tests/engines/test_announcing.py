"""Saying a text as it is: what the handle tells, and where the text goes and does not go."""

from __future__ import annotations

import anyio
import pytest
from trio.testing import MockClock

from voicechart.engines import Session
from voicechart.engines.announcing import MAX_SAY_CHARS, Said
from voicechart.engines.history import Reply, messages_of
from voicechart.engines.public_events import TextFinished
from voicechart.engines.testing import Rehearsal, Script, ScriptedResponder, TextRehearsal, says
from voicechart.statecharts.values import AnnouncementOutcome, DeliveryStatus

pytestmark = pytest.mark.anyio
PLAYED = AnnouncementOutcome.PLAYED


@pytest.fixture
def anyio_backend() -> object:
    return "trio", {"clock": MockClock(autojump_threshold=0)}


async def test_a_text_is_said_recorded_and_told_as_played() -> None:
    rehearsal = Rehearsal()
    async with rehearsal.running():
        handle = rehearsal.session.say("The tea is ready.")
        assert await handle.wait() == Said(PLAYED)
        assert handle.said == Said(PLAYED)
    [reply] = rehearsal.replies
    assert reply.delivery is not None
    assert (reply.generated, reply.delivery.status) == ("The tea is ready.", DeliveryStatus.DELIVERED)
    assert [message.text for message in messages_of(rehearsal.records)] == ["The tea is ready."]


async def test_a_private_notification_is_heard_and_leaves_no_trace_of_its_words() -> None:
    rehearsal = Rehearsal()
    async with rehearsal.running():
        assert await rehearsal.session.say("Your insurance wrote.", record=False).wait() == Said(PLAYED)
    assert rehearsal.records == ()
    assert "insurance" not in "".join(str(event.as_json()) for event in rehearsal.events)
    seen = {event.type for event in rehearsal.events if event.visibility == "user"}
    assert not {"announcement.started", "announcement.ended", "text.delta", "text.final"} & seen


async def test_the_model_is_not_told_of_a_private_notification_and_is_of_another() -> None:
    responder = ScriptedResponder(Script(says("Noon.")))
    rehearsal = Rehearsal(responder=responder)
    async with rehearsal.running():
        await rehearsal.session.say("Your insurance wrote.", record=False).wait()
        await rehearsal.session.say("The tea is ready.").wait()
        rehearsal.say("what time is it")
        await rehearsal.until("playback.drained", 3)
    told = [message.text for message in responder.requests[0].messages]
    assert "Your insurance wrote." not in told


async def test_an_interrupted_one_says_so_and_keeps_what_was_heard() -> None:
    rehearsal = Rehearsal()
    async with rehearsal.running():
        handle = rehearsal.session.say("One is short. Two is a very long sentence that goes on and on and on.")
        await rehearsal.until("playback.started")
        await anyio.sleep(1.5)
        rehearsal.press_button()
        said = await handle.wait()
    assert said == Said(AnnouncementOutcome.INTERRUPTED, "interrupted")
    [reply] = rehearsal.replies
    assert reply.delivery is not None
    assert reply.delivery.text == "One is short."


async def test_cancelling_stops_what_is_being_said_and_drops_what_waits() -> None:
    rehearsal = Rehearsal()
    async with rehearsal.running():
        first = rehearsal.session.say("A very long sentence that goes on and on and on and on.")
        second = rehearsal.session.say("And another.")
        await rehearsal.until("playback.started")
        second.cancel()
        first.cancel()
        assert await second.wait() == Said(AnnouncementOutcome.DROPPED, "withdrawn")
        assert (await first.wait()).outcome is AnnouncementOutcome.INTERRUPTED


async def test_what_waits_when_the_session_ends_is_told_as_dropped() -> None:
    rehearsal = Rehearsal(responder=ScriptedResponder(Script(says("A very long answer that goes on and on."))))
    async with rehearsal.running():
        rehearsal.say("hello")
        await rehearsal.until("playback.started")
        handle = rehearsal.session.say("The tea is ready.")
    assert await handle.wait() == Said(AnnouncementOutcome.DROPPED, "closed")
    assert await rehearsal.session.say("Too late.").wait() == Said(AnnouncementOutcome.DROPPED, "closed")


async def test_one_that_interrupts_is_said_before_the_answer_that_waits() -> None:
    rehearsal = Rehearsal(responder=ScriptedResponder(*(Script(says("A long answer that goes on.")) for _ in range(2))))
    async with rehearsal.running():
        rehearsal.say("hello")
        await rehearsal.until("playback.started")
        handle = rehearsal.session.say("The milk boils over.", interrupt=True)
        rehearsal.say("and then?")
        assert await handle.wait() == Said(PLAYED)
        await rehearsal.until("playback.drained", 2)
    said = [record.generated for record in rehearsal.records if isinstance(record, Reply)]
    assert said[1:] == ["The milk boils over.", "A long answer that goes on."]


@pytest.mark.parametrize("text", ["", " \n", "a" * (MAX_SAY_CHARS + 1)])
async def test_nothing_and_too_much_are_refused_at_once(text: str) -> None:
    session: Session = Rehearsal().session
    with pytest.raises(ValueError, match=r"say|said"):
        session.say(text)


async def test_as_much_as_may_be_said_at_once_is_taken() -> None:
    assert Rehearsal().session.say("a" * MAX_SAY_CHARS).said is None


async def test_in_writing_it_is_shown() -> None:
    rehearsal = TextRehearsal()
    async with rehearsal.running():
        assert await rehearsal.session.say("The tea is ready.").wait() == Said(PLAYED, "shown")
        assert (await rehearsal.until("text.final")).payload == TextFinished("The tea is ready.")
