"""A recogniser that hears what its script says."""

from __future__ import annotations

from ...audio.formats import AudioFrame
from ...statecharts.capabilities import RecognizerCapabilities
from ..ports import RecognitionRequest
from ..reports import RecognitionEnded, RecognitionReport, SegmentFinal, SegmentHypothesis
from .script import Script, Step, SteppedStream, opening, refusal


def hears(
    text: str, after_samples: int = 0, every_samples: int = 1_600, segment_id: str = "s1", ends: bool = True
) -> tuple[Step[RecognitionReport], ...]:
    """Steps of a well-heard utterance: from `after_samples` of audio on one hypothesis a word, `every_samples` apart;
    when the input is finished, the final and (if `ends`) the terminal report. An empty `text` hears nothing.
    """
    words = text.split()
    steps: list[Step[RecognitionReport]] = [
        Step(
            SegmentHypothesis(segment_id, count, " ".join(words[:count])),
            written_samples=after_samples + (count - 1) * every_samples,
        )
        for count in range(1, len(words) + 1)
    ]
    if words:
        steps.append(Step(SegmentFinal(segment_id, len(words) + 1, text), input_finished=True))
    if ends:
        steps.append(Step(RecognitionEnded(), input_finished=True))
    return tuple(steps)


class ScriptedRecognitionStream(SteppedStream[RecognitionRequest, RecognitionReport]):
    """Records the audio it is given in `frames`."""

    stage = "recognition"

    def __init__(self, request: RecognitionRequest, script: Script[RecognitionReport]) -> None:
        super().__init__(request, script)
        self.frames: list[AudioFrame] = []

    @property
    def written_samples(self) -> int:
        return sum(frame.samples for frame in self.frames)

    async def write(self, frame: AudioFrame) -> None:
        """Raises `PortError` for another format, for a hole in the audio, and after the end."""
        self._refuse_input_after_the_end()
        if frame.format != self.request.format:
            raise refusal("wrong_format", self.stage, f"expected {self.request.format}, got {frame.format}")
        if self.frames and frame.start_sample != self.frames[-1].end_sample:
            raise refusal("audio_discontinuity", self.stage, "frames must follow each other without a hole")
        self.frames.append(frame)
        self._changed()

    async def finish_input(self) -> None:
        self.input_finished = True
        self._changed()

    def _ready_for(self, step: Step[RecognitionReport]) -> bool:
        return self.written_samples >= step.written_samples and (self.input_finished or not step.input_finished)

    def _stopped(self) -> RecognitionReport:
        return RecognitionEnded(cancelled=True)


class ScriptedRecognizer:
    """The nth `open` plays the nth script; raises `PortError` when there is none left."""

    def __init__(self, *scripts: Script[RecognitionReport], capabilities: RecognizerCapabilities | None = None) -> None:
        self._scripts = scripts
        self._capabilities = capabilities or RecognizerCapabilities(live_input=True, interim=True)
        self.streams: list[ScriptedRecognitionStream] = []
        self.opened = 0
        self.prepared = False
        self.closed = False

    @property
    def capabilities(self) -> RecognizerCapabilities:
        return self._capabilities

    async def prepare(self) -> None:
        self.prepared = True

    async def open(self, request: RecognitionRequest) -> ScriptedRecognitionStream:
        if self.closed:
            raise refusal("port_closed", "recognition", "the recogniser was closed")
        if self.opened >= len(self._scripts):
            raise refusal("script_exhausted", "recognition", f"no script for stream {self.opened + 1}; add one")
        script = self._scripts[self.opened]
        self.opened += 1
        await opening(script.open_after_ms, script.open_error)
        stream = ScriptedRecognitionStream(request, script)
        self.streams.append(stream)
        return stream

    async def aclose(self) -> None:
        self.closed = True
        for stream in self.streams:
            await stream.aclose()
