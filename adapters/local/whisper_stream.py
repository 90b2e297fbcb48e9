"""Whisper as a live recogniser: the growing utterance is decoded again and again.

A decode costs about 0.4 s whatever the length, so hypotheses come every 0.6 s at best, and one more as soon as the
speaker pauses. That one is of the very audio that the final is made of (Silero says where the speech ends, and what
follows is cut off), so that the final usually is there when the turn ends.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable
from concurrent.futures import Future
from dataclasses import dataclass

import anyio

from ...audio.formats import SPEECH_FORMAT, AudioFrame
from ...audio.voice_activity import SpeechProbability
from ...engines.ports import RecognitionRequest
from ...engines.reports import (
    PortError,
    RecognitionEnded,
    RecognitionErrored,
    RecognitionReport,
    SegmentFinal,
    SegmentHypothesis,
    Word,
)
from ...statecharts.errors import ErrorScope
from .agreement import Agreement, DecodedWord, Settled
from .bridge import ReportBridge
from .utterance import Span, Utterance
from .whisper_model import WhisperModel, recognition_error
from .worker import Worker, WorkerClosedError, result_of

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class WhisperBounds:
    """How much, how often and how long."""

    max_utterance_ms: int = 30_000
    """Whisper's window: at most 30,000."""
    decode_every_ms: int = 600
    listen_every_ms: int = 100
    close_deadline_s: float = 10.0
    load_deadline_s: float = 60.0

    def __post_init__(self) -> None:
        if not 1_000 <= self.max_utterance_ms <= 30_000:
            message = f"max_utterance_ms = {self.max_utterance_ms} must be 1,000–30,000"
            raise recognition_error("bad_setting", message, ErrorScope.SESSION)


class WhisperStream:
    """One utterance. Everything but `write`'s copying happens in the recogniser's worker thread."""

    def __init__(
        self,
        request: RecognitionRequest,
        model: WhisperModel,
        worker: Worker,
        hearing: SpeechProbability,
        bounds: WhisperBounds,
    ) -> None:
        self._segment_id = f"{request.recognition_id}/1"
        self._language = request.language.partition("-")[0].lower() if request.language else None
        self._model = model
        self._worker = worker
        self._bounds = bounds
        self._utterance = Utterance(hearing)
        self._agreement = Agreement()
        self._bridge = ReportBridge[RecognitionReport](capacity=1)
        self._expected_sample: int | None = None
        self._finished = False
        self._job: Future[None] | None = None
        self._listened_to = 0
        self._decoded: Span | None = None
        self._settled = Settled("", 0, ())
        self._told = ("", 0)
        self._revision = 0

    async def write(self, frame: AudioFrame) -> None:
        """Raises `PortError`, and takes nothing of the frame, when the stream has ended, the format is not 16 kHz mono,
        a hole precedes the frame, or the utterance would be longer than it may.
        """
        self._refuse_after_the_end()
        if frame.format != SPEECH_FORMAT:
            raise recognition_error("wrong_format", f"Whisper hears 16 kHz mono, not {frame.format}; resample first")
        if self._expected_sample not in (None, frame.start_sample):
            message = f"expected sample {self._expected_sample}, got {frame.start_sample}; open another stream"
            raise recognition_error("audio_discontinuity", message)
        longest = SPEECH_FORMAT.samples_for_ms(self._bounds.max_utterance_ms)
        if self._utterance.samples + frame.samples > longest:
            message = (
                f"an utterance may last {self._bounds.max_utterance_ms} ms; finish this one and open another stream"
            )
            raise recognition_error("utterance_too_long", message)
        self._expected_sample = frame.end_sample
        self._utterance.append(frame.data)
        unheard = self._utterance.samples - self._listened_to
        if unheard >= SPEECH_FORMAT.samples_for_ms(self._bounds.listen_every_ms) and (
            self._job is None or self._job.done()
        ):
            self._listened_to = self._utterance.samples
            self._submit(self._listen)

    async def finish_input(self) -> None:
        if not self._finished:
            self._finished = True
            self._submit(self._finish)

    def reports(self) -> AsyncIterator[RecognitionReport]:
        return self._bridge.reports()

    def cancel(self, reason: str) -> None:
        self._bridge.stop(RecognitionEnded(cancelled=True))

    async def aclose(self) -> None:
        """Cancels, then waits for the decode that may be running, at most `close_deadline_s`."""
        self.cancel("closed")
        if self._job is None or self._job.done():
            return
        self._job.cancel()
        with anyio.CancelScope(shield=True):
            try:
                await result_of(self._job, self._bounds.close_deadline_s)
            except (TimeoutError, WorkerClosedError):
                # Late: it ends by itself and finds nobody. Or it never began.
                return

    def _refuse_after_the_end(self) -> None:
        if self._bridge.ended:
            raise recognition_error("stream_ended", "this stream has ended; open another one")
        if self._finished:
            raise recognition_error("write_after_finish", "finish_input() was called; open another stream")

    def _submit(self, job: Callable[[], None]) -> None:
        try:
            self._job = self._worker.submit(job, self)
        except WorkerClosedError as closed:
            raise recognizer_closed() from closed
        self._job.add_done_callback(self._check)

    def _check(self, job: Future[None]) -> None:
        """A job that raised ends the stream: nobody may wait for its reports for ever."""
        error = None if job.cancelled() else job.exception()
        if error is not None:
            logger.error("the recogniser failed", exc_info=error)
            failure = recognition_error("engine_failed", f"Whisper raised {type(error).__name__}; see the log")
            self._bridge.end(RecognitionErrored(failure.error))

    # -- in the worker's thread --------------------------------------------------------------------------------

    def _listen(self) -> None:
        if self._bridge.ended:
            return
        self._utterance.listen()
        span = self._utterance.speech()
        if span is not None and self._is_due(span):
            self._decode(span)
            self._tell()

    def _finish(self) -> None:
        if self._bridge.ended:
            return
        self._utterance.listen_to_the_end()
        span = self._utterance.speech()
        if span is not None:
            self._decode(span)
        if self._settled.text:
            self._bridge.put(self._final())
        else:
            self._tell()
        self._bridge.end(RecognitionEnded())

    def _is_due(self, span: Span) -> bool:
        decoded_to = self._decoded.end if self._decoded else 0
        grown = span.end - decoded_to
        return span.closed or grown >= SPEECH_FORMAT.samples_for_ms(self._bounds.decode_every_ms)

    def _decode(self, span: Span) -> None:
        if self._decoded is not None and (span.start, span.end) == (self._decoded.start, self._decoded.end):
            return
        self._decoded = span
        words = self._model.decode(self._utterance.cut(span), self._language)
        offset_s = span.start / SPEECH_FORMAT.sample_rate_hz
        placed = tuple(
            DecodedWord(word.piece, word.start_s + offset_s, word.end_s + offset_s, word.probability) for word in words
        )
        self._settled = self._agreement.update(placed, span.end / SPEECH_FORMAT.sample_rate_hz)

    def _tell(self) -> None:
        """Report what is heard now, when it is something else than before."""
        heard = (self._settled.text, self._settled.stable_chars)
        if heard != self._told:
            self._told = heard
            self._revision += 1
            hypothesis = SegmentHypothesis(self._segment_id, self._revision, *heard, self._words())
            self._bridge.put(hypothesis, replaces=lambda older: isinstance(older, SegmentHypothesis))

    def _final(self) -> SegmentFinal:
        words = self._words()
        sure = [word.confidence for word in words if word.confidence is not None]
        return SegmentFinal(
            self._segment_id,
            self._revision + 1,
            self._settled.text,
            start_sample=words[0].start_sample if words else None,
            end_sample=words[-1].end_sample if words else None,
            words=words,
            language="en" if self._model.english_only else self._language,
            confidence=sum(sure) / len(sure) if sure else None,
        )

    def _words(self) -> tuple[Word, ...]:
        rate = SPEECH_FORMAT.sample_rate_hz
        last = self._utterance.samples
        return tuple(
            Word(
                word.piece.strip(),
                min(last, round(word.start_s * rate)),
                min(last, round(word.end_s * rate)),
                word.probability,
            )
            for word in self._settled.words
        )


def recognizer_closed() -> PortError:
    """What every use of a closed recogniser raises."""
    return recognition_error("port_closed", "the recogniser was closed", ErrorScope.SESSION)
