"""Listening: the microphone's track, voice activity on it, and the recognitions that the chart asks for."""

from __future__ import annotations

from ..audio.formats import SPEECH_FORMAT, AudioFrame
from ..audio.resampling import TrackResampler
from ..audio.ring import PreRoll
from ..audio.voice_activity import (
    SpeechOffset,
    SpeechOngoing,
    SpeechOnset,
    SpeechProbability,
    VoiceActivity,
    VoiceActivityDetector,
    VoiceActivitySettings,
)
from ..statecharts.actions import CancelRecognition, FinishRecognition, StartRecognition, TranscribeRecording
from ..statecharts.facts import ConnectionLost, InputDiscontinuity, SpeechProgressed, SpeechStarted, TurnEnded
from ..statecharts.values import TurnAuthority
from .engine import Desk
from .hearing import Hearing
from .ports import Microphone, Recognizer
from .reports import Captured, CaptureEnded, CaptureGap

PRE_ROLL_MS = 2_000
SPEECH_PREFIX_MS = 300
"""Kept before the detected onset: voice activity is always late, and the first consonant is what it misses."""

MAX_BRIDGE_SAMPLES = SPEECH_FORMAT.samples_for_ms(1_000)
"""Longer holes are not filled with silence: no policy lets an utterance survive them."""


class Listening:
    """Turns captured audio into facts about speech, and feeds whatever is being recognised."""

    def __init__(
        self,
        desk: Desk,
        recognizer: Recognizer,
        probability: SpeechProbability,
        settings: VoiceActivitySettings | None = None,
    ) -> None:
        self._desk = desk
        self._recognizer = recognizer
        self._detector = VoiceActivityDetector(probability, settings or VoiceActivitySettings())
        self._pre_roll = PreRoll(SPEECH_FORMAT, PRE_ROLL_MS)
        self._hearings: dict[str, Hearing] = {}
        self._failed: Hearing | None = None
        self._resampler: TrackResampler | None = None
        self._next_sample: int | None = None

    # -- the microphone --------------------------------------------------------------------------------------------

    async def listen(self, microphone: Microphone) -> None:
        """Follow one capture track to its end."""
        self._begin_track(microphone)
        self._next_sample = None
        async for report in microphone.reports():
            match report:
                case Captured(frame):
                    self._take(frame)
                case CaptureGap(lost_samples, _):
                    self._gap(microphone, lost_samples)
                case CaptureEnded(error):
                    if error is not None:
                        self._desk.report(ConnectionLost(at=self._now, error=error))

    def _begin_track(self, microphone: Microphone) -> None:
        """A new track has positions of its own; nothing of an older one can continue in it."""
        self._resampler = TrackResampler(microphone.format, SPEECH_FORMAT)
        self._detector.gap()
        self._pre_roll.clear()

    def _take(self, captured: AudioFrame) -> None:
        assert self._resampler is not None
        frame = self._resampler.feed(captured)
        if frame is None:
            return
        self._bridge(frame)
        self._pre_roll.append(frame)
        for hearing in self._hearings.values():
            hearing.offer(frame)
        for activity in self._detector.feed(frame):
            self._tell(activity)

    def _bridge(self, frame: AudioFrame) -> None:
        """What was lost is silence to a recogniser; whether the utterance is still whole the chart decides."""
        expected, self._next_sample = self._next_sample, frame.end_sample
        if expected is None or not expected < frame.start_sample <= expected + MAX_BRIDGE_SAMPLES:
            return
        silence = AudioFrame(bytes(SPEECH_FORMAT.bytes_for(frame.start_sample - expected)), SPEECH_FORMAT, expected)
        for hearing in self._hearings.values():
            hearing.offer(silence)

    def _gap(self, microphone: Microphone, lost_samples: int) -> None:
        self._begin_track(microphone)
        lost_ms = int(microphone.format.duration_ms(lost_samples))
        self._desk.report(InputDiscontinuity(at=self._now, lost_ms=lost_ms))

    def _tell(self, activity: VoiceActivity) -> None:
        match activity:
            case SpeechOnset(at_sample, _):
                prefix = SPEECH_FORMAT.samples_for_ms(SPEECH_PREFIX_MS)
                self._desk.report(SpeechStarted(at=self._now, sample=max(0, at_sample - prefix)))
            case SpeechOngoing(_, duration_ms):
                self._desk.report(SpeechProgressed(at=self._now, speech_ms=int(duration_ms)))
            case SpeechOffset(_, silence_ms):
                ended_at = self._now - int(silence_ms * 1_000_000)
                self._desk.report(TurnEnded(at=self._now, authority=TurnAuthority.VAD, speech_ended_at=ended_at))

    # -- what the chart asks for -----------------------------------------------------------------------------------

    def start(self, action: StartRecognition) -> None:
        """Recognise from `action.sample` on, pre-roll included."""
        hearing = self._new_hearing(action.recognition_id, action)
        if action.sample is not None:
            before = self._pre_roll.since(action.sample)
            hearing.preload(before.frames)
            if before.missing_samples:
                lost_ms = int(SPEECH_FORMAT.duration_ms(before.missing_samples))
                self._desk.report(InputDiscontinuity(at=self._now, lost_ms=lost_ms))
        self._desk.start_task(self._run, action.recognition_id, name=f"hearing {action.recognition_id}")

    def transcribe(self, action: TranscribeRecording) -> None:
        """Recognise the recording of a failed recognition as a whole; live audio follows it."""
        failed = self._hearings.pop(action.failed_recognition_id, None) or self._failed
        hearing = self._new_hearing(action.recognition_id, action)
        if failed is not None:
            hearing.preload(failed.recording)
        self._desk.start_task(self._run, action.recognition_id, name=f"hearing {action.recognition_id}")

    def finish(self, action: FinishRecognition) -> None:
        hearing = self._hearings.get(action.recognition_id)
        if hearing is not None:
            hearing.finish()

    def cancel(self, action: CancelRecognition) -> None:
        hearing = self._hearings.pop(action.recognition_id, None)
        if hearing is not None:
            hearing.cancel()

    def _new_hearing(self, recognition_id: str, action: StartRecognition | TranscribeRecording) -> Hearing:
        hearing = Hearing(self._desk, self._recognizer, recognition_id, SPEECH_FORMAT, action.stamp)
        self._hearings[recognition_id] = hearing
        return hearing

    async def _run(self, recognition_id: str) -> None:
        hearing = self._hearings.get(recognition_id)
        if hearing is None:
            return
        await hearing.run()
        if self._hearings.pop(recognition_id, None) is not None and hearing.has_failed:
            self._failed = hearing

    @property
    def _now(self) -> int:
        return self._desk.clock.now_ns()
