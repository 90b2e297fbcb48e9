"""Conversations with a model that hears and speaks by itself, under the same chart as any other.

`RealtimeModel` is the port (`ports.py`, `reports.py`). `RealtimeEngine` carries out what the chart decides through one
live session: an utterance is a recognition whose words only tell what was heard, an answer is a generation whose
speech comes with it.
"""

from .engine import RealtimeEngine, RealtimePorts
from .ports import RealtimeModel, RealtimeRequest, RealtimeSession, ToolOutput

__all__ = ["RealtimeEngine", "RealtimeModel", "RealtimePorts", "RealtimeRequest", "RealtimeSession", "ToolOutput"]
