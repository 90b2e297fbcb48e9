"""Traces on disk: recording a running chart, and reading what was recorded."""

from .reader import read_trace
from .recorder import TraceRecorder, TraceWriteError
from .trace_file import TraceLimits

__all__ = ["TraceLimits", "TraceRecorder", "TraceWriteError", "read_trace"]
