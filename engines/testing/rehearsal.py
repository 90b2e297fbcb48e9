"""A whole session on scripted ports, with everything it published, decided and left behind written down.

rehearsal = Rehearsal(responder=ScriptedResponder(Script(says("It is noon."))))
async with rehearsal.running():
rehearsal.say("what time is it")
await rehearsal.until("playback.drained")
assert rehearsal.closed == Closed("rehearsed")
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Self, TypeVar

import anyio

from ...audio.voice_activity import SpeechProbability, VoiceActivitySettings
from ...statecharts.actions import Action
from ...statecharts.conversation import Conversation
from ...statecharts.facts import ButtonPressed, ClientCancelled, Fact, TextSubmitted
from ...statecharts.identity import SeededIds
from ...statecharts.policies import InterruptionPolicy, Policies
from ...statecharts.values import InterruptionSource
from ..background import BackgroundTasks
from ..cascade import CascadeEngine, CascadePorts
from ..device_engine import AudioDevice
from ..end_of_turn import EndOfTurn
from ..history import History, MemoryHistory, Record, Reply
from ..ports import Recognizer, Responder, Synthesizer
from ..public_events import PublicEvent
from ..realtime import RealtimeEngine, RealtimeModel, RealtimePorts
from ..session import Closed, Session
from ..text_engine import TextEngine, TextPorts
from ..tools import Tool
from .device import ScriptedDevice
from .generation import ScriptedResponder
from .microphone import SoundIsSpeech
from .recognition import ScriptedRecognizer
from .synthesis import ScriptedSynthesizer

ActionT = TypeVar("ActionT", bound=Action)

HANDS_FREE = Policies(interruption=InterruptionPolicy(sources=frozenset(InterruptionSource), full_duplex=True))
"""Everything may interrupt, and the microphone stays open while the speaker plays."""

PATIENCE_S = 120.0
"""How long `until` waits: generous, since time is usually virtual."""


class RehearsalOver(Exception):
    """What was waited for cannot happen any more."""


class Conducted:
    """One session that is run by a test, with everything that came of it."""

    def __init__(self, session: Session, history: History) -> None:
        self.session = session
        self.history = history
        self.events: list[PublicEvent] = []
        self.actions: list[Action] = []
        self.closed: Closed | None = None
        self.left_behind: tuple[str, ...] = ()
        """Names of tasks that outlived the session; none should."""
        self._changed = anyio.Event()
        self.session.watch(self._note_action)

    @asynccontextmanager
    async def running(self, *, ready: bool = True) -> AsyncGenerator[Self, None]:
        """The session runs during the block; at its end it is closed, unless it has ended by itself.

        `ready`: the block begins when the session is ready. What `run` raises, the block raises.
        """
        before = {task.id for task in anyio.get_running_tasks()}
        failure: Exception | None = None
        async with anyio.create_task_group() as tasks:
            await tasks.start(self._watch)
            tasks.start_soon(self._run)
            try:
                if ready:
                    await self.until("session.ready")
                yield self
                self.session.close("rehearsed")
                with anyio.fail_after(PATIENCE_S):
                    while self.closed is None:
                        await self._changed.wait()
            except Exception as error:
                failure = error
            tasks.cancel_scope.cancel()
        self.left_behind = tuple(task.name or "?" for task in anyio.get_running_tasks() if task.id not in before)
        if failure is not None:
            raise failure

    # -- what people do ----------------------------------------------------------------------------------------------

    @property
    def now_ns(self) -> int:
        return self.session.clock.now_ns()

    def tell(self, fact: Fact) -> None:
        """Hand in any fact."""
        self.session.report(fact)

    def say(self, text: str) -> None:
        """Submit text, as a client does."""
        self.tell(TextSubmitted(at=self.now_ns, text=text))

    def press_button(self) -> None:
        self.tell(ButtonPressed(at=self.now_ns))

    def cancel(self, run_id: str | None = None) -> None:
        """Cancel the reply, as a client does."""
        self.tell(ClientCancelled(at=self.now_ns, run_id=run_id))

    # -- what came of it -----------------------------------------------------------------------------------------------

    async def until(self, event_type: str, count: int = 1) -> PublicEvent:
        """The `count`th event of this type, waiting for it. Raises as `until_true` does."""
        await self.until_true(lambda: len(self.of(event_type)) >= count)
        return self.of(event_type)[count - 1]

    async def until_true(self, holds: Callable[[], bool]) -> None:
        """Wait until it holds; looked at whenever an event was published or an action carried out.

        Raises `TimeoutError`, and `RehearsalOver` when the session ends first.
        """
        with anyio.fail_after(PATIENCE_S):
            while not holds():
                if self.closed is not None:
                    raise RehearsalOver(f"the session ended before: {self.closed}")
                await self._changed.wait()

    def of(self, event_type: str) -> list[PublicEvent]:
        """Every event of this type so far."""
        return [event for event in self.events if event.type == event_type]

    def decided(self, kind: type[ActionT]) -> list[ActionT]:
        """Every action of this kind that was carried out."""
        return [action for action in self.actions if isinstance(action, kind)]

    @property
    def records(self) -> tuple[Record, ...]:
        return self.history.records()

    @property
    def replies(self) -> list[Reply]:
        """The replies on record, in the order of the history."""
        return [record for record in self.records if isinstance(record, Reply)]

    # -- inside ----------------------------------------------------------------------------------------------------

    async def _run(self) -> None:
        self.closed = await self.session.run()
        self._note_change()

    async def _watch(self, *, task_status: anyio.abc.TaskStatus[None]) -> None:
        with self.session.public.subscribe(capacity=100_000) as subscription:
            task_status.started()
            async for event in subscription.events():
                self.events.append(event)
                self._note_change()

    def _note_action(self, action: Action) -> None:
        self.actions.append(action)
        self._note_change()

    def _note_change(self) -> None:
        self._changed.set()
        self._changed = anyio.Event()


class Rehearsal(Conducted):
    """Runs one session. Ports that are not given are scripted ones that do nothing or answer at once."""

    def __init__(
        self,
        *,
        device: AudioDevice | None = None,
        recognizer: Recognizer | None = None,
        responder: Responder | None = None,
        synthesizer: Synthesizer | None = None,
        voice_activity: SpeechProbability | None = None,
        voice_activity_settings: VoiceActivitySettings | None = None,
        end_of_turn: EndOfTurn | None = None,
        history: History | None = None,
        tools: tuple[Tool, ...] = (),
        tasks: BackgroundTasks | None = None,
        system_prompt: str | None = None,
        policies: Policies = HANDS_FREE,
        conversation: Conversation | None = None,
        fallback_recognizer: Recognizer | None = None,
    ) -> None:
        history = history or MemoryHistory()
        self.engine = CascadeEngine(
            CascadePorts(
                device=device or ScriptedDevice(),
                recognizer=recognizer or ScriptedRecognizer(),
                responder=responder or ScriptedResponder(),
                synthesizer=synthesizer or ScriptedSynthesizer(),
                voice_activity=voice_activity or SoundIsSpeech(),
                history=history,
                tools=tools,
                tasks=tasks,
                system_prompt=system_prompt,
                voice_activity_settings=voice_activity_settings,
                end_of_turn=end_of_turn,
                fallback_recognizer=fallback_recognizer,
            )
        )
        conversation = conversation or Conversation("rehearsal", policies=policies, ids=SeededIds("rehearsal"))
        super().__init__(Session(conversation, self.engine), history)


class RealtimeRehearsal(Conducted):
    """Runs one session with a model that hears and speaks by itself."""

    def __init__(
        self,
        model: RealtimeModel,
        *,
        device: AudioDevice | None = None,
        voice_activity: SpeechProbability | None = None,
        voice_activity_settings: VoiceActivitySettings | None = None,
        history: History | None = None,
        tools: tuple[Tool, ...] = (),
        system_prompt: str | None = None,
        announcer: Synthesizer | None = None,
        policies: Policies = HANDS_FREE,
        conversation: Conversation | None = None,
    ) -> None:
        history = history or MemoryHistory()
        self.engine = RealtimeEngine(
            RealtimePorts(
                device=device or ScriptedDevice(),
                model=model,
                voice_activity=voice_activity or SoundIsSpeech(),
                history=history,
                tools=tools,
                system_prompt=system_prompt,
                voice_activity_settings=voice_activity_settings,
                announcer=announcer,
            )
        )
        conversation = conversation or Conversation("rehearsal", policies=policies, ids=SeededIds("rehearsal"))
        super().__init__(Session(conversation, self.engine), history)


class TextRehearsal(Conducted):
    """Runs one session in writing."""

    def __init__(
        self,
        *,
        responder: Responder | None = None,
        history: History | None = None,
        tools: tuple[Tool, ...] = (),
        system_prompt: str | None = None,
        policies: Policies = HANDS_FREE,
        conversation: Conversation | None = None,
    ) -> None:
        history = history or MemoryHistory()
        self.engine = TextEngine(
            TextPorts(responder or ScriptedResponder(), history, tools=tools, system_prompt=system_prompt)
        )
        conversation = conversation or Conversation("rehearsal", policies=policies, ids=SeededIds("rehearsal"))
        super().__init__(Session(conversation, self.engine), history)
