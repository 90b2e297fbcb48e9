"""The durable history under a session: what is kept, what a restart knows, and how a refusing store ends it."""

from __future__ import annotations

import sqlite3
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from voicechart.adapters.history import HistoryStore, SqliteHistory
from voicechart.engines.history import Record, Reply, UserTurn
from voicechart.engines.ports import Message
from voicechart.engines.testing import (
    HANDS_FREE,
    Rehearsal,
    Script,
    ScriptedDevice,
    ScriptedResponder,
    ScriptedSynthesizer,
    SpeechScript,
    says,
)
from voicechart.statecharts import Conversation, SeededIds
from voicechart.statecharts.errors import ErrorScope

pytestmark = pytest.mark.anyio

ANSWER = "It is noon."
STORY = "Once upon a time there was a clock. It told the time to nobody. One day somebody asked it. And it was glad."
FAST = SpeechScript(ms_per_char=5)


def begun(
    store: HistoryStore, run: str, responder: ScriptedResponder, device: ScriptedDevice | None = None
) -> Rehearsal:
    """A session as the daemon begins it."""
    history = SqliteHistory(store, "kitchen")
    start = history.start
    conversation = Conversation(
        "kitchen",
        policies=HANDS_FREE,
        ids=SeededIds(run),
        session_epoch=start.session_epoch,
        output_epoch=start.output_epoch,
        position=start.position,
    )
    return Rehearsal(
        history=history,
        conversation=conversation,
        responder=responder,
        device=device or ScriptedDevice(),
        synthesizer=ScriptedSynthesizer(FAST, FAST, FAST),
    )


@contextmanager
def locked(path: Path) -> Generator[None]:
    """As if another process were writing all the time."""
    blocker = sqlite3.connect(path, isolation_level=None)
    blocker.execute("BEGIN IMMEDIATE")
    try:
        yield
    finally:
        blocker.execute("ROLLBACK")
        blocker.close()


def kept(path: Path) -> tuple[Record, ...]:
    with HistoryStore(path, create=False) as store:
        return store.records("kitchen")


async def test_a_conversation_goes_on_after_a_restart_with_what_was_heard(path: Path) -> None:
    with HistoryStore(path) as store:
        first = begun(store, "first", ScriptedResponder(Script(says(ANSWER)), Script(says(STORY, token_ms=100))))
        async with first.running():
            first.say("what time is it")
            await first.until("playback.drained")
            first.say("tell me a story")
            # The first sentence was heard whole, and the second is still being written.
            await first.until("playback.underrun")
            first.press_button()
            await first.until("delivery.recorded", 2)
    with HistoryStore(path) as store:
        responder = ScriptedResponder(Script(says("Once.")))
        second = begun(store, "second", responder)
        async with second.running():
            second.say("go on")
            await second.until("playback.drained")
    assert [message for message in responder.streams[0].request.messages if message.text] == [
        Message("user", "what time is it"),
        Message("assistant", ANSWER),
        Message("user", "tell me a story"),
        Message("assistant", "Once upon a time there was a clock. [interrupted by the user]"),
        Message("user", "go on"),
    ]
    records = kept(path)
    positions = [record.position for record in records]
    assert positions == sorted(set(positions))
    assert len({record.turn_id if isinstance(record, UserTurn) else record.response_id for record in records}) == 6


async def test_a_store_that_refuses_the_users_turn_ends_the_conversation_with_its_error(path: Path) -> None:
    with HistoryStore(path) as store:
        rehearsal = begun(store, "first", ScriptedResponder(Script(says(ANSWER))))
        async with rehearsal.running():
            with locked(path):
                rehearsal.say("what time is it")
                await rehearsal.until_true(lambda: rehearsal.closed is not None)
    assert rehearsal.closed is not None
    error = rehearsal.closed.error
    assert error is not None
    assert (rehearsal.closed.reason, error.code) == ("history_locked", "history_locked")
    assert (error.stage, error.scope) == ("history", ErrorScope.SESSION)
    assert rehearsal.left_behind == ()


async def test_what_could_not_be_kept_to_the_end_is_told(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with HistoryStore(path) as store:
        rehearsal = begun(store, "first", ScriptedResponder(Script(says(ANSWER))))
        with caplog.at_level("ERROR"), locked(path):
            # Everything is refused, from the first turn on to the last flush.
            async with rehearsal.running():
                rehearsal.say("a secret")
                await rehearsal.until_true(lambda: rehearsal.closed is not None)
    assert "releasing the ports failed: history/history_locked: 1 turns and 1 replies could not be kept" in caplog.text
    assert "a secret" not in caplog.text


async def test_what_was_refused_is_kept_when_the_store_recovers_before_the_end(path: Path) -> None:
    with HistoryStore(path) as store:
        rehearsal = begun(store, "first", ScriptedResponder(Script(says(ANSWER))))
        async with rehearsal.running():
            with locked(path):
                rehearsal.say("what time is it")
                await rehearsal.until("turn.committed")
            await rehearsal.until_true(lambda: rehearsal.closed is not None)
    assert rehearsal.closed is not None
    assert rehearsal.closed.reason == "history_locked"
    turn, *_ = kept(path)
    assert isinstance(turn, UserTurn)
    assert turn.text == "what time is it"


@pytest.mark.slow
async def test_a_disk_that_fills_during_a_reply_ends_the_conversation_and_silences_it(path: Path) -> None:
    device = ScriptedDevice()
    with HistoryStore(path) as store:
        rehearsal = begun(store, "first", ScriptedResponder(Script(says(" ".join([STORY] * 60), token_ms=1))), device)
        async with rehearsal.running():
            rehearsal.say("tell me a story")
            await rehearsal.until("playback.started")
            with store.transaction() as connection:
                (pages,) = connection.execute("PRAGMA page_count").fetchone()
                connection.execute(f"PRAGMA max_page_count = {pages}")
            await rehearsal.until_true(lambda: rehearsal.closed is not None)
    assert rehearsal.closed is not None
    assert rehearsal.closed.error is not None
    assert rehearsal.closed.error.code == "history_full"
    assert device.speaker.stops
    # Whatever was stored before is whole; the reply is settled by the next start.
    turn, reply = kept(path)
    assert isinstance(turn, UserTurn)
    assert isinstance(reply, Reply)
    with HistoryStore(path) as store:
        history = SqliteHistory(store, "kitchen")
        assert all(isinstance(record, UserTurn) or record.delivery is not None for record in history.records())
