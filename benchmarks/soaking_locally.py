"""The same conversation in real time, with local parts and the audio service as a process of its own. For `soak.py`."""

from __future__ import annotations

import signal
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

import anyio
import anyio.abc
from anyio.streams.text import TextReceiveStream
from soaking import Notes, Soak

from voicechart.adapters.board import BoardAudio, WavMicrophone, WavSpeaker, serve_audio
from voicechart.adapters.history import HistoryStore, SqliteHistory, conversation_after
from voicechart.adapters.local import EspeakSynthesizer, PicoSynthesizer, SileroProbability, WhisperRecognizer
from voicechart.adapters.responders import PatternCompanion
from voicechart.audio.formats import AudioFormat, AudioFrame
from voicechart.audio.wav_writer import WavWriter
from voicechart.engines import CascadeEngine, CascadePorts, Session
from voicechart.engines.ports import RecognitionRequest, Recognizer, SpeechUnit, SynthesisRequest
from voicechart.engines.reports import Synthesized
from voicechart.engines.testing import Script, ScriptedRecognitionStream, ScriptedRecognizer, hears
from voicechart.statecharts import InterruptionPolicy, Policies, SeededIds
from voicechart.statecharts.values import InterruptionSource

QUESTIONS = ("What time is it?", "What is seven plus five?", "Count to five.", "What day is it today?", "Who are you?")
LONG_QUESTION = "Tell me a long story."
"""Its answer is interrupted."""
START_S = 20.0
NOISE_RMS = 3.0
SPEAKER_FORMAT = AudioFormat(22_050)


def serve(path: Path) -> None:
    """The audio service. Speaks each WAV file that is named on a line of the standard input, and tells when it has."""
    anyio.run(_serve, path)


async def _serve(path: Path) -> None:
    microphone = WavMicrophone(noise_rms=NOISE_RMS)
    async with anyio.create_task_group() as tasks:

        async def run() -> None:
            await serve_audio(path, microphone, WavSpeaker(None, SPEAKER_FORMAT))

        tasks.start_soon(run)
        # Of the benchmark's process group: a ctrl-C is meant for the benchmark, which ends this.
        with anyio.open_signal_receiver(signal.SIGINT):
            async for line in anyio.wrap_file(sys.stdin):
                await microphone.say_file(Path(line.strip())).wait_spoken()
                print("spoken", flush=True)
        tasks.cancel_scope.cancel()


@dataclass
class SocketRoom:
    """A room in another process. Implements `Room` and `AudioDevice`."""

    socket: Path
    service: anyio.abc.Process
    recordings: dict[str, Path]
    said: str = ""
    boards: list[BoardAudio] = field(default_factory=list[BoardAudio])

    @asynccontextmanager
    async def connect(self) -> AsyncGenerator[BoardAudio]:
        async with BoardAudio.connect(self.socket) as board:
            self.boards = [board]
            yield board

    async def say(self, number: int, *, interrupted: bool) -> None:
        self.said = LONG_QUESTION if interrupted else QUESTIONS[number % len(QUESTIONS)]
        assert self.service.stdin is not None
        assert self.service.stdout is not None
        await self.service.stdin.send(f"{self.recordings[self.said]}\n".encode())
        await TextReceiveStream(self.service.stdout).receive()

    def note_queues(self, notes: Notes) -> None:
        for board in self.boards:
            statistics = board.speaker.statistics
            notes.queue_peak_ms = max(notes.queue_peak_ms, statistics.peak_queued_ms)
            notes.queue_peak_bytes = max(notes.queue_peak_bytes, statistics.peak_queued_bytes)

    def service_process(self) -> int | None:
        return self.service.pid


class ToldRecognizer(ScriptedRecognizer):
    """Understands what was said without listening."""

    room: SocketRoom | None = None

    async def open(self, request: RecognitionRequest) -> ScriptedRecognitionStream:
        assert self.room is not None
        return ScriptedRecognitionStream(request, Script(hears(self.room.said, after_samples=1_600)))


def soak_in_real_time(notes: Notes, *, minutes: float, seed: int, trace_allocations: bool, listens: bool) -> None:
    """Takes the time it says. `listens`: recognise with Whisper what the user's voice says."""
    anyio.run(_Run(notes, minutes, seed, trace_allocations, listens).hold)


@dataclass
class _Run:
    notes: Notes
    minutes: float
    seed: int
    trace_allocations: bool
    listens: bool

    async def hold(self) -> None:
        with TemporaryDirectory() as folder, HistoryStore(Path(folder, "history.db")) as store:
            recordings = await _recordings(Path(folder))
            socket = Path(folder, "audio.sock")
            command = [sys.executable, str(Path(__file__).with_name("soak.py")), "--service", str(socket)]
            async with await anyio.open_process(command, stderr=None) as service:
                try:
                    with anyio.fail_after(START_S):
                        while not await anyio.Path(socket).exists():  # noqa: ASYNC110 - another process makes it
                            await anyio.sleep(0.02)
                    await self._soak(SocketRoom(socket, service, recordings), store)
                finally:
                    service.kill()

    async def _soak(self, room: SocketRoom, store: HistoryStore) -> None:
        history = SqliteHistory(store, "soak")
        recognizer: Recognizer = WhisperRecognizer()
        if not self.listens:
            recognizer = told = ToldRecognizer()
            told.room = room
        policies = Policies(
            interruption=InterruptionPolicy(
                sources=frozenset(InterruptionSource), full_duplex=True, min_duration_ms=350
            )
        )
        engine = CascadeEngine(
            CascadePorts(
                room,
                recognizer,
                PatternCompanion(),
                EspeakSynthesizer(),
                SileroProbability(),
                history=history,
            )
        )
        conversation = conversation_after(history.start, "soak", policies=policies, ids=SeededIds("soak"))
        await Soak(
            Session(conversation, engine),
            engine,
            room,
            store,
            self.notes,
            minutes=self.minutes,
            seed=self.seed,
            every_minutes=max(0.2, self.minutes / 20),
            warm_up=0.25,
            trace_allocations=self.trace_allocations,
        ).run()


async def _recordings(folder: Path) -> dict[str, Path]:
    """Every question, spoken by another voice than the assistant's."""
    voice = PicoSynthesizer()
    await voice.prepare()
    found: dict[str, Path] = {}
    for number, text in enumerate((*QUESTIONS, LONG_QUESTION)):
        stream = await voice.open(SynthesisRequest("user", 0))
        await stream.write(SpeechUnit(0, text))
        await stream.finish_input()
        found[text] = folder / f"{number}.wav"
        frames = [report.frame async for report in stream.reports() if isinstance(report, Synthesized)]
        await stream.aclose()
        with WavWriter(found[text], voice.format) as writer:
            writer.write(AudioFrame(b"".join(frame.data for frame in frames), voice.format))
    await voice.aclose()
    return found
