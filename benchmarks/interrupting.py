"""One session that is interrupted again and again, with what the clock said at every step. For `bargein.py`."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import anyio

from voicechart.adapters.board import (
    BoardAudio,
    InProcessMicrophone,
    InProcessSpeaker,
    RenderedSpan,
    WavMicrophone,
    WavSpeaker,
)
from voicechart.audio.formats import SPEECH_FORMAT, AudioFrame
from voicechart.engines import AudioDevice, CascadeEngine, CascadePorts, Session
from voicechart.engines.clock import LoopClock
from voicechart.engines.ports import Microphone, OutputOpening, Speaker
from voicechart.engines.reports import SpeakerReport
from voicechart.engines.testing import (
    Script,
    ScriptedRecognizer,
    ScriptedResponder,
    ScriptedSynthesizer,
    SoundIsSpeech,
    SpeechScript,
    says,
)
from voicechart.statecharts import Conversation, InterruptionPolicy, Policies, SeededIds
from voicechart.statecharts.actions import Publish, StopPlayback
from voicechart.statecharts.capabilities import SpeakerCapabilities
from voicechart.statecharts.chart import Step
from voicechart.statecharts.context import Context
from voicechart.statecharts.facts import ButtonPressed, TextSubmitted
from voicechart.statecharts.published import DeliveryRecorded, ResponseStarted, SessionReady
from voicechart.statecharts.values import InterruptionSource

STORY = " ".join(f"This is sentence number {number} of a story that goes on and on." for number in range(12))
LONGEST_WAIT_MS = 150
"""From the beginning of the reply to the interruption: 0 to this; the first ones find nothing heard yet."""
PATIENCE_S = 10.0


@dataclass
class Trial:
    """One interruption. Times in monotonic nanoseconds."""

    epoch: int
    asked_ns: int
    accepted_ns: int = 0
    told_ns: int = 0
    passed_frames: int = 0
    played_samples: int | None = None
    recorded_ns: int = 0


@dataclass
class Notes:
    """What a run wrote down."""

    trials: list[Trial] = field(default_factory=list[Trial])
    spans: list[RenderedSpan] = field(default_factory=list[RenderedSpan])
    dropped_frames: int = 0
    peak_queued_ms: float = 0.0


class WatchedSpeaker:
    """A speaker that notes when it had been told to stop, and which frames it took."""

    def __init__(self, speaker: Speaker, notes: Notes, clock: LoopClock) -> None:
        self._speaker = speaker
        self._notes = notes
        self._clock = clock

    @property
    def capabilities(self) -> SpeakerCapabilities:
        return self._speaker.capabilities

    async def open(self, opening: OutputOpening) -> None:
        await self._speaker.open(opening)

    async def write(self, stream_id: int, output_epoch: int, frame: AudioFrame) -> None:
        trial = self._notes.trials[-1] if self._notes.trials else None
        if trial is not None and trial.accepted_ns and output_epoch <= trial.epoch:
            trial.passed_frames += 1
        await self._speaker.write(stream_id, output_epoch, frame)

    async def finish(self, stream_id: int, end_sample: int) -> None:
        await self._speaker.finish(stream_id, end_sample)

    def invalidate_before(self, output_epoch: int, reason: str) -> None:
        self._speaker.invalidate_before(output_epoch, reason)
        trial = self._notes.trials[-1] if self._notes.trials else None
        if trial is not None and not trial.told_ns and output_epoch > trial.epoch:
            trial.told_ns = self._clock.now_ns()

    def pause(self, stream_id: int) -> None:
        self._speaker.pause(stream_id)

    def resume(self, stream_id: int) -> None:
        self._speaker.resume(stream_id)

    def release(self, stream_id: int) -> None:
        self._speaker.release(stream_id)

    def reports(self) -> AsyncIterator[SpeakerReport]:
        return self._speaker.reports()

    async def aclose(self) -> None:
        await self._speaker.aclose()


@dataclass
class WatchedLink:
    microphone: Microphone
    speaker: WatchedSpeaker


@dataclass
class InProcessDevice:
    notes: Notes
    clock: LoopClock

    @asynccontextmanager
    async def connect(self) -> AsyncGenerator[WatchedLink, None]:
        async with (
            InProcessMicrophone.running(WavMicrophone()) as microphone,
            InProcessSpeaker.running(WavSpeaker(None, SPEECH_FORMAT), log=self.notes.spans.append) as speaker,
        ):
            try:
                yield WatchedLink(microphone, WatchedSpeaker(speaker, self.notes, self.clock))
            finally:
                self.notes.dropped_frames += speaker.statistics.stale_frames
                self.notes.peak_queued_ms = speaker.statistics.peak_queued_ms


@dataclass
class SocketDevice:
    path: Path
    notes: Notes
    clock: LoopClock

    @asynccontextmanager
    async def connect(self) -> AsyncGenerator[WatchedLink, None]:
        async with BoardAudio.connect(self.path) as board:
            try:
                yield WatchedLink(board.microphone, WatchedSpeaker(board.speaker, self.notes, self.clock))
            finally:
                statistics = board.speaker.statistics
                self.notes.dropped_frames += statistics.stale_frames + statistics.service_stale_frames
                self.notes.peak_queued_ms = statistics.peak_queued_ms


class Driver:
    """Runs one session through the trials."""

    def __init__(self, notes: Notes, trials: int, seed: int) -> None:
        self._notes = notes
        self._trials = trials
        self._random = Random(seed)
        self._clock = LoopClock()
        self._seen: dict[type[object], anyio.Event] = {}

    async def run(self, device: AudioDevice) -> None:
        policies = Policies(interruption=InterruptionPolicy(sources=frozenset(InterruptionSource), full_duplex=True))
        engine = CascadeEngine(
            CascadePorts(
                device=device,
                recognizer=ScriptedRecognizer(),
                responder=ScriptedResponder(answers=lambda _: Script(says(STORY))),
                synthesizer=ScriptedSynthesizer(SpeechScript(ms_per_char=20)),
                voice_activity=SoundIsSpeech(),
            )
        )
        session = Session(Conversation("benchmark", policies=policies, ids=SeededIds("benchmark")), engine)
        session.conversation.observe(self._note)
        async with anyio.create_task_group() as tasks:
            ready = self._next(SessionReady)
            tasks.start_soon(session.run)
            await self._wait(ready)
            for _ in range(self._trials):
                await self._interrupt(session)
            self._notes.dropped_frames += engine.gate.stale_frames
            session.close("measured")

    async def _interrupt(self, session: Session) -> None:
        began = self._next(ResponseStarted)
        session.report(TextSubmitted(at=self._clock.now_ns(), text="tell me a story"))
        await self._wait(began)
        await anyio.sleep(self._random.uniform(0, LONGEST_WAIT_MS) / 1_000)
        recorded = self._next(DeliveryRecorded)
        asked_ns = self._clock.now_ns()
        self._notes.trials.append(Trial(session.conversation.context.output_epoch, asked_ns))
        session.report(ButtonPressed(at=asked_ns))
        await self._wait(recorded)

    def _note(self, step: Step[Context]) -> None:
        """Called at the very end of each macrostep."""
        trial = self._notes.trials[-1] if self._notes.trials else None
        for action in step.actions:
            if isinstance(action, StopPlayback) and trial is not None and not trial.accepted_ns:
                trial.accepted_ns = self._clock.now_ns()
            if isinstance(action, Publish):
                if isinstance(action.payload, DeliveryRecorded) and trial is not None and not trial.recorded_ns:
                    trial.recorded_ns = self._clock.now_ns()
                    trial.played_samples = action.payload.played_samples
                event = self._seen.pop(type(action.payload), None)
                if event is not None:
                    event.set()

    def _next(self, payload: type[object]) -> anyio.Event:
        self._seen[payload] = anyio.Event()
        return self._seen[payload]

    @staticmethod
    async def _wait(event: anyio.Event) -> None:
        with anyio.fail_after(PATIENCE_S):
            await event.wait()
