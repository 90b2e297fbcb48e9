"""Replying: from an admitted turn to the model's text, its tools, and what history remembers of it.

What becomes of the text - speech, or nothing more than being shown - is the affair of its `Voices`.
"""

from __future__ import annotations

from typing import Protocol

import anyio

from ..statecharts.actions import (
    CancelGeneration,
    CancelSynthesis,
    CancelTools,
    ContinueGeneration,
    ExecuteTool,
    RecordDelivery,
    RecordResponse,
    RecordToolOutcome,
    StartAnnouncement,
    StartGeneration,
    StoreUserTurn,
)
from ..statecharts.facts import CancelAcknowledged
from ..statecharts.values import DeliveryStatus, Outcome, PositionSource
from .announcing import Discreet, Unrecorded
from .background import BackgroundTasks
from .engine import Desk
from .history import (
    ContextLimits,
    Cut,
    Delivery,
    History,
    Reply,
    UserTurn,
    latest_within,
    messages_of,
    with_later_output,
    with_note,
)
from .live_reply import LiveReply, Voice
from .ports import Message, Responder
from .reply_text import Heard
from .task_store import TaskRecord, output_with
from .tools import Tool, ToolCalls

RECEIPT_MARGIN_S = 1.0
"""Beyond the chart's own deadline for a receipt, before a context is built without it."""


class Voices(Protocol):
    """Gives every reply its voice."""

    def begin(self, action: StartGeneration | StartAnnouncement) -> Voice:
        """The voice of a new reply, or of a text that is said as it is."""
        ...

    def forget(self, response_id: str) -> None:
        """Nothing of that reply can change any more."""
        ...


class Replying:
    """Carries out the actions of the Generation region and the text side of the records."""

    def __init__(
        self,
        desk: Desk,
        responder: Responder,
        voices: Voices,
        history: History,
        *,
        tools: tuple[Tool, ...] = (),
        system_prompt: str | None = None,
        context: ContextLimits | None = None,
        tasks: BackgroundTasks | None = None,
    ) -> None:
        self._desk = desk
        self._responder = responder
        self._voices = voices
        self._history = history
        self._tasks = tasks or BackgroundTasks()
        self._tools = ToolCalls(desk, tools, queue=self._tasks.queue)
        self._system_prompt = system_prompt
        self._limits = context or ContextLimits()
        self._replies: dict[str, LiveReply] = {}
        self._delivered = anyio.Event()
        self._tasks.attach(desk, tools, self._remember_task)

    # -- generation ------------------------------------------------------------------------------------------------

    def start(self, action: StartGeneration) -> None:
        """Begin an attempt; the first one of a response gets its voice too."""
        reply = self._replies.get(action.response_id)
        if reply is None:
            reply = self._new_reply(action)
        self._begin_attempt(reply, action.attempt_id)

    def go_on(self, action: ContinueGeneration) -> None:
        """Every call of the step has its outcome: ask the model again."""
        self._begin_attempt(self._replies[action.response_id], action.attempt_id)

    def cancel(self, action: CancelGeneration) -> None:
        """Ask for the end; an attempt that is not under way is acknowledged at once."""
        reply = self._replies.get(action.response_id)
        if reply is not None:
            reply.hush()
        attempt = reply.attempt if reply is not None else None
        if attempt is not None and not attempt.is_finished:
            attempt.cancel(action.reason)
        else:
            self._desk.report(CancelAcknowledged(at=self._desk.clock.now_ns(), attempt_id=action.attempt_id))

    def announce(self, action: StartAnnouncement) -> None:
        """Say a text as it is; a private one is told and remembered nowhere."""
        reply = self._new_reply(action, recorded=action.recorded)
        # Not in this breath: that it begins is told before its text is.
        self._desk.start_task(self._say, reply, action.text, name=f"saying {action.response_id}")

    async def _say(self, reply: LiveReply, text: str) -> None:
        if reply.record.delivery is None:
            reply.append(text)
            reply.close_text()
        reply.end(Outcome.COMPLETED, "")
        self._forget_if_settled(reply)

    def _new_reply(self, action: StartGeneration | StartAnnouncement, *, recorded: bool = True) -> LiveReply:
        response_id = action.response_id
        record = Reply(response_id, action.run_id, action.position)
        voice = self._voices.begin(action)
        desk = self._desk if recorded else Discreet(self._desk)
        history = self._history if recorded else Unrecorded()
        reply = LiveReply(desk, record, voice, self._tools, history, self._context_before)
        reply.store()
        self._replies[response_id] = reply
        return reply

    def _begin_attempt(self, reply: LiveReply, attempt_id: str) -> None:
        attempt = reply.begin_attempt(self._responder, attempt_id)
        self._desk.start_task(attempt.run, name=f"attempt {attempt_id}")

    async def _context_before(self, reply: LiveReply) -> tuple[Message, ...]:
        """Everything that was said before, as it was heard: the receipt of a stop may still be on its way."""
        bound_s = self._desk.conversation.policies.playback.stop_receipt_ms / 1_000 + RECEIPT_MARGIN_S
        with anyio.move_on_after(bound_s):
            while any(other.awaits_delivery for other in self._replies.values() if other is not reply):
                await self._delivered.wait()
        present = reply.record.response_id
        # One more, because the present reply is among them.
        records = self._history.records(self._limits.records + 1)
        said = [record for record in records if isinstance(record, UserTurn) or record.response_id != present]
        if reply.note is None:
            reply.note = self._tasks.take_note()
        return with_note(messages_of(latest_within(said, self._limits), self._system_prompt), reply.note)

    def cancel_speech(self, action: CancelSynthesis) -> None:
        reply = self._replies.get(action.response_id)
        if reply is not None:
            reply.hush()
            reply.voice.cancel()

    # -- tools -----------------------------------------------------------------------------------------------------

    def execute(self, action: ExecuteTool) -> None:
        request = self._replies[action.response_id].begin_call(action.call_id)
        self._tools.execute(action.response_id, request, action.stamp)

    def cancel_tools(self, action: CancelTools) -> None:
        self._tools.cancel(action.call_ids)

    def stop_calls(self, call_ids: tuple[str, ...]) -> None:
        """The model took them back; each still gets its outcome."""
        self._tools.cancel(call_ids)

    def record_tool(self, action: RecordToolOutcome) -> None:
        reply = self._replies[action.response_id]
        reply.settle_call(action.call_id, action.status)
        self._forget_if_settled(reply)

    def _remember_task(self, task: TaskRecord) -> None:
        """The end of a background task joins the call that asked for it, for every later context."""
        call_id, output = task.request.call_id, output_with(task)
        live = self._replies.get(task.response_id)
        if live is not None:
            live.note_task(call_id, output)
            return
        for record in self._history.records(self._limits.records):
            if isinstance(record, Reply) and record.response_id == task.response_id:
                self._history.store_reply(with_later_output(record, call_id, output))

    # -- records ---------------------------------------------------------------------------------------------------

    def store_turn(self, action: StoreUserTurn) -> None:
        self._history.store_turn(
            UserTurn(action.turn_id, action.position, action.text, action.authority, action.revision)
        )

    def record_response(self, action: RecordResponse) -> None:
        """The model's side has ended."""
        reply = self._replies[action.response_id]
        reply.end(action.outcome, action.reason)
        self._forget_if_settled(reply)

    def record_delivery(self, action: RecordDelivery) -> None:
        """What was heard: only what a receipt confirms, by the word where its position was measured."""
        reply = self._replies[action.response_id]
        if action.status in (DeliveryStatus.DELIVERED, DeliveryStatus.TEXT_ONLY):
            heard = Heard(reply.generated.strip(), Cut.UNIT)
        else:
            measured = action.source is PositionSource.MEASURED
            heard = reply.heard(action.units, action.played_samples if measured else None)
        delivery = Delivery(
            action.status,
            heard.text,
            action.units,
            action.played_samples,
            action.source,
            action.confidence,
            action.at,
            heard.cut,
        )
        reply.deliver(delivery, action.position)
        self._desk.start_task(self._history.flush, name=f"keeping {action.response_id}")
        self._forget_if_settled(reply)
        self._delivered.set()
        self._delivered = anyio.Event()

    def _forget_if_settled(self, reply: LiveReply) -> None:
        """Once nothing of it can change, nothing of it is kept here; the history has it."""
        if reply.is_settled:
            response_id = reply.record.response_id
            reply.voice.cancel()
            self._voices.forget(response_id)
            del self._replies[response_id]
