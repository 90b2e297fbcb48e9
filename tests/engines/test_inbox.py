"""The inbox: order, the control lane, and its bounds."""

from __future__ import annotations

import anyio
import pytest

from voicechart.engines.inbox import Inbox
from voicechart.engines.reports import PortError
from voicechart.engines.testing import scripted_error
from voicechart.statecharts.capabilities import Capabilities
from voicechart.statecharts.facts import (
    ButtonPressed,
    ClientCancelled,
    CloseRequested,
    ConnectionLost,
    ConnectionReady,
    Fact,
    SpeechProgressed,
)


def progressed(at: int) -> SpeechProgressed:
    return SpeechProgressed(at=at, speech_ms=at)


def everything(inbox: Inbox) -> list[Fact]:
    taken: list[Fact] = []
    while (fact := inbox.take()) is not None:
        taken.append(fact)
    return taken


def test_facts_leave_in_the_order_in_which_they_came() -> None:
    inbox = Inbox()
    facts = [progressed(at) for at in range(5)]
    for fact in facts:
        inbox.put_nowait(fact)
    assert everything(inbox) == facts


@pytest.mark.parametrize("control", [CloseRequested(at=9), ClientCancelled(at=9), ButtonPressed(at=9)])
def test_a_cancel_never_waits_behind_other_facts(control: Fact) -> None:
    inbox = Inbox()
    inbox.put_nowait(progressed(1))
    inbox.put_nowait(control)
    assert everything(inbox) == [control, progressed(1)]


def test_a_loss_does_not_overtake_the_readiness_that_it_ends() -> None:
    inbox = Inbox()
    ready = ConnectionReady(at=1, capabilities=Capabilities())
    lost = ConnectionLost(at=2, error=scripted_error())
    inbox.put_nowait(ready)
    inbox.put_nowait(lost)
    assert everything(inbox) == [ready, lost]


def test_the_ordinary_lane_is_full_at_its_capacity_and_the_control_lane_is_not() -> None:
    inbox = Inbox(capacity=2, control_capacity=1)
    inbox.put_nowait(progressed(1))
    inbox.put_nowait(progressed(2))
    with pytest.raises(PortError, match="2 facts wait"):
        inbox.put_nowait(progressed(3))
    inbox.put_nowait(ButtonPressed(at=4))
    with pytest.raises(PortError, match="1 facts wait"):
        inbox.put_nowait(ButtonPressed(at=5))
    assert inbox.peak == 3


def test_there_is_always_room_for_one_request_to_close_and_the_first_one_counts() -> None:
    inbox = Inbox(control_capacity=1)
    inbox.put_nowait(ButtonPressed(at=1))
    inbox.put_nowait(CloseRequested(at=2, reason="first"))
    inbox.put_nowait(CloseRequested(at=3, reason="second"))
    assert everything(inbox) == [ButtonPressed(at=1), CloseRequested(at=2, reason="first")]


@pytest.mark.anyio
async def test_whoever_takes_waits_until_there_is_something() -> None:
    inbox = Inbox()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(inbox.wait)
        await anyio.wait_all_tasks_blocked()
        assert len(inbox) == 0
        inbox.put_nowait(progressed(1))
    await inbox.wait()
    assert len(inbox) == 1
