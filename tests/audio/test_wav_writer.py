"""WAV out: valid at every flushed moment, and honest when the disk is full."""

from __future__ import annotations

import resource
import signal
import subprocess
import sys
import textwrap
import wave
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from voicechart.audio import (
    SPEECH_FORMAT,
    AudioFormat,
    AudioFormatError,
    AudioFrame,
    AudioSettingsError,
    AudioWriteError,
    WavWriter,
    read_wav,
)

STEREO = AudioFormat(48_000, 2)


def frame_of(samples: int, format: AudioFormat = SPEECH_FORMAT) -> AudioFrame:
    return AudioFrame(bytes(i % 251 for i in range(format.bytes_for(samples))), format)


@contextmanager
def disk_that_takes(size_bytes: int) -> Generator[None, None, None]:
    """Files of this process cannot grow beyond `size_bytes`; the interpreter turns the signal into an error."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size_bytes, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


def test_another_reader_understands_the_file(tmp_path: Path) -> None:
    path, frame = tmp_path / "out.wav", frame_of(1_000, STEREO)
    with WavWriter(path, STEREO) as writer:
        writer.write(frame)
        writer.write(frame)
        assert writer.samples == 2_000
    assert writer.closed
    with wave.open(str(path), "rb") as reader:
        assert (reader.getframerate(), reader.getnchannels(), reader.getsampwidth()) == (48_000, 2, 2)
        assert reader.readframes(3_000) == 2 * frame.data


def test_an_empty_file_is_valid_from_the_start(tmp_path: Path) -> None:
    writer = WavWriter(tmp_path / "out.wav", SPEECH_FORMAT)
    assert read_wav(writer.path).samples == 0
    writer.close()
    assert read_wav(writer.path).samples == 0


def test_after_a_flush_the_file_is_whole_although_it_is_open(tmp_path: Path) -> None:
    with WavWriter(tmp_path / "out.wav", SPEECH_FORMAT) as writer:
        for written in (100, 200):
            writer.write(frame_of(100))
            writer.flush()
            assert read_wav(writer.path).samples == written


def test_the_file_is_brought_up_to_date_at_the_promised_interval(tmp_path: Path) -> None:
    with WavWriter(tmp_path / "out.wav", SPEECH_FORMAT, flush_ms=10) as writer:
        writer.write(frame_of(159))
        assert read_wav(writer.path).samples == 0
        writer.write(frame_of(1))
        assert read_wav(writer.path).samples == 160


def test_a_killed_process_leaves_what_it_flushed(tmp_path: Path) -> None:
    path = tmp_path / "out.wav"
    program = """
        import os, signal, sys
        from pathlib import Path
        from voicechart.audio import SPEECH_FORMAT, AudioFrame, WavWriter
        writer = WavWriter(Path(sys.argv[1]), SPEECH_FORMAT, flush_ms=100)
        for _ in range(25):
            writer.write(AudioFrame(bytes(320), SPEECH_FORMAT))
        os.kill(os.getpid(), signal.SIGKILL)
    """
    killed = subprocess.run([sys.executable, "-c", textwrap.dedent(program), str(path)], timeout=30, check=False)
    assert killed.returncode == -signal.SIGKILL
    assert read_wav(path).duration_ms == 200


@pytest.mark.parametrize("odd_bytes", [0, 1])
def test_a_full_disk_is_a_typed_error_and_leaves_what_fitted(tmp_path: Path, odd_bytes: int) -> None:
    with disk_that_takes(44 + 1_000 + odd_bytes):
        writer = WavWriter(tmp_path / "out.wav", SPEECH_FORMAT, flush_ms=10)
        writer.write(frame_of(400))
        with pytest.raises(AudioWriteError, match="free some space"):
            writer.write(frame_of(400))
    assert writer.closed
    assert writer.samples == 500
    assert read_wav(writer.path).data == (2 * frame_of(400).data)[:1_000]
    with pytest.raises(AudioWriteError, match="is closed"):
        writer.write(frame_of(1))
    writer.close()


def test_a_disk_that_takes_nothing_at_all_any_more_leaves_the_last_flush(tmp_path: Path) -> None:
    writer = WavWriter(tmp_path / "out.wav", SPEECH_FORMAT, flush_ms=10)
    writer.write(frame_of(400))
    with disk_that_takes(0), pytest.raises(AudioWriteError, match="free some space"):
        writer.write(frame_of(400))
    assert writer.closed
    assert read_wav(writer.path).samples == writer.samples == 400


def test_a_disk_that_fills_up_at_the_end_is_told_by_the_context_manager(tmp_path: Path) -> None:
    with (
        pytest.raises(AudioWriteError, match="free some space"),
        disk_that_takes(100),
        WavWriter(tmp_path / "out.wav", SPEECH_FORMAT) as writer,
    ):
        writer.write(frame_of(400))
    assert read_wav(tmp_path / "out.wav").samples == 28


def test_a_disk_without_room_for_the_header_is_told_at_once() -> None:
    with pytest.raises(AudioWriteError, match="No space left"):
        WavWriter(Path("/dev/full"), SPEECH_FORMAT)


def test_a_place_that_cannot_be_written_is_told_at_once(tmp_path: Path) -> None:
    with pytest.raises(AudioWriteError, match="choose another place"):
        WavWriter(tmp_path / "nowhere" / "out.wav", SPEECH_FORMAT)


def test_the_size_bound_holds_to_the_byte(tmp_path: Path) -> None:
    writer = WavWriter(tmp_path / "out.wav", SPEECH_FORMAT, max_data_bytes=200)
    writer.write(frame_of(99))
    writer.write(frame_of(1))
    with pytest.raises(AudioWriteError, match="has reached 200 bytes"):
        writer.write(frame_of(1))
    assert writer.closed
    assert read_wav(writer.path).samples == 100


def test_another_format_is_refused_and_leaves_the_file_open(tmp_path: Path) -> None:
    with WavWriter(tmp_path / "out.wav", SPEECH_FORMAT) as writer:
        with pytest.raises(AudioFormatError):
            writer.write(frame_of(1, STEREO))
        writer.write(frame_of(1))
    assert read_wav(writer.path).samples == 1


@pytest.mark.parametrize(
    ("flush_ms", "max_data_bytes"), [(9, 100), (60_001, 100), (1_000, 1), (1_000, 0xFFFF_FFFF - 43)]
)
def test_bounds_outside_their_own_bounds_are_refused(tmp_path: Path, flush_ms: int, max_data_bytes: int) -> None:
    with pytest.raises(AudioSettingsError):
        WavWriter(tmp_path / "out.wav", SPEECH_FORMAT, flush_ms=flush_ms, max_data_bytes=max_data_bytes)
    assert not (tmp_path / "out.wav").exists()
