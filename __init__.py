"""A streaming-first voice-conversation runtime whose middle is an explicit statechart."""

__version__ = "0.1.0"
