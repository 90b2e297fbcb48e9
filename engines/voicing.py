"""Voicing: one reply's speech, from units of text through the synthesiser and the gate to the speaker.

The life of it is the `Synthesis` chart's. Text waits here, in order, until the synthesiser takes it; audio waits in the
speaker's bounded queue. Cancelled, it forwards nothing more, whatever the synthesiser still produces.
"""

from __future__ import annotations

from collections import deque

import anyio

from ..audio.formats import AudioFormat, AudioFrame
from ..statecharts.actions import Action, FinishOutput, OpenOutput, Stamp
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
from .ports import OutputOpening, Speaker, SpeechUnit, SynthesisRequest, SynthesisStream, Synthesizer
from .public_events import SpeechTextCommitted
from .reports import (
    PortError,
    SynthesisEnded,
    SynthesisErrored,
    SynthesisReport,
    SynthesisStopped,
    Synthesized,
    UnitSynthesized,
)

OPEN_TIMEOUT_S = 10.0
CLOSE_TIMEOUT_S = 2.0


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
        self._chart = Synthesis(response_id, stamp)
        self._units: deque[SpeechUnit] = deque()
        self._text_is_over = False
        self._changed = anyio.Event()
        self._stream: SynthesisStream | None = None
        self._opening: OutputOpening | None = None
        self._opened = anyio.Event()
        self._end_sample = 0
        self._scope = anyio.CancelScope()

    # -- text in ---------------------------------------------------------------------------------------------------

    def speak(self, unit: SpeechUnit) -> None:
        """Say this next."""
        self._units.append(unit)
        self._changed.set()

    def close_text(self) -> None:
        """Nothing more is to be said."""
        self._tell(TextEnded(at=self._now))
        self._text_is_over = True
        self._changed.set()

    def cancel(self) -> None:
        """Stop now, from wherever it is."""
        self._tell(SynthesisCancelled(at=self._now))

    def open_output(self, action: OpenOutput) -> None:
        """The chart opened an output stream for this reply: audio may go to the speaker."""
        format = AudioFormat(action.sample_rate_hz, action.channels)
        self._opening = OutputOpening(
            action.stream_id, action.output_epoch, format, action.prebuffer_ms, held=action.held
        )
        self._opened.set()

    # -- the task --------------------------------------------------------------------------------------------------

    async def run(self, speaker: Speaker) -> None:
        """Synthesise and play until the end, a failure, or `cancel`."""
        with self._scope:
            try:
                # Nothing is opened for a reply that has nothing to say.
                await self._until_there_is_text()
                if not self._units:
                    self._tell(SynthesizerEnded(at=self._now, end_sample=0))
                    return
                with anyio.fail_after(OPEN_TIMEOUT_S):
                    self._stream = await self._synthesizer.open(SynthesisRequest(self._response_id, self._epoch))
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(self._write_units, self._stream)
                    await self._play(self._stream, speaker)
                    tasks.cancel_scope.cancel()
            except PortError as failure:
                self._fail(failure.error)
            except TimeoutError:
                self._fail(_error("synthesizer_not_opened", f"it did not open within {OPEN_TIMEOUT_S:.0f} s"))
        if self._stream is not None:
            with anyio.move_on_after(CLOSE_TIMEOUT_S, shield=True):
                await self._stream.aclose()

    async def finish_output(self, action: FinishOutput, speaker: Speaker) -> None:
        """The end barrier, behind every frame that was written."""
        try:
            await speaker.finish(action.stream_id, action.end_sample)
        except PortError as failure:
            self._report(SpeakerFailed(at=self._now, output_epoch=self._epoch, error=failure.error))

    async def _until_there_is_text(self) -> None:
        while not self._units and not self._text_is_over:
            self._changed = anyio.Event()
            await self._changed.wait()

    async def _write_units(self, stream: SynthesisStream) -> None:
        try:
            while True:
                await self._until_there_is_text()
                if not self._units:
                    await stream.finish_input()
                    return
                unit = self._units.popleft()
                self._desk.publish(SpeechTextCommitted(unit.index, unit.text), response_id=self._response_id)
                await stream.write(unit)
        except PortError as failure:
            self._fail(failure.error)

    async def _play(self, stream: SynthesisStream, speaker: Speaker) -> None:
        async for report in stream.reports():
            if await self._take(report, speaker):
                return
        self._fail(_error("synthesizer_cut_off", "it ended without saying that it had ended"))

    async def _take(self, report: SynthesisReport, speaker: Speaker) -> bool:
        """One report; True when it was the last."""
        match report:
            case Synthesized(frame, _):
                await self._forward(frame, speaker)
            case UnitSynthesized(unit_index, start_sample, end_sample, _):
                self._report(
                    SpeechUnitSynthesized(
                        at=self._now,
                        output_epoch=self._epoch,
                        unit_index=unit_index,
                        start_sample=start_sample,
                        end_sample=end_sample,
                    )
                )
            case SynthesisEnded(end_sample):
                self._tell(SynthesizerEnded(at=self._now, end_sample=end_sample))
                return True
            case SynthesisErrored(error):
                self._fail(error)
                return True
            case SynthesisStopped():
                return True
        return False

    async def _forward(self, frame: AudioFrame, speaker: Speaker) -> None:
        """To the speaker, through the gate, once the chart has opened the output."""
        if not frame.samples:
            return
        if not self._opened.is_set():
            self._tell(
                FirstAudioProduced(
                    at=self._now, sample_rate_hz=frame.format.sample_rate_hz, channels=frame.format.channels
                )
            )
            await self._opened.wait()
            assert self._opening is not None
            try:
                await speaker.open(self._opening)
            except PortError as failure:
                self._speaker_failed(failure.error)
                return
        assert self._opening is not None
        try:
            await self._gate.write(self._opening.stream_id, self._epoch, frame)
        except PortError as failure:
            self._speaker_failed(failure.error)
        self._end_sample = max(self._end_sample, frame.end_sample)

    # -- the chart -------------------------------------------------------------------------------------------------

    @property
    def _now(self) -> int:
        return self._desk.clock.now_ns()

    def _report(self, fact: Fact) -> None:
        self._desk.report(fact)

    def _speaker_failed(self, error: ScopedError) -> None:
        self._report(SpeakerFailed(at=self._now, output_epoch=self._epoch, error=error))
        self._tell(SynthesisCancelled(at=self._now))

    def _fail(self, error: ScopedError) -> None:
        self._tell(SynthesizerErrored(at=self._now, end_sample=self._end_sample, error=error))

    def _tell(self, fact: Fact) -> None:
        for action in self._chart.handle(fact):
            self._carry_out(action)

    def _carry_out(self, action: Action) -> None:
        match action:
            case ReportAudioStarted():
                self._report(
                    AudioStarted(
                        at=self._now,
                        output_epoch=self._epoch,
                        sample_rate_hz=action.sample_rate_hz,
                        channels=action.channels,
                    )
                )
            case FinishText():
                self._text_is_over = True
                self._changed.set()
            case ReportAudioEnded():
                self._report(AudioEnded(at=self._now, output_epoch=self._epoch, end_sample=action.end_sample))
            case ReportSynthesisFailed():
                self._report(
                    SynthesisFailed(
                        at=self._now, output_epoch=self._epoch, end_sample=action.end_sample, error=action.error
                    )
                )
            case StopSynthesizer():
                if self._stream is not None:
                    self._stream.cancel("cancelled")
                self._scope.cancel()
            case _:
                raise AssertionError(f"{type(action).__name__} is not decided by the Synthesis chart")


def _error(code: str, message: str) -> ScopedError:
    return ScopedError(code, "synthesis", ErrorScope.RESPONSE, f"the synthesiser failed: {message}", retryable=True)
