"""Traces: recorded macrosteps, written and read as lines of JSON, without any input or output of their own."""

from .codec import JsonObject
from .comparing import TraceDifference, first_divergence
from .explaining import Explanation, Fate, explain
from .reading import decode_policies, parse_trace
from .records import Gap, Header, Record, Start, Taken, Trace, TraceError
from .redaction import Redactor
from .replaying import Divergence, Replay, chart_of, replay
from .wording import details_of, sentence_of, shown_value
from .writing import TraceEncoder

__all__ = [
    "Divergence",
    "Explanation",
    "Fate",
    "Gap",
    "Header",
    "JsonObject",
    "Record",
    "Redactor",
    "Replay",
    "Start",
    "Taken",
    "Trace",
    "TraceDifference",
    "TraceEncoder",
    "TraceError",
    "chart_of",
    "decode_policies",
    "details_of",
    "explain",
    "first_divergence",
    "parse_trace",
    "replay",
    "sentence_of",
    "shown_value",
]
