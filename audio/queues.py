"""A queue of PCM frames bounded by bytes, by duration and by count. Synchronous: the waiting is the engine's."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar, cast, overload

from .errors import AudioFormatError, AudioSettingsError, FrameTooLarge
from .formats import AudioFormat, AudioFrame

Tag = TypeVar("Tag")

DEFAULT_MAX_FRAMES = 4_096
"""A frame object costs about 150 bytes beside its samples: without a count, a second of one-sample frames would cost
megabytes while its bytes and its duration look harmless. 20 ms frames never get near this."""


@dataclass(frozen=True, slots=True)
class QueuedFrame(Generic[Tag]):
    """A frame and what its producer attached to it, such as the output epoch. `tag` is None where nothing was."""

    frame: AudioFrame
    tag: Tag


class PcmBuffer(Generic[Tag]):
    """First in, first out; never holds more than any of its three bounds, whatever is offered.

    `max_bytes` and `max_ms` must each hold at least one sample, `max_frames` at least one frame; otherwise
    `AudioSettingsError`. Use `PcmBuffer[None]` where frames carry no tag. Belongs to one thread (or one lock).
    """

    def __init__(
        self, format: AudioFormat, *, max_bytes: int, max_ms: int, max_frames: int = DEFAULT_MAX_FRAMES
    ) -> None:
        self.format = format
        self.max_bytes = max_bytes
        self.max_ms = max_ms
        self.max_frames = max_frames
        self.max_samples = min(max_bytes // format.bytes_per_sample, max_ms * format.sample_rate_hz // 1_000)
        """Both bounds in samples: the smaller one, rounded down."""
        if self.max_samples < 1:
            raise AudioSettingsError(
                f"{max_bytes} bytes and {max_ms} ms do not hold one sample of {format}; raise them"
            )
        if max_frames < 1:
            raise AudioSettingsError(f"a queue of {max_frames} frames holds nothing; give it at least 1")
        self._frames: deque[QueuedFrame[Tag]] = deque()
        self._samples = 0
        self._peak_samples = 0

    def __len__(self) -> int:
        """Frames in the queue."""
        return len(self._frames)

    @property
    def queued_samples(self) -> int:
        return self._samples

    @property
    def queued_bytes(self) -> int:
        return self.format.bytes_for(self._samples)

    @property
    def queued_ms(self) -> float:
        return self.format.duration_ms(self._samples)

    @property
    def peak_bytes(self) -> int:
        """The most that was ever queued at once."""
        return self.format.bytes_for(self._peak_samples)

    @property
    def peak_ms(self) -> float:
        """The most that was ever queued at once."""
        return self.format.duration_ms(self._peak_samples)

    def has_room_for(self, frame: AudioFrame) -> bool:
        """Whether `offer` would take this frame now.

        Raises `FrameTooLarge` when it could not even in an empty queue, `AudioFormatError` when its format differs.
        """
        if frame.format != self.format:
            raise AudioFormatError(f"this queue takes {self.format}, not {frame.format}; convert the frame first")
        if frame.samples > self.max_samples:
            raise FrameTooLarge(
                f"a frame of {len(frame.data)} bytes ({frame.duration_ms:g} ms) can never fit into "
                f"{self.max_bytes} bytes and {self.max_ms} ms; split it (`Reframer`) or raise the bound"
            )
        if not frame.samples:
            return True
        return self._samples + frame.samples <= self.max_samples and len(self._frames) < self.max_frames

    @overload
    def offer(self: PcmBuffer[None], frame: AudioFrame) -> bool: ...
    @overload
    def offer(self, frame: AudioFrame, tag: Tag) -> bool: ...
    def offer(self, frame: AudioFrame, tag: Tag | None = None) -> bool:
        """Queue the frame, or return False and change nothing when a bound would be passed.

        An empty frame is taken and forgotten. Raises as `has_room_for` does.
        """
        if not self.has_room_for(frame):
            return False
        if frame.samples:
            self._frames.append(QueuedFrame(frame, cast("Tag", tag)))
            self._samples += frame.samples
            self._peak_samples = max(self._peak_samples, self._samples)
        return True

    def take(self, max_samples: int | None = None) -> QueuedFrame[Tag] | None:
        """The oldest frame, or its first `max_samples` (at least 1) with the rest left in front; None when empty."""
        if max_samples is not None and max_samples < 1:
            raise AudioSettingsError(f"cannot take {max_samples} samples; ask for at least 1")
        if not self._frames:
            return None
        oldest = self._frames.popleft()
        if max_samples is not None and oldest.frame.samples > max_samples:
            head, rest = oldest.frame.split_at(max_samples)
            self._frames.appendleft(QueuedFrame(rest, oldest.tag))
            oldest = QueuedFrame(head, oldest.tag)
        self._samples -= oldest.frame.samples
        return oldest

    def discard(self, matches: Callable[[Tag], bool]) -> int:
        """Drop every frame whose tag matches; the order of the others stays. Returns the samples dropped."""
        kept = [queued for queued in self._frames if not matches(queued.tag)]
        before = self._samples
        self._frames = deque(kept)
        self._samples = sum(queued.frame.samples for queued in kept)
        return before - self._samples

    def clear(self) -> int:
        """Drop everything. Returns the samples dropped."""
        dropped = self._samples
        self._frames.clear()
        self._samples = 0
        return dropped
