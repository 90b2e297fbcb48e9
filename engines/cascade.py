"""The cascade engine: recogniser, model and synthesiser as separate ports, one device with a microphone and a speaker.

It carries out what the chart decides by handing each action to the part that can: `Listening` (microphone and
recognition), `Replying` (model, tools, records), `Speaking` (synthesis, speaker) and the output gate. It decides
nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ..audio.voice_activity import SpeechProbability, VoiceActivitySettings
from ..statecharts.capabilities import Capabilities
from ..statecharts.errors import ErrorScope, ScopedError
from ..statecharts.values import TurnAuthority
from .background import BackgroundTasks
from .device_engine import AudioDevice, DeviceEngine, Parts
from .end_of_turn import EndOfTurn
from .engine import Desk
from .history import ContextLimits, History, MemoryHistory
from .listening import Listening
from .port_calls import let_go
from .ports import Recognizer, Responder, Speaker, Synthesizer
from .replying import Replying
from .reports import PortError
from .speaking import Speaking
from .spoken import synthesis_degradation
from .tools import Tool
from .turn_authorities import lacking_authority


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
    fallback_recognizer: Recognizer | None = None
    """Hears the recording of an utterance whose recognition failed, and the rest of it; a final-only one will do.
    Without one, the recogniser itself is asked once more.
    """


class CascadeEngine(DeviceEngine):
    """One conversation over separate recogniser, model and synthesiser."""

    def __init__(self, ports: CascadePorts) -> None:
        super().__init__(ports.device, ports.history)
        self.ports = ports

    def _make_parts(self, desk: Desk) -> Parts:
        ports = self.ports
        speaking = Speaking(desk, ports.synthesizer, self.gate)
        return Parts(
            Listening(
                desk,
                ports.recognizer,
                ports.voice_activity,
                ports.voice_activity_settings,
                ports.end_of_turn,
                ports.fallback_recognizer,
            ),
            speaking,
            Replying(
                desk,
                ports.responder,
                speaking,
                ports.history,
                tools=ports.tools,
                system_prompt=ports.system_prompt,
                context=ports.context,
                tasks=ports.tasks,
            ),
        )

    async def aclose(self) -> None:
        """Release device, recogniser, model and synthesiser."""
        await let_go(self.ports.recognizer, "the recogniser")
        await let_go(self.ports.fallback_recognizer, "the fallback recogniser")
        await let_go(self.ports.responder, "the model")
        await let_go(self.ports.synthesizer, "the synthesiser")
        await self.ports.history.flush()

    async def _prepare(self) -> None:
        authority, ports = self.desk.conversation.policies.turn.authority, self.ports
        lacking = lacking_authority(authority, ports.recognizer.capabilities, ports.end_of_turn)
        if lacking is not None:
            raise PortError(ScopedError("turn_authority_lacking", "recognition", ErrorScope.SESSION, lacking))
        if authority is TurnAuthority.SEMANTIC and ports.end_of_turn is not None:
            await ports.end_of_turn.prepare()
        await self.ports.recognizer.prepare()
        if ports.fallback_recognizer is not None:
            await ports.fallback_recognizer.prepare()
        await self.ports.responder.prepare()
        await self.ports.synthesizer.prepare()

    def _capabilities(self, speaker: Speaker) -> Capabilities:
        ports = self.ports
        return Capabilities(
            recognizer=ports.recognizer.capabilities,
            responder=ports.responder.capabilities,
            synthesizer=ports.synthesizer.capabilities,
            speaker=speaker.capabilities,
            degradations=degradations_of(ports),
        )


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
