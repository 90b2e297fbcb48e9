"""Listening, where the provider ends turns: the whole track goes to it, and it tells when somebody speaks.

The microphone is kept shut while a reply is heard, unless the board's echo cancellation was validated: a model that
hears itself answers itself.
"""

from __future__ import annotations

from contextlib import suppress

import anyio

from ...audio.formats import SPEECH_FORMAT
from ...audio.resampling import DownMix, TrackResampler
from ...statecharts.actions import CancelRecognition, FinishRecognition, StartRecognition, TranscribeRecording
from ...statecharts.errors import ErrorScope, ScopedError
from ...statecharts.facts import (
    ButtonPressed,
    ConnectionLost,
    RecognitionClosed,
    RecognitionFailed,
    SegmentFinalized,
    SpeechProgressed,
    SpeechStarted,
    TranscriptUpdated,
    TurnEnded,
)
from ...statecharts.values import TurnAuthority
from ..engine import Desk
from ..port_calls import reading
from ..ports import Microphone
from ..reports import ButtonUsed, Captured, CaptureEnded, CaptureGap, DeviceButton, PortError
from .hearing import SEGMENT
from .link import ModelLink
from .reports import SpeechCommitted, SpeechDetected, Transcribed

PROGRESS_S = 0.5
"""How often the chart hears that the user is still speaking."""


class ProviderListening:
    """The microphone's side under the turn authority `engine`."""

    def __init__(self, desk: Desk, link: ModelLink) -> None:
        self._desk = desk
        self._link = link
        self._speech_id: str | None = None
        self._spoken_since_ns: int | None = None
        self._recognitions: dict[str, str] = {}
        self._resampler = TrackResampler(SPEECH_FORMAT, link.model.input_format)
        link.on_speech = self._note_speech

    async def listen(self, microphone: Microphone) -> None:
        """Follow one device's capture to its end."""
        self._resampler = TrackResampler(
            microphone.format, self._link.model.input_format, downmix=DownMix.FIRST_CHANNEL
        )
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._tell_progress)
            async with reading(microphone.reports()) as reports:
                async for report in reports:
                    await self._take(report)
            tasks.cancel_scope.cancel()

    async def _take(self, report: Captured | CaptureGap | CaptureEnded | ButtonUsed) -> None:
        match report:
            case Captured(frame) if self._is_admitted:
                resampled = self._resampler.feed(frame)
                if resampled is not None:
                    await self._link.session.write(resampled)
            case Captured() | CaptureGap():
                # Of a track with holes the provider hears what there is; its clock is its own.
                self._resampler.reset()
            case ButtonUsed(button):
                self.press(button)
            case CaptureEnded(error):
                if error is not None:
                    self._desk.report(ConnectionLost(at=self._now, error=error))

    def press(self, button: DeviceButton) -> None:
        """The stop button; there is no talk button where the provider ends turns."""
        if button is DeviceButton.STOP:
            self._desk.report(ButtonPressed(at=self._now))

    @property
    def _is_admitted(self) -> bool:
        conversation = self._desk.conversation
        output = conversation.context.output
        return conversation.policies.interruption.full_duplex or output is None or not output.started

    # -- what the provider tells -----------------------------------------------------------------------------------

    def _note_speech(self, report: SpeechDetected | SpeechCommitted) -> None:
        match report:
            case SpeechDetected(speech_id):
                self._speech_id = speech_id
                self._spoken_since_ns = self._now
                self._desk.report(SpeechStarted(at=self._now, authority=TurnAuthority.ENGINE))
            case SpeechCommitted():
                self._spoken_since_ns = None
                self._desk.report(TurnEnded(at=self._now, authority=TurnAuthority.ENGINE))

    async def _tell_progress(self) -> None:
        while True:
            await anyio.sleep(PROGRESS_S)
            since_ns = self._spoken_since_ns
            if since_ns is not None:
                speech_ms = (self._now - since_ns) // 1_000_000
                self._desk.report(SpeechProgressed(at=self._now, speech_ms=speech_ms))

    # -- what the chart decides ------------------------------------------------------------------------------------

    def start(self, action: StartRecognition) -> None:
        """The utterance that the provider detected last is that recognition."""
        if self._speech_id is None:
            self._desk.report(self._failed(action.recognition_id, "the provider has not told of any speech"))
            return
        self._recognitions[action.recognition_id] = self._speech_id
        self._desk.start_task(
            self._follow_words, action.recognition_id, self._speech_id, name=f"words of {self._speech_id}"
        )

    def finish(self, action: FinishRecognition) -> None:
        """The provider has the audio already."""

    def cancel(self, action: CancelRecognition) -> None:
        """What is in the provider's buffer shall not count."""
        speech_id = self._recognitions.pop(action.recognition_id, None)
        if speech_id is not None:
            self._link.forget(speech_id)
            self._desk.start_task(self._discard, speech_id, name=f"discarding {speech_id}")

    def transcribe(self, action: TranscribeRecording) -> None:
        """Nothing is recorded here."""
        self._desk.report(self._failed(action.recognition_id, "there is no recording of what the provider hears"))

    async def _discard(self, speech_id: str) -> None:
        # Without a session there is nothing to take back.
        with suppress(PortError):
            await self._link.session.discard_utterance(speech_id)

    async def _follow_words(self, recognition_id: str, speech_id: str) -> None:
        mail = self._link.hear(speech_id)
        while (told := await mail.take()) is not None:
            match told:
                case Transcribed(_, revision, text, is_final):
                    kind = SegmentFinalized if is_final else TranscriptUpdated
                    self._desk.report(
                        kind(
                            at=self._now,
                            recognition_id=recognition_id,
                            segment_id=SEGMENT,
                            revision=revision,
                            text=text,
                        )
                    )
                case _:
                    if told.error is not None:
                        self._desk.report(
                            RecognitionFailed(at=self._now, recognition_id=recognition_id, error=told.error)
                        )
        self._recognitions.pop(recognition_id, None)
        self._desk.report(RecognitionClosed(at=self._now, recognition_id=recognition_id))

    def _failed(self, recognition_id: str, message: str) -> RecognitionFailed:
        error = ScopedError("nothing_to_transcribe", "recognition", ErrorScope.TURN, message)
        return RecognitionFailed(at=self._now, recognition_id=recognition_id, error=error)

    @property
    def _now(self) -> int:
        return self._desk.clock.now_ns()
