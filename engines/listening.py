"""Listening: the capture track, voice activity on it, and the recognitions that the chart asks for.

Whatever the microphone and the device sessions do, there is one track here without holes: a short one is filled with
silence, and a new device session continues the positions of the one before. What was lost is told to the chart, which
decides whether the utterance survives it.

Voice activity opens turns, and ends them under the authority `vad`; when another one ends a turn while the user is
still heard, `going_on` tells what follows.
"""

from __future__ import annotations

from dataclasses import replace

from ..audio.formats import SPEECH_FORMAT, AudioFormat, AudioFrame
from ..audio.resampling import DownMix, TrackResampler
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
from ..statecharts.facts import (
    ButtonPressed,
    ConnectionLost,
    InputDiscontinuity,
    SpeechProgressed,
    SpeechStarted,
    TurnCancelled,
    TurnEnded,
)
from ..statecharts.values import TurnAuthority
from .end_of_turn import EndOfTurn, TurnSoFar
from .engine import Desk
from .going_on import GoingOn
from .hearing import Hearing
from .port_calls import reading
from .ports import Microphone, Recognizer
from .reports import ButtonUsed, Captured, CaptureEnded, CaptureGap, DeviceButton
from .turn_ending import TurnEnding

PRE_ROLL_MS = 2_000
SPEECH_PREFIX_MS = 300
"""Kept before the detected onset: voice activity is always late, and the first consonant is what it misses."""

MAX_BRIDGE_SAMPLES = SPEECH_FORMAT.samples_for_ms(1_000)
"""Longer holes are not filled: what is being recognised then fails."""

KEPT_FAILURES = 2
"""Failed recognitions whose recording is kept until the chart has decided about a batch attempt."""


class Listening:
    """Turns captured audio into facts about speech, and feeds whatever is being recognised."""

    def __init__(
        self,
        desk: Desk,
        recognizer: Recognizer,
        probability: SpeechProbability,
        settings: VoiceActivitySettings | None = None,
        end_of_turn: EndOfTurn | None = None,
        fallback_recognizer: Recognizer | None = None,
    ) -> None:
        self._desk = desk
        self._recognizer = recognizer
        self._fallback_recognizer = fallback_recognizer or recognizer
        authority = desk.conversation.policies.turn.authority
        semantic = authority is TurnAuthority.SEMANTIC
        self._ending = TurnEnding(desk, end_of_turn) if semantic and end_of_turn is not None else None
        self._detector = VoiceActivityDetector(probability, settings or VoiceActivitySettings())
        self._pre_roll = PreRoll(SPEECH_FORMAT, PRE_ROLL_MS)
        self._hearings: dict[str, Hearing] = {}
        self._failed: dict[str, Hearing] = {}
        self._resampler = TrackResampler(SPEECH_FORMAT, SPEECH_FORMAT)
        self._next_capture: int | None = None
        self._shift = 0
        self._resumes_at: int | None = None
        self._next_sample: int | None = None
        self._heard_at = 0
        self._going_on = GoingOn(desk, self._detector)

    # -- the microphone --------------------------------------------------------------------------------------------

    async def listen(self, microphone: Microphone) -> None:
        """Follow one device's capture to its end."""
        self._begin_track(microphone.format)
        async with reading(microphone.reports()) as reports:
            async for report in reports:
                match report:
                    case Captured(frame):
                        self._capture(frame)
                    case CaptureGap(lost_samples, _):
                        self._lose(lost_samples)
                    case ButtonUsed(button):
                        self.press(button)
                    case CaptureEnded(error):
                        self._end_track()
                        if error is not None:
                            self._desk.report(ConnectionLost(at=self._now, error=error))

    def _begin_track(self, device_format: AudioFormat) -> None:
        """A device that begins anew counts anew; the track here goes on."""
        # On a board with several channels the first one is the microphone; others are often the echo reference.
        self._resampler = TrackResampler(device_format, SPEECH_FORMAT, downmix=DownMix.FIRST_CHANNEL)
        self._next_capture = None
        if self._next_sample is not None:
            lost_samples = (self._now - self._heard_at) * SPEECH_FORMAT.sample_rate_hz // 1_000_000_000
            self._report_loss(int(SPEECH_FORMAT.duration_ms(lost_samples)))
            self._resumes_at = self._next_sample + lost_samples
        if self._detector.speaking and not self._hearings:
            # Its turn was lost with the session before. What the user goes on to say is another one, with an onset.
            self._detector.gap()
            self._going_on.forget()

    def _capture(self, frame: AudioFrame) -> None:
        if self._next_capture is not None and frame.start_sample != self._next_capture:
            # A jump that the device did not announce.
            self._lose(max(0, frame.start_sample - self._next_capture))
        self._next_capture = frame.end_sample
        self._take(self._resampler.feed(frame))

    def _lose(self, lost_samples: int) -> None:
        """Samples are missing before the next frame."""
        self._take(self._resampler.flush())
        self._next_capture = None
        self._report_loss(int(self._resampler.source.duration_ms(lost_samples)))

    def _report_loss(self, lost_ms: int) -> None:
        self._desk.report(InputDiscontinuity(at=self._now, lost_ms=lost_ms))

    def _end_track(self) -> None:
        """The recording ended, or the device: what was being said is over."""
        self._take(self._resampler.flush())
        for activity in self._detector.finish():
            self._tell(activity)

    def _take(self, frame: AudioFrame | None) -> None:
        """The next samples of the device, at the recogniser's rate."""
        if frame is None:
            return
        if self._resumes_at is not None:
            self._shift, self._resumes_at = self._resumes_at - frame.start_sample, None
        frame = replace(frame, start_sample=frame.start_sample + self._shift)
        if self._next_sample is not None:
            hole = frame.start_sample - self._next_sample
            if 0 < hole <= MAX_BRIDGE_SAMPLES:
                self._hear(AudioFrame(bytes(SPEECH_FORMAT.bytes_for(hole)), SPEECH_FORMAT, self._next_sample))
            elif hole:
                self._break_track()
        self._hear(frame)

    def _break_track(self) -> None:
        """What comes next does not join what was: nothing that is being recognised can be whole."""
        for hearing in tuple(self._hearings.values()):
            hearing.lose_audio()
        self._detector.gap()
        self._pre_roll.clear()
        self._going_on.forget()

    def _hear(self, frame: AudioFrame) -> None:
        self._next_sample, self._heard_at = frame.end_sample, self._now
        self._pre_roll.append(frame)
        for hearing in tuple(self._hearings.values()):
            hearing.offer(frame)
        for activity in self._detector.feed(frame):
            self._tell(activity)
        self._going_on.follow()
        if self._ending is not None:
            self._ending.follow(self._detector.silence_ms, self._describe)

    def _describe(self, text: str, silence_ms: float) -> TurnSoFar:
        """The open turn, for whoever judges whether it is over."""
        latest = next(reversed(self._hearings.values()), None)
        if latest is None:
            return TurnSoFar(text, silence_ms)
        return TurnSoFar(text, silence_ms, latest.language, latest.words)

    def _tell(self, activity: VoiceActivity) -> None:
        match activity:
            case SpeechOnset(at_sample, _):
                self._going_on.begin(max(0, at_sample - SPEECH_FORMAT.samples_for_ms(SPEECH_PREFIX_MS)))
            case SpeechOngoing(at_sample, duration_ms):
                self._desk.report(SpeechProgressed(at=self._now, speech_ms=int(duration_ms), sample=at_sample))
            case SpeechOffset(_, silence_ms):
                ended_at = self._now - int(silence_ms * 1_000_000)
                self._desk.report(TurnEnded(at=self._now, authority=TurnAuthority.VAD, speech_ended_at=ended_at))

    # -- buttons -------------------------------------------------------------------------------------------------------

    def press(self, button: DeviceButton) -> None:
        """A button of the device was used, or a client's that stands for it."""
        match button:
            case DeviceButton.STOP:
                self._desk.report(ButtonPressed(at=self._now))
            case DeviceButton.TALK:
                # From the next sample on: nothing that was said before the button went down is meant.
                self._going_on.talk_is_down = True
                talk = TurnAuthority.MANUAL
                self._desk.report(SpeechStarted(at=self._now, authority=talk, sample=self._next_sample))
            case DeviceButton.RELEASE:
                self._going_on.talk_is_down = False
                self._desk.report(TurnEnded(at=self._now, authority=TurnAuthority.MANUAL))
            case DeviceButton.CLEAR:
                self._going_on.talk_is_down = False
                self._going_on.forget()
                self._desk.report(TurnCancelled(at=self._now))

    # -- what the chart asks for -----------------------------------------------------------------------------------

    def start(self, action: StartRecognition) -> None:
        """Recognise from `action.sample` on, pre-roll included."""
        hearing = self._new_hearing(action)
        if action.sample is not None:
            before = self._pre_roll.since(action.sample)
            hearing.preload(before.frames)
            if before.missing_samples:
                self._report_loss(int(SPEECH_FORMAT.duration_ms(before.missing_samples)))

    def transcribe(self, action: TranscribeRecording) -> None:
        """Recognise the recording of a failed recognition as a whole; live audio follows it."""
        failed = self._failed.pop(action.failed_recognition_id, None)
        hearing = self._new_hearing(action)
        if failed is None or failed.recorded_until is None or not failed.recording:
            hearing.lose_audio()
            return
        hearing.preload(failed.recording)
        if failed.input_is_over:
            # What was captured since belongs to somebody else, or to nobody.
            hearing.finish()
            return
        # What was captured between the failure and this decision is in the ring.
        hearing.preload(self._pre_roll.since(failed.recorded_until).frames)

    def finish(self, action: FinishRecognition) -> None:
        hearing = self._hearings.get(action.recognition_id)
        if hearing is not None:
            if self._next_sample is not None:
                self._going_on.note_end(self._next_sample)
            hearing.finish()

    def cancel(self, action: CancelRecognition) -> None:
        self._failed.pop(action.recognition_id, None)
        hearing = self._hearings.pop(action.recognition_id, None)
        if hearing is not None:
            hearing.cancel()

    def _new_hearing(self, action: StartRecognition | TranscribeRecording) -> Hearing:
        recognition_id = action.recognition_id
        again = isinstance(action, TranscribeRecording)
        recognizer = self._fallback_recognizer if again else self._recognizer
        hearing = Hearing(
            self._desk, recognizer, recognition_id, SPEECH_FORMAT, action.stamp, on_failure=self._set_aside
        )
        self._hearings[recognition_id] = hearing
        self._desk.start_task(self._run, hearing, name=f"hearing {recognition_id}")
        return hearing

    def _set_aside(self, hearing: Hearing) -> None:
        """It failed: the chart may want its recording."""
        self._hearings.pop(hearing.recognition_id, None)
        self._failed[hearing.recognition_id] = hearing
        while len(self._failed) > KEPT_FAILURES:
            del self._failed[next(iter(self._failed))]

    async def _run(self, hearing: Hearing) -> None:
        await hearing.run()
        self._hearings.pop(hearing.recognition_id, None)

    @property
    def _now(self) -> int:
        return self._desk.clock.now_ns()
