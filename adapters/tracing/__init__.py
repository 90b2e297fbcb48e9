"""Traces on disk: recording a running chart, reading what was recorded, and drawing it along time."""

from .reader import read_trace
from .recorder import TraceRecorder, TraceWriteError
from .timeline import Mark, Sort, Span, Timeline, timeline_of
from .timeline_svg import html_of, svg_of
from .timeline_text import key, lanes, list_of
from .trace_file import TraceLimits

__all__ = [
    "Mark",
    "Sort",
    "Span",
    "Timeline",
    "TraceLimits",
    "TraceRecorder",
    "TraceWriteError",
    "html_of",
    "key",
    "lanes",
    "list_of",
    "read_trace",
    "svg_of",
    "timeline_of",
]
