"""Reading a trace file."""

from __future__ import annotations

from pathlib import Path

from ...statecharts.traces import Trace, TraceError, parse_trace

MAX_TRACE_BYTES = 1024**3
"""Nothing that a recorder writes is larger."""


def read_trace(path: Path | str) -> Trace:
    """The trace in a file. Raises `TraceError` with one line that says what is wrong with it."""
    path = Path(path)
    try:
        size_bytes = path.stat().st_size
        if size_bytes > MAX_TRACE_BYTES:
            raise TraceError(f"{path} has {size_bytes:,} bytes, more than any trace ({MAX_TRACE_BYTES:,})")
        data = path.read_bytes()
    except OSError as error:
        raise TraceError(f"{path} cannot be read: {error.strerror or error}") from error
    return parse_trace(data, str(path))
