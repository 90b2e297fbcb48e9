"""When somebody speaks: hysteresis over a speech probability, in exact sample positions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from .errors import AudioSettingsError, VoiceActivityError
from .formats import SPEECH_FORMAT, AudioFrame
from .fragments import Reframer

HOP_SAMPLES = 512
"""What Silero takes at 16 kHz, and nothing else: 32 ms."""

HOP_MS = SPEECH_FORMAT.duration_ms(HOP_SAMPLES)


class SpeechProbability(Protocol):
    """A model that judges one hop after another and remembers the former ones."""

    def __call__(self, pcm: bytes, /) -> float:
        """0 to 1, from exactly 512 samples of 16 kHz mono PCM16 (1,024 bytes)."""
        ...

    def reset(self) -> None:
        """Forget the former hops."""
        ...


@dataclass(frozen=True, slots=True)
class SpeechOnset:
    """Somebody began to speak at `at_sample`; known since `known_at_sample` (both positions of the capture track)."""

    at_sample: int
    known_at_sample: int


@dataclass(frozen=True, slots=True)
class SpeechOngoing:
    """Still speaking at `at_sample`, `duration_ms` after the onset."""

    at_sample: int
    duration_ms: float


@dataclass(frozen=True, slots=True)
class SpeechOffset:
    """The speech ended at `at_sample`, and `silence_ms` of silence followed before this was said."""

    at_sample: int
    silence_ms: float


VoiceActivity = SpeechOnset | SpeechOngoing | SpeechOffset


@dataclass(frozen=True, slots=True)
class VoiceActivitySettings:
    """When a probability is speech. Times act in whole hops of 32 ms, rounded up.

    `AudioSettingsError` outside the bounds.
    """

    start_threshold: float = 0.5
    """A hop at or above it is voiced. Above 0, at most 1."""
    stop_threshold: float = 0.35
    """A voiced stretch ends with a hop below it. Above 0, at most `start_threshold`."""
    min_speech_ms: int = 64
    """A voiced stretch shorter than this is a click, not speech. 0 to 2,000."""
    min_silence_ms: int = 500
    """An unvoiced stretch shorter than this is a breath, not an end. 0 to 10,000."""
    ongoing_every_ms: int = 100
    """`SpeechOngoing` at most this often. 32 to 5,000."""

    def __post_init__(self) -> None:
        if not 0 < self.stop_threshold <= self.start_threshold <= 1:
            raise AudioSettingsError(
                f"thresholds must be 0 < stop ({self.stop_threshold}) ≤ start ({self.start_threshold}) ≤ 1"
            )
        for name, value, low, high in (
            ("min_speech_ms", self.min_speech_ms, 0, 2_000),
            ("min_silence_ms", self.min_silence_ms, 0, 10_000),
            ("ongoing_every_ms", self.ongoing_every_ms, 32, 5_000),
        ):
            if not low <= value <= high:
                raise AudioSettingsError(f"{name} = {value} is outside {low}–{high}")


class VoiceActivityDetector:
    """Turns the frames of one 16 kHz mono capture track into onsets and offsets, which strictly alternate.

    Frames may have any size. A hop costs what the model costs (Silero: about 0.75 ms on the caller's thread).
    """

    def __init__(self, probability: SpeechProbability, settings: VoiceActivitySettings | None = None) -> None:
        self.settings = settings or VoiceActivitySettings()
        self._probability = probability
        self._hops = Reframer(SPEECH_FORMAT, HOP_SAMPLES)
        self._speaking = False
        self._voiced = False
        self._voiced_since = 0
        self._unvoiced_since: int | None = None
        self._onset_at = 0
        self._told_at = 0
        self._judged_to = 0

    @property
    def speaking(self) -> bool:
        """Between an onset and its offset."""
        return self._speaking

    @property
    def silence_ms(self) -> float:
        """Since the last voiced hop, whether or not speech is open; 0 while a hop is voiced, and after a gap."""
        return 0.0 if self._unvoiced_since is None else _ms(self._judged_to - self._unvoiced_since)

    def voiced_ms_after(self, sample: int) -> float:
        """How much of the present voiced stretch is behind that position of the track; 0 while nothing is voiced."""
        return max(0.0, _ms(self._judged_to - max(sample, self._voiced_since))) if self._voiced else 0.0

    def feed(self, frame: AudioFrame) -> list[VoiceActivity]:
        """What the hops that are complete now say, oldest first.

        Raises `AudioFormatError` for anything but 16 kHz mono, `AudioDiscontinuity` for a frame that does not continue
        the track (call `gap` first) and `VoiceActivityError` for a probability outside 0 to 1.
        """
        said: list[VoiceActivity] = []
        for hop in self._hops.feed(frame):
            said += self._judge(hop)
        return said

    def gap(self) -> bool:
        """Samples were lost here: forget the former ones. The next frame may start anywhere.

        True when speech was open; its offset will not come, because nobody knows what was said in between.
        """
        was_speaking = self._speaking
        self._hops.reset()
        self._probability.reset()
        self._speaking = self._voiced = False
        self._unvoiced_since = None
        return was_speaking

    def finish(self) -> list[VoiceActivity]:
        """The track ended: the offset of open speech, with the silence there was. Less than a hop is left unjudged."""
        ended: list[VoiceActivity] = []
        if self._speaking:
            speech_end = self._judged_to if self._unvoiced_since is None else self._unvoiced_since
            ended.append(SpeechOffset(speech_end, SPEECH_FORMAT.duration_ms(self._judged_to - speech_end)))
        self.gap()
        return ended

    def _judge(self, hop: AudioFrame) -> list[VoiceActivity]:
        self._judged_to = hop.end_sample
        probability = self._probability(hop.data)
        if not 0 <= probability <= 1:
            raise VoiceActivityError(f"the speech probability is {probability}, not 0 to 1; reload the model")
        was_voiced = self._voiced
        threshold = self.settings.stop_threshold if was_voiced else self.settings.start_threshold
        self._voiced = probability >= threshold
        if self._voiced and not was_voiced:
            self._voiced_since, self._unvoiced_since = hop.start_sample, None
        elif not self._voiced and self._unvoiced_since is None:
            self._unvoiced_since = hop.start_sample
        return self._judge_speech(hop.end_sample) if self._speaking else self._judge_silence(hop.end_sample)

    def _judge_silence(self, now_sample: int) -> list[VoiceActivity]:
        if not self._voiced or _ms(now_sample - self._voiced_since) < self.settings.min_speech_ms:
            return []
        self._speaking = True
        self._onset_at = self._voiced_since
        self._told_at = now_sample
        return [SpeechOnset(self._onset_at, now_sample)]

    def _judge_speech(self, now_sample: int) -> list[VoiceActivity]:
        if self._unvoiced_since is not None:
            silence_ms = _ms(now_sample - self._unvoiced_since)
            if silence_ms < self.settings.min_silence_ms:
                return []
            self._speaking = False
            return [SpeechOffset(self._unvoiced_since, silence_ms)]
        if _ms(now_sample - self._told_at) < self.settings.ongoing_every_ms:
            return []
        self._told_at = now_sample
        return [SpeechOngoing(now_sample, _ms(now_sample - self._onset_at))]


def _ms(samples: int) -> float:
    return SPEECH_FORMAT.duration_ms(samples)
