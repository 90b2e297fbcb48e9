"""Assembly and re-framing: however a track is cut, the samples and positions are the same."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voicechart.audio import (
    SPEECH_FORMAT,
    AudioDiscontinuity,
    AudioFormat,
    AudioFormatError,
    AudioFrame,
    AudioSettingsError,
    PcmAssembler,
    Reframer,
)

formats = st.builds(AudioFormat, st.just(16_000), st.integers(1, 8))


def cut(data: bytes, cuts: list[int]) -> list[bytes]:
    edges = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
    return [data[a:b] for a, b in itertools.pairwise(edges)]


@given(formats, st.binary(max_size=300), st.lists(st.integers(0, 300), max_size=20), st.integers(0, 10**9))
def test_any_fragmentation_gives_identical_samples(
    format: AudioFormat, data: bytes, cuts: list[int], start_sample: int
) -> None:
    assembler = PcmAssembler(format, start_sample)
    joined, position = b"", start_sample
    for fragment in cut(data, cuts):
        frame = assembler.feed(fragment)
        if frame is not None:
            assert frame.samples > 0
            assert frame.start_sample == position
            joined, position = joined + frame.data, frame.end_sample
        assert assembler.pending_bytes < format.bytes_per_sample
    whole_bytes = len(data) - len(data) % format.bytes_per_sample
    assert joined == data[:whole_bytes]
    assert assembler.next_sample == position == start_sample + whole_bytes // format.bytes_per_sample
    assert assembler.flush() == len(data) - whole_bytes


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_a_fragment_may_be_any_bytes_like_object(kind: type[bytes | bytearray | memoryview]) -> None:
    frame = PcmAssembler(SPEECH_FORMAT).feed(kind(b"\x01\x02"))
    assert frame == AudioFrame(b"\x01\x02", SPEECH_FORMAT)


def test_a_caller_may_reuse_its_buffer_after_feeding_half_a_sample() -> None:
    assembler, buffer = PcmAssembler(SPEECH_FORMAT), bytearray(b"\x01")
    assert assembler.feed(buffer) is None
    buffer[0] = 0xFF
    assert assembler.feed(b"\x02") == AudioFrame(b"\x01\x02", SPEECH_FORMAT)


def test_a_flushed_cut_sample_is_told_and_does_not_shift_what_follows() -> None:
    assembler = PcmAssembler(SPEECH_FORMAT)
    assembler.feed(b"\x01\x02\x03")
    assert assembler.flush() == 1
    assert assembler.flush() == 0
    assert assembler.feed(b"\x05\x06") == AudioFrame(b"\x05\x06", SPEECH_FORMAT, 1)


def test_a_track_before_sample_zero_is_refused() -> None:
    with pytest.raises(AudioFormatError):
        PcmAssembler(SPEECH_FORMAT, -1)


@given(
    formats,
    st.integers(1, 40),
    st.integers(0, 10**9),
    st.lists(st.integers(0, 90), max_size=12),
)
def test_any_framing_gives_identical_frames(
    format: AudioFormat, size: int, start_sample: int, lengths: list[int]
) -> None:
    data = bytes(i % 251 for i in range(format.bytes_for(sum(lengths))))
    reframer = Reframer(format, size)
    out: list[AudioFrame] = []
    position = start_sample
    for length in lengths:
        offset = format.bytes_for(position - start_sample)
        out += reframer.feed(AudioFrame(data[offset : offset + format.bytes_for(length)], format, position))
        position += length
        assert reframer.pending_samples < size
    assert all(frame.samples == size for frame in out)
    if (remainder := reframer.flush()) is not None:
        assert 0 < remainder.samples < size
        out.append(remainder)
    assert b"".join(frame.data for frame in out) == data
    assert [frame.start_sample for frame in out] == [start_sample + index * size for index in range(len(out))]
    assert reframer.flush() is None


def test_a_frame_that_does_not_continue_is_refused_and_changes_nothing() -> None:
    reframer = Reframer(SPEECH_FORMAT, 4)
    reframer.feed(AudioFrame(bytes(6), SPEECH_FORMAT, 100))
    for wrong in (102, 104):
        with pytest.raises(AudioDiscontinuity) as caught:
            reframer.feed(AudioFrame(bytes(2), SPEECH_FORMAT, wrong))
        assert (caught.value.expected_sample, caught.value.got_sample) == (103, wrong)
    assert [frame.start_sample for frame in reframer.feed(AudioFrame(bytes(2), SPEECH_FORMAT, 103))] == [100]


def test_after_a_reset_the_track_may_go_on_anywhere() -> None:
    reframer = Reframer(SPEECH_FORMAT, 4)
    reframer.feed(AudioFrame(bytes(6), SPEECH_FORMAT))
    assert reframer.reset() == 3
    assert [frame.start_sample for frame in reframer.feed(AudioFrame(bytes(8), SPEECH_FORMAT, 50))] == [50]


def test_a_frame_of_another_format_is_refused() -> None:
    with pytest.raises(AudioFormatError, match="convert"):
        Reframer(SPEECH_FORMAT, 4).feed(AudioFrame(bytes(4), AudioFormat(16_000, 2)))


def test_a_frame_size_of_nothing_is_refused() -> None:
    assert Reframer(SPEECH_FORMAT, 1).samples == 1
    with pytest.raises(AudioSettingsError):
        Reframer(SPEECH_FORMAT, 0)
