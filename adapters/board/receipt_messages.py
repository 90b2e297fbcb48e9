"""The speaker port's receipts as messages, and back."""

from __future__ import annotations

from ...engines.reports import (
    PlaybackPosition,
    RenderingDrained,
    RenderingProgressed,
    RenderingStarted,
    RenderingStarved,
    RenderingStopped,
)
from .messages import Drained, Progressed, Receipt, Started, Starved, Stopped, WirePosition

RenderingReceipt = RenderingStarted | RenderingProgressed | RenderingStarved | RenderingDrained | RenderingStopped


def to_message(report: RenderingReceipt) -> Receipt:
    """What the service sends."""
    stream_id, epoch, position = report.stream_id, report.output_epoch, _to_wire(report.position)
    match report:
        case RenderingStarted():
            return Started(stream_id=stream_id, output_epoch=epoch, position=position)
        case RenderingProgressed():
            return Progressed(stream_id=stream_id, output_epoch=epoch, position=position)
        case RenderingStarved():
            return Starved(stream_id=stream_id, output_epoch=epoch, position=position)
        case RenderingDrained():
            return Drained(stream_id=stream_id, output_epoch=epoch, position=position)
        case RenderingStopped():
            return Stopped(
                stream_id=stream_id, output_epoch=epoch, position=position, dropped_samples=report.dropped_samples
            )


def to_report(message: Receipt) -> RenderingReceipt:
    """What the client reports."""
    stream_id, epoch, position = message.stream_id, message.output_epoch, _from_wire(message.position)
    match message:
        case Started():
            return RenderingStarted(stream_id, epoch, position)
        case Progressed():
            return RenderingProgressed(stream_id, epoch, position)
        case Starved():
            return RenderingStarved(stream_id, epoch, position)
        case Drained():
            return RenderingDrained(stream_id, epoch, position)
        case Stopped():
            return RenderingStopped(stream_id, epoch, position, message.dropped_samples)


def _to_wire(position: PlaybackPosition) -> WirePosition:
    return WirePosition(
        accepted_samples=position.accepted_samples,
        submitted_samples=position.submitted_samples,
        played_samples=position.played_samples,
        source=position.source,
        confidence=position.confidence,
        at_ns=position.at_ns,
    )


def _from_wire(position: WirePosition) -> PlaybackPosition:
    return PlaybackPosition(
        position.accepted_samples,
        position.submitted_samples,
        position.played_samples,
        position.source,
        position.confidence,
        position.at_ns,
    )
