"""Spoken text: what is said of what the model writes, in units that are safe to cut."""

from .projection import SpokenTextProjection

__all__ = ["SpokenTextProjection"]
