"""Errors of the audio layer. Each says what to change."""

from __future__ import annotations


class AudioError(Exception):
    """Base of every error raised by `voicechart.audio`."""


class AudioFormatError(AudioError, ValueError):
    """PCM that does not fit its declared format, or a format outside the supported bounds."""


class AudioSettingsError(AudioError, ValueError):
    """A bound, size or threshold that makes no sense, alone or beside another one."""


class AudioDiscontinuity(AudioError):
    """A frame does not continue its track: samples were lost or repeated, or the stage should have been reset."""

    def __init__(self, stage: str, expected_sample: int, got_sample: int) -> None:
        super().__init__(
            f"{stage} expected sample {expected_sample} next and got sample {got_sample}; "
            "reset it where the track has a gap, so that two pieces are never joined silently"
        )
        self.expected_sample = expected_sample
        self.got_sample = got_sample


class FrameTooLarge(AudioError, ValueError):
    """A frame that could never fit, however long one waits. Split it, or raise the bound."""


class QueueFull(AudioError):
    """No room in a bounded queue (within the deadline, where one was given). The frame was not queued."""


class QueueClosed(AudioError):
    """The queue is closed: nothing goes in, and everything that was in it has been taken out."""


class AudioReadError(AudioError):
    """A recording that cannot be read, or not without guessing."""


class AudioWriteError(AudioError):
    """A recording that cannot be written further, as with a full disk. What was flushed before stays readable."""


class PlaybackClockError(AudioError, ValueError):
    """Time that runs backwards, or a negative number of samples."""


class VoiceActivityError(AudioError):
    """A speech probability outside 0 to 1: the model behind it is broken or fed wrongly."""
