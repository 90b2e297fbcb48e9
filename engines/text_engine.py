"""The text engine: the same model, tools, history and chart as the cascade's, without any device.

A typed message is a turn that is committed on arrival. What the model writes is published as it comes; nothing is
synthesised and nothing is played, so a reply that ends by itself is delivered as `text_only`, and one that is cut off
was received as far as it was shown. The chart is told what is true: the reply's audio has ended after zero samples.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import anyio

from ..statecharts import actions as do
from ..statecharts.capabilities import Capabilities
from ..statecharts.facts import AudioEnded, ConnectionFailed, ConnectionReady
from .background import BackgroundTasks
from .engine import Desk
from .history import ContextLimits, Cut, History, MemoryHistory
from .port_calls import let_go
from .ports import Responder, SpeechUnit
from .reply_text import Heard, ReplyText
from .replying import Replying
from .reports import PortError
from .spoken import UnitGrain
from .tools import Tool


@dataclass(frozen=True)
class TextPorts:
    """Everything a conversation in writing needs of the world."""

    responder: Responder
    history: History = field(default_factory=MemoryHistory)
    tools: tuple[Tool, ...] = ()
    tasks: BackgroundTasks | None = None
    """Where calls in the background go; they are lost with the process without any."""
    system_prompt: str | None = None
    context: ContextLimits = field(default_factory=ContextLimits)
    """How much of the history the model is shown."""
    is_shared: bool = False
    """Other conversations use the responder too: whoever made it releases it."""


class TextEngine:
    """One conversation in writing.

        session = Session(Conversation("chat"), TextEngine(TextPorts(responder)))
        session.submit_text("what time is it?")

    It is ready as soon as the model is.
    """

    def __init__(self, ports: TextPorts) -> None:
        self.ports = ports
        self._desk: Desk | None = None
        self._one_link = anyio.Lock()
        self._link_scope: anyio.CancelScope | None = None
        self._handlers: dict[type[do.Action], Callable[..., None]] = {}

    @property
    def desk(self) -> Desk:
        """The session; there from `attach` on."""
        assert self._desk is not None
        return self._desk

    @property
    def history(self) -> History:
        return self.ports.history

    def attach(self, desk: Desk) -> None:
        ports = self.ports
        self._desk = desk
        replying = Replying(
            desk,
            ports.responder,
            Showing(desk),
            ports.history,
            tools=ports.tools,
            system_prompt=ports.system_prompt,
            context=ports.context,
            tasks=ports.tasks,
        )
        self._handlers = {
            do.StartGeneration: replying.start,
            do.StartAnnouncement: replying.announce,
            do.ContinueGeneration: replying.go_on,
            do.CancelGeneration: replying.cancel,
            do.CancelSynthesis: replying.cancel_speech,
            do.ExecuteTool: replying.execute,
            do.CancelTools: replying.cancel_tools,
            do.RecordToolOutcome: replying.record_tool,
            do.RecordResponse: replying.record_response,
            do.RecordDelivery: replying.record_delivery,
            do.StoreUserTurn: replying.store_turn,
            do.Connect: self._connect,
            do.Disconnect: self._disconnect,
            do.StopPlayback: _ignore,
            do.RecordInterruption: _ignore,
        }

    def carry_out(self, action: do.Action) -> None:
        self._handlers[type(action)](action)

    async def aclose(self) -> None:
        """Release the model, unless it is shared."""
        if not self.ports.is_shared:
            await let_go(self.ports.responder, "the model")
        await self.ports.history.flush()

    # -- the connection --------------------------------------------------------------------------------------------

    def _connect(self, action: do.Connect) -> None:
        self.desk.start_task(self._prepare, name=f"preparing {action.stamp.session_epoch}.{action.attempt}")

    def _disconnect(self, action: do.Disconnect) -> None:
        if self._link_scope is not None:
            self._link_scope.cancel()

    async def _prepare(self) -> None:
        async with self._one_link:
            with anyio.CancelScope() as self._link_scope:
                try:
                    await self.ports.responder.prepare()
                except PortError as failure:
                    self.desk.report(ConnectionFailed(at=self.desk.clock.now_ns(), error=failure.error))
                else:
                    self.desk.report(ConnectionReady(at=self.desk.clock.now_ns(), capabilities=self._capabilities()))

    def _capabilities(self) -> Capabilities:
        offered = self.ports.responder.capabilities
        degradations = () if offered.text_deltas else ("responder: whole replies only",)
        return Capabilities(responder=offered, text_only=True, degradations=degradations)


class Showing:
    """The voices of replies that are shown. Implements `Voices`."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    def begin(self, action: do.StartGeneration | do.StartAnnouncement) -> Shown:
        """A reply that is shown as it is written."""
        return Shown(self._desk, action.output_epoch)

    def forget(self, response_id: str) -> None:
        """Nothing is kept."""


class Shown:
    """The voice of a reply that is shown and not heard. Implements `Voice`."""

    def __init__(self, desk: Desk, output_epoch: int) -> None:
        self._desk = desk
        self._epoch = output_epoch
        self.grain = UnitGrain.SENTENCE

    def speak(self, unit: SpeechUnit) -> None:
        """Nobody says it."""

    @property
    def can_be_heard(self) -> bool:
        """Never."""
        return False

    def close_text(self) -> None:
        """The end is told when the model's side has its outcome."""

    def cancel(self) -> None:
        """Nothing is on its way."""

    def note_end(self) -> None:
        """There was nothing to say aloud, and now the chart knows it."""
        self._desk.report(AudioEnded(at=self._desk.clock.now_ns(), output_epoch=self._epoch, end_sample=0))

    def heard(self, text: ReplyText, units: int, measured_samples: int | None) -> Heard:
        """What was shown was there to be read."""
        return Heard(text.written.strip(), Cut.UNIT)


def _ignore(action: do.Action) -> None:
    """Nothing to carry out: there is no speaker, and interruptions are published."""
