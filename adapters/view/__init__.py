"""A running conversation on a terminal: the chart with its active states, captions, what is written and what is heard.

`Watching` follows a session without making it wait; `LiveView` draws, `TimelineView` prints a line a moment.
"""

from .views import LiveView, TimelineView, View
from .watching import Watching

__all__ = ["LiveView", "TimelineView", "View", "Watching"]
