"""One request to talk: from a typed message to the end of its run, for the connection that owns it."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Literal

import anyio

from ...engines.public_events import PublicEvent
from ...statecharts.actions import StoreUserTurn
from ...statecharts.barge_in import UNHEARD
from ...statecharts.chart import Step
from ...statecharts.context import Context
from ...statecharts.facts import ClientCancelled, TextSubmitted
from ...statecharts.published import ResponseStarted, SessionClosed, TurnDropped
from .conversations import Hosted
from .observing import Owner
from .window import Batch
from .wire import WireEvent

ACCEPT_TIMEOUT_S = 5.0
OnDisconnect = Literal["cancel", "continue"]
"""What becomes of a run whose connection goes."""


class ChatRefused(Exception):
    """The message was not taken. `code` is stable; the text says why."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


@asynccontextmanager
async def chatting(hosted: Hosted, text: str) -> AsyncGenerator[Chat]:
    """Hand in a message and own what comes of it. Raises `ChatRefused` on entering."""
    chat = Chat(hosted, text)
    hosted.requests += 1
    hosted.touch()
    ignore = hosted.session.conversation.observe(chat.note_step)
    try:
        with hosted.hub.own(chat.concerns) as owner:
            chat.owner = owner
            await chat.submit()
            yield chat
    finally:
        ignore()
        hosted.requests -= 1
        hosted.touch()


class Chat:
    """What became of one message so far."""

    owner: Owner

    def __init__(self, hosted: Hosted, text: str) -> None:
        self._hosted = hosted
        self._fact = TextSubmitted(at=hosted.session.clock.now_ns(), text=text)
        self._judged = anyio.Event()
        self._streams: set[int] = set()
        self._calls: set[str] = set()
        self._executed = False
        self._delivered = False
        self.turn_id: str | None = None
        self.run_id: str | None = None
        self.response_id: str | None = None
        self.is_over = False
        """Nothing more will come of it."""

    async def submit(self) -> None:
        """Hand in the message and wait until the chart has taken it. Raises `ChatRefused`."""
        session = self._hosted.session
        if session.closed is not None:
            raise ChatRefused("conversation_closed", "this conversation has ended; begin another one")
        session.report(self._fact)
        with anyio.move_on_after(ACCEPT_TIMEOUT_S):
            await self._judged.wait()
        if self.turn_id is None:
            raise ChatRefused("not_taken", "the conversation is closing, or did not answer in time")

    async def events(self, patience_s: float) -> Batch:
        """What has come since; an empty batch when nothing has."""
        batch = await self.owner.take(patience_s)
        return Batch(batch.events, batch.is_last or self.is_over)

    def abandon(self) -> None:
        """Its owner is gone: cancel what only this message asked for, now or when it begins."""
        if self.is_over:
            return
        session = self._hosted.session
        if self.run_id is not None:
            if self._is_alone():
                session.report(ClientCancelled(at=session.clock.now_ns(), run_id=self.run_id))
            return

        def cancel_at_start(event: PublicEvent) -> None:
            ends_it = isinstance(event.payload, SessionClosed | TurnDropped)
            if isinstance(event.payload, ResponseStarted) and self._answers_this():
                ends_it = True
                if self._is_alone():
                    session.report(ClientCancelled(at=session.clock.now_ns(), run_id=event.run_id))
            if ends_it:
                forget()

        forget = session.public.listen(cancel_at_start)

    # -- called while the chart's decisions are carried out ----------------------------------------------------------

    def note_step(self, step: Step[Context]) -> None:
        """The macrostep that took the message says which turn it is."""
        if step.fact is self._fact:
            self.turn_id = next((done.turn_id for done in step.actions if isinstance(done, StoreUserTurn)), None)
            self._judged.set()

    def concerns(self, event: WireEvent) -> bool:
        """Whether the owner of the message is to see it."""
        value = event.value
        family = event.type.partition(".")[0]
        if event.type == "session.closed":
            self.is_over = True
        if family == "session" or (family == "turn" and value.get("turn_id") == self.turn_id is not None):
            self.is_over = self.is_over or event.type == "turn.dropped"
            return True
        if event.type == "response.started" and self._answers_this():
            self.run_id, self.response_id = value.get("run_id"), value.get("response_id")
            self._executed = self._delivered = False
            return True
        return self._is_of_the_run(event)

    def _is_of_the_run(self, event: WireEvent) -> bool:
        value = event.value
        stream_id, call_id = value.get("stream_id"), value.get("call_id")
        if self.run_id is None:
            return False
        if self.run_id == value.get("run_id") or self.response_id == value.get("response_id"):
            if stream_id is not None:
                self._streams.add(stream_id)
            if call_id is not None:
                self._calls.add(call_id)
            self._note_end(event)
            return True
        if "run_id" in value or "response_id" in value:
            return False
        return stream_id in self._streams or call_id in self._calls

    def _note_end(self, event: WireEvent) -> None:
        self._executed = self._executed or event.type == "run.terminal"
        self._delivered = self._delivered or event.type == "delivery.recorded"
        if self._executed and self._delivered:
            superseded = event.value["payload"].get("reason") == UNHEARD
            self.is_over = superseded or not self._waits_again()

    def _answers_this(self) -> bool:
        reply = self._hosted.session.conversation.context.response
        return reply is not None and self.turn_id in reply.turn_ids

    def _is_alone(self) -> bool:
        reply = self._hosted.session.conversation.context.response
        return reply is not None and reply.turn_ids == (self.turn_id,)

    def _waits_again(self) -> bool:
        """The session was lost before anything was heard: the turn will be answered by another run."""
        waiting = self._hosted.session.conversation.context.pending
        return waiting is not None and self.turn_id in waiting.turn_ids
