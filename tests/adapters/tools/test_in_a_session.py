"""A whole session with a real server and a real file: what the model is told, and what a restart finds."""

from __future__ import annotations

import sys
from pathlib import Path

import anyio
import pytest
from pydantic import BaseModel

from voicechart.adapters.history import HistoryStore
from voicechart.adapters.tools import SqliteTasks, TaskTable
from voicechart.adapters.tools.mcp_server import McpServer
from voicechart.adapters.tools.mcp_stdio import StdioServer
from voicechart.adapters.tools.mcp_tools import ServerRules, ToolRules, offered_tools, serving
from voicechart.engines import SideEffects, Tool
from voicechart.engines.background import BackgroundTasks, TaskLimits
from voicechart.engines.reports import GenerationEnded, GenerationReport, ToolCallProposed
from voicechart.engines.task_store import TaskState
from voicechart.engines.testing import Rehearsal, Script, ScriptedResponder, Step, says
from voicechart.engines.tools import PERHAPS
from voicechart.statecharts import actions as do
from voicechart.statecharts.values import ToolStatus

pytestmark = pytest.mark.anyio


def calls(*requests: tuple[str, str, str]) -> Script[GenerationReport]:
    return Script(
        [*(Step(ToolCallProposed(*request)) for request in requests), Step(GenerationEnded(awaits_tools=True))]
    )


@pytest.mark.slow
async def test_a_model_calls_tools_of_a_server_that_answers_refuses_hangs_and_dies(tmp_path: Path) -> None:
    log = tmp_path / "log"
    script = str(Path(__file__).parent / "kitchen_server.py")
    server = McpServer("kitchen", StdioServer(sys.executable, (script, str(log))), connect_ms=20_000)
    responder = ScriptedResponder(
        calls(
            ("c1", "kitchen__count", '{"plates": 3}'),
            ("c2", "kitchen__count", '{"plates": "many"}'),
            ("c3", "kitchen__count", '{"plates": 3, "plates": 4}'),
            ("c4", "kitchen__hang", "{}"),
        ),
        calls(("c5", "kitchen__die", "{}")),
        calls(("c6", "kitchen__die", "{}")),
        Script(says("That is all.")),
    )
    async with serving([server]):
        await server.connect()
        rules = ServerRules(frozenset("*"), special={"hang": ToolRules(SideEffects.NONE, timeout_ms=500)})
        tools, _ = offered_tools(server, server.definitions, rules)
        rehearsal = Rehearsal(responder=responder, tools=tools)
        async with rehearsal.running():
            rehearsal.say("do it")
            await rehearsal.until("delivery.recorded")
    status = {action.call_id: action.status for action in rehearsal.decided(do.RecordToolOutcome)}
    assert status == {
        "c1": ToolStatus.COMPLETED,
        "c2": ToolStatus.FAILED,
        "c3": ToolStatus.FAILED,
        "c4": ToolStatus.FAILED,
        "c5": ToolStatus.UNKNOWN,
        "c6": ToolStatus.FAILED,
    }
    output = {exchange.request.call_id: exchange.output for exchange in rehearsal.replies[0].tools}
    assert output["c1"] == "3 plates"
    assert output["c2"].startswith("refused: plates: 'many' is not of type 'integer'")
    assert output["c3"] == "refused: plates: given twice"
    assert output["c4"] == "the tool did not answer within 0.5 s"
    assert output["c5"] == PERHAPS.format("the connection to it was lost")
    assert output["c6"] == "refused: the same call may have taken effect; ask the user first"
    assert log.read_text().splitlines().count("die") == 1
    assert rehearsal.left_behind == ()


class Page(BaseModel):
    number: int


async def test_tasks_go_on_in_another_session_over_the_same_file(tmp_path: Path) -> None:
    ran: list[int] = []

    async def read(page: Page) -> str:
        ran.append(page.number)
        if page.number == 1:
            await anyio.sleep_forever()
        return f"page {page.number}"

    tools = (Tool("read", "Reads.", Page, read, background=True),)
    path = tmp_path / "history.db"
    responder = ScriptedResponder(
        calls(*((f"c{number}", "read", f'{{"number": {number}}}') for number in (1, 1, 2))), Script(says("I am at it."))
    )
    with HistoryStore(path) as store:
        tasks = BackgroundTasks(SqliteTasks(store, "kitchen"), limits=TaskLimits(running_tasks=1))
        rehearsal = Rehearsal(responder=responder, tools=tools, tasks=tasks)
        async with rehearsal.running():
            rehearsal.say("read")
            await rehearsal.until("delivery.recorded")
    assert ran == [1]

    responder = ScriptedResponder(Script(says("It says so.")))
    with HistoryStore(path) as store:
        rehearsal = Rehearsal(responder=responder, tools=tools, tasks=BackgroundTasks(SqliteTasks(store, "kitchen")))
        async with rehearsal.running():
            await rehearsal.until_true(lambda: len(rehearsal.of("task.updated")) >= 4)
            rehearsal.say("well?")
            await rehearsal.until("delivery.recorded")
        states = {stored.task.task_id: stored.task.state for stored in TaskTable(store).tasks()}
    assert ran == [1, 2]
    assert states == {"t1": TaskState.UNKNOWN, "t2": TaskState.COMPLETED}
    (note,) = (message.text for message in responder.requests[0].messages if message.role == "system")
    assert "task t1 (read) unknown" in note
    assert "task t2 (read) completed: page 2" in note
