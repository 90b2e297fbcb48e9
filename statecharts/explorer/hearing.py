"""What can be heard next: speech, and what is recognised of it."""

from __future__ import annotations

from collections.abc import Iterator

from ..context import Context
from ..errors import ErrorScope, ScopedError
from ..facts import (
    Fact,
    InputDiscontinuity,
    RecognitionClosed,
    RecognitionFailed,
    SegmentFinalized,
    SpeechProgressed,
    SpeechStarted,
    TranscriptUpdated,
    TurnCancelled,
    TurnEnded,
)
from ..policies import Policies
from ..values import TurnAuthority
from .bounds import Bounds

WORDS = "go on"
BACKCHANNEL = "okay"


def error(*, retryable: bool = True, partial_output: bool = False) -> ScopedError:
    """Some failure."""
    return ScopedError("failed", "anywhere", ErrorScope.RESPONSE, "try again", retryable, partial_output=partial_output)


def speech(x: Context, policies: Policies, bounds: Bounds) -> Iterator[Fact]:
    """The user begins, goes on and ends."""
    turn = x.turn
    by_button = TurnAuthority.MANUAL if policies.turn.authority is TurnAuthority.MANUAL else TurnAuthority.VAD
    is_new = turn is None or turn.committed_at is not None or not turn.recognitions
    waiting = len(x.pending.turn_ids) if x.pending is not None else 0
    if (is_new and waiting <= bounds.waiting_turns) or (turn and len(turn.recognitions) < bounds.recognitions):
        yield SpeechStarted(at=x.now, authority=by_button)
    yield SpeechProgressed(at=x.now, speech_ms=1_000)
    yield TurnEnded(at=x.now, authority=policies.turn.authority)


def _names(x: Context, bounds: Bounds) -> tuple[str, int, list[str | None]]:
    """The recognition that speaks, its next revision, and the segments that it may speak of."""
    turn = x.turn
    assert turn is not None
    recognition_id = turn.recognitions[-1]
    known = [segment for segment in turn.segments if segment.recognition_id == recognition_id]
    revision = max((segment.revision for segment in known), default=0) + 1
    names = [segment.segment_id for segment in known if not segment.is_final]
    is_late = turn.committed_at is not None and turn.kept_segments is None
    room = bounds.segments + bounds.carried_segments if is_late else bounds.segments
    if len(turn.segments) + len(x.carried) < room:
        names.append(f"s{len(turn.segments) + len(x.carried)}")
    return recognition_id, revision, names


def recognition(x: Context, bounds: Bounds) -> Iterator[Fact]:
    """Words, and the end of words."""
    if x.turn is None or not x.turn.recognitions:
        return
    speaker, revision, names = _names(x, bounds)
    sounds = x.output is not None and x.output.started
    for name in names:
        for text in (WORDS, BACKCHANNEL) if sounds else (WORDS,):
            if name is not None:
                yield TranscriptUpdated(at=x.now, recognition_id=speaker, segment_id=name, revision=revision, text=text)
            yield SegmentFinalized(at=x.now, recognition_id=speaker, segment_id=name, revision=revision, text=text)
    for closing in x.turn.open_recognitions or (speaker,):
        yield RecognitionClosed(at=x.now, recognition_id=closing)
    yield from _former_transcripts(x)


def _former_transcripts(x: Context) -> Iterator[Fact]:
    for turn in x.untranscribed[-1:]:
        late = turn.open_recognitions[-1]
        yield SegmentFinalized(at=x.now, recognition_id=late, segment_id="s9", revision=1, text=WORDS)
        yield RecognitionClosed(at=x.now, recognition_id=late)
        yield RecognitionFailed(at=x.now, recognition_id=late, error=error())


def unheard(x: Context, bounds: Bounds) -> Iterator[Fact]:
    """Speech that comes to nothing."""
    yield TurnCancelled(at=x.now)
    yield InputDiscontinuity(at=x.now, lost_ms=10)
    yield InputDiscontinuity(at=x.now, lost_ms=5_000)
    if x.turn is None or not x.turn.recognitions:
        return
    speaker, revision, names = _names(x, bounds)
    for name in names:
        if name is not None:
            yield TranscriptUpdated(at=x.now, recognition_id=speaker, segment_id=name, revision=revision, text="")
        yield SegmentFinalized(at=x.now, recognition_id=speaker, segment_id=name, revision=revision, text="")
    if names:
        yield SegmentFinalized(at=x.now, recognition_id=speaker, segment_id=None, revision=revision, text=WORDS)
    for segment in x.turn.segments:
        if segment.segment_id is not None:
            yield SegmentFinalized(
                at=x.now, recognition_id=segment.recognition_id, segment_id=segment.segment_id, text=segment.text
            )
    for closing in x.turn.open_recognitions or (speaker,):
        yield RecognitionFailed(at=x.now, recognition_id=closing, error=error())
        if len(x.turn.recognitions) <= bounds.recognitions:
            yield RecognitionFailed(at=x.now, recognition_id=closing, error=error(), recorded_ms=500)
