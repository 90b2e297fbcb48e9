"""Who takes part in a conversation with recordings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from ...audio.formats import AudioFormat
from ...audio.voice_activity import SpeechProbability
from ...engines import AudioDevice, CascadeEngine, CascadePorts, History, Session, Tool
from ...engines.end_of_turn import EndOfTurn
from ...engines.ports import Recognizer, Responder, Synthesizer
from ...engines.realtime import RealtimeEngine, RealtimeModel, RealtimePorts
from ...statecharts import InterruptionPolicy, Policies
from ...statecharts.actions import Action
from ...statecharts.values import InterruptionSource, TurnAuthority
from .native_witness import WitnessedModel
from .witness import VoicedReply, WitnessedSynthesizer

INTERRUPTION = InterruptionPolicy(
    sources=frozenset({InterruptionSource.SPEECH, InterruptionSource.BUTTON, InterruptionSource.CLIENT}),
    full_duplex=True,
    min_duration_ms=350,
)
"""Speech may interrupt: between a virtual speaker and a virtual microphone there is no echo to cancel."""


def room_policies(policies: Policies) -> Policies:
    """The same policies in the room of the virtual devices, where nobody presses a talk button."""
    turn = policies.turn
    if turn.authority is TurnAuthority.MANUAL:
        turn = replace(turn, authority=TurnAuthority.VAD)
    return replace(policies, turn=turn, interruption=INTERRUPTION)


POLICIES = room_policies(Policies())


@dataclass(frozen=True)
class Ensemble:
    """The parts at work in one conversation, and what they will have said."""

    engine: CascadeEngine | RealtimeEngine
    voiced: Callable[[], Sequence[VoicedReply]]
    note: Callable[[Action], None] | None = None
    """Must see every decision of the chart."""


class Players(Protocol):
    """Who takes part: a cascade, or a native realtime model."""

    @property
    def policies(self) -> Policies: ...
    @property
    def attach(self) -> Callable[[Session], None] | None:
        """Told of the session before it runs: whoever acts in it by itself."""
        ...

    @property
    def output_format(self) -> AudioFormat:
        """What the speaker plays, once `prepare` has returned."""
        ...

    async def prepare(self) -> None:
        """Load what tells the format. Raises `PortError`."""
        ...

    def play(self, device: AudioDevice, history: History) -> Ensemble: ...


@dataclass(frozen=True)
class Cast:
    """A recogniser, a model and a voice."""

    recognizer: Recognizer
    responder: Responder
    synthesizer: Synthesizer
    voice_activity: SpeechProbability
    system_prompt: str | None = None
    policies: Policies = POLICIES
    attach: Callable[[Session], None] | None = None
    end_of_turn: EndOfTurn | None = None
    fallback_recognizer: Recognizer | None = None
    tools: tuple[Tool, ...] = ()

    @property
    def output_format(self) -> AudioFormat:
        return self.synthesizer.format

    async def prepare(self) -> None:
        await self.synthesizer.prepare()

    def play(self, device: AudioDevice, history: History) -> Ensemble:
        witness = WitnessedSynthesizer(self.synthesizer)
        ports = CascadePorts(
            device,
            self.recognizer,
            self.responder,
            witness,
            self.voice_activity,
            history=history,
            tools=self.tools,
            system_prompt=self.system_prompt,
            end_of_turn=self.end_of_turn,
            fallback_recognizer=self.fallback_recognizer,
        )
        return Ensemble(CascadeEngine(ports), lambda: witness.voiced)


@dataclass(frozen=True)
class NativeCast:
    """A model that hears and speaks by itself."""

    model: RealtimeModel
    voice_activity: SpeechProbability
    system_prompt: str | None = None
    policies: Policies = POLICIES
    attach: Callable[[Session], None] | None = None
    end_of_turn: EndOfTurn | None = None
    tools: tuple[Tool, ...] = ()

    @property
    def output_format(self) -> AudioFormat:
        return self.model.output_format

    async def prepare(self) -> None:
        await self.model.prepare()

    def play(self, device: AudioDevice, history: History) -> Ensemble:
        witness = WitnessedModel(self.model)
        ports = RealtimePorts(
            device,
            witness,
            self.voice_activity,
            history=history,
            tools=self.tools,
            system_prompt=self.system_prompt,
            end_of_turn=self.end_of_turn,
        )
        return Ensemble(RealtimeEngine(ports), lambda: witness.voiced, witness.note)
