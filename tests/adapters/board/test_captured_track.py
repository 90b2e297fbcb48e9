"""A bounded track drops its oldest audio, counts it, and tells the gap where it is."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voicechart.adapters.board.captured_track import CapturedTrack, TrackPiece, TrackReader
from voicechart.audio.formats import AudioFormat
from voicechart.engines.reports import Captured, CaptureEnded, CaptureGap, MicrophoneReport

FORMAT = AudioFormat(8_000)
pytestmark = pytest.mark.anyio


async def read(reader: TrackReader) -> list[MicrophoneReport]:
    return [report async for report in reader]


async def test_a_full_track_drops_its_oldest_frame_at_the_edge() -> None:
    track = CapturedTrack(FORMAT, max_ms=20)
    reader = TrackReader(track)
    for value in (1, 2):
        track.append(bytes([value, 0]) * 80, None)
    assert track.dropped_samples == 0
    track.append(b"\3\0" * 80, None)
    assert track.dropped_samples == 80
    reader.end()
    gap, second, third, end = await read(reader)
    assert gap == CaptureGap(80, "the device overran, or its reader was too slow")
    assert isinstance(second, Captured)
    assert second.frame.data == b"\2\0" * 80
    assert isinstance(third, Captured)
    assert end == CaptureEnded(None)


async def test_the_end_is_told_once() -> None:
    reader = TrackReader(CapturedTrack(FORMAT))
    reader.end()
    reader.end()
    assert await read(reader) == [CaptureEnded(None)]
    assert await read(reader) == []


@given(st.lists(st.tuples(st.integers(1, 100), st.integers(0, 50)), max_size=30))
def test_frames_and_gaps_account_for_every_captured_sample(pieces: list[tuple[int, int]]) -> None:
    track = CapturedTrack(FORMAT, max_ms=20)
    taken = 0
    position = 0
    for samples, lost in pieces:
        track.append(bytes(2 * samples), None, lost)
    while isinstance(piece := track.take(), TrackPiece):
        assert piece.frame.start_sample >= position
        position = piece.frame.end_sample
        taken += piece.frame.samples
    assert position == sum(samples + lost for samples, lost in pieces)
    assert taken + track.dropped_samples == position
