"""Voicing: one reply's speech, from units of text through the synthesiser and the gate to the speaker.

The life of it is the `Synthesis` chart's. Text waits here, in order, until the synthesiser takes it: no more than about
two seconds of speech are handed in ahead of what has been synthesised. Audio waits in the speaker's bounded queue.
Cancelled, it forwards nothing more, whatever the synthesiser still produces.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import anyio

from ..audio.formats import AudioFormat, AudioFrame
from ..statecharts.actions import Action, OpenOutput, Stamp
from ..statecharts.errors import ErrorScope, ScopedError
from ..statecharts.facts import AudioEnded, AudioStarted, Fact, SpeakerFailed, SpeechUnitSynthesized, SynthesisFailed
from ..statecharts.synthesis import (
    FinishText,
    FirstAudioProduced,
    ReportAudioEnded,
    ReportAudioStarted,
    ReportSynthesisFailed,
    StopSynthesizer,
    Synthesis,
    SynthesisCancelled,
    SynthesizerEnded,
    SynthesizerErrored,
    TextEnded,
)
from .engine import Desk
from .output_gate import OutputGate
from .output_stream import OutputStream
from .port_calls import error_of, let_go, reading
from .ports import OutputOpening, Speaker, SpeechUnit, SynthesisRequest, SynthesisStream, Synthesizer
from .public_events import SpeechTextCommitted, SpeechUnitVoiced
from .reply_text import Heard, ReplyText
from .reports import (
    PortError,
    SynthesisEnded,
    SynthesisErrored,
    SynthesisReport,
    SynthesisStopped,
    Synthesized,
    UnitSynthesized,
)
from .speech_ahead import SpeechAhead
from .spoken import WordTimes, grain_for

OPEN_TIMEOUT_S = 10.0


class Voicing:
    """One reply being spoken. Belongs to one output epoch for life."""

    def __init__(
        self, desk: Desk, synthesizer: Synthesizer, gate: OutputGate, response_id: str, output_epoch: int, stamp: Stamp
    ) -> None:
        self._desk = desk
        self._synthesizer = synthesizer
        self._gate = gate
        self._response_id = response_id
        self._epoch = output_epoch
        self.grain = grain_for(synthesizer.capabilities)
        self._words = WordTimes()
        self._chart = Synthesis(response_id, stamp)
        self._units: deque[SpeechUnit] = deque()
        self._text_is_over = False
        self._ahead = SpeechAhead()
        self._changed = anyio.Event()
        self._stream: SynthesisStream | None = None
        self._refused: ScopedError | None = None
        self._speaker: Speaker | None = None
        self._output: OutputStream | None = None
        self._opened = anyio.Event()
        self._end_sample = 0
        self._scope = anyio.CancelScope()

    # -- text in ---------------------------------------------------------------------------------------------------

    def speak(self, unit: SpeechUnit) -> None:
        """Say this next."""
        self._units.append(unit)
        self._note_change()

    def close_text(self) -> None:
        """Nothing more is to be said."""
        self._text_is_over = True
        self._tell(TextEnded(at=self._now))
        self._note_change()

    def cancel(self) -> None:
        """Stop now, from wherever it is."""
        self._tell(SynthesisCancelled(at=self._now))

    def note_end(self) -> None:
        """Speech goes on after the model."""

    def heard(self, text: ReplyText, units: int, measured_samples: int | None) -> Heard:
        """Whole units that a receipt confirms, and the words after them up to a position that was measured."""
        return text.heard(units, self._words, measured_samples)

    @property
    def can_be_heard(self) -> bool:
        """Something that was handed in has not been played to its end yet, as far as is known."""
        if self._units or self._ahead:
            return True
        output = self._desk.conversation.context.output
        if output is None or output.output_epoch != self._epoch:
            return self._end_sample > 0
        return output.played_samples is not None and output.played_samples < self._end_sample

    # -- its output stream, as the chart decides ---------------------------------------------------------------------

    def open_output(self, action: OpenOutput) -> None:
        """The chart opened an output stream for this reply: audio may go to the speaker."""
        assert self._speaker is not None
        format = AudioFormat(action.sample_rate_hz, action.channels)
        opening = OutputOpening(action.stream_id, action.output_epoch, format, action.prebuffer_ms, held=action.held)
        self._output = OutputStream(self._speaker, self._gate, opening)
        self._opened.set()

    def release(self) -> None:
        """Let a held output sound."""
        self._ask(OutputStream.release)

    def pause(self) -> None:
        self._ask(OutputStream.pause)

    def resume(self) -> None:
        self._ask(OutputStream.resume)

    async def finish(self, end_sample: int) -> None:
        """The end barrier, behind every frame that was written."""
        assert self._output is not None
        try:
            await self._output.finish(end_sample)
        except PortError as failure:
            self._speaker_failed(failure.error)

    # -- the task --------------------------------------------------------------------------------------------------

    async def run(self, speaker: Speaker) -> None:
        """Synthesise and play until the end, a failure, or `cancel`."""
        self._speaker = speaker
        with self._scope:
            try:
                await self._speak_units()
            except Exception as failure:
                self._fail(error_of(failure, "the synthesiser", "synthesis"))
        await let_go(self._stream, "the synthesiser's stream")

    async def _speak_units(self) -> None:
        # Nothing is opened for a reply that has nothing to say.
        await self._until_there_is_text()
        if not self._units:
            self._tell(SynthesizerEnded(at=self._now, end_sample=0))
            return
        with anyio.move_on_after(OPEN_TIMEOUT_S):
            self._stream = await self._synthesizer.open(SynthesisRequest(self._response_id, self._epoch))
        if self._stream is None:
            return self._fail(_error("synthesizer_not_opened", f"it did not open within {OPEN_TIMEOUT_S:.0f} s"))
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._write_units, self._stream)
            await self._play(self._stream)
            tasks.cancel_scope.cancel()

    async def _until_there_is_text(self) -> None:
        while not self._units and not self._text_is_over:
            await self._changed.wait()

    async def _write_units(self, stream: SynthesisStream) -> None:
        try:
            while True:
                await self._until_there_is_text()
                if not self._units:
                    await stream.finish_input()
                    return
                unit = self._units.popleft()
                while not self._ahead.has_room:
                    await self._changed.wait()
                self._ahead.hand_in(unit)
                committed = SpeechTextCommitted(unit.index, unit.text, unit.source_end)
                self._desk.publish(committed, response_id=self._response_id)
                await stream.write(unit)
        except Exception as failure:
            # What was produced before is played, and the stream's own word on its end is the better one.
            self._refused = error_of(failure, "the synthesiser", "synthesis")
            stream.cancel("it refused text")

    async def _play(self, stream: SynthesisStream) -> None:
        async with reading(stream.reports()) as reports:
            async for report in reports:
                if await self._take(report):
                    return
        self._fail(self._refused or _error("synthesizer_cut_off", "it ended without saying that it had ended"))

    async def _take(self, report: SynthesisReport) -> bool:
        """One report; True when it was the last."""
        match report:
            case Synthesized(frame, unit_index, words):
                self._words.add(unit_index, words)
                self._ahead.came(unit_index, frame.duration_ms)
                self._note_change()
                await self._forward(frame)
            case UnitSynthesized(unit_index, start_sample, end_sample, words):
                self._words.complete(unit_index, words)
                self._ahead.complete(unit_index)
                self._note_change()
                where = {"unit_index": unit_index, "start_sample": start_sample, "end_sample": end_sample}
                self._desk.publish(SpeechUnitVoiced(**where), response_id=self._response_id)
                self._desk.report(SpeechUnitSynthesized(at=self._now, output_epoch=self._epoch, **where))
            case SynthesisEnded():
                # What exists is what was forwarded, whatever the synthesiser counts.
                self._tell(SynthesizerEnded(at=self._now, end_sample=self._end_sample))
                return True
            case SynthesisErrored(error):
                self._fail(error)
                return True
            case SynthesisStopped():
                self._fail(self._refused or _error("synthesizer_stopped", "it stopped although nobody cancelled it"))
                return True
        return False

    async def _forward(self, frame: AudioFrame) -> None:
        """To the speaker, once the chart has opened the output."""
        if not frame.samples:
            return
        try:
            if not self._opened.is_set():
                rate_hz, channels = frame.format.sample_rate_hz, frame.format.channels
                self._tell(FirstAudioProduced(at=self._now, sample_rate_hz=rate_hz, channels=channels))
                await self._opened.wait()
                assert self._output is not None
                await self._output.open()
            assert self._output is not None
            await self._output.write(frame)
        except PortError as failure:
            self._speaker_failed(failure.error)
        self._end_sample = max(self._end_sample, frame.end_sample)

    def _note_change(self) -> None:
        self._changed.set()
        self._changed = anyio.Event()

    # -- the chart -------------------------------------------------------------------------------------------------

    @property
    def _now(self) -> int:
        return self._desk.clock.now_ns()

    def _ask(self, what: Callable[[OutputStream], None]) -> None:
        if self._output is None:
            return
        try:
            what(self._output)
        except PortError as failure:
            self._speaker_failed(failure.error)

    def _speaker_failed(self, error: ScopedError) -> None:
        self._desk.report(SpeakerFailed(at=self._now, output_epoch=self._epoch, error=error))
        self._tell(SynthesisCancelled(at=self._now))

    def _fail(self, error: ScopedError) -> None:
        self._tell(SynthesizerErrored(at=self._now, end_sample=self._end_sample, error=error))

    def _tell(self, fact: Fact) -> None:
        for action in self._chart.handle(fact):
            self._carry_out(action)

    def _carry_out(self, action: Action) -> None:
        match action:
            case ReportAudioStarted(sample_rate_hz=rate, channels=channels):
                self._desk.report(
                    AudioStarted(at=self._now, output_epoch=self._epoch, sample_rate_hz=rate, channels=channels)
                )
            case FinishText():
                self._text_is_over = True
                self._note_change()
            case ReportAudioEnded(end_sample=end):
                self._desk.report(AudioEnded(at=self._now, output_epoch=self._epoch, end_sample=end))
            case ReportSynthesisFailed(end_sample=end, error=error):
                self._desk.report(SynthesisFailed(at=self._now, output_epoch=self._epoch, end_sample=end, error=error))
            case StopSynthesizer():
                if self._stream is not None:
                    self._stream.cancel("cancelled")
                self._scope.cancel()
            case _:
                raise AssertionError(f"{type(action).__name__} is not decided by the Synthesis chart")


def _error(code: str, message: str) -> ScopedError:
    return ScopedError(code, "synthesis", ErrorScope.RESPONSE, f"the synthesiser failed: {message}", retryable=True)
