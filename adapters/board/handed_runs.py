"""What is in a device's hands: handed out, and not yet known to be heard. Sans-IO.

Positions count every sample that the device ever took, silence included, so that they are the device's own time.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

from ...audio.formats import AudioFormat
from .render_stream import RenderStream


@dataclass(slots=True)
class HandedRun:
    """Samples of one stream, or silence when `stream` is None."""

    start: int
    samples: int
    stream: RenderStream | None = None
    data: bytes = b""
    starts: bool = False
    """The first samples of the stream after it buffered."""
    starves: RenderStream | None = None
    """On silence: the stream that ran dry here."""

    @property
    def end(self) -> int:
        return self.start + self.samples


class HandedRuns:
    """The runs between what the device took and what was heard, oldest first."""

    def __init__(self, device_format: AudioFormat) -> None:
        self._format = device_format
        self._runs: deque[HandedRun] = deque()
        self._taken = 0
        self._heard = 0

    def hand_out(self, stream: RenderStream, data: bytes, *, starts: bool) -> int:
        """The device takes samples of `stream`. Returns how many."""
        samples = self._format.samples_in(len(data))
        self._append(HandedRun(self._taken, samples, stream, data, starts))
        return samples

    def hand_out_silence(self, samples: int, *, starves: RenderStream | None) -> None:
        """The device takes silence, because `starves` ran dry or because nothing is to be rendered."""
        if starves is None and self._runs and self._runs[-1].stream is None:
            # One run however long the silence: a device whose presentations come late must not fill the memory.
            self._runs[-1].samples += samples
            self._taken += samples
        else:
            self._append(HandedRun(self._taken, samples, starves=starves))

    def holds(self, stream: RenderStream) -> bool:
        """Whether unheard samples of `stream` are in the device's hands."""
        return any(run.stream is stream for run in self._runs)

    def heard_up_to(self, position: int) -> Iterator[tuple[HandedRun, int]]:
        """Each run that was (further) heard, with how many more of its samples. Exhaust it."""
        while self._runs and self._runs[0].start < position:
            run = self._runs[0]
            upto = min(position, run.end)
            fresh = upto - max(run.start, self._heard)
            self._heard = max(self._heard, upto)
            if upto == run.end:
                self._runs.popleft()
            if fresh > 0:
                yield run, fresh
            if upto < run.end:
                return

    def take_back(self) -> list[tuple[HandedRun, bytes]]:
        """The device dropped everything unheard: each run with its unheard bytes, the newest first."""
        returned = [
            (run, run.data[self._format.bytes_for(max(0, self._heard - run.start)) :]) for run in reversed(self._runs)
        ]
        self._runs.clear()
        self._heard = self._taken
        return returned

    def disown(self) -> bool:
        """Whatever is unheard belongs to nobody any more. True when some of it is sound."""
        sounding = any(run.stream is not None for run in self._runs)
        for run in self._runs:
            run.stream, run.starves = None, None
        return sounding

    def _append(self, run: HandedRun) -> None:
        self._runs.append(run)
        self._taken = run.end
