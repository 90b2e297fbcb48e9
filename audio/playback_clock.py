"""Where a device that plays in real time is by now. Pure: time comes in as monotonic nanoseconds."""

from __future__ import annotations

from .errors import PlaybackClockError
from .formats import NANOSECONDS_PER_SECOND, AudioFormat


class PlaybackClock:
    """Converts elapsed playing time into rendered samples, exactly, never beyond what was submitted.

    A new clock is paused at sample 0; `resume` starts it. Pauses lose no fraction of a sample. When the submitted
    samples run out the clock stands still, and what is submitted later starts at its moment of submission, as it does
    on a device. Times must not run backwards from one call that changes the clock to the next call, otherwise
    `PlaybackClockError`.
    """

    def __init__(self, format: AudioFormat) -> None:
        self.format = format
        self._submitted_samples = 0
        self._played_ns = 0
        self._changed_at_ns: int | None = None
        self._running = False

    @property
    def submitted_samples(self) -> int:
        return self._submitted_samples

    @property
    def running(self) -> bool:
        """False before the first `resume` and while paused. A clock that has run dry still runs."""
        return self._running

    def submit(self, samples: int, now_ns: int) -> None:
        """Hand `samples` more to the device."""
        if samples < 0:
            raise PlaybackClockError(f"cannot submit {samples} samples")
        self._settle(now_ns)
        self._submitted_samples += samples

    def resume(self, now_ns: int) -> None:
        """Play from here on; nothing changes when already running."""
        self._settle(now_ns)
        self._running = True

    def pause(self, now_ns: int) -> None:
        """Stand still; nothing changes when already paused."""
        self._settle(now_ns)
        self._running = False

    def rendered_samples(self, now_ns: int) -> int:
        """Whole samples rendered by `now_ns`, at most `submitted_samples`."""
        return min(self._samples_in(self._played_by(now_ns)), self._submitted_samples)

    def is_dry(self, now_ns: int) -> bool:
        """Whether everything submitted has been rendered by `now_ns`."""
        return self.rendered_samples(now_ns) == self._submitted_samples

    def due_at_ns(self, sample: int) -> int | None:
        """When `sample` samples will have been rendered, if nothing pauses the clock; at or before the last change when
        they already were. None while paused, or when fewer than `sample` were submitted: then no time can be told.
        """
        if not self._running or self._changed_at_ns is None or sample > self._submitted_samples:
            return None
        return self._changed_at_ns + self._ns_for(sample) - self._played_ns

    def _settle(self, now_ns: int) -> None:
        """Move the base of all later computations to `now_ns`; a dry clock forgets the time it stood still."""
        self._played_ns = self._played_by(now_ns)
        self._changed_at_ns = now_ns

    def _played_by(self, now_ns: int) -> int:
        if self._changed_at_ns is None:
            return 0
        if now_ns < self._changed_at_ns:
            raise PlaybackClockError(
                f"time ran backwards by {self._changed_at_ns - now_ns} ns; use one monotonic clock for this track"
            )
        elapsed_ns = now_ns - self._changed_at_ns if self._running else 0
        return min(self._played_ns + elapsed_ns, self._ns_for(self._submitted_samples))

    def _samples_in(self, played_ns: int) -> int:
        return played_ns * self.format.sample_rate_hz // NANOSECONDS_PER_SECOND

    def _ns_for(self, samples: int) -> int:
        """The first whole nanosecond at which `samples` have been rendered."""
        return -(-samples * NANOSECONDS_PER_SECOND // self.format.sample_rate_hz)
