"""Traces: recorded macrosteps, written and read as lines of JSON, without any input or output of their own."""

from .codec import JsonObject
from .reading import decode_policies, parse_trace
from .records import Gap, Header, Record, Start, Taken, Trace, TraceError
from .redaction import Redactor
from .replaying import Divergence, Replay, chart_of, replay
from .writing import TraceEncoder

__all__ = [
    "Divergence",
    "Gap",
    "Header",
    "JsonObject",
    "Record",
    "Redactor",
    "Replay",
    "Start",
    "Taken",
    "Trace",
    "TraceEncoder",
    "TraceError",
    "chart_of",
    "decode_policies",
    "parse_trace",
    "replay",
]
