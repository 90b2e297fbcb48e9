"""The segments of one utterance: which revision was told last, and what is final."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ....engines.reports import SegmentFinal, SegmentHypothesis, Word


@dataclass(slots=True)
class _Segment:
    revision: int = 0
    told: tuple[str, int] = ("", 0)
    is_final: bool = False


class SegmentLedger:
    """Turns what a provider says about a segment into reports: revisions only grow, nothing is told twice, a final is
    the last word, and a segment that turned out to be empty is retracted.
    """

    def __init__(self, recognition_id: str) -> None:
        self._recognition_id = recognition_id
        self._segments: dict[str, _Segment] = {}

    def is_final(self, key: str) -> bool:
        """Nothing about this segment is news any more."""
        return key in self._segments and self._segments[key].is_final

    def has_open_text(self) -> bool:
        """Something was told that is not final."""
        return any(segment.told[0] for segment in self._segments.values() if not segment.is_final)

    def open_keys(self) -> tuple[str, ...]:
        """Of the segments that were told and are not final, the oldest first."""
        return tuple(key for key, segment in self._segments.items() if not segment.is_final)

    def revise(
        self, key: str, text: str, *, stable_chars: int = 0, words: tuple[Word, ...] = ()
    ) -> Iterator[SegmentHypothesis]:
        """The segment reads like this now."""
        segment = self._segments.setdefault(key, _Segment())
        if segment.is_final or segment.told == (text, stable_chars):
            return
        segment.told = (text, stable_chars)
        segment.revision += 1
        yield SegmentHypothesis(self._id_of(key), segment.revision, text, stable_chars, words)

    def finish(
        self,
        key: str,
        text: str,
        *,
        start_sample: int | None = None,
        end_sample: int | None = None,
        words: tuple[Word, ...] = (),
        language: str | None = None,
        confidence: float | None = None,
    ) -> Iterator[SegmentFinal | SegmentHypothesis]:
        """The last word on the segment; an empty text retracts it."""
        segment = self._segments.setdefault(key, _Segment())
        if segment.is_final:
            return
        if text:
            segment.revision += 1
            yield SegmentFinal(
                self._id_of(key), segment.revision, text, start_sample, end_sample, words, language, confidence
            )
        else:
            yield from self.revise(key, "")
        segment.is_final = True

    def _id_of(self, key: str) -> str:
        return f"{self._recognition_id}/{key}"
