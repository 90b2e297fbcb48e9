"""A synthesiser whose every sample says which reply and which unit it belongs to."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass

import anyio

from ...audio.formats import SPEECH_FORMAT, AudioFormat, AudioFrame
from ...statecharts.capabilities import SynthesizerCapabilities
from ...statecharts.errors import ScopedError
from ..ports import SpeechUnit, SynthesisRequest
from ..reports import (
    SynthesisEnded,
    SynthesisErrored,
    SynthesisReport,
    SynthesisStopped,
    Synthesized,
    UnitSynthesized,
    Word,
)
from .script import OnCancel, ScriptedStream, opening, refusal, scripted_error

MAX_WAITING_UNITS = 16
WRITE_DEADLINE_S = 5.0


@dataclass(frozen=True, slots=True)
class SpeechScript:
    """How one scripted synthesis turns units into PCM."""

    ms_per_char: int = 60
    frame_ms: int = 20
    first_frame_after_ms: float = 0.0
    """Waited before the first frame of every unit."""
    frame_every_ms: float = 0.0
    """Waited before every further frame: 0 is infinitely fast, `frame_ms` is real time."""
    fails_at_unit: int | None = None
    """The stream errs in the place of this unit (its index)."""
    failure: ScopedError | None = None
    ends_without_terminal: bool = False
    """After the last unit the stream ends as a lost connection does."""
    word_times: bool = False
    """Words are told with the frame in which they end."""
    on_cancel: OnCancel = OnCancel.ACKNOWLEDGE
    acknowledge_after_ms: float = 0.0
    open_after_ms: float = 0.0
    open_error: ScopedError | None = None


def marker(output_epoch: int, unit_index: int) -> int:
    """The constant sample value of scripted speech: which epoch (modulo 300), which unit (modulo 100). Never 0."""
    return (output_epoch % 300) * 100 + unit_index % 100 + 1


def _words(unit: SpeechUnit, start_sample: int, samples: int) -> tuple[Word, ...]:
    length = len(unit.text)
    return tuple(
        Word(
            match.group(),
            start_sample + samples * match.start() // length,
            start_sample + samples * match.end() // length,
        )
        for match in re.finditer(r"\S+", unit.text)
    )


class ScriptedSynthesisStream(ScriptedStream[SynthesisRequest, SynthesisReport]):
    """Speaks units at `ms_per_char`; records them in `units`."""

    stage = "synthesis"

    def __init__(self, request: SynthesisRequest, script: SpeechScript, audio_format: AudioFormat) -> None:
        super().__init__(request, script.on_cancel, script.acknowledge_after_ms)
        self.units: list[SpeechUnit] = []
        self._script = script
        self._format = audio_format
        self._waiting: deque[SpeechUnit] = deque()
        self._position = 0

    async def write(self, unit: SpeechUnit) -> None:
        """Raises `PortError` after the end, and when no room comes within 5 s."""
        self._refuse_input_after_the_end()
        with anyio.move_on_after(WRITE_DEADLINE_S):
            await self._until(lambda: len(self._waiting) < MAX_WAITING_UNITS)
        self._refuse_input_after_the_end()
        if len(self._waiting) >= MAX_WAITING_UNITS:
            raise refusal("backpressure", self.stage, "nobody reads the synthesis; read reports() while writing")
        self.units.append(unit)
        self._waiting.append(unit)
        self._changed()

    async def finish_input(self) -> None:
        self.input_finished = True
        self._changed()

    async def _play(self) -> AsyncGenerator[SynthesisReport, None]:
        while await self._until(lambda: bool(self._waiting) or self.input_finished):
            if not self._waiting:
                if not self._script.ends_without_terminal:
                    yield SynthesisEnded(self._position)
                return
            unit = self._waiting.popleft()
            self._changed()
            if unit.index == self._script.fails_at_unit:
                yield SynthesisErrored(self._script.failure or scripted_error(stage=self.stage))
                return
            async with aclosing(self._speak(unit)) as speech:
                async for report in speech:
                    yield report

    async def _speak(self, unit: SpeechUnit) -> AsyncGenerator[SynthesisReport, None]:
        start = self._position
        samples = self._format.samples_for_ms(self._script.ms_per_char * len(unit.text))
        per_frame = self._format.samples_for_ms(self._script.frame_ms)
        value = marker(self.request.output_epoch, unit.index).to_bytes(2, "little") * self._format.channels
        words = _words(unit, start, samples) if self._script.word_times else ()
        told = 0
        pause_ms = self._script.first_frame_after_ms
        for offset in range(0, samples, per_frame):
            if pause_ms > 0 and not await self._paused(pause_ms):
                return
            pause_ms = self._script.frame_every_ms
            frame = AudioFrame(value * min(per_frame, samples - offset), self._format, self._position)
            self._position = frame.end_sample
            ended = sum(word.end_sample <= self._position for word in words)
            yield Synthesized(frame, unit.index, words[told:ended])
            told = ended
        yield UnitSynthesized(unit.index, start, self._position, words)

    def _stopped(self) -> SynthesisReport:
        return SynthesisStopped()


class ScriptedSynthesizer:
    """The nth `open` follows the nth script, later ones the last (a plain `SpeechScript` without any)."""

    def __init__(
        self,
        *scripts: SpeechScript,
        audio_format: AudioFormat = SPEECH_FORMAT,
        capabilities: SynthesizerCapabilities | None = None,
    ) -> None:
        self._scripts = scripts or (SpeechScript(),)
        self._format = audio_format
        aligns = any(script.word_times for script in self._scripts)
        self._capabilities = capabilities or SynthesizerCapabilities(incremental_pcm=True, alignment=aligns)
        self.streams: list[ScriptedSynthesisStream] = []
        self.opened = 0
        self.prepared = False
        self.closed = False

    @property
    def capabilities(self) -> SynthesizerCapabilities:
        return self._capabilities

    @property
    def format(self) -> AudioFormat:
        return self._format

    async def prepare(self) -> None:
        self.prepared = True

    async def open(self, request: SynthesisRequest) -> ScriptedSynthesisStream:
        if self.closed:
            raise refusal("port_closed", "synthesis", "the synthesiser was closed")
        script = self._scripts[min(self.opened, len(self._scripts) - 1)]
        self.opened += 1
        await opening(script.open_after_ms, script.open_error)
        stream = ScriptedSynthesisStream(request, script, self._format)
        self.streams.append(stream)
        return stream

    async def aclose(self) -> None:
        self.closed = True
        for stream in self.streams:
            await stream.aclose()
