"""The receipts of rendering, as reports of the speaker port. Sans-IO."""

from __future__ import annotations

from ...audio.formats import AudioFormat
from ...engines.reports import (
    PlaybackPosition,
    RenderingDrained,
    RenderingProgressed,
    RenderingStarted,
    RenderingStarved,
    RenderingStopped,
    SpeakerReport,
)
from ...statecharts.values import PositionSource
from .render_stream import RenderStream

PROGRESS_MS = 100
"""Receipts are at most ten a second, in time of the device."""


class Receipts:
    """Writes one receipt for each thing that happened to a stream, and none after its terminal one."""

    def __init__(self, device_format: AudioFormat, source: PositionSource, confidence: float) -> None:
        self._progress_samples = device_format.samples_for_ms(PROGRESS_MS)
        self._source = source
        self._confidence = confidence
        self._reports: list[SpeakerReport] = []
        self.now_ns: int | None = None
        """When the device last told what was heard."""

    def take(self) -> list[SpeakerReport]:
        """The receipts since the last call, in order."""
        reports, self._reports = self._reports, []
        return reports

    def started(self, stream: RenderStream) -> None:
        """The first sample after buffering was heard."""
        stream.reported_played = stream.played_device_samples
        self._reports.append(RenderingStarted(stream.stream_id, stream.output_epoch, self._position(stream)))

    def progressed(self, stream: RenderStream) -> None:
        """More was heard; worth a receipt when it is enough."""
        if stream.played_device_samples - stream.reported_played >= self._progress_samples:
            stream.reported_played = stream.played_device_samples
            self._reports.append(RenderingProgressed(stream.stream_id, stream.output_epoch, self._position(stream)))

    def starved(self, stream: RenderStream) -> None:
        """The device wanted more than there was."""
        # The end barrier, or a stop, may have come while the silence was on its way to the ear.
        if not stream.stopping and not stream.played_whole:
            self._reports.append(RenderingStarved(stream.stream_id, stream.output_epoch, self._position(stream)))

    def drained(self, stream: RenderStream) -> None:
        """The last sample before the end barrier was heard."""
        self._reports.append(RenderingDrained(stream.stream_id, stream.output_epoch, self._position(stream)))

    def stopped(self, stream: RenderStream) -> None:
        """Nothing more will be heard."""
        position, dropped = self._position(stream), stream.unplayed_samples
        self._reports.append(RenderingStopped(stream.stream_id, stream.output_epoch, position, dropped))

    def _position(self, stream: RenderStream) -> PlaybackPosition:
        return stream.position(self._source, self._confidence, self.now_ns)
