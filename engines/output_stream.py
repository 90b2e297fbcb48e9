"""One stream to the speaker: what the chart asks before the stream is open is not lost on the way."""

from __future__ import annotations

from ..audio.formats import AudioFrame
from .output_gate import OutputGate
from .ports import OutputOpening, Speaker


class OutputStream:
    """Opened when the first audio comes. `release`, `pause` and `resume` count from the chart's decision on, whether
    the speaker knows the stream by then or not; they return at once. Every call may raise `PortError`.
    """

    def __init__(self, speaker: Speaker, gate: OutputGate, opening: OutputOpening) -> None:
        self._speaker = speaker
        self._gate = gate
        self._opening = opening
        self._is_open = False
        self._held = opening.held
        self._paused = False

    async def open(self) -> None:
        """Tell the speaker of it."""
        stream_id = self._opening.stream_id
        await self._speaker.open(self._opening)
        self._is_open = True
        if self._opening.held and not self._held:
            self._speaker.release(stream_id)
        if self._paused:
            self._speaker.pause(stream_id)

    async def write(self, frame: AudioFrame) -> None:
        """Through the gate, waiting for room."""
        await self._gate.write(self._opening.stream_id, self._opening.output_epoch, frame)

    async def finish(self, end_sample: int) -> None:
        """The end barrier."""
        await self._speaker.finish(self._opening.stream_id, end_sample)

    def release(self) -> None:
        self._held = False
        if self._is_open:
            self._speaker.release(self._opening.stream_id)

    def pause(self) -> None:
        self._paused = True
        if self._is_open:
            self._speaker.pause(self._opening.stream_id)

    def resume(self) -> None:
        self._paused = False
        if self._is_open:
            self._speaker.resume(self._opening.stream_id)
