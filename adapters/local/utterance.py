"""The audio of one utterance, and which part of it is worth decoding now."""

from __future__ import annotations

import threading
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ...audio.formats import SPEECH_FORMAT
from ...audio.voice_activity import HOP_SAMPLES, SpeechProbability

VOICED = 0.5
LEAST_VOICED_HOPS = 3
"""Less than 96 ms of speech is a click, not a word."""


@dataclass(frozen=True, slots=True)
class Span:
    """Samples [start, end) of the utterance. `closed`: the speaker has been silent since, so it will not grow."""

    start: int
    end: int
    closed: bool


class Utterance:
    """Grows in one thread (`append`), is listened to in another (`listen`, `speech`)."""

    def __init__(self, probability: SpeechProbability, margin_ms: float = 200.0) -> None:
        """`margin_ms`: kept before the first and after the last voiced hop; Whisper errs more with 400."""
        self._probability = probability
        self._margin = SPEECH_FORMAT.samples_for_ms(margin_ms)
        self._lock = threading.Lock()
        self._pcm = bytearray()
        self._judged = 0
        self._voiced_hops = 0
        self._first_voiced = 0
        self._last_voiced = 0

    @property
    def samples(self) -> int:
        with self._lock:
            return SPEECH_FORMAT.samples_in(len(self._pcm))

    def append(self, pcm: bytes) -> None:
        with self._lock:
            self._pcm += pcm

    def listen(self) -> None:
        """Judge the hops that are complete: 0.75 ms each."""
        while len(hop := self._bytes(self._judged, self._judged + HOP_SAMPLES)) == HOP_SAMPLES * 2:
            self._judge(hop)

    def listen_to_the_end(self) -> None:
        """Judge everything; the last hop is filled up with silence."""
        self.listen()
        rest = self._bytes(self._judged, self._judged + HOP_SAMPLES)
        if rest:
            self._judge(rest + bytes(HOP_SAMPLES * 2 - len(rest)))

    def speech(self) -> Span | None:
        """Where speech was found so far, with the margins; None as long as there is none."""
        if self._voiced_hops < LEAST_VOICED_HOPS:
            return None
        wanted_end = self._last_voiced + self._margin
        end = min(wanted_end, self._judged, self.samples)
        return Span(max(0, self._first_voiced - self._margin), end, closed=end == wanted_end)

    def cut(self, span: Span) -> npt.NDArray[np.float32]:
        """The samples of `span`, -1 to 1."""
        samples = np.frombuffer(self._bytes(span.start, span.end), np.dtype("<i2"))
        return samples.astype(np.float32) * np.float32(1 / 32_768)

    def _bytes(self, start: int, end: int) -> bytes:
        with self._lock:
            return bytes(self._pcm[SPEECH_FORMAT.bytes_for(start) : SPEECH_FORMAT.bytes_for(end)])

    def _judge(self, hop: bytes) -> None:
        start = self._judged
        self._judged += HOP_SAMPLES
        if self._probability(hop) < VOICED:
            return
        if not self._voiced_hops:
            self._first_voiced = start
        self._voiced_hops += 1
        self._last_voiced = self._judged
