"""What the speaker tells, as facts for the chart."""

from __future__ import annotations

from ..statecharts.facts import (
    ConnectionLost,
    Fact,
    PlaybackDrained,
    PlaybackProgressed,
    PlaybackStopped,
    PrebufferFilled,
    StreamFact,
    Underrun,
)
from .reports import (
    RenderingDrained,
    RenderingProgressed,
    RenderingStarted,
    RenderingStarved,
    RenderingStopped,
    SpeakerLost,
    SpeakerReport,
)

_RECEIPTS: dict[type[SpeakerReport], type[StreamFact]] = {
    RenderingStarted: PrebufferFilled,
    RenderingProgressed: PlaybackProgressed,
    RenderingStarved: Underrun,
    RenderingDrained: PlaybackDrained,
    RenderingStopped: PlaybackStopped,
}


def receipt_to_fact(report: SpeakerReport, at: int) -> Fact:
    """The chart's fact for what the speaker reported."""
    if isinstance(report, SpeakerLost):
        return ConnectionLost(at=at, error=report.error)
    position = report.position
    kind = _RECEIPTS[type(report)]
    return kind(
        at=at,
        output_epoch=report.output_epoch,
        stream_id=report.stream_id,
        accepted_samples=position.accepted_samples,
        submitted_samples=position.submitted_samples,
        played_samples=position.played_samples,
        source=position.source,
        confidence=position.confidence,
    )
