"""WAV files out: a recording that is a valid file at every flushed moment, however its process ends."""

from __future__ import annotations

import io
import os
import struct
from pathlib import Path
from types import TracebackType

from .errors import AudioFormatError, AudioSettingsError, AudioWriteError
from .formats import BYTES_PER_SAMPLE, AudioFormat, AudioFrame

_HEADER = struct.Struct("<4sI4s4sIHHIIHH4sI")

MAX_DATA_BYTES = 0xFFFF_FFFF - _HEADER.size
"""WAV counts bytes in 32 bits: about 37 hours of 16 kHz mono."""


class WavWriter:
    """Writes one PCM16 WAV file. A context manager; `close` writes what is left.

    Frames are appended as they come, whatever their positions. At least every `flush_ms` of audio (10 to 60,000) the
    samples go to the operating system and then the header is brought up to date: a killed process leaves a valid file
    that lacks at most that much. Sudden loss of power is another matter: nothing here waits for the disk.

    Every failure (a full disk, a missing folder, `max_data_bytes` reached) raises `AudioWriteError`; the file then
    holds what fitted, is closed, and refuses more.
    """

    def __init__(
        self, path: Path, format: AudioFormat, *, flush_ms: int = 1_000, max_data_bytes: int = MAX_DATA_BYTES
    ) -> None:
        if not 10 <= flush_ms <= 60_000:
            raise AudioSettingsError(f"flushing every {flush_ms} ms is outside 10–60000 ms")
        if not format.bytes_per_sample <= max_data_bytes <= MAX_DATA_BYTES:
            raise AudioSettingsError(f"{max_data_bytes} bytes are outside {format.bytes_per_sample}–{MAX_DATA_BYTES}")
        self.path = path
        self.format = format
        self._flush_bytes = format.bytes_for(format.samples_for_ms(flush_ms))
        self._max_data_bytes = max_data_bytes
        self._pending = bytearray()
        self._data_bytes = 0
        try:
            # Unbuffered, so that this class knows which bytes a full disk still took.
            self._file: io.FileIO = path.open("wb", buffering=0)
        except OSError as error:
            raise AudioWriteError(f"cannot write {path}: {error.strerror}; choose another place") from error
        try:
            self._write_header()
        except OSError as error:
            self._file.close()
            raise self._cannot_write(error) from error

    @property
    def samples(self) -> int:
        """Samples per channel handed in so far and not refused."""
        return (self._data_bytes + len(self._pending)) // self.format.bytes_per_sample

    @property
    def closed(self) -> bool:
        return self._file.closed

    def write(self, frame: AudioFrame) -> None:
        """Append a frame. Raises `AudioFormatError` for another format, `AudioWriteError` as the class says."""
        if frame.format != self.format:
            raise AudioFormatError(f"this file is {self.format}, not {frame.format}")
        self._refuse_when_closed()
        if self._data_bytes + len(self._pending) + len(frame.data) > self._max_data_bytes:
            self.close()
            raise AudioWriteError(f"{self.path} has reached {self._max_data_bytes} bytes; go on in another file")
        self._pending += frame.data
        if len(self._pending) >= self._flush_bytes:
            self.flush()

    def flush(self) -> None:
        """Bring the file up to date: afterwards any reader sees everything that was written."""
        self._refuse_when_closed()
        try:
            self._write_pending()
        except OSError as error:
            self._pending.clear()
            self._give_up()
            raise self._cannot_write(error) from error

    def close(self) -> None:
        """Write what is left and close; closing again changes nothing."""
        if self._file.closed:
            return
        self.flush()
        try:
            self._file.close()
        except OSError as error:
            raise self._cannot_write(error) from error

    def __enter__(self) -> WavWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _write_pending(self) -> None:
        while self._pending:
            taken = self._file.write(self._pending)
            self._data_bytes += taken
            del self._pending[:taken]
        self._write_header()

    def _give_up(self) -> None:
        """Make a valid file of what the disk took, and close it."""
        try:
            self._data_bytes -= self._data_bytes % self.format.bytes_per_sample
            self._write_header()
            self._file.close()
        except OSError:
            # The first error is the one to report; the header of the last flush still describes a valid file.
            self._file.close()

    def _write_header(self) -> None:
        header = _HEADER.pack(
            b"RIFF",
            _HEADER.size - 8 + self._data_bytes,
            b"WAVE",
            b"fmt ",
            16,
            1,
            self.format.channels,
            self.format.sample_rate_hz,
            self.format.bytes_for(self.format.sample_rate_hz),
            self.format.bytes_per_sample,
            8 * BYTES_PER_SAMPLE,
            b"data",
            self._data_bytes,
        )
        self._file.seek(0)
        self._file.write(header)
        self._file.seek(0, os.SEEK_END)

    def _refuse_when_closed(self) -> None:
        if self._file.closed:
            raise AudioWriteError(f"{self.path} is closed; open another file")

    def _cannot_write(self, error: OSError) -> AudioWriteError:
        return AudioWriteError(f"cannot write {self.path}: {error.strerror}; free some space or choose another place")
