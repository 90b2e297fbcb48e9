"""WAV in: what recorders really write becomes PCM16, and what cannot be read says why."""

from __future__ import annotations

import os
import struct
import wave
from pathlib import Path

import pytest

from voicechart.audio import AudioFormat, AudioReadError, AudioSettingsError, WavReader, read_wav

PCM, FLOAT, ALAW, EXTENSIBLE = 1, 3, 6, 0xFFFE
GUID_TAIL = bytes.fromhex("000000001000800000aa00389b71")


def fmt(tag: int, bits: int, channels: int = 1, rate_hz: int = 16_000) -> bytes:
    block = bits // 8 * channels
    return struct.pack("<HHIIHH", tag, channels, rate_hz, rate_hz * block, block, bits)


def chunk(name: bytes, body: bytes, size: int | None = None) -> bytes:
    return name + struct.pack("<I", len(body) if size is None else size) + body + bytes(len(body) % 2)


def wav(tmp_path: Path, *chunks: bytes, riff: bytes = b"RIFF") -> Path:
    body = b"WAVE" + b"".join(chunks)
    path = tmp_path / "recording.wav"
    path.write_bytes(riff + struct.pack("<I", len(body)) + body)
    return path


@pytest.mark.parametrize("channels", [1, 2, 8])
def test_plain_pcm16_comes_out_as_it_is(tmp_path: Path, channels: int) -> None:
    path, data = tmp_path / "plain.wav", bytes(range(160)) * channels
    with wave.open(str(path), "wb") as writer:
        writer.setnchannels(channels)
        writer.setsampwidth(2)
        writer.setframerate(22_050)
        writer.writeframes(data)
    frame = read_wav(path)
    assert (frame.data, frame.format, frame.start_sample) == (data, AudioFormat(22_050, channels), 0)


def test_frames_have_the_asked_size_exact_positions_and_a_shorter_end(tmp_path: Path) -> None:
    data = bytes(range(250)) * 4
    with WavReader(wav(tmp_path, chunk(b"fmt ", fmt(PCM, 16)), chunk(b"data", data))) as reader:
        assert (reader.samples, reader.duration_ms) == (500, 31.25)
        frames = list(reader.frames(10))
    assert [(frame.start_sample, frame.samples) for frame in frames] == [(0, 160), (160, 160), (320, 160), (480, 20)]
    assert b"".join(frame.data for frame in frames) == data


@pytest.mark.parametrize(
    ("tag", "bits", "raw", "expected"),
    [
        (PCM, 8, bytes([0, 128, 255]), [-32_768, 0, 32_512]),
        (PCM, 24, b"\x00\x00\x80\x7f\x00\x00\x80\x00\x00\xff\xff\x7f", [-32_768, 0, 1, 32_767]),
        (PCM, 32, struct.pack("<4i", -(2**31), 0x7FFF, 0x8000, 2**31 - 1), [-32_768, 0, 1, 32_767]),
        (FLOAT, 32, struct.pack("<5f", -1.5, -1, 0.5, 1, 1.5), [-32_768, -32_768, 16_384, 32_767, 32_767]),
        (FLOAT, 64, struct.pack("<3d", -0.25, 0, 1e300), [-8_192, 0, 32_767]),
    ],
)
@pytest.mark.parametrize("extensible", [False, True])
def test_other_encodings_are_rounded_and_limited_to_16_bits(
    tmp_path: Path, tag: int, bits: int, raw: bytes, expected: list[int], extensible: bool
) -> None:
    form = fmt(tag, bits)
    if extensible:
        form = fmt(EXTENSIBLE, bits) + struct.pack("<HHIH", 22, bits, 4, tag) + GUID_TAIL
    frame = read_wav(wav(tmp_path, chunk(b"fmt ", form), chunk(b"data", raw)))
    assert list(struct.unpack(f"<{len(expected)}h", frame.data)) == expected


def test_other_chunks_odd_ones_too_are_passed_over(tmp_path: Path) -> None:
    path = wav(
        tmp_path,
        chunk(b"LIST", b"odd"),
        chunk(b"fmt ", fmt(PCM, 16) + bytes(40)),
        chunk(b"fact", bytes(4)),
        chunk(b"data", b"\x01\x02"),
        chunk(b"id3 ", b"metadata"),
    )
    assert read_wav(path).data == b"\x01\x02"


@pytest.mark.parametrize("size", [0x7FFF_F000, 0xFFFF_FFFF])
def test_a_size_that_a_piped_recorder_could_not_know_means_to_the_end(tmp_path: Path, size: int) -> None:
    path = wav(tmp_path, chunk(b"fmt ", fmt(PCM, 16)), chunk(b"data", bytes(10), size))
    with WavReader(path) as reader:
        assert (reader.samples, reader.missing_bytes) == (5, 0)


def test_a_recording_that_was_cut_off_is_read_only_by_who_asks_for_frames(tmp_path: Path) -> None:
    path = wav(tmp_path, chunk(b"fmt ", fmt(PCM, 16)), chunk(b"data", bytes(11), 100)[:-1])
    with WavReader(path) as reader:
        assert (reader.samples, reader.missing_bytes) == (5, 89)
        assert [frame.samples for frame in reader.frames()] == [5]
    with pytest.raises(AudioReadError, match="89 bytes that its header announces are missing"):
        read_wav(path)


def test_an_empty_recording_is_an_empty_frame(tmp_path: Path) -> None:
    assert read_wav(wav(tmp_path, chunk(b"fmt ", fmt(PCM, 16)), chunk(b"data", b""))).samples == 0


def test_a_recorder_killed_before_its_header_was_written_is_named(tmp_path: Path) -> None:
    with pytest.raises(AudioReadError, match="announces no samples but holds 10 bytes more"):
        WavReader(wav(tmp_path, chunk(b"fmt ", fmt(PCM, 16)), chunk(b"data", bytes(10), 0)))


@pytest.mark.parametrize(
    ("chunks", "says"),
    [
        ((chunk(b"fmt ", fmt(ALAW, 8)), chunk(b"data", b"")), r"format 0x0006 with 8 bits; convert it to 16-bit PCM"),
        ((chunk(b"fmt ", fmt(PCM, 12)), chunk(b"data", b"")), "with 12 bits"),
        ((chunk(b"fmt ", fmt(EXTENSIBLE, 16)), chunk(b"data", b"")), "format 0xfffe"),
        ((chunk(b"fmt ", fmt(PCM, 16, rate_hz=3_999)), chunk(b"data", b"")), "3999 Hz"),
        ((chunk(b"fmt ", fmt(PCM, 16, channels=9)), chunk(b"data", b"")), "9 channels"),
        ((chunk(b"fmt ", fmt(PCM, 16)[:12] + b"\x03\x00\x10\x00"), chunk(b"data", b"")), "3 bytes a sample, not 2"),
        ((chunk(b"fmt ", bytes(14)), chunk(b"data", b"")), "14 bytes, too short"),
        ((chunk(b"data", b""), chunk(b"fmt ", fmt(PCM, 16))), "no format before its samples"),
        ((chunk(b"fmt ", fmt(PCM, 16)),), "ends too early"),
        ((), "ends too early"),
        ((chunk(b"fmt ", fmt(PCM, 16)), chunk(b"LIST", b"", 0xFFFF_FFFF)), "ends too early"),
    ],
)
def test_a_file_that_cannot_be_read_says_why(tmp_path: Path, chunks: tuple[bytes, ...], says: str) -> None:
    with pytest.raises(AudioReadError, match=says):
        WavReader(wav(tmp_path, *chunks))


def test_something_else_than_wav_is_named(tmp_path: Path) -> None:
    with pytest.raises(AudioReadError, match="not a WAV file"):
        WavReader(wav(tmp_path, riff=b"OggS"))


def test_a_missing_file_and_a_folder_are_named(tmp_path: Path) -> None:
    with pytest.raises(AudioReadError, match="No such file"):
        WavReader(tmp_path / "nowhere.wav")
    with pytest.raises(AudioReadError, match="directory"):
        WavReader(tmp_path)


def test_a_pipe_is_refused_because_its_length_is_unknown(tmp_path: Path) -> None:
    path = tmp_path / "pipe.wav"
    os.mkfifo(path)
    # Opened for both directions a pipe does not wait for its other end.
    end = os.open(path, os.O_RDWR)
    try:
        os.write(end, b"RIFF\x00\x00\x00\x00WAVE" + chunk(b"LIST", bytes(4)) + bytes(64))
        with pytest.raises(AudioReadError, match=r"cannot read .* as a file"):
            WavReader(path)
    finally:
        os.close(end)


def test_a_device_that_fails_to_read_is_named() -> None:
    with pytest.raises(AudioReadError, match="cannot read /proc/self/mem: Input/output error"):
        WavReader(Path("/proc/self/mem"))


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_float_values_that_are_no_numbers_are_an_error(tmp_path: Path, value: float) -> None:
    path = wav(tmp_path, chunk(b"fmt ", fmt(FLOAT, 32)), chunk(b"data", struct.pack("<f", value)))
    with pytest.raises(AudioReadError, match="not numbers"):
        read_wav(path)


def test_a_file_that_shrinks_while_it_is_read_is_an_error(tmp_path: Path) -> None:
    path = wav(tmp_path, chunk(b"fmt ", fmt(PCM, 16)), chunk(b"data", bytes(100_000)))
    with WavReader(path) as reader:
        frames = reader.frames(1_000)
        next(frames)
        path.write_bytes(b"")
        with pytest.raises(AudioReadError, match="ends too early"):
            list(frames)


def test_a_whole_recording_is_bounded_to_the_millisecond(tmp_path: Path) -> None:
    path = wav(tmp_path, chunk(b"fmt ", fmt(PCM, 16)), chunk(b"data", bytes(3_200)))
    assert read_wav(path, max_ms=100).duration_ms == 100
    with pytest.raises(AudioReadError, match="lasts 100 ms, more than 99"):
        read_wav(path, max_ms=99)


@pytest.mark.parametrize("frame_ms", [0, 1_001])
def test_frame_sizes_outside_the_bounds_are_refused(tmp_path: Path, frame_ms: int) -> None:
    with (
        WavReader(wav(tmp_path, chunk(b"fmt ", fmt(PCM, 16)), chunk(b"data", b""))) as reader,
        pytest.raises(AudioSettingsError, match="outside 1–1000 ms"),
    ):
        reader.frames(frame_ms)
