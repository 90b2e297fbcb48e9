"""What every engine with a device does: one device session at a time, its receipts passed on, and the chart's actions
handed to the part that can carry them out.

It decides nothing. An engine brings its parts (`Parts`), and says what it takes to be ready.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import Protocol

import anyio
from anyio.abc import TaskGroup

from ..statecharts import actions as do
from ..statecharts.capabilities import Capabilities
from ..statecharts.errors import ErrorScope, ScopedError
from ..statecharts.facts import ConnectionFailed, ConnectionLost, ConnectionReady
from .device_facts import receipt_to_fact
from .engine import Desk
from .history import History
from .output_gate import OutputGate
from .port_calls import reading
from .ports import Microphone, Speaker
from .replying import Replying
from .reports import DeviceButton, PortError, SpeakerLost
from .speaking import Speaking


class AudioLink(Protocol):
    """One live session with the device: exactly one microphone and one speaker."""

    @property
    def microphone(self) -> Microphone: ...
    @property
    def speaker(self) -> Speaker: ...


class AudioDevice(Protocol):
    """Where live sessions with the device come from."""

    def connect(self) -> AbstractAsyncContextManager[AudioLink]:
        """A session for the time of the block. Entering is bounded, raises `PortError`, and never falls back to
        another device; leaving releases everything.
        """
        ...


class Listens(Protocol):
    """The microphone's side of an engine."""

    async def listen(self, microphone: Microphone) -> None:
        """Follow one device's capture to its end. Raises `PortError`."""
        ...

    def start(self, action: do.StartRecognition) -> None: ...
    def finish(self, action: do.FinishRecognition) -> None: ...
    def cancel(self, action: do.CancelRecognition) -> None: ...
    def transcribe(self, action: do.TranscribeRecording) -> None: ...
    def press(self, button: DeviceButton) -> None: ...


@dataclass(frozen=True)
class Parts:
    """What carries out the actions of the regions."""

    listening: Listens
    speaking: Speaking
    replying: Replying


class DeviceEngine(ABC):
    """One conversation over one device."""

    def __init__(self, device: AudioDevice, history: History) -> None:
        self.gate = OutputGate(self._note_stale)
        self.history = history
        self._device = device
        self._desk: Desk | None = None
        self._parts: Parts | None = None
        self._one_link = anyio.Lock()
        self._link_scope: anyio.CancelScope | None = None
        self._handlers: dict[type[do.Action], Callable[..., None]] = {}

    # -- what an engine brings -------------------------------------------------------------------------------------

    @abstractmethod
    def _make_parts(self, desk: Desk) -> Parts:
        """The parts of one session."""

    @abstractmethod
    async def _prepare(self) -> None:
        """Everything that takes long, before the user is told that the session is ready. Raises `PortError`."""

    @abstractmethod
    def _capabilities(self, speaker: Speaker) -> Capabilities:
        """What was negotiated."""

    @abstractmethod
    async def aclose(self) -> None:
        """Release every port. Idempotent, bounded."""

    @asynccontextmanager
    async def _beside_the_device(self) -> AsyncGenerator[None]:
        """What lives as long as the device session, and begins before it. Entering raises `PortError`."""
        yield

    def _follow_beside(self, tasks: TaskGroup) -> None:  # noqa: B027 - most engines have nothing
        """Start what has to be followed while the session is live."""

    def _truncate(self, action: do.TruncateContext) -> None:  # noqa: B027 - most engines need not
        """A model that holds no context of its own has nothing to cut."""

    def _record_delivery(self, action: do.RecordDelivery) -> None:
        self.parts.replying.record_delivery(action)

    def _store_turn(self, action: do.StoreUserTurn) -> None:
        self.parts.replying.store_turn(action)

    # -- for the session -------------------------------------------------------------------------------------------

    @property
    def desk(self) -> Desk:
        """The session; there from `attach` on."""
        assert self._desk is not None
        return self._desk

    @property
    def parts(self) -> Parts:
        """There from `attach` on."""
        assert self._parts is not None
        return self._parts

    def attach(self, desk: Desk) -> None:
        self._desk = desk
        self._parts = parts = self._make_parts(desk)
        listening, speaking, replying = parts.listening, parts.speaking, parts.replying
        self._handlers = {
            do.StopPlayback: self._stop_playback,
            do.PausePlayback: speaking.pause,
            do.ResumePlayback: speaking.resume,
            do.ReleaseOutput: speaking.release_output,
            do.OpenOutput: speaking.open_output,
            do.FinishOutput: speaking.finish_output,
            do.StartGeneration: replying.start,
            do.StartAnnouncement: replying.announce,
            do.ContinueGeneration: replying.go_on,
            do.CancelGeneration: replying.cancel,
            do.CancelSynthesis: replying.cancel_speech,
            do.ExecuteTool: replying.execute,
            do.CancelTools: replying.cancel_tools,
            do.RecordToolOutcome: replying.record_tool,
            do.RecordResponse: replying.record_response,
            do.RecordDelivery: self._record_delivery,
            do.StoreUserTurn: self._store_turn,
            do.StartRecognition: listening.start,
            do.FinishRecognition: listening.finish,
            do.CancelRecognition: listening.cancel,
            do.TranscribeRecording: listening.transcribe,
            do.Connect: self._connect,
            do.Disconnect: self._disconnect,
            do.TruncateContext: self._truncate,
            do.RecordInterruption: _ignore,
        }

    def carry_out(self, action: do.Action) -> None:
        self._handlers[type(action)](action)

    # -- buttons ---------------------------------------------------------------------------------------------------

    def press_talk(self) -> None:
        """Push-to-talk, under the turn authority `manual`: the user begins to speak."""
        self.parts.listening.press(DeviceButton.TALK)

    def release_talk(self) -> None:
        """The user has finished: the turn is committed once its transcript is whole."""
        self.parts.listening.press(DeviceButton.RELEASE)

    def clear_talk(self) -> None:
        """The user takes back what is being said."""
        self.parts.listening.press(DeviceButton.CLEAR)

    def press_stop(self) -> None:
        """The stop button: interrupts the reply that is heard, where the policy lets buttons do so."""
        self.parts.listening.press(DeviceButton.STOP)

    def _note_stale(self, output_epoch: int) -> None:
        self.desk.note_stale(output_epoch)

    # -- the connection --------------------------------------------------------------------------------------------

    def _stop_playback(self, action: do.StopPlayback) -> None:
        self.gate.invalidate_before(action.before_epoch, action.reason)

    def _connect(self, action: do.Connect) -> None:
        self.desk.start_task(self._run_link, name=f"device session {action.stamp.session_epoch}.{action.attempt}")

    def _disconnect(self, action: do.Disconnect) -> None:
        """Let go of a broken session; the next one begins when it is gone."""
        if self._link_scope is not None:
            self._link_scope.cancel()

    async def _run_link(self) -> None:
        """One device session, from connecting to its loss."""
        async with self._one_link:
            failed: type[ConnectionFailed | ConnectionLost] = ConnectionFailed
            with anyio.CancelScope() as self._link_scope:
                try:
                    await self._prepare()
                    async with self._beside_the_device(), self._device.connect() as link:
                        microphone, speaker = link.microphone, link.speaker
                        failed = ConnectionLost
                        await self._live(microphone, speaker)
                except PortError as failure:
                    self.desk.report(failed(at=self._now, error=failure.error))

    async def _live(self, microphone: Microphone, speaker: Speaker) -> None:
        """Listen and follow the speaker until the session is lost or let go."""
        self.parts.speaking.speaker = speaker
        self.gate.attach(speaker, self.desk.conversation.context.output_epoch)
        try:
            async with anyio.create_task_group() as tasks:
                self.desk.report(ConnectionReady(at=self._now, capabilities=self._capabilities(speaker)))
                tasks.start_soon(self._listen, microphone)
                self._follow_beside(tasks)
                await self._follow(speaker)
                tasks.cancel_scope.cancel()
        finally:
            self.parts.speaking.speaker = None
            self.gate.detach()

    async def _listen(self, microphone: Microphone) -> None:
        try:
            await self.parts.listening.listen(microphone)
        except PortError as failure:
            self._lose(failure.error)

    async def _follow(self, speaker: Speaker) -> None:
        """Pass on every receipt; when they end, so has the session."""
        error = _link_ended()
        try:
            async with reading(speaker.reports()) as reports:
                async for report in reports:
                    if isinstance(report, SpeakerLost):
                        error = report.error
                        break
                    self.desk.report(receipt_to_fact(report, self._now))
        except PortError as failure:
            error = failure.error
        self._lose(error)

    def _lose(self, error: ScopedError) -> None:
        self.desk.report(ConnectionLost(at=self._now, error=error))

    @property
    def _now(self) -> int:
        return self.desk.clock.now_ns()


def _ignore(action: do.Action) -> None:
    """Nothing to carry out: interruptions are published."""


def _link_ended() -> ScopedError:
    return ScopedError(
        "device_session_ended", "connection", ErrorScope.SESSION, "the speaker's receipts ended without a reason", True
    )
