"""Any interleaving of calls, deadlines, cancels and repetitions: nothing runs twice, and everything ends once."""

from __future__ import annotations

import json
import random
from collections import Counter
from dataclasses import replace

import anyio
import pytest
import trio.testing
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from voicechart.engines import HoldLine, HoldLines, SideEffects, Tool, ToolError
from voicechart.engines.background import BackgroundTasks, TaskLimits
from voicechart.engines.ports import GenerationRequest
from voicechart.engines.reports import GenerationEnded, GenerationReport, TextDelta, ToolCallProposed
from voicechart.engines.task_store import MemoryTaskStore
from voicechart.engines.testing import HANDS_FREE, Rehearsal, RehearsalOver, Script, ScriptedResponder, Step, says
from voicechart.statecharts import actions as do
from voicechart.statecharts.policies import GenerationPolicy
from voicechart.statecharts.values import ToolStatus


class Work(BaseModel):
    """What a run does is said by its arguments, so that it does not depend on the order of runs."""

    number: int
    seconds: float
    ends: str


class World:
    """Tools that remember every run, and a model that calls them in every way."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.ran: Counter[int] = Counter()
        self.numbers = 0
        self.lines = HoldLines((HoldLine(300, "One moment."), HoldLine(1_500, "Still at it.")), "Oh no.")

    async def work(self, work: Work) -> str:
        self.ran[work.number] += 1
        await anyio.sleep(work.seconds)
        match work.ends:
            case "error":
                raise ToolError("it is broken", effect_unknown=self.random.random() < 0.3)
            case "defect":
                raise ZeroDivisionError
            case _:
                return "done"

    async def approve(self, work: Work) -> bool:
        await anyio.sleep(work.seconds / 4)
        return work.number % 3 != 0

    def tools(self) -> tuple[Tool, ...]:
        def tool(name: str, side_effects: SideEffects, *, background: bool = False, asks: bool = False) -> Tool:
            approve = self.approve if asks else None
            return Tool(name, "", Work, self.work, background, side_effects, 2_500, approve, self.lines)

        return (
            tool("look", SideEffects.NONE),
            tool("act", SideEffects.YES),
            tool("ask", SideEffects.YES, asks=True),
            tool("later", SideEffects.YES, background=True),
        )

    def reply(self, request: GenerationRequest) -> Script[GenerationReport]:
        steps_so_far = sum(
            message.role == "assistant" and bool(message.tool_calls) for message in request.messages[-6:]
        )
        if steps_so_far > 2 or self.random.random() < 0.3:
            return Script(says("Here is what I found. It is all done.", token_ms=self.random.choice([0, 100])))
        calls: list[ToolCallProposed] = []
        for _ in range(self.random.randint(1, 4)):
            if calls and self.random.random() < 0.25:
                calls.append(self.random.choice(calls))
                continue
            self.numbers += 1
            arguments = {
                "number": self.numbers,
                "seconds": self.random.choice([0, 0.2, 1, 2, 2.5, 9]),
                "ends": self.random.choice(["well", "well", "error", "defect"]),
            }
            text = self.random.choice([json.dumps(arguments), json.dumps(arguments), "{", '{"number": NaN}'])
            name = self.random.choice(["look", "act", "ask", "later", "nothing"])
            calls.append(ToolCallProposed(f"c{self.numbers}", name, text))
        steps: list[Step[GenerationReport]] = [Step(TextDelta("Let me see. "))] if self.random.random() < 0.5 else []
        steps += [Step(call, wait_ms=self.random.choice([0, 0, 50])) for call in calls]
        return Script([*steps, Step(GenerationEnded(awaits_tools=self.random.random() < 0.95))])


async def converse(seed: int) -> tuple[World, Rehearsal, MemoryTaskStore]:
    world, store = World(seed), MemoryTaskStore()
    tasks = BackgroundTasks(store, limits=TaskLimits(open_tasks=3, running_tasks=1))
    policy = GenerationPolicy(tool_ms=2_500 if seed % 2 else 2_000, max_tool_steps=4)
    rehearsal = Rehearsal(
        responder=ScriptedResponder(answers=world.reply),
        tools=world.tools(),
        tasks=tasks,
        policies=replace(HANDS_FREE, generation=policy),
    )
    try:
        async with rehearsal.running():
            for _ in range(world.random.randint(2, 12)):
                match world.random.randrange(5):
                    case 0 | 1:
                        rehearsal.say(world.random.choice(["do it", "and that"]))
                    case 2:
                        rehearsal.press_button()
                    case 3:
                        rehearsal.cancel()
                    case _:
                        store.cancellations += list(store.tasks)
                await anyio.sleep(world.random.choice([0, 0, 0.05, 0.3, 1, 2.5, 4]))
            if world.random.random() < 0.5:
                await anyio.sleep(60)
    except RehearsalOver:
        pass
    return world, rehearsal, store


def check(world: World, rehearsal: Rehearsal, store: MemoryTaskStore) -> None:
    assert all(times == 1 for times in world.ran.values()), "a call ran twice"
    executed = Counter((action.response_id, action.call_id) for action in rehearsal.decided(do.ExecuteTool))
    assert all(times == 1 for times in executed.values())
    outcomes = Counter((action.response_id, action.call_id) for action in rehearsal.decided(do.RecordToolOutcome))
    assert set(executed) <= set(outcomes)
    assert all(times == 1 for times in outcomes.values())
    exchanges = [exchange for reply in rehearsal.replies for exchange in reply.tools]
    assert all(exchange.status is not None for exchange in exchanges)
    assert not any("Traceback" in exchange.output or 'File "' in exchange.output for exchange in exchanges)
    assert not any(exchange.status is ToolStatus.COMPLETED and not exchange.output for exchange in exchanges)
    updates = Counter(
        event.as_json()["payload"]["task_id"]
        for event in rehearsal.of("task.updated")
        if event.as_json()["payload"]["state"] not in ("queued", "running")
    )
    assert all(times == 1 for times in updates.values()), "a task ended twice"
    assert {task.task_id for task in store.tasks.values() if not task.state.is_open} == set(updates)
    assert "One moment." not in "".join(reply.generated for reply in rehearsal.replies)
    assert rehearsal.left_behind == ()
    assert rehearsal.closed is not None
    assert rehearsal.closed.error is None


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_any_interleaving_of_calls_runs_each_once_and_ends_each_once(seed: int) -> None:
    clock = trio.testing.MockClock(autojump_threshold=0)
    check(*anyio.run(converse, seed, backend="trio", backend_options={"clock": clock}))


@pytest.mark.slow
@pytest.mark.timeout(240)
@settings(max_examples=120, deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_the_same_for_many(seed: int) -> None:
    clock = trio.testing.MockClock(autojump_threshold=0)
    check(*anyio.run(converse, seed, backend="trio", backend_options={"clock": clock}))
