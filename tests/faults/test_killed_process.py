"""Kill -9 in the middle of a reply, ten times in one conversation: nothing that was committed is lost, nothing that was
begun is played or run again, and nobody claims to know what nobody can know.

This file is also the program that is killed: `python test_killed_process.py HISTORY TOOL_LOG ROUND [MOMENT]` holds a
conversation over the durable history for ever, on scripted ports, and tells what it has published, one JSON object a
line. With a MOMENT it kills itself: at the SQL statement of that number, in the middle of a transaction or between two,
or "in-tool", when a tool has had its effect and not yet its outcome.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import anyio
import pytest
from pydantic import BaseModel

from voicechart.adapters.history import HistoryStore, SqliteHistory
from voicechart.adapters.history.sqlite_history import CRASHED
from voicechart.engines import CascadeEngine, CascadePorts, History, Session, Tool
from voicechart.engines.history import UNKNOWN_MARKER, Reply, UserTurn
from voicechart.engines.ports import GenerationRequest
from voicechart.engines.reports import GenerationEnded, GenerationReport, ToolCallProposed
from voicechart.engines.testing import (
    HANDS_FREE,
    Script,
    ScriptedDevice,
    ScriptedRecognizer,
    ScriptedResponder,
    ScriptedSynthesizer,
    SoundIsSpeech,
    SpeechScript,
    Step,
    says,
)
from voicechart.statecharts import Conversation, SeededIds
from voicechart.statecharts.actions import Action, Publish
from voicechart.statecharts.facts import TextSubmitted
from voicechart.statecharts.published import DeliveryRecorded, PlaybackBegan, TurnCommitted
from voicechart.statecharts.values import DeliveryStatus, Outcome, ToolStatus

ROUNDS = 10
SEED = 20_250_301
pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]

# -- the program that is killed --------------------------------------------------------------------------------------

STORY = "Once upon a time there was a clock. It told the time to nobody. One day somebody asked it. And it was glad."
SPEECH = SpeechScript(ms_per_char=4, frame_every_ms=10)


class Lamp(BaseModel):
    """Which lamp."""

    number: str


def lamp(log: Path, *, dies: bool = False) -> Tool:
    """A tool with a side effect that outlives the process: one line a run."""

    async def switch(arguments: Lamp) -> str:
        with log.open("a", encoding="utf-8") as lines:
            lines.write(f"{arguments.number}\n")
        if dies:
            os.kill(os.getpid(), signal.SIGKILL)
        await anyio.sleep(0.05)
        return "switched"

    return Tool("lamp", "Switches a lamp.", Lamp, switch)


def answer(request: GenerationRequest) -> Script[GenerationReport]:
    """Every second question is answered with a call first; the rest is a story."""
    last = request.messages[-1]
    number = last.text.removeprefix("question ")
    if last.role == "user" and number[-1] in "02468":
        call = ToolCallProposed(f"call-{number}", "lamp", json.dumps({"number": number}))
        return Script([Step(call), Step(GenerationEnded(awaits_tools=True))])
    return Script(says(STORY, token_ms=20))


def begun(
    history: History, conversation: Conversation, tool: Tool
) -> tuple[Session, ScriptedDevice, ScriptedResponder]:
    """A session as the daemon begins it, on scripted ports."""
    device, responder = ScriptedDevice(), ScriptedResponder(answers=answer)
    ports = CascadePorts(
        device,
        ScriptedRecognizer(),
        responder,
        ScriptedSynthesizer(SPEECH),
        SoundIsSpeech(),
        history=history,
        tools=(tool,),
    )
    return Session(conversation, CascadeEngine(ports)), device, responder


def restarted(history: SqliteHistory, seed: str) -> Conversation:
    """The chart, behind everything that an earlier start used."""
    start = history.start
    return Conversation(
        "kitchen",
        policies=HANDS_FREE,
        ids=SeededIds(seed),
        session_epoch=start.session_epoch,
        output_epoch=start.output_epoch,
        position=start.position,
    )


def tell(action: Action) -> None:
    """What a client would have seen."""
    if isinstance(action, Publish):
        payload = action.payload
        told: dict[str, object] = {"type": payload.type}
        match payload:
            case TurnCommitted(text=text):
                told |= {"turn_id": action.turn_id, "text": text}
            case DeliveryRecorded(status=status):
                told |= {"response_id": action.response_id, "status": status}
            case PlaybackBegan():
                pass
            case _:
                return
        print(json.dumps(told), flush=True)


async def talk_for_ever(session: Session, number: str) -> None:
    """A question, a piece of the answer, and the next question into the middle of it; every third one to its end."""
    with session.public.subscribe(100_000) as subscription:
        events = subscription.events()
        question = 0
        while True:
            question += 1
            session.report(TextSubmitted(at=session.clock.now_ns(), text=f"question {number}-{question}"))
            async for event in events:
                if event.type == ("playback.drained" if question % 3 == 0 else "playback.started"):
                    break
            await anyio.sleep(0.15)


async def main(history_file: Path, log: Path, number: str, moment: str = "") -> None:
    store = HistoryStore(history_file)
    history = SqliteHistory(store, "kitchen")
    if moment.isdecimal():
        die_at(store, int(moment))
    session, _, _ = begun(history, restarted(history, number), lamp(log, dies=moment == "in-tool"))
    session.watch(tell)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(session.run)
        tasks.start_soon(talk_for_ever, session, number)


def die_at(store: HistoryStore, statement: int) -> None:
    """Be killed, as by the system, when SQLite begins that statement."""
    left = statement

    def count(sql: str) -> None:
        nonlocal left
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    with store.transaction() as connection:
        connection.set_trace_callback(count)


# -- who kills it, and looks ----------------------------------------------------------------------------------------


@dataclass
class Told:
    """What the killed processes had published before they died."""

    turns: dict[str, str] = field(default_factory=dict[str, str])
    deliveries: dict[str, str] = field(default_factory=dict[str, str])

    def take(self, line: str) -> str:
        event = json.loads(line)
        if event["type"] == "turn.committed":
            self.turns[event["turn_id"]] = event["text"]
        elif event["type"] == "delivery.recorded":
            self.deliveries[event["response_id"]] = event["status"]
        return event["type"]


def run_and_kill(told: Told, arguments: list[str], replies: int, delay_s: float) -> None:
    """Let the conversation go on until so many replies have begun to sound, and a moment longer."""
    with subprocess.Popen([sys.executable, __file__, *arguments], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        # A conversation that got stuck is killed too, and what it left is looked at all the same.
        watchdog = threading.Timer(20, process.kill)
        watchdog.start()
        try:
            heard = 0
            while heard < replies and (line := process.stdout.readline()):
                heard += told.take(line) == "playback.started"
            time.sleep(delay_s)
        finally:
            process.kill()
            watchdog.cancel()
        # Whole lines only: what it had told is what it had flushed.
        for line in process.stdout:
            told.take(line)
        assert process.wait(30) == -9


async def go_on(history_file: Path, log: Path, number: int) -> list[str]:
    """Restart in this process and ask one thing. Returns what the model was shown."""
    with HistoryStore(history_file, create=False) as store:
        history = SqliteHistory(store, "kitchen")
        before = {reply.response_id for reply in history.records() if isinstance(reply, Reply)}
        session, device, responder = begun(history, restarted(history, f"restart {number}"), lamp(log))
        async with anyio.create_task_group() as tasks:
            with session.public.subscribe(100_000) as subscription:
                tasks.start_soon(session.run)
                async for event in subscription.events():
                    if event.type == "session.ready":
                        assert responder.requests == []
                        question = f"question restart-{number}-1"
                        session.report(TextSubmitted(at=session.clock.now_ns(), text=question))
                    elif event.type == "playback.drained":
                        session.close()
        # One reply was asked for and played: the one to the present question.
        (request,) = responder.requests
        assert request.response_id not in before
        assert len(device.speaker.outputs) == 1
        return [message.text for message in request.messages]


def run_until_it_dies(told: Told, arguments: list[str], number: int, chance: random.Random) -> None:
    """Some deaths come from outside, at any moment of a reply; some at a statement of the store; one inside a tool."""
    if number == 3:
        run_and_kill(told, [*arguments, "in-tool"], replies=1_000, delay_s=0.0)
    elif number % 2:
        run_and_kill(told, [*arguments, str(chance.randint(8, 120))], replies=1_000, delay_s=0.0)
    else:
        run_and_kill(told, arguments, replies=chance.randint(1, 3), delay_s=chance.uniform(0.0, 0.6))


def check_turns(told: Told, store: HistoryStore) -> None:
    """Every turn that was told to be committed is there, word by word."""
    kept = {turn.turn_id: turn.text for turn in store.records("kitchen") if isinstance(turn, UserTurn)}
    assert told.turns.items() <= kept.items()


def check_deliveries(told: Told, store: HistoryStore) -> None:
    """Every delivery that was told is there; where nothing was known it says so."""
    replies = [reply for reply in store.records("kitchen") if isinstance(reply, Reply)]
    for reply in replies:
        assert reply.outcome is not None
        assert reply.delivery is not None
        if reply.response_id in told.deliveries:
            assert reply.delivery.status == told.deliveries[reply.response_id]
        if reply.reason == CRASHED:
            assert reply.outcome is Outcome.FAILED
        if reply.delivery.status is DeliveryStatus.UNKNOWN:
            assert reply.delivery.text == ""
        assert reply.generated.startswith(reply.delivery.text)


def check_calls(store: HistoryStore, log: Path) -> None:
    """Every call is on record once and ran at most once; one that ran is never called undone."""
    calls = [call for reply in store.records("kitchen") if isinstance(reply, Reply) for call in reply.tools]
    runs = Counter(log.read_text(encoding="utf-8").split())
    assert set(runs.values()) <= {1}
    status = {json.loads(call.request.arguments_json)["number"]: call.status for call in calls}
    assert len(status) == len(calls)
    assert set(runs) <= set(status)
    assert {status[number] for number in runs} <= {ToolStatus.COMPLETED, ToolStatus.UNKNOWN, ToolStatus.CANCELLED}


def test_nothing_is_lost_and_nothing_is_repeated_however_often_the_process_is_killed(tmp_path: Path) -> None:
    history_file, log = tmp_path / "history.db", tmp_path / "lamp.log"
    log.touch()
    chance, told, shown = random.Random(SEED), Told(), list[str]()
    checks: list[Callable[[HistoryStore], None]] = [
        lambda store: check_turns(told, store),
        lambda store: check_deliveries(told, store),
        lambda store: check_calls(store, log),
    ]
    for number in range(ROUNDS):
        run_until_it_dies(told, [str(history_file), str(log), str(number)], number, chance)
        with sqlite3.connect(history_file) as connection:
            assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        with HistoryStore(history_file, create=False) as store:
            check_turns(told, store)
        ran = log.read_text(encoding="utf-8")
        shown = anyio.run(go_on, history_file, log, number)
        assert log.read_text(encoding="utf-8") == ran
        assert set(told.turns.values()) <= set(shown)
        with HistoryStore(history_file, create=False) as store:
            for check in checks:
                check(store)
    assert len(told.turns) >= ROUNDS
    with HistoryStore(history_file, create=False) as store:
        records = store.records("kitchen")
    replies = [record for record in records if isinstance(record, Reply)]
    # Whoever died in the tool left both of these.
    assert ToolStatus.UNKNOWN in {call.status for reply in replies for call in reply.tools}
    assert DeliveryStatus.UNKNOWN in {reply.delivery.status for reply in replies if reply.delivery is not None}
    assert UNKNOWN_MARKER in shown
    positions = [record.position for record in records]
    assert positions == sorted(set(positions))


if __name__ == "__main__":
    _, history_argument, log_argument, *rest = sys.argv
    anyio.run(main, Path(history_argument), Path(log_argument), *rest)
