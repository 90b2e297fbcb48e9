"""What a recogniser says, as facts for the chart, and the errors of listening to it."""

from __future__ import annotations

from ..statecharts.errors import ErrorScope, ScopedError
from ..statecharts.facts import Fact, SegmentFinalized, TranscriptUpdated, TurnEnded
from ..statecharts.values import TurnAuthority
from .reports import (
    RecognitionEnded,
    RecognitionErrored,
    RecognitionReport,
    SegmentFinal,
    SegmentHypothesis,
    UtteranceEnded,
)


def words_to_fact(report: RecognitionReport, recognition_id: str, at: int) -> Fact:
    """The chart's fact for what a recogniser reported, its terminal reports apart."""
    match report:
        case SegmentHypothesis():
            return TranscriptUpdated(
                at=at,
                recognition_id=recognition_id,
                segment_id=report.segment_id,
                revision=report.revision,
                text=report.text,
            )
        case SegmentFinal():
            return SegmentFinalized(
                at=at,
                recognition_id=recognition_id,
                segment_id=report.segment_id,
                revision=report.revision,
                text=report.text,
                start_sample=report.start_sample,
                end_sample=report.end_sample,
            )
        case UtteranceEnded():
            return TurnEnded(at=at, authority=TurnAuthority.RECOGNIZER)
        case RecognitionEnded() | RecognitionErrored():
            raise ValueError(f"{type(report).__name__} is terminal: the recognition's own chart takes it")


def _error(code: str, message: str) -> ScopedError:
    return ScopedError(code, "recognition", ErrorScope.TURN, message, retryable=True)


def too_slow(held_ms: int) -> ScopedError:
    """It does not keep up with speech."""
    return _error(
        "recognizer_too_slow", f"{held_ms} ms of speech wait for the recogniser; use a smaller model or a faster one"
    )


def not_opened(timeout_s: float) -> ScopedError:
    """There is no stream."""
    return _error("recognizer_not_opened", f"the recogniser did not open within {timeout_s:.0f} s")


def not_finished(timeout_ms: int) -> ScopedError:
    """It hangs at its end."""
    return _error(
        "recognizer_not_finished", f"the recogniser had not said everything {timeout_ms} ms after the end of its input"
    )


def incomplete() -> ScopedError:
    """There is a hole that nothing fills."""
    return ScopedError(
        "audio_incomplete", "recognition", ErrorScope.TURN, "part of the utterance was lost; it has to be said again"
    )


def cut_off() -> ScopedError:
    """It ended early, or without a word."""
    return _error("recognizer_cut_off", "the recogniser ended without saying that it had ended")
