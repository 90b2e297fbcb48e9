"""Errors of the audio layer. Each says what to change."""

from __future__ import annotations


class AudioError(Exception):
    """Base of every error raised by `voicechart.audio`."""


class AudioFormatError(AudioError, ValueError):
    """PCM that does not fit its declared format, or a format outside the supported bounds."""
