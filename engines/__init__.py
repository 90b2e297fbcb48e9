"""Engines: what carries out the chart's decisions over ports, and owns the tasks that doing so takes.

`Session` runs one conversation; `CascadeEngine` is its middle for a recogniser, a model and a synthesiser, `TextEngine`
for a conversation in writing; `ports` is what adapters implement.
"""

from .cascade import CascadeEngine, CascadePorts
from .device_engine import AudioDevice, AudioLink
from .history import ContextLimits, History, MemoryHistory
from .hold_lines import HoldLine, HoldLines
from .public_events import PublicEvent
from .session import Closed, Session
from .text_engine import TextEngine, TextPorts
from .tools import SideEffects, Tool, ToolError, ToolRefused, tool

__all__ = [
    "AudioDevice",
    "AudioLink",
    "CascadeEngine",
    "CascadePorts",
    "Closed",
    "ContextLimits",
    "History",
    "HoldLine",
    "HoldLines",
    "MemoryHistory",
    "PublicEvent",
    "Session",
    "SideEffects",
    "TextEngine",
    "TextPorts",
    "Tool",
    "ToolError",
    "ToolRefused",
    "tool",
]
