"""The simulated hour: scripted model and voice, the real session, engine, render queue and history. For `soak.py`."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

import anyio
import anyio.lowlevel
from pydantic import BaseModel
from soaking import Notes, Soak
from trio.testing import MockClock

from voicechart.adapters.board import InProcessMicrophone, InProcessSpeaker, WavMicrophone, WavSpeaker
from voicechart.adapters.history import HistoryStore, SqliteHistory, conversation_after
from voicechart.audio.formats import SPEECH_FORMAT, AudioFrame
from voicechart.engines import CascadeEngine, CascadePorts, Session, Tool
from voicechart.engines.ports import GenerationRequest, RecognitionRequest
from voicechart.engines.reports import GenerationEnded, GenerationReport, TextDelta, ToolCallProposed
from voicechart.engines.testing import (
    Script,
    ScriptedRecognitionStream,
    ScriptedRecognizer,
    ScriptedResponder,
    ScriptedSynthesizer,
    SoundIsSpeech,
    SpeechScript,
    Step,
    hears,
    says,
)
from voicechart.statecharts import InterruptionPolicy, Policies, SeededIds
from voicechart.statecharts.values import InterruptionSource

STORY = (
    "Once upon a time there was a clock, and it told the time to nobody at all.",
    "One day somebody came and asked it what time it was.",
    "It was so glad that it struck twelve, although it was only noon.",
)
CALLS_EVERY = 7
"""Every so many questions the model calls a tool first."""
QUESTION_MS = 900
QUANTUM_MS = 20


@dataclass
class Link:
    microphone: InProcessMicrophone
    speaker: InProcessSpeaker


@dataclass
class VirtualRoom:
    """Device and room in one: the real render queue and capture track, on virtual devices. Implements `Room` too."""

    microphone: WavMicrophone = field(default_factory=WavMicrophone)
    speaker: InProcessSpeaker | None = None
    _question: bytes = (1_000).to_bytes(2, "little") * SPEECH_FORMAT.samples_for_ms(QUESTION_MS)

    @asynccontextmanager
    async def connect(self) -> AsyncGenerator[Link]:
        device = WavSpeaker(None, SPEECH_FORMAT, quantum_ms=QUANTUM_MS)
        async with (
            InProcessMicrophone.running(self.microphone) as microphone,
            InProcessSpeaker.running(device) as self.speaker,
        ):
            yield Link(microphone, self.speaker)

    async def say(self, number: int, *, interrupted: bool) -> None:
        await self.microphone.say(AudioFrame(self._question, SPEECH_FORMAT)).wait_spoken()

    def note_queues(self, notes: Notes) -> None:
        assert self.speaker is not None
        statistics = self.speaker.statistics
        notes.queue_peak_ms = max(notes.queue_peak_ms, statistics.peak_queued_ms)
        notes.queue_peak_bytes = max(notes.queue_peak_bytes, statistics.peak_queued_bytes)

    def service_process(self) -> int | None:
        return None


class EndlessRecognizer(ScriptedRecognizer):
    """Hears another question in every utterance, and forgets it."""

    async def open(self, request: RecognitionRequest) -> ScriptedRecognitionStream:
        self.opened += 1
        return ScriptedRecognitionStream(
            request, Script(hears(f"and what is question number {self.opened}", after_samples=1_600))
        )


class Nothing(BaseModel):
    """No arguments."""


async def noon(_: Nothing) -> str:
    return "noon"


def answer(request: GenerationRequest) -> Script[GenerationReport]:
    """One to three sentences; every `CALLS_EVERY`th question is looked up first."""
    last = request.messages[-1]
    number = int(last.text.split()[-1]) if last.role == "user" else 1
    if number % CALLS_EVERY == 0:
        call = ToolCallProposed(request.attempt_id, "clock", "{}")
        return Script([Step(TextDelta("Let me look at it. ")), Step(call), Step(GenerationEnded(awaits_tools=True))])
    return Script(says(" ".join(STORY[: 1 + number % len(STORY)]), token_ms=15))


def soak_virtually(notes: Notes, *, minutes: float, seed: int, trace_allocations: bool) -> None:
    """On the virtual clock: an hour takes a minute or two of a processor."""
    run = _Run(notes, minutes, seed, trace_allocations)
    anyio.run(run.hold, backend="trio", backend_options={"clock": MockClock(autojump_threshold=0)})


class _InOneThread(SqliteHistory):
    """The same file, made durable without another thread: while one works a virtual clock would run away."""

    async def flush(self) -> None:
        self.store.sync()
        await anyio.lowlevel.checkpoint()


@dataclass
class _Run:
    notes: Notes
    minutes: float
    seed: int
    trace_allocations: bool

    async def hold(self) -> None:
        with TemporaryDirectory() as folder, HistoryStore(Path(folder, "history.db")) as store:
            history = _InOneThread(store, "soak")
            policies = Policies(
                interruption=InterruptionPolicy(sources=frozenset(InterruptionSource), full_duplex=True)
            )
            room = VirtualRoom()
            responder = ScriptedResponder(answers=answer)
            synthesizer = ScriptedSynthesizer(SpeechScript(ms_per_char=35, word_times=True))
            engine = CascadeEngine(
                CascadePorts(
                    room,
                    EndlessRecognizer(),
                    responder,
                    synthesizer,
                    SoundIsSpeech(),
                    history=history,
                    tools=(Tool("clock", "The time.", Nothing, noon),),
                )
            )
            conversation = conversation_after(history.start, "soak", policies=policies, ids=SeededIds("soak"))

            def forget() -> None:
                """The scripted ports keep everything for tests to look at."""
                responder.streams.clear()
                responder.requests.clear()
                synthesizer.streams.clear()

            await Soak(
                Session(conversation, engine),
                engine,
                room,
                store,
                self.notes,
                minutes=self.minutes,
                seed=self.seed,
                every_minutes=max(1.0, self.minutes / 30),
                warm_up=0.25,
                between=forget,
                trace_allocations=self.trace_allocations,
            ).run()
