"""What the model hears, as the recogniser that the rest of this side knows.

An utterance goes to the model as it is spoken. When it is over the model has it, and there is nothing to wait for
before an answer is asked for; its words come when they come.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

import anyio

from ...audio.formats import SPEECH_FORMAT, AudioFrame
from ...audio.resampling import TrackResampler
from ...statecharts.capabilities import RecognizerCapabilities
from ...statecharts.errors import ErrorScope, ScopedError
from ..engine import Desk
from ..ports import RecognitionRequest
from ..reports import (
    PortError,
    RecognitionEnded,
    RecognitionErrored,
    RecognitionReport,
    SegmentFinal,
    SegmentHypothesis,
)
from .link import ModelLink
from .reports import Transcribed, TranscriptionEnded

SEGMENT = "heard"
"""An utterance that a model hears is one segment."""


class ModelHearing:
    """Implements `Recognizer` for turns that are ended on this side."""

    def __init__(self, desk: Desk, link: ModelLink) -> None:
        self._desk = desk
        self._link = link

    @property
    def capabilities(self) -> RecognizerCapabilities:
        """Words are a by-product: a model may tell none."""
        told = self._link.model.capabilities.input_transcripts
        return RecognizerCapabilities(live_input=True, interim=told, segment_finals=told)

    async def prepare(self) -> None:
        """The session is made by the engine."""

    async def open(self, request: RecognitionRequest) -> HeardUtterance:
        """Raises `PortError`."""
        utterance = HeardUtterance(self._desk, self._link, request.recognition_id)
        await self._link.session.begin_utterance(request.recognition_id)
        return utterance

    async def aclose(self) -> None:
        """The session is closed by the engine."""


class HeardUtterance:
    """One utterance on its way to the model. Implements `RecognitionStream`."""

    def __init__(self, desk: Desk, link: ModelLink, utterance_id: str) -> None:
        self._desk = desk
        self._link = link
        self._utterance_id = utterance_id
        self._mail = link.hear(utterance_id)
        self._resampler = TrackResampler(SPEECH_FORMAT, link.model.input_format)
        self._is_over = False
        link.hold_answers(utterance_id)

    async def write(self, frame: AudioFrame) -> None:
        resampled = self._resampler.feed(frame)
        if resampled is not None:
            await self._link.session.write(resampled)

    async def finish_input(self) -> None:
        """The model has all of it."""
        if self._is_over:
            return
        self._is_over = True
        try:
            rest = self._resampler.flush()
            if rest is not None:
                await self._link.session.write(rest)
            await self._link.session.commit_utterance(self._utterance_id)
        finally:
            self._link.let_answers_go(self._utterance_id)

    async def reports(self) -> AsyncIterator[RecognitionReport]:
        """Words as a projection; a transcript that fails takes nothing back from the model."""
        while (told := await self._mail.take()) is not None:
            match told:
                case Transcribed(_, revision, text, is_final):
                    yield (SegmentFinal if is_final else SegmentHypothesis)(SEGMENT, revision, text)
                case TranscriptionEnded(_, error):
                    yield RecognitionEnded() if error is None else RecognitionErrored(error)
                    return
        yield RecognitionErrored(
            ScopedError("transcript_lost", "recognition", ErrorScope.TURN, "the model's session ended before its words")
        )

    def cancel(self, reason: str) -> None:
        """What was said shall not count, unless the model has it already."""
        if not self._is_over:
            self._is_over = True
            self._desk.start_task(self._discard, name=f"discarding {self._utterance_id}")

    async def _discard(self) -> None:
        try:
            with anyio.move_on_after(DISCARD_TIMEOUT_S):
                await self._link.session.discard_utterance(self._utterance_id)
        except PortError:
            # Without a session there is nothing to take back.
            pass
        finally:
            self._link.let_answers_go(self._utterance_id)

    async def aclose(self) -> None:
        self.cancel("closed")
        self._link.forget(self._utterance_id)


DISCARD_TIMEOUT_S = 2.0
