"""Replying: from an admitted turn to audio in the speaker, and to what history remembers of it."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ..statecharts.actions import (
    CancelGeneration,
    CancelSynthesis,
    CancelTools,
    ContinueGeneration,
    ExecuteTool,
    FinishOutput,
    OpenOutput,
    RecordDelivery,
    RecordResponse,
    RecordToolOutcome,
    StartGeneration,
    StoreUserTurn,
)
from ..statecharts.facts import CancelAcknowledged
from ..statecharts.values import DeliveryStatus, ToolStatus
from .attempt import Attempt
from .engine import Desk
from .history import Delivery, History, Reply, ToolExchange, UserTurn, messages_of, with_tool_output
from .output_gate import OutputGate
from .ports import GenerationRequest, Responder, Speaker, SpeechUnit, Synthesizer, ToolRequest
from .public_events import TextAppended, TextFinished
from .reply_text import ReplyText
from .tools import Tool, ToolCalls
from .voicing import Voicing

KEPT_REPLIES = 8
"""Replies whose text is held for a late receipt; a receipt is bounded to a second, a reply is not that fast."""


@dataclass
class LiveReply:
    """What this side holds of one reply."""

    record: Reply
    text: ReplyText
    voicing: Voicing
    attempt: Attempt | None = None
    stream_id: int | None = None


class Replying:
    """Carries out the actions of the Generation region and the text side of the records."""

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
    ) -> None:
        self._desk = desk
        self._responder = responder
        self._synthesizer = synthesizer
        self._gate = gate
        self._history = history
        self._tools = ToolCalls(desk, tools)
        self._system_prompt = system_prompt
        self._replies: dict[str, LiveReply] = {}
        self.speaker: Speaker | None = None
        """The present speaker; None while there is no device session."""

    # -- generation ------------------------------------------------------------------------------------------------

    def start(self, action: StartGeneration) -> None:
        """Begin an attempt; the first one of a response begins its speech too."""
        reply = self._replies.get(action.response_id)
        if reply is None:
            reply = self._new_reply(action)
        self._attempt(reply, action.attempt_id)

    def go_on(self, action: ContinueGeneration) -> None:
        """Every call of the step has its outcome: ask the model again."""
        self._attempt(self._replies[action.response_id], action.attempt_id)

    def cancel(self, action: CancelGeneration) -> None:
        """Ask for the end; an attempt that is not under way is acknowledged at once."""
        reply = self._replies.get(action.response_id)
        attempt = reply.attempt if reply is not None else None
        if attempt is not None and attempt.attempt_id == action.attempt_id and not attempt.is_finished:
            attempt.cancel(action.reason)
        else:
            self._desk.report(CancelAcknowledged(at=self._desk.clock.now_ns(), attempt_id=action.attempt_id))

    def _new_reply(self, action: StartGeneration) -> LiveReply:
        response_id = action.response_id
        voicing = Voicing(self._desk, self._synthesizer, self._gate, response_id, action.output_epoch, action.stamp)
        reply = LiveReply(Reply(response_id, action.run_id, action.position), ReplyText(), voicing)
        self._replies[response_id] = reply
        while len(self._replies) > KEPT_REPLIES:
            self._replies.pop(next(iter(self._replies)))
        # From the first moment: a crash in the middle must leave a trace of what was begun.
        self._history.store_reply(reply.record)
        if self.speaker is not None:
            self._desk.start_task(voicing.run, self.speaker, name=f"voicing {response_id}")
        return reply

    def _attempt(self, reply: LiveReply, attempt_id: str) -> None:
        request = GenerationRequest(
            reply.record.response_id,
            attempt_id,
            messages_of(self._history.records(), self._system_prompt, continuing=reply.record),
            self._tools.definitions(),
        )
        attempt = Attempt(
            self._desk,
            self._responder,
            self._tools,
            request,
            lambda text: self._append(reply, text),
            lambda final: self._close_text(reply, final),
        )
        reply.attempt = attempt
        self._desk.start_task(attempt.run, name=f"attempt {attempt_id}")

    def _append(self, reply: LiveReply, text: str) -> None:
        units = reply.text.append(text)
        self._desk.publish(TextAppended(text), response_id=reply.record.response_id)
        self._speak(reply, units)

    def _close_text(self, reply: LiveReply, final_text: str | None) -> None:
        self._speak(reply, reply.text.close())
        reply.voicing.close_text()
        final = final_text if final_text is not None else reply.text.written
        self._desk.publish(TextFinished(final), response_id=reply.record.response_id)

    def _speak(self, reply: LiveReply, units: list[SpeechUnit]) -> None:
        if units:
            reply.record = replace(reply.record, generated=reply.text.written)
            self._history.store_reply(reply.record)
        for unit in units:
            reply.voicing.speak(unit)

    # -- speech ----------------------------------------------------------------------------------------------------

    def cancel_speech(self, action: CancelSynthesis) -> None:
        reply = self._replies.get(action.response_id)
        if reply is not None:
            reply.voicing.cancel()

    def open_output(self, action: OpenOutput) -> None:
        reply = self._replies[action.response_id]
        reply.stream_id = action.stream_id
        reply.voicing.open_output(action)

    def finish_output(self, action: FinishOutput) -> None:
        """The end barrier, behind everything that was written to that stream."""
        reply = next((known for known in self._replies.values() if known.stream_id == action.stream_id), None)
        if reply is not None and self.speaker is not None:
            self._desk.start_task(reply.voicing.finish_output, action, self.speaker, name="end barrier")

    # -- tools -----------------------------------------------------------------------------------------------------

    def propose(self, response_id: str, request: ToolRequest) -> None:
        """Keep a call of the model with its response."""
        reply = self._replies[response_id]
        reply.record = replace(reply.record, tools=(*reply.record.tools, ToolExchange(request)))

    def execute(self, action: ExecuteTool) -> None:
        self._tools.execute(action.call_id, action.stamp)

    def cancel_tools(self, action: CancelTools) -> None:
        self._tools.cancel(action.call_ids)

    def record_tool(self, action: RecordToolOutcome) -> None:
        reply = self._replies.get(action.response_id)
        request = self._tools.request(action.call_id)
        if reply is None or request is None:
            return
        if all(exchange.request.call_id != action.call_id for exchange in reply.record.tools):
            self.propose(action.response_id, request)
        output = self._tools.outputs.get(action.call_id, "")
        if not output and action.status is not ToolStatus.COMPLETED:
            output = f"({action.status})"
        reply.record = with_tool_output(reply.record, action.call_id, action.status, output)
        if reply.record.outcome is not None:
            self._history.store_reply(reply.record)

    # -- records ---------------------------------------------------------------------------------------------------

    def store_turn(self, action: StoreUserTurn) -> None:
        self._history.store_turn(
            UserTurn(action.turn_id, action.position, action.text, action.authority, action.revision)
        )

    def record_response(self, action: RecordResponse) -> None:
        """The model's side has ended."""
        reply = self._replies.get(action.response_id)
        if reply is None:
            return
        reply.record = replace(reply.record, generated=reply.text.written, outcome=action.outcome, reason=action.reason)
        self._history.store_reply(reply.record)

    def record_delivery(self, action: RecordDelivery) -> None:
        """What was heard: only whole units that a receipt confirms."""
        reply = self._replies.get(action.response_id)
        if reply is None:
            return
        whole = action.status in (DeliveryStatus.DELIVERED, DeliveryStatus.TEXT_ONLY)
        text = reply.text.written.strip() if whole else reply.text.heard(action.units)
        delivery = Delivery(
            action.status, text, action.units, action.played_samples, action.source, action.confidence, action.at
        )
        reply.record = replace(reply.record, position=action.position, generated=reply.text.written, delivery=delivery)
        self._history.store_reply(reply.record)
