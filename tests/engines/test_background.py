"""Background tasks: they outlive the reply, the interruption and the process; each runs once and ends once."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace

import anyio
import pytest
from pydantic import BaseModel
from trio.testing import MockClock

from voicechart.engines import SideEffects, Tool, ToolError
from voicechart.engines.background import BackgroundTasks, TaskLimits
from voicechart.engines.ports import ToolRequest
from voicechart.engines.reports import GenerationEnded, GenerationReport, ToolCallProposed
from voicechart.engines.task_store import MemoryTaskStore, TaskRecord, TaskState
from voicechart.engines.testing import Rehearsal, Script, ScriptedResponder, Step, says, scripted_error
from voicechart.statecharts import actions as do
from voicechart.statecharts.values import ToolStatus

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> object:
    return "trio", {"clock": MockClock(autojump_threshold=0)}


class Page(BaseModel):
    number: int


def reading(
    run: Callable[[Page], Awaitable[str]],
    *,
    side_effects: SideEffects = SideEffects.YES,
    resumable: bool = False,
    timeout_ms: int | None = None,
    announce: Callable[[str], str] | None = None,
) -> Tool:
    return Tool("read", "Reads.", Page, run, True, side_effects, timeout_ms, resumable=resumable, announce=announce)


class Library:
    """Pages that end when they are let go."""

    def __init__(self) -> None:
        self.began: list[int] = []
        self.stopped: list[int] = []
        self._gates: dict[int, anyio.Event] = {}

    def gate(self, number: int) -> anyio.Event:
        return self._gates.setdefault(number, anyio.Event())

    async def read(self, page: Page) -> str:
        self.began.append(page.number)
        try:
            await self.gate(page.number).wait()
        except BaseException:
            self.stopped.append(page.number)
            raise
        return f"page {page.number}"


def asks(*numbers: int) -> Script[GenerationReport]:
    steps = [Step(ToolCallProposed(f"c{number}", "read", f'{{"number": {number}}}')) for number in numbers]
    return Script([*steps, Step(GenerationEnded(awaits_tools=True))])


def left_over(state: TaskState, number: int = 1, *, starts: int = 0, told: bool = False) -> TaskRecord:
    request = ToolRequest(f"c{number}", "read", f'{{"number": {number}}}')
    return TaskRecord("response-of-before", request, f"t{number}", state, starts, "", told)


def a_store(*records: TaskRecord) -> MemoryTaskStore:
    return MemoryTaskStore({record.task_id: record for record in records})


def states(rehearsal: Rehearsal) -> list[tuple[str, str]]:
    return [
        (str(event.as_json()["payload"]["task_id"]), str(event.as_json()["payload"]["state"]))
        for event in rehearsal.of("task.updated")
    ]


def told(responder: ScriptedResponder, index: int) -> list[tuple[str, str]]:
    return [(message.role, message.text) for message in responder.requests[index].messages]


ACCEPTED_T1 = "accepted as task t1: it goes on in the background, and its result comes with a later turn"


async def test_a_task_outlives_the_interruption_and_its_result_reaches_the_model_with_the_next_turn() -> None:
    library = Library()
    responder = ScriptedResponder(
        asks(1),
        Script(says("I am looking it up for you now, one moment.", token_ms=300)),
        Script(says("Very well.")),
        Script(says("It says so.")),
        Script(says("Yes.")),
    )
    rehearsal = Rehearsal(responder=responder, tools=(reading(library.read),))
    async with rehearsal.running():
        rehearsal.say("read page one")
        await rehearsal.until("text.delta", 3)
        assert told(responder, 1)[-1] == ("tool", ACCEPTED_T1)
        rehearsal.press_button()
        await rehearsal.until("delivery.recorded")
        rehearsal.say("something else")
        await rehearsal.until("delivery.recorded", 2)
        library.gate(1).set()
        await rehearsal.until("task.updated", 3)
        rehearsal.say("and page one")
        await rehearsal.until("delivery.recorded", 3)
        rehearsal.say("sure?")
        await rehearsal.until("delivery.recorded", 4)
    note = "Background tasks that have ended since the last turn:\n- task t1 (read) completed: page 1"
    assert told(responder, 3)[-2:] == [("system", note), ("user", "and page one")]
    # Told once; from then on it stands with the call.
    assert ("system", note) not in told(responder, 4)
    assert ("tool", f"{ACCEPTED_T1}\ntask t1 (read) completed: page 1") in told(responder, 4)
    assert states(rehearsal) == [("t1", "queued"), ("t1", "running"), ("t1", "completed")]
    assert [action.status for action in rehearsal.decided(do.RecordToolOutcome)] == [ToolStatus.COMPLETED]
    assert library.began == [1]
    assert rehearsal.left_behind == ()


async def test_no_more_tasks_run_at_once_than_allowed_and_the_others_wait_their_turn() -> None:
    library = Library()
    tasks = BackgroundTasks(limits=TaskLimits(running_tasks=2))
    responder = ScriptedResponder(asks(1, 2, 3, 4), Script(says("I am at it.")))
    rehearsal = Rehearsal(responder=responder, tools=(reading(library.read),), tasks=tasks)
    async with rehearsal.running():
        rehearsal.say("read")
        await rehearsal.until("delivery.recorded")
        # Two tasks that begin in one breath run in any order.
        assert sorted(library.began) == [1, 2]
        library.gate(2).set()
        await rehearsal.until_true(lambda: ("t3", "running") in states(rehearsal))
        library.gate(3).set()
        await rehearsal.until_true(lambda: ("t4", "running") in states(rehearsal))
        library.gate(1).set()
        library.gate(4).set()
        await rehearsal.until_true(lambda: ("t4", "completed") in states(rehearsal))
    assert sorted(library.began[:2]) == [1, 2]
    assert library.began[2:] == [3, 4]


async def test_a_full_queue_refuses_a_call_and_the_model_is_told() -> None:
    library = Library()
    tasks = BackgroundTasks(limits=TaskLimits(open_tasks=2))
    responder = ScriptedResponder(asks(1, 2, 3), Script(says("I am at it.")))
    rehearsal = Rehearsal(responder=responder, tools=(reading(library.read),), tasks=tasks)
    async with rehearsal.running():
        rehearsal.say("read")
        await rehearsal.until("delivery.recorded")
    assert told(responder, 1)[-1] == ("tool", "refused: 2 background tasks are open; wait for one to end")
    assert [action.status for action in rehearsal.decided(do.RecordToolOutcome)] == [
        ToolStatus.COMPLETED,
        ToolStatus.COMPLETED,
        ToolStatus.FAILED,
    ]
    assert sorted(library.began) == [1, 2]


async def broken(_: Page) -> str:
    raise ZeroDivisionError("secret")


async def refusing(_: Page) -> str:
    raise ToolError("no such page")


async def endless(_: Page) -> str:
    await anyio.sleep_forever()
    raise AssertionError


@pytest.mark.parametrize(
    ("run", "side_effects", "state", "said"),
    [
        (broken, SideEffects.YES, TaskState.UNKNOWN, "the tool failed (ZeroDivisionError)"),
        (broken, SideEffects.NONE, TaskState.FAILED, "the tool failed (ZeroDivisionError)"),
        (refusing, SideEffects.YES, TaskState.FAILED, "no such page"),
        (endless, SideEffects.YES, TaskState.UNKNOWN, "it did not end within 90 s"),
        (endless, SideEffects.IDEMPOTENT, TaskState.FAILED, "it did not end within 90 s"),
    ],
)
async def test_a_task_that_goes_wrong_ends_once_and_says_what_is_known(
    run: Callable[[Page], Awaitable[str]], side_effects: SideEffects, state: TaskState, said: str
) -> None:
    store = MemoryTaskStore()
    responder = ScriptedResponder(asks(1), Script(says("I am at it.")))
    rehearsal = Rehearsal(
        responder=responder,
        tools=(reading(run, side_effects=side_effects, timeout_ms=90_000),),
        tasks=BackgroundTasks(store),
    )
    async with rehearsal.running():
        rehearsal.say("read")
        await rehearsal.until("task.updated", 3)
    assert (store.tasks["t1"].state, store.tasks["t1"].output) == (state, said)
    assert states(rehearsal)[-1] == ("t1", state.value)
    assert rehearsal.left_behind == ()


@pytest.mark.parametrize(
    ("side_effects", "state"), [(SideEffects.YES, TaskState.UNKNOWN), (SideEffects.NONE, TaskState.CANCELLED)]
)
async def test_a_task_is_cancelled_by_its_name_from_outside_and_stops(
    side_effects: SideEffects, state: TaskState
) -> None:
    library, store = Library(), MemoryTaskStore()
    responder = ScriptedResponder(asks(1), Script(says("I am at it.")))
    tools = (reading(library.read, side_effects=side_effects),)
    rehearsal = Rehearsal(responder=responder, tools=tools, tasks=BackgroundTasks(store))
    async with rehearsal.running():
        rehearsal.say("read")
        await rehearsal.until("delivery.recorded")
        store.cancellations += ["t1", "t1", "t99"]
        await rehearsal.until("task.updated", 3)
        await anyio.wait_all_tasks_blocked()
        assert library.stopped == [1]
    assert store.tasks["t1"].state is state
    assert states(rehearsal) == [("t1", "queued"), ("t1", "running"), ("t1", state.value)]


async def test_a_queued_task_that_is_cancelled_never_runs() -> None:
    library, store = Library(), MemoryTaskStore()
    tasks = BackgroundTasks(store, limits=TaskLimits(running_tasks=1))
    responder = ScriptedResponder(asks(1, 2), Script(says("I am at it.")))
    rehearsal = Rehearsal(responder=responder, tools=(reading(library.read),), tasks=tasks)
    async with rehearsal.running():
        rehearsal.say("read")
        await rehearsal.until("delivery.recorded")
        assert tasks.cancel("t2")
        assert not tasks.cancel("t2")
        library.gate(1).set()
        await rehearsal.until_true(lambda: ("t1", "completed") in states(rehearsal))
    assert library.began == [1]
    assert store.tasks["t2"].state is TaskState.CANCELLED


async def test_after_a_restart_what_was_queued_runs_and_what_was_running_is_unknown_and_is_not_run_again() -> None:
    library = Library()
    store = a_store(left_over(TaskState.RUNNING, 1, starts=1), left_over(TaskState.QUEUED, 2))
    responder = ScriptedResponder(Script(says("Well.")))
    rehearsal = Rehearsal(responder=responder, tools=(reading(library.read),), tasks=BackgroundTasks(store))
    async with rehearsal.running():
        library.gate(2).set()
        await rehearsal.until_true(lambda: ("t2", "completed") in states(rehearsal))
        rehearsal.say("hello")
        await rehearsal.until("delivery.recorded")
    assert library.began == [2]
    assert store.tasks["t1"].state is TaskState.UNKNOWN
    role, text = told(responder, 0)[0]
    assert role == "system"
    assert "task t1 (read) unknown: the process ended while it ran" in text
    assert "task t2 (read) completed: page 2" in text
    assert store.unsettled() == ()


async def test_a_resumable_task_begins_again_after_a_restart_but_not_for_ever() -> None:
    library = Library()
    tool = reading(library.read, side_effects=SideEffects.IDEMPOTENT, resumable=True)
    store = a_store(left_over(TaskState.RUNNING, 1, starts=2), left_over(TaskState.RUNNING, 2, starts=3))
    rehearsal = Rehearsal(tools=(tool,), tasks=BackgroundTasks(store, limits=TaskLimits(starts=3)))
    async with rehearsal.running():
        library.gate(1).set()
        await rehearsal.until_true(lambda: ("t1", "completed") in states(rehearsal))
    assert library.began == [1]
    assert store.tasks["t1"].starts == 3
    assert store.tasks["t2"].state is TaskState.UNKNOWN


async def test_a_queued_task_whose_tool_is_gone_or_takes_other_arguments_fails() -> None:
    class Other(BaseModel):
        title: str

    async def run(_: Other) -> str:
        raise AssertionError

    for tools, words in (
        ((), "there is no tool named 'read' any more"),
        ((Tool("read", "", Other, run, True),), "the tool takes other arguments now: title: Field required"),
    ):
        store = a_store(left_over(TaskState.QUEUED))
        rehearsal = Rehearsal(tools=tools, tasks=BackgroundTasks(store))
        async with rehearsal.running():
            await rehearsal.until_true(lambda: any(state == "failed" for _, state in states(rehearsal)))  # noqa: B023
        assert (store.tasks["t1"].state, store.tasks["t1"].output) == (TaskState.FAILED, words)


async def test_a_session_that_closes_leaves_its_running_task_for_the_next_start_to_judge() -> None:
    library, store = Library(), MemoryTaskStore()
    responder = ScriptedResponder(asks(1), Script(says("I am at it.")))
    rehearsal = Rehearsal(responder=responder, tools=(reading(library.read),), tasks=BackgroundTasks(store))
    async with rehearsal.running():
        rehearsal.say("read")
        await rehearsal.until("delivery.recorded")
    assert library.stopped == [1]
    assert store.tasks["t1"].state is TaskState.RUNNING
    assert rehearsal.left_behind == ()


async def test_a_finished_task_may_ask_for_words_to_the_user_and_only_where_its_tool_has_some() -> None:
    library, words = Library(), list[str]()

    def breaks(_: str) -> str:
        raise ValueError

    def tells(result: str) -> str:
        return f"I have read {result}."

    for announce, expected in ((tells, ["I have read page 1."]), (None, []), (breaks, [])):
        words.clear()
        library.gate(1).set()
        responder = ScriptedResponder(asks(1), Script(says("I am at it.")))
        tasks = BackgroundTasks(notify=words.append)
        rehearsal = Rehearsal(responder=responder, tools=(reading(library.read, announce=announce),), tasks=tasks)
        async with rehearsal.running():
            rehearsal.say("read")
            await rehearsal.until("task.updated", 3)
        assert words == expected


async def test_more_ended_tasks_than_a_note_holds_are_told_with_the_turns_that_follow() -> None:
    ended = [
        replace(left_over(TaskState.COMPLETED, number), output=f"page {number}" + "x" * 5_000) for number in range(10)
    ]
    responder = ScriptedResponder(Script(says("One.")), Script(says("Two.")), Script(says("Three.")))
    rehearsal = Rehearsal(responder=responder, tasks=BackgroundTasks(a_store(*ended)))
    async with rehearsal.running():
        for turn in range(3):
            rehearsal.say("go on")
            await rehearsal.until("delivery.recorded", turn + 1)
    notes = [next((text for role, text in told(responder, turn) if role == "system"), "") for turn in range(3)]
    assert [note.count("(read) completed") for note in notes] == [8, 2, 0]
    assert len(notes[0]) < 8 * 2_100


async def test_a_retry_of_a_reply_is_told_the_same_again() -> None:
    responder = ScriptedResponder(Script(open_error=scripted_error(retryable=True)), Script(says("It is read.")))
    ended = replace(left_over(TaskState.COMPLETED), output="page 1")
    rehearsal = Rehearsal(responder=responder, tasks=BackgroundTasks(a_store(ended)))
    async with rehearsal.running():
        rehearsal.say("go on")
        await rehearsal.until("delivery.recorded")
    assert told(responder, 0) == told(responder, 1)
    assert told(responder, 0)[0][0] == "system"


def test_limits_that_would_never_let_a_task_run_are_refused() -> None:
    with pytest.raises(ValueError, match="at least 1"):
        TaskLimits(running_tasks=0)
    assert TaskLimits(open_tasks=1, running_tasks=1, run_ms=1, starts=1)
