"""PCM audio as values and pure, synchronous stages: formats and frames with exact sample arithmetic, bounded queues,
fragment assembly, resampling, voice activity, pre-roll, WAV files and the playback clock.

Nothing here waits, reads a clock or knows the rest of voicechart. A stage belongs to one track and one thread; where
its input does not continue, it refuses (`AudioDiscontinuity`) instead of joining two pieces.
"""

from __future__ import annotations

from .errors import (
    AudioDiscontinuity,
    AudioError,
    AudioFormatError,
    AudioReadError,
    AudioSettingsError,
    AudioWriteError,
    FrameTooLarge,
    PlaybackClockError,
    QueueClosed,
    QueueFull,
    VoiceActivityError,
)
from .formats import SPEECH_FORMAT, AudioFormat, AudioFrame
from .fragments import PcmAssembler, Reframer
from .playback_clock import PlaybackClock
from .queues import PcmBuffer, QueuedFrame
from .resampling import DownMix, ResamplingQuality, TrackResampler
from .ring import PreRoll, PreRollAudio
from .voice_activity import (
    SpeechOffset,
    SpeechOngoing,
    SpeechOnset,
    SpeechProbability,
    VoiceActivity,
    VoiceActivityDetector,
    VoiceActivitySettings,
)
from .wav_reader import WavReader, read_wav
from .wav_writer import WavWriter

__all__ = [
    "SPEECH_FORMAT",
    "AudioDiscontinuity",
    "AudioError",
    "AudioFormat",
    "AudioFormatError",
    "AudioFrame",
    "AudioReadError",
    "AudioSettingsError",
    "AudioWriteError",
    "DownMix",
    "FrameTooLarge",
    "PcmAssembler",
    "PcmBuffer",
    "PlaybackClock",
    "PlaybackClockError",
    "PreRoll",
    "PreRollAudio",
    "QueueClosed",
    "QueueFull",
    "QueuedFrame",
    "Reframer",
    "ResamplingQuality",
    "SpeechOffset",
    "SpeechOngoing",
    "SpeechOnset",
    "SpeechProbability",
    "TrackResampler",
    "VoiceActivity",
    "VoiceActivityDetector",
    "VoiceActivityError",
    "VoiceActivitySettings",
    "WavReader",
    "WavWriter",
    "read_wav",
]
