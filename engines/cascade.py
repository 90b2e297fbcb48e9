"""The cascade engine: recogniser, model and synthesiser as separate ports, one device with a microphone and a speaker.

It carries out what the chart decides by handing each action to the part that can: `Listening` (microphone and
recognition), `Replying` (model, tools, records), `Speaking` (synthesis, speaker) and the output gate. It decides
nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Protocol

import anyio

from ..audio.voice_activity import SpeechProbability, VoiceActivitySettings
from ..statecharts import actions as do
from ..statecharts.capabilities import Capabilities
from ..statecharts.errors import ErrorScope, ScopedError
from ..statecharts.facts import (
    ConnectionFailed,
    ConnectionLost,
    ConnectionReady,
)
from ..statecharts.values import TurnAuthority
from .background import BackgroundTasks
from .device_facts import receipt_to_fact
from .end_of_turn import EndOfTurn
from .engine import Desk
from .history import ContextLimits, History, MemoryHistory
from .listening import Listening
from .output_gate import OutputGate
from .port_calls import let_go, reading
from .ports import Microphone, Recognizer, Responder, Speaker, Synthesizer
from .replying import Replying
from .reports import DeviceButton, PortError, SpeakerLost
from .speaking import Speaking
from .spoken import synthesis_degradation
from .tools import Tool
from .turn_authorities import lacking_authority


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


@dataclass(frozen=True)
class CascadePorts:
    """Everything a cascade needs of the world."""

    device: AudioDevice
    recognizer: Recognizer
    responder: Responder
    synthesizer: Synthesizer
    voice_activity: SpeechProbability
    history: History = field(default_factory=MemoryHistory)
    tools: tuple[Tool, ...] = ()
    tasks: BackgroundTasks | None = None
    """Where calls in the background go; they are lost with the process without any."""
    system_prompt: str | None = None
    context: ContextLimits = field(default_factory=ContextLimits)
    """How much of the history the model is shown."""
    voice_activity_settings: VoiceActivitySettings | None = None
    end_of_turn: EndOfTurn | None = None
    """Judges pauses under the turn authority `semantic`; no other authority asks it."""


class CascadeEngine:
    """One conversation over separate recogniser, model and synthesiser."""

    def __init__(self, ports: CascadePorts) -> None:
        self.ports = ports
        self.gate = OutputGate(self._note_stale)
        self._desk: Desk | None = None
        self._listening: Listening | None = None
        self._speaking: Speaking | None = None
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
        self._listening = listening = Listening(
            desk, ports.recognizer, ports.voice_activity, ports.voice_activity_settings, ports.end_of_turn
        )
        self._speaking = speaking = Speaking(desk, ports.synthesizer, self.gate)
        replying = Replying(
            desk,
            ports.responder,
            speaking,
            ports.history,
            tools=ports.tools,
            system_prompt=ports.system_prompt,
            context=ports.context,
            tasks=ports.tasks,
        )
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
            do.RecordDelivery: replying.record_delivery,
            do.StoreUserTurn: replying.store_turn,
            do.StartRecognition: listening.start,
            do.FinishRecognition: listening.finish,
            do.CancelRecognition: listening.cancel,
            do.TranscribeRecording: listening.transcribe,
            do.Connect: self._connect,
            do.Disconnect: self._disconnect,
            do.RecordInterruption: _ignore,
            do.TruncateContext: _ignore,
        }

    def carry_out(self, action: do.Action) -> None:
        self._handlers[type(action)](action)

    # -- buttons -----------------------------------------------------------------------------------------------------

    def press_talk(self) -> None:
        """Push-to-talk, under the turn authority `manual`: the user begins to speak."""
        self.listening.press(DeviceButton.TALK)

    def release_talk(self) -> None:
        """The user has finished: the turn is committed once its transcript is whole."""
        self.listening.press(DeviceButton.RELEASE)

    def clear_talk(self) -> None:
        """The user takes back what is being said."""
        self.listening.press(DeviceButton.CLEAR)

    def press_stop(self) -> None:
        """The stop button: interrupts the reply that is heard, where the policy lets buttons do so."""
        self.listening.press(DeviceButton.STOP)

    @property
    def listening(self) -> Listening:
        """There from `attach` on."""
        assert self._listening is not None
        return self._listening

    async def aclose(self) -> None:
        """Release device, recogniser, model and synthesiser."""
        await let_go(self.ports.recognizer, "the recogniser")
        await let_go(self.ports.responder, "the model")
        await let_go(self.ports.synthesizer, "the synthesiser")
        await self.ports.history.flush()

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
                    async with self.ports.device.connect() as link:
                        microphone, speaker = link.microphone, link.speaker
                        failed = ConnectionLost
                        await self._live(microphone, speaker)
                except PortError as failure:
                    self.desk.report(failed(at=self._now, error=failure.error))

    async def _prepare(self) -> None:
        """Everything that takes long, before the user is told that the session is ready."""
        authority, ports = self.desk.conversation.policies.turn.authority, self.ports
        lacking = lacking_authority(authority, ports.recognizer.capabilities, ports.end_of_turn)
        if lacking is not None:
            raise PortError(ScopedError("turn_authority_lacking", "recognition", ErrorScope.SESSION, lacking))
        if authority is TurnAuthority.SEMANTIC and ports.end_of_turn is not None:
            await ports.end_of_turn.prepare()
        await self.ports.recognizer.prepare()
        await self.ports.responder.prepare()
        await self.ports.synthesizer.prepare()

    async def _live(self, microphone: Microphone, speaker: Speaker) -> None:
        """Listen and follow the speaker until the session is lost or let go."""
        assert self._speaking is not None
        self._speaking.speaker = speaker
        self.gate.attach(speaker, self.desk.conversation.context.output_epoch)
        try:
            async with anyio.create_task_group() as tasks:
                self.desk.report(ConnectionReady(at=self._now, capabilities=self._capabilities(speaker)))
                tasks.start_soon(self._listen, microphone)
                await self._follow(speaker)
                tasks.cancel_scope.cancel()
        finally:
            self._speaking.speaker = None
            self.gate.detach()

    async def _listen(self, microphone: Microphone) -> None:
        try:
            await self.listening.listen(microphone)
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

    def _capabilities(self, speaker: Speaker) -> Capabilities:
        ports = self.ports
        return Capabilities(
            recognizer=ports.recognizer.capabilities,
            responder=ports.responder.capabilities,
            synthesizer=ports.synthesizer.capabilities,
            speaker=speaker.capabilities,
            degradations=degradations_of(ports),
        )

    @property
    def _now(self) -> int:
        return self.desk.clock.now_ns()


def degradations_of(ports: CascadePorts) -> tuple[str, ...]:
    """What does not stream, said out loud."""
    found: list[str] = []
    if not ports.recognizer.capabilities.interim:
        found.append("recognizer: final transcripts only, no live captions")
    if not ports.responder.capabilities.text_deltas:
        found.append("responder: whole replies only, speech begins late")
    if (synthesis := synthesis_degradation(ports.synthesizer.capabilities)) is not None:
        found.append(synthesis)
    return tuple(found)


def _ignore(action: do.Action) -> None:
    """Nothing to carry out: a cascade's model holds no context, and interruptions are published."""


def _link_ended() -> ScopedError:
    return ScopedError(
        "device_session_ended", "connection", ErrorScope.SESSION, "the speaker's receipts ended without a reason", True
    )
