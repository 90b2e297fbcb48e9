"""WAV files in: whatever a recorder wrote, as PCM16 frames.

The standard library's `wave` is not enough on Python 3.11: it refuses WAVE_FORMAT_EXTENSIBLE, which many recorders
write for ordinary PCM, and float. Sources: Microsoft's "Multiple Channel Audio Data and WAVE Files" and RFC 2361.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import BinaryIO

import numpy as np
import numpy.typing as npt

from .errors import AudioFormatError, AudioReadError, AudioSettingsError
from .formats import AudioFormat, AudioFrame

_PCM, _FLOAT, _EXTENSIBLE = 0x0001, 0x0003, 0xFFFE
_CONVERTIBLE = {(_PCM, 8), (_PCM, 16), (_PCM, 24), (_PCM, 32), (_FLOAT, 32), (_FLOAT, 64)}

_SIZE_NOT_KNOWN = 0x7FFF_F000
"""Writers that cannot seek put this (SoX) or 0xFFFFFFFF (FFmpeg) where the size should be: read to the end."""

MAX_WHOLE_RECORDING_MS = 600_000


@dataclass(frozen=True, slots=True)
class _Encoding:
    tag: int
    bits: int
    format: AudioFormat

    @property
    def block_bytes(self) -> int:
        """Bytes of one sample of every channel in the file."""
        return self.bits // 8 * self.format.channels


class WavReader:
    """Reads one WAV file as a stream of frames. A context manager.

    Takes PCM of 8, 16, 24 and 32 bits and float of 32 and 64 bits, plain or extensible, with any other chunks between.
    More than 16 bits are rounded to 16, float beyond ±1 is limited. Everything else (A-law, MP3 in WAV, a broken
    header, a rate or channel number outside `AudioFormat`) raises `AudioReadError` with what to do about it.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            self._file: BinaryIO = path.open("rb")
        except OSError as error:
            raise AudioReadError(f"cannot open {path}: {error.strerror}") from error
        try:
            self._encoding, declared_bytes = self._read_header()
            present_bytes = os.fstat(self._file.fileno()).st_size - self._file.tell()
        except OSError as error:
            self._file.close()
            raise AudioReadError(f"cannot read {path} as a file: {error}") from error
        except AudioReadError:
            self._file.close()
            raise
        if declared_bytes == 0 < present_bytes:
            self._file.close()
            raise AudioReadError(
                f"{path} announces no samples but holds {present_bytes} bytes more; its recorder was killed before it "
                "wrote the header: repair the header or record it again"
            )
        if declared_bytes >= _SIZE_NOT_KNOWN:
            declared_bytes = min(declared_bytes, present_bytes)
        self.missing_bytes = max(0, declared_bytes - present_bytes)
        """Announced by the header but not in the file: the recording was cut off. What is there is read."""
        self.samples = min(declared_bytes, present_bytes) // self._encoding.block_bytes
        """Samples per channel in the file."""

    @property
    def format(self) -> AudioFormat:
        """What the frames are in: the file's rate and channels, 16 bits."""
        return self._encoding.format

    @property
    def duration_ms(self) -> float:
        return self.format.duration_ms(self.samples)

    def frames(self, frame_ms: int = 20) -> Iterator[AudioFrame]:
        """The rest of the recording in frames of `frame_ms` (1 to 1,000), the last one shorter. Iterated once.

        Raises `AudioSettingsError` outside those bounds and `AudioReadError` when reading fails.
        """
        if not 1 <= frame_ms <= 1_000:
            raise AudioSettingsError(f"frames of {frame_ms} ms are outside 1–1000 ms")
        return self._frames(self.format.samples_for_ms(frame_ms))

    def __enter__(self) -> WavReader:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._file.close()

    def _frames(self, frame_samples: int) -> Iterator[AudioFrame]:
        position = 0
        while position < self.samples:
            wanted = min(frame_samples, self.samples - position)
            raw = self._read_exactly(wanted * self._encoding.block_bytes)
            frame = AudioFrame(self._to_pcm16(raw), self.format, position)
            yield frame
            position = frame.end_sample

    def _read_exactly(self, length_bytes: int) -> bytes:
        try:
            raw = self._file.read(length_bytes)
        except OSError as error:
            raise AudioReadError(f"cannot read {self._path}: {error.strerror}") from error
        if len(raw) < length_bytes:
            raise AudioReadError(f"{self._path} ends too early; it is cut off, or is being written: record it again")
        return raw

    def _read_header(self) -> tuple[_Encoding, int]:
        """Leaves the file at the first sample; returns the declared size of the samples beside their encoding."""
        riff = self._read_exactly(12)
        if riff[:4] != b"RIFF" or riff[8:] != b"WAVE":
            raise AudioReadError(f"{self._path} is not a WAV file (no RIFF/WAVE header); convert it to WAV")
        encoding: _Encoding | None = None
        while True:
            name, size = struct.unpack("<4sI", self._read_exactly(8))
            if name == b"data":
                break
            if name == b"fmt ":
                encoding = self._read_encoding(size)
                size -= min(size, 40)
            self._file.seek(size + size % 2, os.SEEK_CUR)
        if encoding is None:
            raise AudioReadError(f"{self._path} has no format before its samples; convert it anew")
        return encoding, size

    def _read_encoding(self, size: int) -> _Encoding:
        if size < 16:
            raise AudioReadError(f"{self._path} has a format chunk of {size} bytes, too short for WAV; convert it anew")
        chunk = self._read_exactly(min(size, 40))
        tag, channels, rate_hz, _, block_bytes, bits = struct.unpack_from("<HHIIHH", chunk)
        if tag == _EXTENSIBLE and len(chunk) >= 26:
            # The sub-format's GUID begins with the plain tag.
            (tag,) = struct.unpack_from("<H", chunk, 24)
        if (tag, bits) not in _CONVERTIBLE:
            raise AudioReadError(
                f"{self._path} is encoded as format {tag:#06x} with {bits} bits; convert it to 16-bit PCM "
                "(for instance with FFmpeg: -c:a pcm_s16le)"
            )
        try:
            encoding = _Encoding(tag, bits, AudioFormat(rate_hz, channels))
        except AudioFormatError as error:
            raise AudioReadError(f"{self._path}: {error}; convert it") from error
        if block_bytes != encoding.block_bytes:
            raise AudioReadError(
                f"{self._path} says {block_bytes} bytes a sample, not {encoding.block_bytes}; convert it anew"
            )
        return encoding

    def _to_pcm16(self, raw: bytes) -> bytes:
        tag, bits = self._encoding.tag, self._encoding.bits
        if tag == _FLOAT:
            return self._pcm16_from_float(np.frombuffer(raw, f"<f{bits // 8}").astype(np.float64))
        if bits == 8:
            return ((np.frombuffer(raw, np.uint8).astype("<i2") - 128) << 8).tobytes()
        if bits == 24:
            parts = np.frombuffer(raw, np.uint8).reshape(-1, 3)
            # A zero byte below makes it the 32-bit case.
            raw = np.concatenate([np.zeros((len(parts), 1), np.uint8), parts], axis=1).tobytes()
        if bits > 16:
            rounded = (np.frombuffer(raw, "<i4").astype(np.int64) + 0x8000) >> 16
            return np.minimum(rounded, 32_767).astype("<i2").tobytes()
        return raw

    def _pcm16_from_float(self, values: npt.NDArray[np.float64]) -> bytes:
        if not np.isfinite(values).all():
            raise AudioReadError(f"{self._path} holds values that are not numbers; record or convert it again")
        return np.clip(np.rint(values * 32_768), -32_768, 32_767).astype("<i2").tobytes()


def read_wav(path: Path, *, max_ms: int = MAX_WHOLE_RECORDING_MS) -> AudioFrame:
    """A whole recording as one frame; raises `AudioReadError`, also beyond `max_ms` and for a file that was cut off."""
    with WavReader(path) as reader:
        if reader.missing_bytes:
            raise AudioReadError(
                f"{path} was cut off: {reader.missing_bytes} bytes that its header announces are missing; "
                "record it again, or read what is there with WavReader"
            )
        if reader.duration_ms > max_ms:
            raise AudioReadError(
                f"{path} lasts {reader.duration_ms:.0f} ms, more than {max_ms}; read it with WavReader"
            )
        return AudioFrame(b"".join(frame.data for frame in reader.frames(1_000)), reader.format)
