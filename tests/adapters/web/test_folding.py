"""What the events of real conversations amount to: generated and heard are two things."""

from __future__ import annotations

import pytest
from trio.testing import MockClock

from voicechart.adapters.web.folding import KEPT_CHARS, KEPT_ENTRIES, Json, empty_state, fold
from voicechart.engines.testing import Rehearsal, Script, ScriptedResponder, TextRehearsal, says
from voicechart.engines.testing.rehearsal import Conducted

pytestmark = pytest.mark.anyio
STORY = "Once upon a time there was a clock. It told the time to nobody. One day somebody asked it. And it was glad."


@pytest.fixture
def anyio_backend() -> object:
    return "trio", {"clock": MockClock(autojump_threshold=0)}


def folded(conducted: Conducted) -> Json:
    state = empty_state()
    for event in conducted.events:
        state = fold(state, event.as_json())
    return state


async def test_a_reply_that_was_heard_to_its_end() -> None:
    rehearsal = Rehearsal(responder=ScriptedResponder(Script(says(STORY, token_ms=20))))
    async with rehearsal.running():
        rehearsal.say("tell me a story")
        await rehearsal.until("playback.drained")
    state = folded(rehearsal)
    user, reply = state["entries"]
    assert (user["kind"], user["text"], user["status"]) == ("user", "tell me a story", "committed")
    assert (reply["text"], reply["is_final"], reply["state"]) == (STORY, True, "completed")
    assert reply["delivery"]["status"] == "delivered"
    assert reply["delivery"]["units"] == len(reply["units"]) == 4
    assert [unit["index"] for unit in reply["units"]] == [0, 1, 2, 3]
    assert [unit["source_end"] for unit in reply["units"]][-1] == len(STORY)
    assert state["playback"]["state"] == "drained"
    assert state["playback"]["played_samples"] == reply["units"][-1]["end_sample"]
    assert state["session"]["state"] == "closed"


async def test_what_was_heard_of_an_interrupted_reply_is_less_than_what_was_written() -> None:
    rehearsal = Rehearsal(responder=ScriptedResponder(Script(says(STORY, token_ms=1))))
    async with rehearsal.running():
        rehearsal.say("tell me a story")
        await rehearsal.until("playback.started")
        await rehearsal.until_true(lambda: "One day" in folded(rehearsal)["entries"][-1]["text"])
        rehearsal.cancel()
        await rehearsal.until("delivery.recorded")
    (_, reply) = folded(rehearsal)["entries"]
    assert reply["interrupted"] == {"source": "client", "reason": "asked_for"}
    assert reply["delivery"]["status"] == "interrupted"
    assert reply["delivery"]["units"] < 4
    assert "One day" in reply["text"]


async def test_a_conversation_in_writing_knows_no_playback() -> None:
    rehearsal = TextRehearsal(responder=ScriptedResponder(Script(says("Hello."))))
    async with rehearsal.running():
        rehearsal.say("hello")
        await rehearsal.until("delivery.recorded")
        during = folded(rehearsal)
    assert during["session"]["state"] == "ready"
    assert during["playback"] is None
    assert during["entries"][-1]["delivery"]["status"] == "text_only"


async def test_a_text_that_is_said_as_it_is_stands_among_the_replies() -> None:
    rehearsal = TextRehearsal(responder=ScriptedResponder())
    async with rehearsal.running():
        rehearsal.session.say("Your tea is ready.")
        await rehearsal.until("delivery.recorded")
    (entry,) = folded(rehearsal)["entries"]
    assert (entry["announced"], entry["text"]) == (True, "Your tea is ready.")


def event(kind: str, payload: Json, **identities: object) -> Json:
    return {"type": kind, "payload": payload, **identities}


def test_a_hypothesis_is_replaced_by_a_newer_one_and_by_the_words_that_were_committed() -> None:
    state = empty_state()
    for told in (
        event("input.speech_started", {"continues_turn": False}, turn_id="t"),
        event("transcript.updated", {"segment_id": "s", "revision": 1, "text": "wreck a"}, turn_id="t"),
        event("transcript.updated", {"segment_id": "s", "revision": 2, "text": "recognise"}, turn_id="t"),
    ):
        state = fold(state, told)
    assert (state["caption"]["text"], state["caption"]["state"]) == ("recognise", "hypothesis")
    committed = {"text": "recognise speech", "authority": "vad", "revision": 1}
    state = fold(state, event("turn.committed", committed, turn_id="t"))
    assert (state["caption"]["text"], state["caption"]["state"]) == ("recognise speech", "committed")
    state = fold(state, event("turn.committed", {**committed, "text": "and more", "revision": 2}, turn_id="t"))
    assert [entry["text"] for entry in state["entries"]] == ["and more"]


def test_a_tool_is_shown_from_its_start_to_its_end() -> None:
    state = fold(empty_state(), event("response.started", {"attempt": 1}, response_id="r"))
    state = fold(state, event("tool.started", {"name": "weather", "background": False}, response_id="r", call_id="c"))
    assert state["entries"][0]["tools"][0]["state"] == "running"
    state = fold(state, event("tool.ended", {"status": "completed"}, call_id="c"))
    assert state["entries"][0]["tools"][0]["state"] == "completed"


def test_an_event_of_an_unknown_kind_changes_nothing() -> None:
    state = fold(empty_state(), event("response.started", {"attempt": 1}, response_id="r"))
    assert fold(state, event("thought.updated", {"text": "hm"}, response_id="r")) == state


def test_the_state_does_not_grow_for_ever() -> None:
    state = empty_state()
    for number in range(KEPT_ENTRIES + 1):
        state = fold(state, event("response.started", {"attempt": 1}, response_id=f"r{number}"))
    assert len(state["entries"]) == KEPT_ENTRIES
    assert state["entries"][-1]["response_id"] == f"r{KEPT_ENTRIES}"
    long = "x" * (KEPT_CHARS // 2)
    for number in range(KEPT_ENTRIES - 3, KEPT_ENTRIES + 1):
        state = fold(state, event("text.delta", {"text": long}, response_id=f"r{number}"))
    assert [entry["response_id"] for entry in state["entries"]] == [f"r{KEPT_ENTRIES - 1}", f"r{KEPT_ENTRIES}"]
    state = fold(state, event("text.final", {"text": long * 3}, response_id=f"r{KEPT_ENTRIES}"))
    assert [entry["response_id"] for entry in state["entries"]] == [f"r{KEPT_ENTRIES}"]


def test_folding_changes_nothing_in_place() -> None:
    before = fold(empty_state(), event("response.started", {"attempt": 1}, response_id="r"))
    fold(before, event("text.delta", {"text": "a"}, response_id="r"))
    assert before["entries"][0]["text"] == ""
    assert empty_state()["entries"] == []
