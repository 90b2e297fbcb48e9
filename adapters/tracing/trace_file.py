"""A file of bounded size with a bounded number of predecessors: `trace.jsonl`, `trace.jsonl.1`, `trace.jsonl.2`."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

_PRIVATE = 0o600
"""Who spoke when is nobody else's business, even without the words."""


@dataclass(frozen=True, slots=True)
class TraceLimits:
    """How much a trace may take. Raises `ValueError` outside the bounds."""

    max_file_bytes: int = 16 * 1024 * 1024
    """A file that would grow beyond this is put aside and a new one begun. 64 KiB to 1 GiB."""
    kept_files: int = 3
    """How many files that were put aside stay; the oldest goes. 0 to 100."""
    max_queued_steps: int = 1_024
    """Macrosteps that may wait to be written, about 3 KiB each; more are counted as missing. 1 to 65,536."""

    disk_timeout_ms: int = 2_000
    """How long somebody waits for a disk that hangs before tracing is switched off. 10 to 60,000."""

    def __post_init__(self) -> None:
        for name, low, high in (
            ("disk_timeout_ms", 10, 60_000),
            ("max_file_bytes", 64 * 1024, 1024**3),
            ("kept_files", 0, 100),
            ("max_queued_steps", 1, 65_536),
        ):
            value: int = getattr(self, name)
            if not low <= value <= high:
                raise ValueError(f"{name} = {value} is outside {low:,}–{high:,}")


class TraceFile:
    """Appends lines. Every method may raise `OSError`. Nothing is synced: a crash may cost the last lines."""

    def __init__(self, path: Path, limits: TraceLimits) -> None:
        """Begins a new file; one that is there already is put aside, not written over."""
        self._path = path
        self._limits = limits
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.is_file() and path.stat().st_size:
            self._put_aside()
        self._file = self._open()
        self._size_bytes = 0

    def has_room(self, line: bytes) -> bool:
        """Whether the line still goes into this file. An empty file takes any line."""
        return not self._size_bytes or self._size_bytes + len(line) <= self._limits.max_file_bytes

    def append(self, line: bytes) -> None:
        """Write a whole line."""
        self._file.write(line)
        self._size_bytes += len(line)

    def begin_anew(self) -> None:
        """Put the file aside and begin another of the same name."""
        self._file.close()
        self._put_aside()
        self._file = self._open()
        self._size_bytes = 0

    def flush(self) -> None:
        """Let readers see what was appended."""
        self._file.flush()

    def close(self) -> None:
        """Flush and close; also when it is closed already."""
        self._file.close()

    def _open(self) -> BinaryIO:
        return os.fdopen(os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, _PRIVATE), "wb")

    def _put_aside(self) -> None:
        kept = self._limits.kept_files
        if not kept:
            return
        for place in range(kept - 1, 0, -1):
            older = self._aside(place)
            if older.exists():
                older.replace(self._aside(place + 1))
        self._path.replace(self._aside(1))

    def _aside(self, place: int) -> Path:
        return self._path.with_name(f"{self._path.name}.{place}")
