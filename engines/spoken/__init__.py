"""Spoken text: what is said of what the model writes, in units that are safe to cut, and how far it was heard."""

from .grain import UnitGrain, grain_for, synthesis_degradation
from .projection import SpokenTextProjection
from .word_times import WordTimes, heard_end

__all__ = ["SpokenTextProjection", "UnitGrain", "WordTimes", "grain_for", "heard_end", "synthesis_degradation"]
