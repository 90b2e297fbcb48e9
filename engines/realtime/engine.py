"""The realtime engine: one device, and one live session with a model that hears and speaks by itself.

It is the cascade's engine with other parts in it: `ModelHearing` for the recogniser (or `ProviderListening` for the
whole of listening), `ModelAnswering` for the model, `ModelSpeaking` for the voices. Its own is the session, which is
made with the device's and lost with it, and that what the model believes it said is cut to what was heard.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from anyio.abc import TaskGroup

from ...audio.formats import AudioFormat
from ...audio.voice_activity import SpeechProbability, VoiceActivitySettings
from ...statecharts import actions as do
from ...statecharts.capabilities import (
    Capabilities,
    RealtimeCapabilities,
    RecognizerCapabilities,
)
from ...statecharts.errors import ErrorScope, ScopedError
from ...statecharts.policies import InterruptionPolicy, JudgesInterruptions
from ...statecharts.values import InterruptionSource, TurnAuthority
from ..background import BackgroundTasks
from ..device_engine import AudioDevice, DeviceEngine, Listens, Parts
from ..end_of_turn import EndOfTurn
from ..engine import Desk
from ..history import ContextLimits, History, MemoryHistory, latest_within, messages_of
from ..listening import Listening
from ..port_calls import let_go
from ..ports import Speaker, Synthesizer
from ..public_events import ContextTruncated
from ..replying import Replying
from ..reports import PortError
from ..tools import Tool
from .answering import ModelAnswering
from .hearing import ModelHearing
from .link import ModelLink
from .ports import RealtimeModel, RealtimeRequest, RealtimeSession
from .provider_listening import ProviderListening
from .speaking import ModelSpeaking, SpokenItem, SpokenReplies


@dataclass(frozen=True)
class RealtimePorts:
    """Everything a conversation with a native realtime model needs of the world."""

    device: AudioDevice
    model: RealtimeModel
    voice_activity: SpeechProbability
    """Detects speech wherever the turn authority is not `engine`."""
    history: History = field(default_factory=MemoryHistory)
    tools: tuple[Tool, ...] = ()
    tasks: BackgroundTasks | None = None
    """Where calls in the background go; they are lost with the process without any."""
    system_prompt: str | None = None
    context: ContextLimits = field(default_factory=ContextLimits)
    """How much of the history a new session is given."""
    voice_activity_settings: VoiceActivitySettings | None = None
    end_of_turn: EndOfTurn | None = None
    announcer: Synthesizer | None = None
    """Says texts as they are; the model itself cannot be made to."""


class RealtimeEngine(DeviceEngine):
    """One conversation with a model that hears and speaks by itself."""

    def __init__(self, ports: RealtimePorts) -> None:
        super().__init__(ports.device, ports.history)
        self.ports = ports
        self._spoken = SpokenReplies(ports.model.output_format)
        self._link: ModelLink | None = None
        self._session: RealtimeSession | None = None
        self._answering: ModelAnswering | None = None
        self._to_cut: dict[str, int | None] = {}
        """Replies that the model believes it said whole, with the position known when that was decided."""

    @property
    def link(self) -> ModelLink:
        """There from `attach` on."""
        assert self._link is not None
        return self._link

    # -- parts -----------------------------------------------------------------------------------------------------

    def _make_parts(self, desk: Desk) -> Parts:
        ports = self.ports
        self._link = link = ModelLink(desk, ports.model)
        self._answering = answering = ModelAnswering(link, self._spoken)
        speaking = ModelSpeaking(desk, self._spoken, self.gate, ports.announcer)
        listening: Listens
        if desk.conversation.policies.turn.authority is TurnAuthority.ENGINE:
            listening = ProviderListening(desk, link)
        else:
            listening = Listening(
                desk,
                ModelHearing(desk, link),
                ports.voice_activity,
                ports.voice_activity_settings,
                ports.end_of_turn,
            )
        replying = Replying(
            desk,
            answering,
            speaking,
            ports.history,
            tools=ports.tools,
            system_prompt=ports.system_prompt,
            context=ports.context,
            tasks=ports.tasks,
        )
        link.on_withdrawn = self._note_withdrawn
        return Parts(listening, speaking, replying)

    async def aclose(self) -> None:
        """Release session, model and synthesiser."""
        if self._link is not None:
            await self._link.close()
        await let_go(self.ports.model, "the model")
        await let_go(self.ports.announcer, "the synthesiser")
        await self.ports.history.flush()

    # -- the session with the model --------------------------------------------------------------------------------

    async def _prepare(self) -> None:
        policies = self.desk.conversation.policies
        lacking = lacking_ability(self.ports.model.capabilities, policies.turn.authority, self.ports.end_of_turn)
        if lacking is not None:
            raise PortError(ScopedError("turn_authority_lacking", "connection", ErrorScope.SESSION, lacking))
        if policies.turn.authority is TurnAuthority.SEMANTIC and self.ports.end_of_turn is not None:
            await self.ports.end_of_turn.prepare()
        await self.ports.model.prepare()
        if self.ports.announcer is not None:
            await self.ports.announcer.prepare()

    @asynccontextmanager
    async def _beside_the_device(self) -> AsyncGenerator[None]:
        """A session that knows what was committed, and begins with nothing else of the former one."""
        assert self._answering is not None
        self._answering.begin_session()
        self._to_cut.clear()
        self._session = await self.link.open(self._request())
        try:
            yield
        finally:
            await self.link.close()

    def _request(self) -> RealtimeRequest:
        ports, link = self.ports, self.link
        records = latest_within(ports.history.records(ports.context.records), ports.context)
        resumption = link.resumption if ports.model.capabilities.resume else None
        return RealtimeRequest(
            instructions=ports.system_prompt,
            messages=messages_of(records),
            tools=tuple(tool.definition() for tool in ports.tools) if ports.model.capabilities.tool_calls else (),
            provider_turns=self.desk.conversation.policies.turn.authority is TurnAuthority.ENGINE,
            resumption=resumption,
        )

    def _follow_beside(self, tasks: TaskGroup) -> None:
        tasks.start_soon(self._follow_model)

    async def _follow_model(self) -> None:
        """Until the session ends; the device's ends with it, and both begin anew."""
        assert self._session is not None
        try:
            error = await self.link.follow(self._session)
        except PortError as failure:
            error = failure.error
        self._lose(error)

    def _capabilities(self, speaker: Speaker) -> Capabilities:
        offered = self.ports.model.capabilities
        hears = RecognizerCapabilities(
            live_input=True, interim=offered.input_transcripts, endpointing=offered.ends_turns
        )
        assert self._answering is not None
        return Capabilities(
            recognizer=hears,
            responder=self._answering.capabilities,
            synthesizer=self._spoken.capabilities,
            speaker=speaker.capabilities,
            truncate_context=offered.truncate,
            native_audio=True,
            degradations=realtime_degradations(
                offered,
                has_tools=bool(self.ports.tools),
                needs_words=_needs_words(self.desk.conversation.policies.interruption),
            ),
        )

    # -- typed turns -----------------------------------------------------------------------------------------------

    def _store_turn(self, action: do.StoreUserTurn) -> None:
        """What was typed the model cannot have heard."""
        super()._store_turn(action)
        if action.authority is TurnAuthority.CLIENT:
            self.link.hold_answers(action.turn_id)
            self.desk.start_task(self._submit, action.turn_id, action.text, name=f"telling {action.turn_id}")

    async def _submit(self, turn_id: str, text: str) -> None:
        try:
            await self.link.session.submit_text(text)
        except PortError as failure:
            # It is stored: a session that begins after this one is given it.
            self._lose(failure.error)
        finally:
            self.link.let_answers_go(turn_id)

    def _note_withdrawn(self, call_ids: tuple[str, ...]) -> None:
        assert self._answering is not None
        self._answering.forget_calls(call_ids)
        self.parts.replying.stop_calls(call_ids)

    # -- what it believes it said ----------------------------------------------------------------------------------

    def _truncate(self, action: do.TruncateContext) -> None:
        """Cut when the receipt tells where; until then only where it must have been is known."""
        self._to_cut[action.response_id] = action.played_samples

    def _record_delivery(self, action: do.RecordDelivery) -> None:
        known = action.response_id in self._to_cut
        before = self._to_cut.pop(action.response_id, None)
        played = before if action.played_samples is None else action.played_samples
        cuts = cuts_of(self._spoken.items_of(action.response_id), played, self.ports.model.output_format)
        super()._record_delivery(action)
        if known and cuts:
            self.desk.start_task(self._cut, cuts, name=f"cutting {action.response_id}")

    async def _cut(self, cuts: tuple[tuple[str, int], ...]) -> None:
        try:
            for item_id, played_ms in cuts:
                await self.link.session.truncate(item_id, played_ms)
        except PortError as failure:
            # Not fatal: the model believes that more was heard than was, and that is told.
            self.desk.publish(ContextTruncated(None, applied=False, reason=failure.error.code))


def cuts_of(
    items: tuple[SpokenItem, ...], played_samples: int | None, format: AudioFormat
) -> tuple[tuple[str, int], ...]:
    """Which items to cut, and at how many milliseconds: never beyond what was received, 0 where nothing was heard.

    Nothing when nobody knows how much was played: a model that believes too much is better than one that is told wrong.
    """
    if played_samples is None:
        return ()
    cuts: list[tuple[str, int]] = []
    for item in items:
        if item.end_sample > played_samples:
            heard = max(0, played_samples - item.start_sample)
            cuts.append((item.item_id, heard * 1_000 // format.sample_rate_hz))
    return tuple(cuts)


def lacking_ability(
    offered: RealtimeCapabilities, authority: TurnAuthority, end_of_turn: EndOfTurn | None
) -> str | None:
    """Why these turns cannot be had with this model; None when they can."""
    if authority is TurnAuthority.ENGINE:
        return None if offered.ends_turns else "turn.authority = engine: this model cannot end turns by itself"
    if not offered.takes_turns:
        return f"turn.authority = {authority}: this model ends turns by itself; choose engine"
    if authority is TurnAuthority.RECOGNIZER:
        return "turn.authority = recognizer: a native realtime model has no recogniser beside it; choose engine or vad"
    if authority is TurnAuthority.SEMANTIC and end_of_turn is None:
        return "turn.authority = semantic: nothing judges the pauses"
    return None


def _needs_words(interruption: JudgesInterruptions) -> bool:
    """Speech may interrupt, and only by what is said."""
    if not isinstance(interruption, InterruptionPolicy):
        return False  # An embedder's own judges as it likes.
    return InterruptionSource.SPEECH in interruption.sources and not interruption.min_duration_ms


def realtime_degradations(
    offered: RealtimeCapabilities, *, has_tools: bool, needs_words: bool = False
) -> tuple[str, ...]:
    """What this model cannot do, said out loud. `needs_words`: only words interrupt a reply."""
    found: list[str] = []
    if not offered.input_transcripts:
        found.append("model: it does not tell what it heard, turns are remembered without words")
    if not offered.truncate:
        found.append("model: after an interruption it believes that it was heard to the end")
    if not offered.cancel:
        found.append("model: it cannot be told to stop, what it still says is dropped here")
    if has_tools and not offered.tool_calls:
        found.append("model: it calls no tools")
    if needs_words:
        found.append("interruption: the model tells words late, and only words interrupt; set min_duration_ms")
    return tuple(found)
