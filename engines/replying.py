"""Replying: from an admitted turn to audio in the speaker, and to what history remembers of it."""

from __future__ import annotations

from collections.abc import Callable

import anyio

from ..statecharts.actions import (
    CancelGeneration,
    CancelSynthesis,
    CancelTools,
    ContinueGeneration,
    ExecuteTool,
    FinishOutput,
    OpenOutput,
    PausePlayback,
    RecordDelivery,
    RecordResponse,
    RecordToolOutcome,
    ReleaseOutput,
    ResumePlayback,
    StartGeneration,
    StoreUserTurn,
)
from ..statecharts.facts import CancelAcknowledged
from ..statecharts.values import DeliveryStatus
from .engine import Desk
from .history import ContextLimits, Delivery, History, Reply, UserTurn, latest_within, messages_of
from .live_reply import LiveReply
from .output_gate import OutputGate
from .ports import Message, Responder, Speaker, Synthesizer
from .tools import Tool, ToolCalls
from .voicing import Voicing

RECEIPT_MARGIN_S = 1.0
"""Beyond the chart's own deadline for a receipt, before a context is built without it."""


class Replying:
    """Carries out the actions of the Generation and Playback regions and the text side of the records."""

    def __init__(
        self,
        desk: Desk,
        responder: Responder,
        synthesizer: Synthesizer,
        gate: OutputGate,
        history: History,
        *,
        tools: tuple[Tool, ...] = (),
        system_prompt: str | None = None,
        context: ContextLimits | None = None,
    ) -> None:
        self._desk = desk
        self._responder = responder
        self._synthesizer = synthesizer
        self._gate = gate
        self._history = history
        self._tools = ToolCalls(desk, tools)
        self._system_prompt = system_prompt
        self._limits = context or ContextLimits()
        self._replies: dict[str, LiveReply] = {}
        self._delivered = anyio.Event()
        self.speaker: Speaker | None = None
        """The present speaker; None while there is no device session."""

    # -- generation ------------------------------------------------------------------------------------------------

    def start(self, action: StartGeneration) -> None:
        """Begin an attempt; the first one of a response begins its speech too."""
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
        attempt = reply.attempt if reply is not None else None
        if attempt is not None and not attempt.is_finished:
            attempt.cancel(action.reason)
        else:
            self._desk.report(CancelAcknowledged(at=self._desk.clock.now_ns(), attempt_id=action.attempt_id))

    def _new_reply(self, action: StartGeneration) -> LiveReply:
        response_id = action.response_id
        voicing = Voicing(self._desk, self._synthesizer, self._gate, response_id, action.output_epoch, action.stamp)
        record = Reply(response_id, action.run_id, action.position)
        reply = LiveReply(self._desk, record, voicing, self._tools, self._history, self._context_before)
        reply.store()
        self._replies[response_id] = reply
        if self.speaker is not None:
            self._desk.start_task(voicing.run, self.speaker, name=f"voicing {response_id}")
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
        return messages_of(latest_within(said, self._limits), self._system_prompt)

    # -- speech ----------------------------------------------------------------------------------------------------

    def cancel_speech(self, action: CancelSynthesis) -> None:
        reply = self._replies.get(action.response_id)
        if reply is not None:
            reply.voicing.cancel()

    def open_output(self, action: OpenOutput) -> None:
        reply = self._replies[action.response_id]
        reply.stream_id = action.stream_id
        reply.voicing.open_output(action)

    def release_output(self, action: ReleaseOutput) -> None:
        self._with_output(action.stream_id, Voicing.release)

    def pause(self, action: PausePlayback) -> None:
        self._with_output(action.stream_id, Voicing.pause)

    def resume(self, action: ResumePlayback) -> None:
        self._with_output(action.stream_id, Voicing.resume)

    def _with_output(self, stream_id: int, ask: Callable[[Voicing], None]) -> None:
        voicing = self._voicing_of(stream_id)
        if voicing is not None:
            ask(voicing)

    def _voicing_of(self, stream_id: int) -> Voicing | None:
        return next((reply.voicing for reply in self._replies.values() if reply.stream_id == stream_id), None)

    def finish_output(self, action: FinishOutput) -> None:
        """The end barrier, behind everything that was written to that stream."""
        voicing = self._voicing_of(action.stream_id)
        if voicing is not None:
            self._desk.start_task(voicing.finish, action.end_sample, name=f"end barrier {action.stream_id}")

    # -- tools -----------------------------------------------------------------------------------------------------

    def execute(self, action: ExecuteTool) -> None:
        request = self._replies[action.response_id].keep_call(action.call_id)
        self._tools.execute(action.response_id, request, action.stamp)

    def cancel_tools(self, action: CancelTools) -> None:
        self._tools.cancel(action.call_ids)

    def record_tool(self, action: RecordToolOutcome) -> None:
        reply = self._replies[action.response_id]
        reply.settle_call(action.call_id, action.status)
        self._forget_if_settled(reply)

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
        """What was heard: only whole units that a receipt confirms."""
        reply = self._replies[action.response_id]
        whole = action.status in (DeliveryStatus.DELIVERED, DeliveryStatus.TEXT_ONLY)
        text = reply.generated.strip() if whole else reply.heard(action.units)
        delivery = Delivery(
            action.status, text, action.units, action.played_samples, action.source, action.confidence, action.at
        )
        reply.deliver(delivery, action.position)
        self._desk.start_task(self._history.flush, name=f"keeping {action.response_id}")
        self._forget_if_settled(reply)
        self._delivered.set()
        self._delivered = anyio.Event()

    def _forget_if_settled(self, reply: LiveReply) -> None:
        """Once nothing of it can change, nothing of it is kept here; the history has it."""
        if reply.is_settled:
            reply.voicing.cancel()
            del self._replies[reply.record.response_id]
