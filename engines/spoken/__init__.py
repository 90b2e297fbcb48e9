"""Spoken text: what is said of what the model writes, in units that are safe to cut, and how far it was heard."""

from .projection import SpokenTextProjection
from .word_times import WordTimes, heard_end

__all__ = ["SpokenTextProjection", "WordTimes", "heard_end"]
